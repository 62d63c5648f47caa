/**
 * One REDUCE being computed: its accumulators, the update inside the loops, the combination at the end.
 *
 * There is an accumulator per kept copy (of open tiles the value depends on), own copy (unrolled or vectorised ranges of the REDUCE) and
 * width. Vectors and scalar remainders accumulate separately and are combined at the end in a fixed order. 16-bit floats accumulate in
 * float32, small integers and bool in int32.
 */
import { told } from '#shown-as';
import type { KNode, KNodeOf } from '../../ir/ir.ts';
import { type ReduceOp, isArg } from '../../ir/operations.ts';
import { nodesOf } from '../../ir/node.ts';
import type { Exprs } from '../../ir/expr.ts';
import { lengthOf, ownRanges, type Range, sizeOf } from '../../ir/free-ranges.ts';
import { type DType, dtypeInfo, isFloat, neutral } from '../../shape/dtype.ts';
import type { CodegenCaps, State, SumOptions } from '../lowering.ts';
import { copiesOf, copyIndex, lanesOf, refuse, type Tile, type Values } from './scope.ts';
import type { Mode } from './vector.ts';

/** With this many independent accumulators, no addition waits for the one before. */
const sideBySide = 4;

/** From this many lanes of all copies on, they are combined in a loop. */
const mostLanes = 64;

interface Group {
  readonly lanes: number;
  /** Own copies: accumulators for each kept copy. */
  readonly copies: number;
  readonly regs: readonly KNode[];
  /** An extremum by parts: the copies share all parts but the first. */
  readonly parts: boolean;
}

/** The new accumulator, in the reduction's accumulating dtype, after the value under the open loops. Not for argument reductions. */
export function accumulate(values: Values, node: KNodeOf<'REDUCE'>, before: KNode, muladd: boolean): KNode {
  const { e } = values.scope;
  const { op } = node.arg;
  const v = node.src[0];
  const dtype = before.dtype as DType;
  if (isArg(op)) refuse(node, told && 'is not accumulated alone');
  if (op === 'sum' && v.op === 'MUL' && isFloat(dtype) && muladd) {
    const [x, y] = v.src.map((s) => e.cast(values.lower(s), dtype)) as [KNode, KNode];
    return e.ternary('MULADD', x, y, before);
  }
  return combined(e, op, before, e.cast(values.lower(v), dtype));
}

/** Position among all elements of ranges, as an expression of the nest. A loop that ends at a size counts as that long. */
export function positionIn(e: Exprs, ranges: readonly Range[]): KNode {
  return ranges.reduce((position: KNode, r) => e.add(e.mul(position, lengthOf(e, r)), r), e.i32(0));
}

export class Reduction {
  readonly node: KNodeOf<'REDUCE'>;
  readonly own: readonly Range[];
  readonly value: KNode;
  readonly #values: Values;
  readonly #muladd: boolean;
  readonly #simt: boolean;
  readonly #kept: readonly Tile[];
  readonly #keptLanes: number;
  readonly #dtype: DType;
  readonly #groups: Group[] = [];
  /** Position of an argument reduction, as an expression of the nest. */
  readonly #position: KNode | null;
  /** True if all own ranges are unrolled: no loop and no accumulators. */
  readonly #direct: boolean;
  #directStates: State[] = [];
  /** Unrolled steps share their accumulators. */
  #inTurn = false;

  constructor(
    values: Values,
    node: KNodeOf<'REDUCE'>,
    modesOf: (r: Range) => readonly Mode[],
    { muladd, simt }: SumOptions,
  ) {
    const { scope, b } = values;
    const { e } = scope;
    this.node = node;
    this.own = ownRanges(node);
    this.value = node.src[0];
    this.#values = values;
    this.#muladd = muladd;
    this.#simt = simt;
    const free = scope.free.of(node);
    this.#kept = scope.tiles.filter((t) => free.includes(t.range));
    this.#keptLanes = lanesOf(this.#kept);
    this.#dtype = accumulatorDtype(this.value.dtype);
    this.#position = isArg(node.arg.op) ? positionIn(e, this.own) : null;
    this.#direct = this.own.every((r) => r.arg.kind === 'unroll');
    if (this.#direct) return;
    // With many independent results, unrolled steps share one accumulator each.
    this.#inTurn = simt && !isArg(node.arg.op) && copiesOf(this.#kept) * this.#keptLanes >= sideBySide;
    let unrolled = 1;
    let modes: readonly Mode[] = [{ count: 1, lanes: 1 }];
    for (const r of this.own) {
      if (r.arg.kind === 'unroll' && !this.#inTurn) unrolled *= r.arg.extent;
      if (r.arg.kind === 'vector') modes = modesOf(r);
    }
    if (modes.length === 0) modes = [{ count: 1, lanes: 1 }];
    const copiesByLanes = new Map<number, number>();
    for (const m of modes) {
      const lanes = Math.max(m.lanes, this.#keptLanes);
      copiesByLanes.set(lanes, Math.max(copiesByLanes.get(lanes) ?? 0, m.count * unrolled));
    }
    for (const [lanes, copies] of copiesByLanes) {
      const { op } = node.arg;
      const parts = !simt && goesByParts(op, this.#dtype, this.#elements(), lanes);
      const start = parts ? noExtremum(e, op) : [identityOf(e, op, this.#dtype), ...(isArg(op) ? [e.i32(0)] : [])];
      const regs = start.map((first, i) => {
        const length = copiesOf(this.#kept) * (parts && i > 0 ? 1 : copies);
        const reg = b.reg(isArg(op) && i > 0 ? 'position' : op, first.dtype as DType, lanes, length);
        for (let k = 0; k < length; k++) b.store(reg, k, e.splat(first, lanes));
        return reg;
      });
      this.#groups.push({ lanes, copies, regs, parts });
    }
  }

  #elements(): number {
    return sizeOf(this.own);
  }

  /** Adds the value under the open loops to the accumulators; called in the innermost loop. */
  update(): void {
    const { scope, b } = this.#values;
    const { e } = scope;
    const ownTiles = scope.tiles.filter((t) => this.own.includes(t.range));
    const lanes = Math.max(lanesOf(ownTiles), this.#keptLanes);
    if (this.#direct) {
      scope.forEach([...this.#kept, ...ownTiles], () => {
        const at = copyIndex(this.#kept);
        const state = this.#state();
        const before = this.#directStates[at];
        this.#directStates[at] = before === undefined ? state : this.#combine(before, state, true);
      });
      return;
    }
    const group = this.#groups.find((g) => g.lanes === lanes)!;
    const separate = this.#inTurn ? ownTiles.filter((t) => t.range.arg.kind !== 'unroll') : ownTiles;
    scope.forEach([...this.#kept, ...ownTiles], () => {
      const kept = copyIndex(this.#kept);
      const slot = kept * group.copies + copyIndex(separate);
      const slots = group.regs.map((_, i) => (group.parts && i > 0 ? kept : slot));
      const before = group.regs.map((r, i) => b.load(r, slots[i]!));
      const after = group.parts ? this.#extended(before) : this.#step(before);
      group.regs.forEach((r, i) => {
        b.store(r, slots[i]!, e.splat(after[i]!, lanes));
      });
    });
  }

  /** Combines the accumulators, across all threads of the group if a local range is reduced, and publishes the result. */
  finish(threads: number, caps: CodegenCaps): void {
    const local = this.own.find((r) => r.arg.kind === 'local');
    if (local !== undefined && local.arg.extent !== threads) {
      refuse(local, told && `is not of the ${threads} threads of a group`);
    }
    const { scope, results } = this.#values;
    const { e } = scope;
    const copyByCopy = this.#hasManyLanes() ? caps.lowering.rare?.()?.copyByCopy : undefined;
    if (copyByCopy !== undefined) {
      const count = copiesOf(this.#kept);
      const memory = copyByCopy(this.#values, this.node, this.#dtype, count, {
        groups: this.#groups.map((group) => ({
          lanes: group.lanes,
          combined: (kept) => this.#tree(this.#states(group, kept))[0]!,
        })),
        tree: (states) => this.#tree(states),
        combine: (x, y) => this.#combine(x, y, false),
      });
      // Dead results are not computed.
      const all = Array.from({ length: count }, (_, k) => this.#values.b.load(memory, k));
      results.set(this.node, { kind: 'values', tiles: this.#kept, values: all, memory });
      return;
    }
    const values: KNode[] = [];
    for (let kept = 0; kept < copiesOf(this.#kept); kept++) {
      const parts: State[] = [];
      if (this.#direct)
        parts.push(this.#directStates[kept] ?? [identityOf(e, this.node.arg.op, this.#dtype), e.i32(0)]);
      for (const group of this.#groups) {
        const { lanes } = group;
        const whole = group.parts ? [this.#extremum(group, kept)] : this.#tree(this.#states(group, kept));
        if (lanes === this.#keptLanes) parts.push(whole);
        else
          parts.push(
            caps.lowering.bestLane?.(e, this.node.arg.op, whole) ??
              this.#tree(Array.from({ length: lanes }, (_, k): State => whole.map((x) => e.lane(x, k)))),
          );
      }
      let all = parts.reduce((x, y) => this.#combine(x, y, false));
      if (local !== undefined) all = this.#acrossThreads(all, threads, caps);
      values.push(this.#position !== null ? all[1]! : e.cast(all[0]!, this.node.dtype));
    }
    results.set(this.node, { kind: 'values', tiles: this.#kept, values });
  }

  /** True if each of many copies has lanes to combine. */
  #hasManyLanes(): boolean {
    if (this.#direct || this.#simt || this.#position !== null || this.node.dtype === 'bool') return false;
    if (this.#groups.some(({ parts }) => parts)) return false;
    const combining = this.#groups.filter(({ lanes }) => lanes !== this.#keptLanes);
    return combining.reduce((sum, { lanes }) => sum + lanes, 0) * copiesOf(this.#kept) >= mostLanes;
  }

  #states({ copies, regs }: Group, kept: number): State[] {
    const { b } = this.#values;
    return Array.from({ length: copies }, (_, k) => regs.map((r) => b.load(r, kept * copies + k)));
  }

  /** The extremum of the parts of a kept copy. */
  #extremum({ copies, regs }: Group, kept: number): KNode {
    const { b, scope } = this.#values;
    const { op } = this.node.arg;
    const [value, signed, unsigned] = regs as [KNode, KNode, KNode];
    const each = Array.from({ length: copies }, (_, k) => b.load(value, kept * copies + k));
    const all = each.reduce((x, y) => pick(scope.e, op, x, y));
    return wholeExtremum(scope.e, op, [all, b.load(signed, kept), b.load(unsigned, kept)]);
  }

  #acrossThreads(mine: State, threads: number, caps: CodegenCaps): State {
    const { acrossThreads } = caps.lowering;
    if (acrossThreads === undefined) return refuse(this.node, told && 'needs caps.lowering.acrossThreads');
    const parts = { op: this.node.arg.op, mine, combine: (x: State, y: State) => this.#combine(x, y, false) };
    return acrossThreads(this.#values.b, parts, threads, caps);
  }

  /** Pairwise: the first half with the second, until one is left. */
  #tree(states: readonly State[]): State {
    let all = states;
    while (all.length > 1) {
      const half = Math.ceil(all.length / 2);
      const now = all;
      all = now.slice(0, half).map((x, k) => {
        const other = now[k + half];
        return other === undefined ? x : this.#combine(x, other, false);
      });
    }
    return all[0]!;
  }

  /** The state of one element. */
  #state(): State {
    const { e } = this.#values.scope;
    const x = e.cast(this.#values.lower(this.value), this.#dtype);
    return this.#position === null ? [x] : [x, this.#values.lower(this.#position)];
  }

  /** The state of one element, or the neutral one if the element was counted already. */
  #stateFrom({ range, from }: Tile): State {
    const { e } = this.#values.scope;
    const isNew = e.le(from!, this.#values.lower(range));
    return [e.where(isNew, this.#state()[0]!, identityOf(e, this.node.arg.op, this.#dtype))];
  }

  #extended(before: State): State {
    const { e } = this.#values.scope;
    return extendExtremum(e, this.node.arg.op, before as Extremum, this.#state()[0]!);
  }

  /** The state after the current element. */
  #step(before: State): State {
    if (this.#position !== null) return this.#combine(before, this.#state(), true);
    const again = this.#values.scope.tiles.find((t) => t.from !== null && this.own.includes(t.range));
    if (again === undefined || !isAddedUp(this.node))
      return [accumulate(this.#values, this.node, before[0]!, this.#muladd)];
    return this.#combine(before, this.#stateFrom(again), true);
  }

  /** Combines two states. `later`: every position of `y` comes after those of `x`, so that ties stay with `x`. */
  #combine(x: State, y: State, later: boolean): State {
    const { e } = this.#values.scope;
    const { op } = this.node.arg;
    const [a, b] = [x[0]!, y[0]!];
    switch (op) {
      case 'sum':
      case 'prod':
      case 'max':
      case 'min':
        return [combined(e, op, a, b)];
      case 'argmax':
      case 'argmin': {
        const [ia, ib] = [x[1]!, y[1]!];
        let take = takesPlace(e, op, a, b, this.#simt);
        if (!later) {
          const same = e.eq(a, b);
          const tie = isFloat(this.#dtype) ? e.or(same, e.and(e.not(e.eq(a, a)), e.not(e.eq(b, b)))) : same;
          take = e.or(take, e.and(tie, e.lt(ib, ia)));
        }
        return [e.where(take, b, a), e.where(take, ib, ia)];
      }
      default:
        return op satisfies never;
    }
  }
}

// The dtype of a reduction, its neutral element, and how it combines two numbers.

/** The dtype a reduction computes in. */
export function accumulatorDtype(dtype: DType): DType {
  const { kind, bytes } = dtypeInfo[dtype];
  if (bytes >= 4) return dtype;
  return kind === 'float' ? 'float32' : 'int32';
}

/** The result of a reduction of no elements. */
export function identityOf(e: Exprs, op: ReduceOp, dtype: DType): KNode {
  return e.constant(dtype, neutral(op === 'argmax' ? 'max' : op === 'argmin' ? 'min' : op, dtype));
}

/** Combines two numbers. */
export function combined(e: Exprs, op: 'sum' | 'prod' | 'max' | 'min', a: KNode, b: KNode): KNode {
  switch (op) {
    case 'sum':
      return e.add(a, b);
    case 'prod':
      return e.mul(a, b);
    case 'max':
      return e.max(a, b);
    case 'min':
      return e.min(a, b);
    default:
      return op satisfies never;
  }
}

/** True if `b` replaces `a`, which comes before it. The first NaN stays. `simt`: devices do not specify how theirs compare. */
export function takesPlace(e: Exprs, op: 'argmax' | 'argmin', a: KNode, b: KNode, simt: boolean): KNode {
  const beyond = op === 'argmax' ? e.lt(a, b) : e.lt(b, a);
  if (!isFloat(a.dtype as DType)) return beyond;
  const number = e.eq(a, a);
  if (simt) return e.or(beyond, e.and(e.not(e.eq(b, b)), number));
  return e.and(number, e.not(op === 'argmax' ? e.le(b, a) : e.le(a, b)));
}

/** True for a reduction that may count elements twice; false for stages, which are filled again for every part of a loop. */
export function mayEnterTwice(n: KNode): boolean {
  return n.op === 'REDUCE' && !isAddedUp(n) && isMadeAgain(n);
}

/** True for a sum or a product, which elements must not enter twice. */
function isAddedUp(n: KNodeOf<'REDUCE'>): boolean {
  return n.arg.op === 'sum' || n.arg.op === 'prod';
}

/** True if elements of a REDUCE or STAGE may be recomputed: not if they read stages. */
export function isMadeAgain(n: KNode): boolean {
  for (const x of nodesOf([n.src[0]!])) if (x.op === 'STAGE') return false;
  return true;
}

// Maxima and minima of float32 vectors in three parts, one instruction of a CPU each.
//
// MAX keeps NaN and orders zeros (+0 above -0), which takes x86 eight instructions where `maxps` is one. So a long reduction
// tracks the greatest number ignoring both, and the greatest bits, signed and unsigned. At the end these tell whether there
// was a NaN (of either sign: 0x7f800001 and up, 0xff800001 and up). If the result is zero, they tell whether there was a zero of the winning sign.
// From the second-level cache of an AMD EPYC rows are read twice as fast as with MAX.

/** The number, its greatest bits as int32, its greatest bits as uint32. */
export type Extremum = readonly [value: KNode, signed: KNode, unsigned: KNode];

/** With fewer elements, combining the parts costs more than they save. */
const leastElements = 8;

/** True if a reduction of this many elements and lanes uses the three parts, on an engine without groups of threads. */
export function goesByParts(op: ReduceOp, dtype: DType, elements: number, lanes: number): boolean {
  return (op === 'max' || op === 'min') && dtype === 'float32' && elements >= leastElements && lanes > 1;
}

/** The neutral parts, with their dtypes. */
export function noExtremum(e: Exprs, op: ReduceOp): Extremum {
  const end = op === 'max' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  return [e.f32(end), e.i32(-(2 ** 31)), e.constant('uint32', 0)];
}

/** The parts after one more element. */
export function extendExtremum(e: Exprs, op: ReduceOp, before: Extremum, x: KNode): Extremum {
  return [pick(e, op, before[0], x), e.max(before[1], e.bitcast(x, 'int32')), e.max(before[2], e.bitcast(x, 'uint32'))];
}

/** `later` if it is beyond `now`: emitters have an instruction for this form. */
export function pick(e: Exprs, op: ReduceOp, now: KNode, later: KNode): KNode {
  return e.where(op === 'max' ? e.lt(now, later) : e.lt(later, now), later, now);
}

/** The extremum that MAX or MIN would have given, from the parts. */
export function wholeExtremum(e: Exprs, op: ReduceOp, [value, signed, unsigned]: Extremum): KNode {
  const { lanes } = value;
  const u = (bits: number): KNode => e.constant('uint32', bits, lanes);
  // A maximum of zero is -0 if every sign was set; a minimum is if one was.
  const sign = e.and(op === 'max' ? e.bitcast(signed, 'uint32') : unsigned, u(0x80000000));
  const number = e.where(e.eq(value, e.constant('float32', 0, lanes)), e.bitcast(sign, 'float32'), value);
  const nan = e.or(e.lt(e.constant('int32', 0x7f800000, lanes), signed), e.lt(u(0xff800000), unsigned));
  return e.where(nan, e.constant('float32', Number.NaN, lanes), number);
}
