/** Random loop nests: optimize and linearize must keep their meaning on every kind of engine. */
import fc from 'fast-check';
import { describe, test } from 'vitest';
import type { EngineCaps } from '@polygrad/core/engine';
import { type DType, isFloat, type TypedArray } from '../../shape/dtype.ts';
import { getElement, hostArray, setElement } from '../../shape/host.ts';
import { optimize } from './optimize.ts';
import { evaluateNest } from '../../interpreter/evaluate-nest.ts';
import { Exprs } from '../../ir/expr.ts';
import type { Range } from '../../ir/free-ranges.ts';
import { interpret } from '../../interpreter/interpret.ts';
import type { KNode, LoopKernel, LoopStore, Program } from '../../ir/ir.ts';
import type { ReduceOp } from '../../ir/operations.ts';
import { legalize } from '../../arithmetic/legalize.ts';
import { linearize } from '../linearize/linearize.ts';
import { flat, simdCaps, wideVectors } from '../fixtures/nests.ts';
import { checkSize, evaluateSized } from '../fixtures/sized.ts';
import { printLoopKernel, printProgram } from '../../ir/print.ts';
import { verifyLoopKernel, verifyProgram } from '../../ir/verify/verify.ts';
import { draws } from '../../fixtures/draws.ts';

const base: EngineCaps = {
  ...simdCaps,
  dtypes: new Set(['float32', 'float64', 'int32', 'uint32', 'int64', 'float16', 'bfloat16', 'int8', 'uint16', 'bool']),
  sharedBytes: 4096,
};
const engines: Record<string, EngineCaps> = {
  simd: base,
  wide: { ...base, vectorBytes: 32 },
  'wide and narrower': { ...base, ...wideVectors },
  simt: { ...base, simt: true, vectorBytes: 4, maxGroup: 32 },
  'simt with vectors': { ...base, simt: true, maxGroup: 32 },
};

/** How an input is read: which axes it has, in which order, flipped, padded by how much, cut into a reshape. */
interface View {
  readonly keep: readonly boolean[];
  readonly order: number;
  readonly flip: boolean;
  readonly pad: number;
  readonly split: boolean;
}

interface Recipe {
  readonly shape: readonly number[];
  readonly reduced: readonly boolean[];
  readonly op: ReduceOp;
  readonly second: ReduceOp;
  readonly views: readonly [View, View];
  readonly combine: 'add' | 'mul' | 'max' | 'where';
  /**
   * What happens with the reduction: stored, combined with an element along the reduced axes again, reduced once more, staged, or an index. In
   * a `row` it is staged as one of a row that is reduced too.
   */
  readonly use: 'store' | 'spread' | 'nested' | 'staged' | 'row' | 'index';
  readonly both: boolean;
  /** Dtype of the inputs, which are computed with as they are or after a cast to float32, and of the first output. */
  readonly dtype: DType;
  readonly widen: boolean;
}

/** An axis whose length is `times` a number given at dispatch, from `low` to what the shape says; with `twice`, the next is as long. */
interface Sized {
  readonly axis: number;
  readonly twice: boolean;
  readonly low: number;
  readonly times: number;
}

const extent = fc.oneof(fc.integer({ min: 1, max: 6 }), fc.constantFrom(7, 9, 16, 17, 21, 33, 70));
const view: fc.Arbitrary<View> = fc.record({
  keep: fc.array(fc.boolean(), { minLength: 3, maxLength: 3 }),
  order: fc.nat(5),
  flip: fc.boolean(),
  pad: fc.constantFrom(0, 0, 1, 3),
  split: fc.boolean(),
});
const op = fc.constantFrom<ReduceOp>('sum', 'max', 'min', 'argmax', 'argmin');
const recipe: fc.Arbitrary<Recipe> = fc.record({
  shape: fc.array(extent, { minLength: 1, maxLength: 3 }).filter((s) => s.reduce((a, b) => a * b) <= 2500),
  reduced: fc.array(fc.boolean(), { minLength: 3, maxLength: 3 }),
  op,
  second: op,
  views: fc.tuple(view, view),
  combine: fc.constantFrom('add', 'mul', 'max', 'where'),
  use: fc.constantFrom('store', 'spread', 'nested', 'staged', 'row', 'index'),
  both: fc.boolean(),
  dtype: fc.constantFrom<DType>('float32', 'float32', 'float32', 'float16', 'bfloat16', 'int8', 'uint16', 'int64'),
  widen: fc.boolean(),
});

/** A read of an input of the view's own shape at the given position. */
function read(e: Exprs, slot: number, at: readonly KNode[], shape: readonly number[], v: View, r: Recipe): KNode {
  let axes = shape.map((_, i) => i).filter((i) => v.keep[i]);
  if (v.order % 2 === 1) axes = axes.reverse();
  if (v.order > 3 && axes.length > 1) axes = [...axes.slice(1), axes[0] as number];
  const sizes = axes.map((i) => shape[i] as number);
  let index = axes.map((i) => at[i] as KNode);
  if (v.flip && index.length > 0) index[0] = e.sub(e.i32((sizes[0] as number) - 1), index[0] as KNode);
  let gate: KNode | undefined;
  if (v.pad > 0 && index.length > 0) {
    const last = index.length - 1;
    const n = Math.max(1, (sizes[last] as number) - 2 * v.pad);
    const x = e.sub(index[last] as KNode, e.i32(v.pad));
    gate = e.and(e.le(e.i32(0), x), e.lt(x, e.i32(n)));
    index[last] = x;
    sizes[last] = n;
  }
  if (v.split && gate === undefined && index.length > 0) {
    // Through a reshape into columns of three: floor and remainder that do not cancel.
    const whole = flat(e, index, sizes);
    const total = sizes.reduce((a, b) => a * b, 1);
    index = [e.irem(whole, e.i32(3)), e.idiv(whole, e.i32(3))];
    sizes.splice(0, sizes.length, 3, Math.ceil(total / 3));
  }
  const length = sizes.reduce((a, b) => a * b, 1);
  const alt = r.dtype.includes('float') ? 0.25 : 1;
  const x = e.load(e.param(slot, r.dtype, 'read', length), flat(e, index, sizes), gate, e.constant(r.dtype, alt));
  return r.widen ? e.cast(x, 'float32') : x;
}

/** Of a table that a reduction is the index of. */
const tableLength = 50;

function isSizedAxis({ axis, twice }: Sized, i: number, rank: number): boolean {
  return i === axis || (twice && i === (axis + 1) % rank);
}

function build(r: Recipe, sized: Sized | null = null): LoopKernel {
  const e = new Exprs();
  const { shape } = r;
  const axes = shape.map((_, i) => i);
  const axis = (i: number, kind: 'loop' | 'reduce'): Range => {
    const n = shape[i] as number;
    if (sized === null || !isSizedAxis(sized, i, shape.length)) return e.range(n, kind);
    return e.range(n, kind, e.mul(e.scalar(0, 'int32', sized.low, n / sized.times), sized.times));
  };
  const outer = axes.map((i) => axis(i, 'loop'));
  const own = axes.map((i) => axis(i, 'reduce'));
  const isOwn = (i: number): boolean => r.reduced[i] === true;
  const value = (at: readonly KNode[]): KNode => {
    const [x, y] = [read(e, 1, at, shape, r.views[0], r), read(e, 2, at, shape, r.views[1], r)];
    return r.combine === 'where' ? e.where(e.lt(x, y), x, e.neg(y)) : e[r.combine](x, y);
  };
  const inside = axes.map((i) => (isOwn(i) ? own[i] : outer[i]) as KNode);
  const bound = axes.filter(isOwn).map((i) => own[i] as Range);
  const asFloat = (x: KNode): KNode => e.cast(x, 'float32');
  const working: DType = r.widen ? 'float32' : r.dtype;
  const reduced = asFloat(e.reduce(r.op, value(inside), bound));
  const asWorking = (x: KNode): KNode => e.cast(x, working);
  const stores: LoopStore[] = [];
  const write = (slot: number, ranges: readonly Range[], value: KNode): void => {
    const sizes = ranges.map((q) => q.arg.extent);
    const x = slot === 0 ? e.cast(value, r.dtype) : value;
    const out = e.param(
      slot,
      x.dtype as DType,
      'write',
      sizes.reduce((a, b) => a * b, 1),
    );
    stores.push({ store: e.store(out, flat(e, ranges, sizes), x), ranges });
  };
  const kept = axes.filter((i) => !isOwn(i)).map((i) => outer[i] as Range);
  if (r.use === 'store' || bound.length === 0 || (r.use === 'row' && kept.length === 0)) write(0, kept, reduced);
  else if (r.use === 'spread') write(0, outer, e.sub(value(outer), asWorking(reduced)));
  else if (r.use === 'nested')
    write(0, kept, asFloat(e.reduce(r.second, e.sub(value(inside), asWorking(reduced)), bound)));
  else if (r.use === 'row') {
    // The first of two axes stays a loop around the row.
    const row = kept.slice(kept.length > 1 ? 1 : 0);
    const along = row.map((q) => axis(outer.indexOf(q), 'reduce'));
    const at = (q: KNode): KNode => along[row.indexOf(q as Range)] ?? q;
    const element = asFloat(e.reduce(r.op, value(inside.map(at)), bound));
    const stage = e.stage('shared', element, along);
    const sizes = row.map((q) => q.arg.extent);
    const again = row.map((q) => axis(outer.indexOf(q), 'reduce'));
    const total = asFloat(e.reduce(r.second, e.load(stage, flat(e, again, sizes)), again));
    write(0, kept, e.add(e.load(stage, flat(e, row, sizes)), total));
  } else if (r.use === 'index') {
    const at = e.max(e.min(e.cast(reduced, 'int32'), e.i32(tableLength - 1)), e.i32(0));
    const other = asFloat(e.reduce(r.second, value(inside), bound));
    write(0, kept, e.add(e.load(e.param(4, 'float32', 'read', tableLength), at), other));
  } else {
    const stage = e.stage('shared', e.mul(value(inside), asWorking(reduced)), bound);
    const sizes = bound.map((q) => q.arg.extent);
    const total = asFloat(e.reduce(r.second, e.load(stage, flat(e, bound, sizes)), bound));
    const at = axes.filter(isOwn).map((i) => outer[i] as KNode);
    write(0, outer, e.add(e.load(stage, flat(e, at, sizes)), asWorking(total)));
  }
  if (r.both) write(3, kept, e.add(reduced, e.f32(1)));
  const params = new Map<number, LoopKernel['params'][number]>();
  const seen = new Set<KNode>();
  const stack: KNode[] = stores.map((s) => s.store);
  for (let n = stack.pop(); n !== undefined; n = stack.pop()) {
    if (seen.has(n)) continue;
    seen.add(n);
    if (n.op === 'PARAM') params.set(n.arg.slot, n);
    stack.push(...n.src);
  }
  return {
    name: 'fuzz',
    params: [...params.values()].sort((a, b) => a.arg.slot - b.arg.slot),
    scalars: sized === null ? [] : ['int32'],
    stores,
  };
}

/** Few distinct values, so that ties and exact sums and products are common. */
function data(k: LoopKernel): TypedArray[] {
  const all: TypedArray[] = [];
  for (const p of k.params) {
    const dtype = p.dtype as DType;
    const choice = isFloat(dtype)
      ? [1, -1, 0.5, 2, -0.5, 1, 1]
      : dtype.startsWith('u')
        ? [1, 3, 0, 2, 5, 1, 1]
        : [1, -1, 3, 2, -3, 1, 1];
    const array = hostArray(dtype, p.arg.length);
    for (let i = 0; i < array.length; i++)
      setElement(array, dtype, i, (i * 7 + p.arg.slot * 3) % 11 === 10 ? 1 : (choice[(i * 5) % 7] as number));
    all[p.arg.slot] = array;
  }
  return all;
}

/** Sums may be rounded in another order: by about one place of the dtype. */
const slack: Partial<Record<DType, number>> = { float32: 1e-4, float16: 2 ** -9, bfloat16: 2 ** -6 };

function lowered(k: LoopKernel, caps: EngineCaps): Program {
  verifyLoopKernel(k);
  const shaped = optimize(k, caps);
  verifyLoopKernel(shaped);
  const program = legalize(linearize(shaped, caps), caps);
  verifyProgram(program);
  return program;
}

function check(k: LoopKernel, caps: EngineCaps): void {
  const program = lowered(k, caps);
  const [want, got] = [data(k), data(k)];
  evaluateNest(k, want);
  interpret(program, got);
  for (const { arg, dtype } of k.params) {
    const [a, b] = [want[arg.slot] as TypedArray, got[arg.slot] as TypedArray];
    for (let i = 0; i < a.length; i++) {
      const [x, y] = [a, b].map((data) => Number(getElement(data, dtype as DType, i))) as [number, number];
      if (Object.is(x, y) || x === y || Math.abs(x - y) <= (slack[dtype as DType] ?? 0) * Math.max(1, Math.abs(x)))
        continue;
      throw new Error(`slot ${arg.slot}[${i}]: want ${x}, got ${y}\n${printLoopKernel(k)}\n${printProgram(program)}`);
    }
  }
}

/** The same program for several sizes. */
function checkSizes(r: Recipe, { axis: at, twice, low: least, times: wanted }: Sized, caps: EngineCaps): void {
  const rank = r.shape.length;
  const axis = at % rank;
  const times = twice ? 1 : wanted;
  const high = twice ? Math.min(r.shape[axis] as number, 33) : (r.shape[axis] as number);
  if (high < 2) return;
  const low = Math.min(least, high);
  const sized = { axis, twice, low, times };
  const shape = r.shape.map((n, i) => (isSizedAxis(sized, i, rank) ? high * times : n));
  // Stages are taken for smaller than they are where vectors have more than four numbers, which narrow dtypes make them have.
  const dtype = r.use === 'staged' || r.use === 'row' ? 'float32' : r.dtype;
  const k = build({ ...r, shape, dtype }, sized);
  const program = lowered(k, caps);
  for (const n of new Set([low, Math.min(high, low + 1), Math.max(low, (high >> 1) | 1), high - 1, high]))
    if (n >= low) checkSize(evaluateSized(k, n, data(k)), program, (dtype) => slack[dtype] ?? 0);
}

/** Found earlier: 33 staged elements for each of 32 copies do not fit in 4,096 bytes. */
const stagedForCopies: Recipe = {
  shape: [33, 70],
  reduced: [true, false, false],
  op: 'sum',
  second: 'sum',
  views: [
    { keep: [false, true, false], order: 0, flip: false, pad: 0, split: false },
    { keep: [false, false, false], order: 0, flip: false, pad: 0, split: false },
  ],
  combine: 'add',
  use: 'staged',
  both: false,
  dtype: 'float32',
  widen: false,
};

const plain: View = { keep: [true, true, true], order: 0, flip: false, pad: 0, split: false };
/** A row of sums that is reduced and stored, and counts that are indices beside another reduction: threads of a group share these. */
const [rowOfSums, countAsIndex] = (['row', 'index'] as const).map(
  (use): Recipe => ({
    ...stagedForCopies,
    shape: [6, 40],
    reduced: [use === 'row', use === 'index', false],
    views: [plain, plain],
    second: 'max',
    use,
  }),
) as [Recipe, Recipe];

describe('random loop nests keep their meaning', () => {
  for (const [name, caps] of Object.entries(engines)) {
    test(`${name} engine`, () => {
      fc.assert(
        fc.property(recipe, (r) => check(build(r), caps)),
        {
          examples: [[stagedForCopies], [rowOfSums], [countAsIndex]],
          numRuns: Number(process.env.FUZZ_RUNS ?? 120),
          ...draws,
        },
      );
    });
  }
});

const sized: fc.Arbitrary<Sized> = fc.record({
  axis: fc.nat(2),
  twice: fc.constantFrom(false, false, false, true),
  low: fc.constantFrom(1, 1, 2, 4, 8, 20),
  times: fc.constantFrom(1, 1, 1, 4, 12),
});

describe('random loop nests of sizes given at dispatch keep their meaning', () => {
  for (const [name, caps] of Object.entries(engines)) {
    test(`${name} engine`, () => {
      fc.assert(
        fc.property(recipe, sized, (r, s) => checkSizes(r, s, caps)),
        {
          numRuns: Number(process.env.FUZZ_RUNS ?? (caps.simt ? 40 : 120)),
          ...draws,
        },
      );
    });
  }
});
