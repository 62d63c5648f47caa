/**
 * Rebuilding stage A expressions with other ranges: the tool of every pass over loop nests.
 *
 * Each replaced range has a value (what stands for it in expressions) and a list (what stands for it where it is bound:
 * the loops of a store, the ranges of REDUCE and STAGE). Everything is simplified again on the way.
 */
import { told } from '#shown-as';
import { fault } from '../shape/errors.ts';
import type { DType } from '../shape/dtype.ts';
import type { KNode, LoopKernel, LoopStore, Transform } from './ir.ts';
import { type BinaryOp, type ReduceOp, type TernaryOp, type UnaryOp, isArg } from './operations.ts';
import { assumeBounds, highOf, isArithmetic } from './node.ts';
import type { Exprs } from './expr.ts';
import {
  type FreeRanges,
  isSized,
  lengthOf,
  ownRanges,
  type Range,
  type RangeList,
  sizeLimit,
  sizeOf,
} from './free-ranges.ts';

export interface Replacement {
  readonly value: KNode;
  readonly ranges: readonly Range[];
}

/**
 * Puts expressions in terms of one flat index in place of ranges, the last range varying fastest. It counts through ranges that end at a size as
 * far as that.
 */
export function decodeRanges(e: Exprs, ranges: readonly Range[], flat: KNode, changes: Map<Range, Replacement>): void {
  let rest = flat;
  for (let i = ranges.length - 1; i >= 0; i--) {
    const r = ranges[i]!;
    const length = lengthOf(e, r);
    changes.set(r, { value: i === 0 ? rest : e.irem(rest, length), ranges: [] });
    if (i === 0) return;
    rest = e.idiv(rest, length);
    if (isSized(r)) assumeBounds(rest, 0, sizeOf(ranges.slice(0, i)) - 1);
  }
}

export class Rewriter {
  readonly e: Exprs;
  readonly #ranges: ReadonlyMap<Range, Replacement>;
  readonly #done = new Map<KNode, KNode>();

  readonly #free: FreeRanges | null;

  /** With `free`, ranges are replaced only where they are free: a REDUCE that binds one of them keeps it. */
  constructor(e: Exprs, ranges: ReadonlyMap<Range, Replacement>, free: FreeRanges | null = null) {
    this.e = e;
    this.#ranges = ranges;
    this.#free = free;
  }

  /** Fixes the result for a node before the rewrite reaches it. */
  set(from: KNode, to: KNode): void {
    this.#done.set(from, to);
  }

  /** The expression with all ranges replaced. */
  node(root: KNode): KNode {
    const done = this.#done;
    if (this.#isDone(root)) return done.get(root)!;
    const stack = [root];
    while (stack.length > 0) {
      const n = stack[stack.length - 1]!;
      if (!done.has(n)) {
        const { src } = n;
        const count = n.op === 'REDUCE' || n.op === 'STAGE' ? 1 : src.length;
        const before = stack.length;
        for (let i = 0; i < count; i++) {
          const s = src[i]!;
          if (!this.#isDone(s)) stack.push(s);
        }
        if (stack.length > before) continue;
        done.set(n, this.#one(n));
      }
      stack.pop();
    }
    return done.get(root)!;
  }

  #isDone(n: KNode): boolean {
    if (this.#done.has(n)) return true;
    if (this.#free === null) return false;
    const ranges = this.#free.of(n);
    for (let i = 0; i < ranges.length; i++) if (this.#ranges.has(ranges[i]!)) return false;
    this.#done.set(n, n);
    return true;
  }

  /** A list of bound ranges with all ranges replaced. */
  list(ranges: readonly Range[]): Range[] {
    return ranges.flatMap((r) => this.#ranges.get(r)?.ranges ?? (r.src.length === 0 ? r : (this.node(r) as Range)));
  }

  store({ store, ranges }: LoopStore): LoopStore {
    const [mem, index, value, gate] = store.src.map((s) => this.node(s)) as [KNode, KNode, KNode, KNode?];
    return { store: this.e.store(mem, index, value, gate), ranges: this.list(ranges) };
  }

  kernel(k: LoopKernel): LoopKernel {
    return { ...k, stores: k.stores.map((s) => this.store(s)) };
  }

  #one(n: KNode): KNode {
    const done = this.#done;
    const first = done.get(n.src[0]!)!;
    switch (n.op) {
      case 'RANGE':
        // A loop that ends early is another one where that is said in other terms.
        return (
          this.#ranges.get(n)?.value ??
          (n.src.length === 0 || first === n.src[0] || sizeLimit(n) !== null
            ? n
            : this.e.range(n.arg.extent, n.arg.kind, first))
        );
      case 'REDUCE':
        return remake(this.e, n, [first, ...vectorLast(n.arg.op, this.list(ownRanges(n)))]);
      case 'STAGE':
        return remake(this.e, n, [first, ...this.list(ownRanges(n))]);
      case 'LOAD':
        // A stage whose ranges have all gone is its value.
        if (first.op === 'STAGE' && first.src.length === 1) return first.src[0];
    }
    return remake(
      this.e,
      n,
      n.src.map((s) => done.get(s)!),
    );
  }
}

/** Vector ranges innermost, where the order of a reduction's ranges does not matter. */
function vectorLast(op: ReduceOp, ranges: Range[]): Range[] {
  if (isArg(op)) return ranges;
  return ranges.sort((a, b) => Number(a.arg.kind === 'vector') - Number(b.arg.kind === 'vector'));
}

// The same operation on other sources: what passes that walk over expressions do with most nodes. Everything is simplified again on the way.

/** The node with other sources; REDUCE and STAGE bind the ranges among them. Memory and scalars stay what they are. */
export function remake(e: Exprs, n: KNode, src: readonly KNode[]): KNode {
  const a = src[0]!;
  const b = src[1]!;
  const dtype = n.dtype as DType;
  switch (n.op) {
    case 'PARAM':
    case 'SCALAR':
    case 'SHARED':
      return n;
    case 'CONST':
      return e.constant(dtype, n.arg.value, n.lanes);
    case 'SPECIAL':
      return e.special(n.arg.kind, n.arg.axis, highOf(n) + 1, n.arg.nest);
    case 'IOTA':
      return e.iota(n.lanes);
    case 'REDUCE':
      return e.reduce(n.arg.op, a, src.slice(1) as readonly KNode[] as RangeList);
    case 'STAGE':
      return e.stage(n.arg.space, a, src.slice(1) as readonly KNode[] as RangeList);
    case 'LOAD':
      return e.load(a, b, src[2], src[3], n.lanes, n.arg);
    case 'CAST':
      return e.cast(a, dtype);
    case 'BITCAST':
      return e.bitcast(a, dtype);
    case 'VEC':
      return src.length === 1 ? e.splat(a, n.lanes) : e.vec(src);
    case 'LANE':
      return e.lane(a, n.arg.lane);
    default:
      if (!isArithmetic(n.op)) throw fault('kernel', told && `${n.op} cannot be part of a value`);
      if (src.length === 1) return e.unary(n.op as UnaryOp, a);
      if (src.length === 2) return e.binary(n.op as BinaryOp, a, b);
      return e.ternary(n.op as TernaryOp, a, b, src[2]!);
  }
}

// What every transform of loops is made of: loops put in place of others, and the entry that says so.

/** An entry of the list of transforms: the loops it changed, and their replacements. */
export function step(
  name: string,
  loops: Iterable<Range>,
  made: readonly Range[] = [],
  args: Transform['args'] = [],
): Transform {
  return { name, loops: Array.from(loops, idOf), made: made.map(idOf), args };
}

function idOf({ arg }: Range): number {
  return arg.id;
}

/** Puts one loop, or loops that count as one, in place of neighbouring loops: where the last of them is. */
export function flattened(
  e: Exprs,
  loops: readonly Range[],
  { value: flat, ranges }: Replacement,
  changes: Map<Range, Replacement>,
): Map<Range, Replacement> {
  decodeRanges(e, loops, flat, changes);
  const last = loops.at(-1)!;
  const { value } = changes.get(last)!;
  return changes.set(last, { value, ranges });
}
