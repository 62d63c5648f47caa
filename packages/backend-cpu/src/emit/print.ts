/**
 * Writes a function's blocks as instructions: places values at their first use, keeps those used again in locals.
 *
 * Order rules: a value used once is computed where it is needed, on the operand stack. A value needed by an inner block is
 * computed before that block opens. A load of changing memory is computed at the latest before the first store that may
 * change what it reads. Locals are handed out when a value needs one and taken back after its last use.
 */
import type { FunctionBody } from '../asm/module.ts';
import * as A from '../asm/atomics.ts';
import * as S from '../asm/simd.ts';
import * as W from '../asm/plain.ts';
import * as T from '../asm/types.ts';
import type { ValType } from '../asm/types.ts';
import { ByteWriter } from '../asm/writer.ts';
import type { Fn } from './fn.ts';
import { type Block, CELL, isCheap, type MemoryClass, type Val } from './lir.ts';
import { countUses } from './uses.ts';

const VOID_BLOCK = 0x40;

/** log2 of the access size of memory instructions, which is also the alignment promised. SIMD loads promise that of their lanes. */
// biome-ignore format: a table reads better grouped
const alignment: ReadonlyMap<number, number> = new Map<number, number>([
  [W.i32Load, 2], [W.i64Load, 3], [W.f32Load, 2], [W.f64Load, 3], [W.i32Load8S, 0], [W.i32Load8U, 0], [W.i32Load16S, 1], [W.i32Load16U, 1],
  [W.i32Store, 2], [W.i64Store, 3], [W.f32Store, 2], [W.f64Store, 3], [W.i32Store8, 0], [W.i32Store16, 1],
  [S.load, 2], [S.store, 2], [S.load8x8S, 0], [S.load8x8U, 0], [S.load16x4S, 1], [S.load16x4U, 1], [S.load32Splat, 2], [S.load64Splat, 2],
  [S.load32Zero, 0], [S.load64Zero, 0],
  [S.store8Lane, 0], [S.store16Lane, 0], [S.store32Lane, 0], [S.store64Lane, 0],
  [A.i32Load, 2], [A.i32Store, 2], [A.i32RmwAdd, 2], [A.i32RmwOr, 2], [A.i32RmwCmpxchg, 2],
]);

/** Instructions whose immediate is a lane number. */
// biome-ignore format: a table reads better grouped
const laneOps: ReadonlySet<number> = new Set<number>([
  S.i32Extract, S.i32Replace, S.i64Extract, S.i64Replace, S.f32Extract, S.f32Replace, S.f64Extract, S.f64Replace,
]);

const writer = new ByteWriter(4096);

/** The finished function. */
export function printFunction(fn: Fn, name: string): FunctionBody {
  countUses(fn.root);
  writer.clear();
  const printer = new Printer(fn);
  printer.block(fn.root);
  return { name, params: fn.params, results: [], locals: printer.locals, code: writer.take() };
}

class Printer {
  readonly locals: ValType[];
  readonly #firstLocal: number;
  readonly #free = new Map<ValType, number[]>();
  /** Loads that stand before the current point and are not computed yet. */
  readonly #waiting = new Map<MemoryClass, Val[]>();
  /** Stack of the iterative expression walk: values and how many of their operands are done. */
  readonly #stack: Val[] = [];
  readonly #done: number[] = [];

  constructor(fn: Fn) {
    this.locals = [...fn.cells];
    this.#firstLocal = fn.params.length;
  }

  block(block: Block): void {
    for (const stmt of block.stmts) {
      switch (stmt.kind) {
        case 'store':
          this.#value(stmt.addr);
          this.#value(stmt.value);
          this.#settle(stmt.cls);
          writer.code(stmt.code);
          this.#memarg(stmt.code, stmt.offset);
          if (stmt.lane >= 0) writer.u8(stmt.lane);
          break;
        case 'set':
          if (stmt.cls !== null) this.#settle(stmt.cls);
          this.#value(stmt.value);
          this.#settle(stmt.cell);
          this.#local(W.localSet, stmt.cell.index);
          break;
        case 'def': {
          const { val } = stmt;
          if (val.left === 0) break;
          const list = this.#waiting.get(val.cls!);
          if (list === undefined) this.#waiting.set(val.cls!, [val]);
          else list.push(val);
          break;
        }
        case 'block':
          this.#inner(stmt.block);
          break;
        default:
          stmt satisfies never;
      }
    }
  }

  #inner(block: Block): void {
    for (const v of block.imports) this.#keep(v);
    for (const cls of block.writes) this.#settle(cls);
    const { loop } = block;
    if (block.kind === 'if') {
      this.#value(block.cond!);
      this.#open(W.if);
      this.block(block);
    } else if (block.kind === 'repeat') {
      this.#open(W.loop);
      this.block(block);
      this.#value(block.cond!);
      this.#branch(0);
    } else {
      const { counter, start, step, limit, certain, inductions } = loop!;
      for (const i of inductions) {
        this.#value(i.init);
        this.#local(W.localSet, i.cell.index);
      }
      if (start !== null) {
        this.#value(start);
        this.#local(W.localSet, counter.index);
      }
      if (!certain) {
        this.#open(W.block);
        this.#local(W.localGet, counter.index);
        this.#peek(limit);
        writer.code(W.i32GeS);
        this.#branch(0);
      }
      this.#open(W.loop);
      this.block(block);
      for (const i of inductions) this.#advance(i.cell.index, i.step, i.cell.type === T.i64, W.localSet);
      this.#advance(counter.index, step, false, W.localTee);
      this.#value(limit);
      writer.code(W.i32LtS);
      this.#branch(0);
      if (!certain) writer.u8(W.end);
    }
    writer.u8(W.end);
    for (const v of block.imports) this.#release(v);
  }

  #advance(local: number, step: number, wide: boolean, last: number): void {
    this.#local(W.localGet, local);
    if (wide) {
      writer.u8(W.i64Const);
      writer.sleb64(BigInt(step));
      writer.u8(W.i64Add);
    } else {
      writer.u8(W.i32Const);
      writer.sleb(step);
      writer.u8(W.i32Add);
    }
    this.#local(last, local);
  }

  /** Computes loads of `cls` that are still needed, before something changes it. */
  #settle(cls: MemoryClass): void {
    const list = this.#waiting.get(cls);
    if (list === undefined) return;
    for (const v of list) if (v.left > 0) this.#keep(v);
    list.length = 0;
  }

  /** Makes sure the value is in a local, if it is worth one. */
  #keep(v: Val): void {
    if (v.local >= 0 || (v.cls === null && isCheap(v))) return;
    this.#compute(v);
    v.local = this.#take(v.type);
    this.#local(W.localSet, v.local);
  }

  /** Pushes the value on the operand stack; one use is consumed. */
  #value(v: Val): void {
    if (this.#recall(v)) return;
    this.#compute(v);
    this.#afterCompute(v);
  }

  /** Pushes a value that stays needed. */
  #peek(v: Val): void {
    v.left++;
    this.#value(v);
  }

  /** Pushes the value if that needs no computation. */
  #recall(v: Val): boolean {
    if (v.local < 0) return false;
    this.#local(W.localGet, v.local);
    this.#release(v);
    return true;
  }

  #release(v: Val): void {
    if (--v.left > 0 || v.local < 0) return;
    const list = this.#free.get(v.type);
    if (list === undefined) this.#free.set(v.type, [v.local]);
    else list.push(v.local);
    v.local = -1;
  }

  #afterCompute(v: Val): void {
    v.left--;
    if (v.left <= 0 || (v.cls === null && isCheap(v))) return;
    // A read of a cell needs no copy while the cell keeps its value; `settle` makes one when that ends.
    if (v.code === CELL) return;
    v.local = this.#take(v.type);
    this.#local(W.localTee, v.local);
  }

  /** Prints operands and instruction. Iterative: expressions may be deep. */
  #compute(root: Val): void {
    const stack = this.#stack;
    const done = this.#done;
    const bottom = stack.length;
    stack.push(root);
    done.push(0);
    while (stack.length > bottom) {
      const top = stack.length - 1;
      const v = stack[top]!;
      const at = done[top]!;
      if (at < v.args.length) {
        done[top] = at + 1;
        const arg = v.args[at]!;
        if (this.#recall(arg)) continue;
        stack.push(arg);
        done.push(0);
        continue;
      }
      stack.pop();
      done.pop();
      this.#instruction(v);
      if (stack.length > bottom) this.#afterCompute(v);
    }
  }

  #instruction(v: Val): void {
    const { code } = v;
    if (code === CELL) {
      this.#local(W.localGet, v.imm);
      return;
    }
    writer.code(code);
    switch (code) {
      case W.i32Const:
        writer.sleb(v.imm);
        break;
      case W.i64Const:
        writer.sleb64(new DataView(v.bytes!.buffer).getBigInt64(0, true));
        break;
      case W.f32Const:
        writer.f32(v.imm);
        break;
      case W.f64Const:
        writer.f64(v.imm);
        break;
      case S.const:
      case S.shuffle:
        writer.bytes(v.bytes!);
        break;
      default:
        if (laneOps.has(code)) writer.u8(v.imm);
        else if (alignment.has(code)) this.#memarg(code, v.imm);
    }
  }

  #memarg(code: number, offset: number): void {
    writer.uleb(alignment.get(code)!);
    writer.uleb(offset);
  }

  #open(code: number): void {
    writer.u8(code);
    writer.u8(VOID_BLOCK);
  }

  #branch(depth: number): void {
    writer.u8(W.brIf);
    writer.uleb(depth);
  }

  #local(code: number, index: number): void {
    writer.u8(code);
    writer.uleb(index);
  }

  #take(type: ValType): number {
    const old = this.#free.get(type)?.pop();
    if (old !== undefined) return old;
    this.locals.push(type);
    return this.#firstLocal + this.locals.length - 1;
  }
}
