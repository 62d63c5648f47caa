/**
 * From a linear program to a function `(args, groupStart, groupEnd, scratch)`: walks the body once, in order.
 *
 * args: address of the args block - 8 bytes per PARAM slot (address of the bound bytes); at `scalarOffset` 8 bytes per SCALAR slot.
 * groupStart, groupEnd: groups to run, counted through the grid with axis 0 fastest; at least one.
 * scratch: address of the running thread's memory for SHARED.
 */
import { told } from '#listing';
import { findRareSides, operandsOf, type RareSide, unrollFactor } from '@polygrad/core/engine/shaping';
import { endsOf, type KNode, type KNodeOf, type Program, type Uses, usesOf } from '@polygrad/core/kernel/ir';
import { findRuns, isGather, lanesOfPart, pickColumn, pickWindows, type RunPlace } from '@polygrad/core/kernel/windows';
import * as W from '../asm/plain.ts';
import * as T from '../asm/types.ts';
import { Addresses, type LoopVar } from './address.ts';
import { type Context, type Lowered, someLane } from './context.ts';
import { Fn } from './fn.ts';
import type { Val } from './lir.ts';
import { Memory } from './memory.ts';
import { type EmitTarget, refuse } from './target.ts';
import { lowerValue } from './values.ts';

/** Lowers one program; throws Refusal for what this engine does not execute. */
export function lowerProgram(program: Program, target: EmitTarget): Fn {
  if (program.group.some((g) => g !== 1))
    refuse(told && `groups of ${program.group.join(' x ')} threads; this engine runs groups of one thread`);
  const lowering = new Lowering(program, target);
  lowering.run();
  return lowering.fn;
}

/** What a counter goes through: from `start` on below `limit`, `step` at a time; `certain`: at least once. */
interface Count {
  readonly start: number;
  readonly limit: Val;
  readonly step: number;
  readonly certain: boolean;
}

class Lowering implements Context {
  readonly fn = new Fn([T.i32, T.i32, T.i32, T.i32]);
  readonly target: EmitTarget;
  readonly #program: Program;
  readonly #uses: Uses;
  readonly #values = new Map<KNode, Lowered>();
  readonly #loops = new Map<KNode, LoopVar>();
  readonly #ends: Int32Array;
  readonly #memory: Memory;
  #groupIndex: Val | null = null;
  #runs: ReadonlyMap<KNode, RunPlace> | null = null;
  readonly #rare: ReturnType<typeof findRareSides>;

  constructor(program: Program, target: EmitTarget) {
    this.#program = program;
    this.target = target;
    this.#ends = endsOf(program);
    this.#uses = usesOf(program.body, operandsOf);
    this.#rare = findRareSides(program, this.#uses);
    const { fn } = this;
    const pointer = (index: number): Val => {
      const v = fn.read(fn.param(index), fn.root);
      return target.addressBits === 64 ? fn.op(W.i64ExtendI32U, T.i64, [v]) : v;
    };
    this.#memory = new Memory(this, new Addresses(this, this.#loops), pointer(0), pointer(3));
  }

  run(): void {
    const { fn } = this;
    const counter = fn.param(1);
    const block = fn.openLoop(fn.read(fn.param(2), fn.root), 1, true, null, counter);
    this.#groupIndex = fn.read(counter, block);
    this.#walk(0, this.#program.body.length);
    fn.close();
  }

  uses(node: KNode): number {
    return this.#uses.get(node)?.count ?? 0;
  }

  get(node: KNode): Lowered {
    let value = this.#values.get(node);
    if (value === undefined) this.#values.set(node, (value = this.fn.speculate(() => this.#leaf(node))));
    return value;
  }

  #leaf(n: KNode): Lowered {
    switch (n.op) {
      case 'SPECIAL':
        return { parts: [n.arg.kind === 'local' ? this.fn.i32(0) : this.#groupAxis(n.arg.axis)], width: 4 };
      case 'SCALAR':
        return { parts: [this.#memory.scalar(n.dtype, n.arg.slot)], width: 4 };
      case 'LOOP': {
        const { val, shift } = this.#loops.get(n) ?? refuse(told && `a loop counter is used outside its loop`);
        const { fn } = this;
        if (val === null) return { parts: [fn.i32(shift)], width: 4 };
        return { parts: [shift === 0 ? val : fn.int(W.i32Add, T.i32, val, fn.i32(shift))], width: 4 };
      }
      case 'CONST':
      case 'IOTA':
        return lowerValue(this, n);
      default:
        return refuse(told && `${n.op} is used before it stands in the body`);
    }
  }

  #groupAxis(axis: 0 | 1 | 2): Val {
    const { fn } = this;
    const { grid } = this.#program;
    const [x, y, z] = grid;
    if (grid[axis] === 1) return fn.i32(0);
    const op = (code: number, a: Val, b: number): Val => (b === 1 ? a : fn.int(code, T.i32, a, fn.i32(b)));
    const flat = this.#groupIndex!;
    if (axis === 0) return y * z === 1 ? flat : op(W.i32RemU, flat, x);
    const above = op(W.i32DivU, flat, axis === 1 ? x : x * y);
    return axis === 1 && z !== 1 ? op(W.i32RemU, above, y) : above;
  }

  #walk(from: number, to: number): void {
    const { body } = this.#program;
    for (let i = from; i < to; i++) {
      const n = body[i]!;
      switch (n.op) {
        case 'PARAM':
        case 'REG':
        case 'SHARED':
        case 'SCALAR':
        case 'SPECIAL':
        case 'CONST':
        case 'IOTA':
          break;
        case 'STORE':
          this.#memory.store(n);
          break;
        case 'ATOMIC':
          this.#memory.atomic(n);
          break;
        case 'LOOP':
          this.#loop(n, i + 1, this.#ends[i]!);
          i = this.#ends[i]!;
          break;
        case 'IF':
          this.fn.openIf(this.get(n.src[0]).parts[0]!);
          this.#walk(i + 1, this.#ends[i]!);
          this.fn.close();
          i = this.#ends[i]!;
          break;
        case 'BARRIER':
          break;
        case 'ENDLOOP':
        case 'ENDIF':
          refuse(told && `${n.op} has no place in a linear program here`);
          break;
        default:
          if (!this.#rare.inside.has(n)) this.#node(n);
      }
    }
  }

  /** Lowers a node that only gives a value. */
  #node(n: KNode): void {
    if (this.#uses.has(n)) this.#values.set(n, this.#value(n));
  }

  #value(n: KNode): Lowered {
    const side = this.#rare.sides.get(n);
    if (side !== undefined) return this.#rarely(n, side);
    if (n.op === 'LOAD') return this.#memory.load(n, this.#isSplat(n));
    return (n.op === 'VEC' ? this.#gather(n) : null) ?? lowerValue(this, n);
  }

  /** True for a scalar that is only read into all lanes of a vector. */
  #isSplat(n: KNode): boolean {
    const use = this.#uses.get(n);
    const user = use?.count === 1 ? this.#program.body[use.at] : undefined;
    return user?.op === 'VEC' && user.src.length === 1;
  }

  /** A WHERE whose one side is computed only if a lane takes it. */
  #rarely(n: KNode, { side, nodes }: RareSide): Lowered {
    const { fn } = this;
    const mask = this.get(n.src[0]);
    const other = this.get(n.src[3 - side]!);
    const taken = someLane(this, mask, n.lanes, side === 1);
    const choose = (): Lowered => {
      for (const x of nodes) this.#node(x);
      return lowerValue(this, n);
    };
    if (taken === null) return choose();
    const cells = other.parts.map((part) => {
      const cell = fn.newCell(part.type);
      fn.assign(cell, part);
      return cell;
    });
    fn.openIf(taken);
    const { parts, width } = choose();
    for (const [i, part] of parts.entries()) fn.assign(cells[i]!, part);
    fn.close();
    return { parts: cells.map((cell) => fn.readNow(cell)), width };
  }

  /** A VEC of neighbouring elements, from wide loads; null for others. */
  #gather(n: KNodeOf<'VEC'>): Lowered | null {
    if (!isGather(n)) return null;
    this.#runs ??= findRuns(this.#program);
    const parts: Val[] = [];
    const size = lanesOfPart(n);
    for (let at = 0; at < n.src.length; at += size) {
      const lanes = n.src.slice(at, at + size);
      const pick = pickWindows(lanes, this.#runs);
      // A square's shuffles are shared by all its columns, fewer than three windows take.
      const column = pick === null || pick.windows.length > 2 ? pickColumn(lanes, this.#runs) : null;
      if (column !== null) parts.push(this.#memory.column(column));
      else if (pick !== null) parts.push(this.#memory.gather(pick));
      else return null;
    }
    return { parts, width: size === 2 ? 8 : 4 };
  }

  #loop(n: KNodeOf<'LOOP'>, from: number, to: number): void {
    const extent = n.src[0];
    if (extent.op !== 'CONST') {
      this.#oneLoop(n, from, to, { start: 0, limit: this.get(extent).parts[0]!, step: 1, certain: false });
      return;
    }
    const count = Number(extent.arg.value);
    if (count <= 0) return;
    const factor = unrollFactor(n, this.#program.body, from, to, count);
    if (factor >= count) {
      for (let k = 0; k < count; k++) this.#copy(n, from, to, { block: null, val: null, shift: k, start: 0 });
      return;
    }
    const whole = count - (count % factor);
    this.#oneLoop(n, from, to, { start: 0, limit: this.fn.i32(whole), step: factor, certain: true });
    if (whole < count) this.#oneLoop(n, from, to, { start: whole, limit: this.fn.i32(count), step: 1, certain: true });
  }

  #oneLoop(n: KNode, from: number, to: number, { start, limit, step, certain }: Count): void {
    const { fn } = this;
    const block = fn.openLoop(limit, step, certain, fn.i32(start));
    const val = fn.read(block.loop!.counter, block);
    for (let k = 0; k < step; k++) this.#copy(n, from, to, { block, val, shift: k, start });
    fn.close();
  }

  /** Lowers a loop's body once, with this meaning of its counter. */
  #copy(n: KNode, from: number, to: number, loop: LoopVar): void {
    this.#loops.set(n, loop);
    this.#values.delete(n);
    this.#walk(from, to);
    this.#loops.delete(n);
  }
}
