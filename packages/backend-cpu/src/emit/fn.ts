/**
 * Builds one function in low-level form: makes values, opens and closes blocks.
 *
 * Knows instructions only as codes; what they mean is the business of the lowering files around it.
 */
import * as S from '../asm/simd.ts';
import * as W from '../asm/plain.ts';
import * as T from '../asm/types.ts';
import type { ValType } from '../asm/types.ts';
import { Block, CELL, type Cell, type MemoryClass, Val } from './lir.ts';

const zero16 = new Uint8Array(16);

/** Under construction: one function. Values are made in the current block or further out. */
export class Fn {
  readonly params: readonly ValType[];
  /** Types of the cells after the parameters. */
  readonly cells: ValType[] = [];
  readonly root: Block = new Block(null, 'root', null);
  current: Block = this.root;
  /** Values may not move out of this block: the innermost IF or repeat around the current one. */
  floor: Block = this.root;
  #nextId = 0;
  readonly #known = new Map<number, Val>();
  readonly #smallInts = new Map<number, Val>();
  readonly #vectors = new Map<string, Val>();

  constructor(params: readonly ValType[]) {
    this.params = params;
  }

  newCell(type: ValType): Cell {
    this.cells.push(type);
    return { type, index: this.params.length + this.cells.length - 1 };
  }

  param(index: number): Cell {
    return { type: this.params[index]!, index };
  }

  /** Runs `make` with values free to move out of conditions: for cheap integers that several places share. */
  speculate<T>(make: () => T): T {
    const { floor } = this;
    this.floor = this.root;
    const result = make();
    this.floor = floor;
    return result;
  }

  /** Reads a cell that does not change while its block runs: a parameter, a counter, an induction. */
  read(cell: Cell, block: Block): Val {
    return this.#make(CELL, cell.type, [], cell.index, null, block, null);
  }

  /** A pure instruction. */
  op(code: number, type: ValType, args: readonly Val[], imm = 0, bytes: Uint8Array | null = null): Val {
    let block = this.floor;
    for (const a of args) if (a.block.depth > block.depth) block = a.block;
    return this.#make(code, type, args, imm, bytes, block, null);
  }

  /** A pure instruction on two integers, made once per operands. */
  int(code: number, type: ValType, a: Val, b: Val): Val {
    const key = (a.id * 0x100000 + b.id) * 256 + code;
    const old = this.#known.get(key);
    if (old?.block.open) return old;
    const v = this.op(code, type, [a, b]);
    this.#known.set(key, v);
    return v;
  }

  i32(value: number): Val {
    let v = this.#smallInts.get(value | 0);
    if (v === undefined) {
      v = this.#make(W.i32Const, T.i32, [], value | 0, null, this.root, null);
      this.#smallInts.set(value | 0, v);
    }
    return v;
  }

  i64(value: number | bigint): Val {
    const bytes = new Uint8Array(8);
    new DataView(bytes.buffer).setBigInt64(0, BigInt.asIntN(64, BigInt(value)), true);
    return this.#make(W.i64Const, T.i64, [], 0, bytes, this.root, null);
  }

  f32(value: number): Val {
    return this.#make(W.f32Const, T.f32, [], value, null, this.root, null);
  }

  f64(value: number): Val {
    return this.#make(W.f64Const, T.f64, [], value, null, this.root, null);
  }

  /** Equal bytes are one value, which takes one local. */
  v128(bytes: Uint8Array): Val {
    const key = String.fromCharCode(...bytes);
    let v = this.#vectors.get(key);
    if (v === undefined) {
      v = this.#make(S.const, T.v128, [], 0, bytes, this.root, null);
      this.#vectors.set(key, v);
    }
    return v;
  }

  zero128(): Val {
    return this.v128(zero16);
  }

  /** A load. With a class it stands exactly here, else anywhere in the current block. */
  load(code: number, type: ValType, addr: Val, offset: number, cls: MemoryClass | null): Val {
    const v = this.#make(code, type, [addr], offset, null, this.current, cls);
    if (cls !== null) this.current.stmts.push({ kind: 'def', val: v });
    return v;
  }

  /** An instruction that changes memory and has a result; runs exactly here. */
  effect(code: number, type: ValType, args: readonly Val[], offset: number, cls: MemoryClass): Val {
    const value = this.#make(code, type, args, offset, null, this.current, null);
    const cell = this.newCell(type);
    this.#markWrite(cls);
    this.#markWrite(cell);
    this.current.stmts.push({ kind: 'set', cell, value, cls });
    return this.read(cell, this.current);
  }

  /** Reads a cell as it is now. */
  readNow(cell: Cell): Val {
    const v = this.#make(CELL, cell.type, [], cell.index, null, this.current, cell);
    this.current.stmts.push({ kind: 'def', val: v });
    return v;
  }

  assign(cell: Cell, value: Val): void {
    this.#markWrite(cell);
    this.current.stmts.push({ kind: 'set', cell, value, cls: null });
  }

  store(code: number, addr: Val, value: Val, offset: number, cls: MemoryClass, lane = -1): void {
    this.#markWrite(cls);
    this.current.stmts.push({ kind: 'store', code, addr, value, offset, lane, cls });
  }

  openLoop(
    limit: Val,
    step: number,
    certain: boolean,
    start: Val | null = null,
    counter: Cell = this.newCell(T.i32),
  ): Block {
    const block = new Block(this.current, 'loop', { counter, start, step, limit, certain, inductions: [] });
    this.#enter(block);
    return block;
  }

  openIf(cond: Val): Block {
    const block = new Block(this.current, 'if', null);
    block.cond = cond;
    this.#enter(block);
    this.floor = block;
    return block;
  }

  close(): void {
    const block = this.current;
    block.open = false;
    const parent = block.parent!;
    for (const cls of block.writes) parent.writes.add(cls);
    this.current = parent;
    let floor = parent;
    while (floor.kind === 'loop') floor = floor.parent!;
    this.floor = floor;
  }

  /** A pointer or index that starts at `init` and grows by `step` per iteration of `block`. */
  induction(block: Block, init: Val, step: number): Val {
    const cell = this.newCell(init.type);
    block.loop!.inductions.push({ cell, init, step });
    return this.read(cell, block);
  }

  #enter(block: Block): void {
    this.current.stmts.push({ kind: 'block', block });
    this.current = block;
  }

  #markWrite(cls: MemoryClass): void {
    this.current.writes.add(cls);
  }

  #make(
    code: number,
    type: ValType,
    args: readonly Val[],
    imm: number,
    bytes: Uint8Array | null,
    block: Block,
    cls: MemoryClass | null,
  ): Val {
    return new Val(this.#nextId++, code, type, args, imm, bytes, block, cls);
  }
}
