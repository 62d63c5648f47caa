/** Forms of work that few programs have, which `#rare` gives at once or loads: code that plans can do without, more slowly. */
import { reduceColumns } from '@polygrad/compiler/codegen/linearize/columns';
import { copyByCopy } from '@polygrad/compiler/codegen/linearize/copy-by-copy';
import { columnsOf } from '@polygrad/compiler/codegen/loops/columns';
import { cutNarrow, widenNarrow } from '@polygrad/compiler/codegen/loops/narrow-rows';
import { inlineStage } from '@polygrad/compiler/codegen/linearize/inline-stage';
import { reduceWhileStaging } from '@polygrad/compiler/codegen/loops/reduce-while-staging';
import { cutStretches, rowsAndRest } from '@polygrad/compiler/codegen/loops/rows-and-rest';
import { short } from '@polygrad/compiler/codegen/loops/short-rows';
import type { RareLoops } from '@polygrad/compiler/codegen/lowering';
import { groupCopies } from '@polygrad/compiler/contraction/group-copies';
import { sizedAccess, sizedColumns } from '@polygrad/compiler/contraction/sized-products';
import { dropAxes, dilated } from '@polygrad/compiler/shape/axes';
import { type Shape, sizeOf } from '@polygrad/compiler/shape/view';
import type { Attrs, ConvAttr } from '../../graph/node.ts';
import { type PlanGraph, type PlanNode, isPlanOp, type Product, typicalOf } from '../capture/plan-graph.ts';
import { chunkCount, chunkLeast, enough, inChunks, runsOf, splitReduce, staysWhole } from '../capture/split.ts';
import type { Exprs, Range } from '@polygrad/compiler/ir/expr';
import type { KNode, KNodeOf, LoopKernel } from '@polygrad/compiler/ir/ir';
import { idOf } from '@polygrad/compiler/ir/node';
import { Rewriter } from '@polygrad/compiler/ir/rewrite';
import { isExact, longestRow } from '../fusion/cost.ts';
import { type Demand, loop } from '../fusion/draft.ts';
import type { Partition } from '../fusion/partition.ts';
import { flatten, type Index } from '../lowering/index-map.ts';
import { needSources } from '../lowering/rules.ts';
import { type DType, isSmallFloat, widenedFloat } from '@polygrad/compiler/shape/dtype';

export interface RareForms extends RareLoops {
  readonly keepRow: typeof keepRow;
  readonly dotAsReduce: typeof dotAsReduce;
  readonly shifted: typeof shifted;
  readonly splitDilated: typeof splitDilated;
  readonly splitArgReduce: typeof splitArgReduce;
  readonly splitReduce: typeof splitReduce;
  readonly sumOfProducts: typeof sumOfProducts;
}

export const forms: RareForms = {
  columnsOf,
  reduceColumns,
  copyByCopy,
  reduceWhileStaging,
  inlineStage,
  cutStretches,
  rowsAndRest,
  cutNarrow,
  widenNarrow,
  short,
  sizedAccess,
  sizedColumns,
  groupCopies,
  keepRow,
  dotAsReduce,
  shifted,
  splitDilated,
  splitArgReduce,
  splitReduce,
  sumOfProducts,
};

/**
 * The two-step form of a position of the greatest or least element, or null if it is better left whole: each chunk's position and
 * value, then the chunk that wins. Chunks are cut from the slowest axis, so that the first of equal elements lies in the first of
 * equal chunks.
 */
export function splitArgReduce(
  graph: PlanGraph,
  x: PlanNode,
  { op, axes: reduced }: Attrs['argReduce'],
  shape: Shape,
  size: number,
): PlanNode | null {
  const total = x.size / size;
  if (staysWhole(graph, x, reduced, size)) return null;
  const run = runsOf(x.shape, reduced)[0]!;
  const chunks = chunkCount(
    run.extent,
    Math.min(Math.floor(total / chunkLeast), Math.max(2, Math.ceil(enough / size))),
  );
  if (chunks < 2) return null;
  const length = Math.ceil(run.extent / chunks);
  const { value, axes, chunkAxis } = inChunks(graph, x, { op, axes: reduced }, run, chunks, length);
  const partial = dropAxes(value.shape, axes);
  const best = graph.exactly('reduce', { op, axes, ties: 'share' }, [value], partial, x.dtype);
  const at = graph.exactly('argReduce', { op, axes }, [value], partial, 'int32');
  best.forced = at.forced = true;
  // First the winning chunk, then the winning position in the whole source.
  const winner = graph.exactly('argReduce', { op, axes: [chunkAxis] }, [best], shape, 'int32');
  winner.forced = true;
  const kept = partial.map((n, axis) => (axis === chunkAxis ? 1 : n));
  const spread = graph.make('expand', { shape: partial }, [graph.reshape(winner, kept)], partial, 'int32');
  const line = partial.map((n, axis) => (axis === chunkAxis ? n : 1));
  const counted = graph.reshape(graph.make('iota', { length: chunks }, [], [chunks], 'int32'), line);
  const number = graph.make('expand', { shape: partial }, [counted], partial, 'int32');
  const step = graph.constant((total / run.extent) * length, partial, 'int32');
  const first = graph.make('mul', null, [number, step], partial, 'int32');
  const whole = graph.make('add', null, [first, at], partial, 'int32');
  const wins = graph.make('eq', null, [number, spread], partial, 'bool');
  const one = graph.make('where', null, [wins, whole, graph.constant(0, partial, 'int32')], partial, 'int32');
  return graph.exactly('reduce', { op: 'sum', axes: [chunkAxis], ties: 'share' }, [one], shape, 'int32');
}

/** Tries to serve demands of one kernel from a staged row, as fusion/decide.ts describes it. False if that is not possible; then nothing has changed. */
export function keepRow(p: Partition, node: PlanNode, demands: readonly Demand[], first: Demand): boolean {
  const { kernel } = first;
  const inner: number[] = [];
  for (let axis = 0; axis < node.shape.length; axis++) {
    if (demands.every((d) => d.index[axis] === first.index[axis])) continue;
    const whole = (at: KNode | undefined): boolean => at?.op === 'RANGE' && at.arg.extent === node.shape[axis];
    if (!demands.every((d) => whole(d.index[axis]))) return false;
    inner.push(axis);
  }
  const extents = inner.map((axis) => node.shape[axis]!);
  if (inner.length === 0 || extents.reduce((a, b) => a * b, 1) > longestRow) return false;

  const { e, free } = p.context;
  const around = new Set<Range>();
  first.index.forEach((at, axis) => {
    if (!inner.includes(axis)) for (const range of free.of(at)) around.add(range);
  });
  const isRow = kernel.rows.some((row) => row.size === around.size && [...around].every((range) => row.has(range)));
  if (!isRow) return false;

  const loops = extents.map((n) => loop(p.context, n, 'reduce'));
  const index = first.index.map((at, axis) => (inner.includes(axis) ? loops[inner.indexOf(axis)]! : at));
  if (p.facts.compared[node.index] === 1 && addsAlong(p, { ...first, index }, new Set(loops))) return false;
  const scope = [...kernel.axes.filter((axis) => around.has(axis)), ...loops];
  const from = p.demand(kernel, node, index, scope);
  p.inline(from);
  for (const demand of demands) {
    if (demand === from) continue;
    const at = flatten(
      e,
      extents,
      inner.map((axis) => demand.index[axis]!),
    );
    demand.inline = true;
    demand.staged = { from, ranges: loops, at };
  }
  return true;
}

/**
 * Whether elements of a row are made of sums of their own. Engines without room for the row take these again, some of them by all threads
 * of a group: in another order, so that what is compared for equality would not be equal.
 */
function addsAlong(p: Partition, of: Demand, loops: ReadonlySet<Range>): boolean {
  const { e, free } = p.context;
  const seen = new Set<PlanNode>();
  const adds = (demand: Demand): boolean => {
    const { node, index } = demand;
    const varies = index.some((at) => [...free.of(at)].some((range) => loops.has(range)));
    if (!varies || seen.has(node) || p.mustStore(node) || node.leaf !== null) return false;
    seen.add(node);
    if (node.role === 'contraction' || node.role === 'program' || node.role === 'loop') return false;
    if (node.role === 'reduce' && !isExact(node)) return true;
    let found = false;
    const need = (source: PlanNode, at: Index): void => {
      found ||= adds({ ...demand, node: source, index: at });
    };
    const zeros = (extents: readonly number[]): KNode[] => extents.map(() => e.i32(0));
    const none = (): void => {};
    needSources({ e, demand, need, needInside: need, loops: zeros, ownLoops: zeros, note: none, needInMemory: none });
    return found;
  };
  return adds(of);
}

/** A kernel whose PARAMs are bound `shifts` elements later, with its expressions adapted. */
export interface Rebased {
  readonly loop: LoopKernel;
  /** One per PARAM. */
  readonly shifts: readonly number[];
}

/** The kernel bound so, as lowering/lower.ts says. `loads`: all of it; `lasts`: the last element of each PARAM that is touched. */
export function shifted(
  loop: LoopKernel,
  e: Exprs,
  loads: KNodeOf<'LOAD'>[],
  lasts: readonly number[],
  shifts: readonly number[],
): Rebased {
  const rewriter = new Rewriter(e, new Map());
  const params = loop.params.map((param, slot) => {
    const shift = shifts[slot]!;
    const { access, length, fewer } = param.arg;
    return shift === 0 ? param : e.param(slot, param.dtype, access, Math.min(length, lasts[slot]! + 1) - shift, fewer);
  });
  const place = (param: KNodeOf<'PARAM'>, index: KNode): [KNode, KNode] => {
    const { slot } = param.arg;
    return [params[slot]!, e.sub(rewriter.node(index), shifts[slot]!)];
  };
  // Sources first: the index of a load may depend on another load.
  for (const n of loads.sort((x, y) => idOf(x) - idOf(y))) {
    const [param, index, gate, alt] = n.src as readonly [KNodeOf<'PARAM'>, KNode, KNode?, KNode?];
    const rest = [gate, alt].map((x) => x && rewriter.node(x));
    rewriter.set(n, e.load(...place(param, index), ...(rest as [KNode?, KNode?]), n.lanes));
  }
  const stores = loop.stores.map(({ store, ranges }) => {
    const [param, index, value, gate] = store.src as readonly [KNodeOf<'PARAM'>, KNode, KNode, KNode?];
    return { store: e.store(...place(param, index), rewriter.node(value), gate && rewriter.node(gate)), ranges };
  });
  return { loop: { ...loop, params, stores }, shifts };
}

/** A contraction in which one side has no free axes, as a product and a reduction, which is faster. */
export function dotAsReduce(
  graph: PlanGraph,
  attr: Attrs['dotGeneral'],
  lhs: PlanNode,
  rhs: PlanNode,
  shape: Shape,
  dtype: DType,
): PlanNode {
  const free = (x: PlanNode, used: readonly number[]): number[] =>
    x.shape.map((_, axis) => axis).filter((axis) => !used.includes(axis));
  const lhsFree = free(lhs, [...attr.lhsBatch, ...attr.lhsContract]);
  const rhsFree = free(rhs, [...attr.rhsBatch, ...attr.rhsContract]);
  const wide = widenedFloat(dtype);

  function arrange(
    x: PlanNode,
    batch: readonly number[],
    before: number,
    own: readonly number[],
    after: number,
    contract: readonly number[],
  ): PlanNode {
    const axes = [...batch, ...own, ...contract];
    const sizes = (list: readonly number[]): number[] => list.map((axis) => x.shape[axis]!);
    const moved = graph.make('permute', { axes }, [x], sizes(axes), x.dtype);
    const ones = (count: number): number[] => new Array<number>(count).fill(1);
    const spread = graph.reshape(moved, [
      ...sizes(batch),
      ...ones(before),
      ...sizes(own),
      ...ones(after),
      ...sizes(contract),
    ]);
    return graph.make('cast', { dtype: wide }, [spread], spread.shape, wide);
  }

  const a = arrange(lhs, attr.lhsBatch, 0, lhsFree, rhsFree.length, attr.lhsContract);
  const b = arrange(rhs, attr.rhsBatch, lhsFree.length, rhsFree, 0, attr.rhsContract);
  const deep = attr.lhsContract.map((axis) => lhs.shape[axis]!);
  const product = graph.make('mul', null, [a, b], [...shape, ...deep], wide);
  const axes = deep.map((_, i) => shape.length + i);
  const sum = graph.make('reduce', { op: 'sum', axes, ties: 'share' }, [product], shape, wide);
  return graph.make('cast', { dtype }, [sum], shape, dtype);
}

/** Copying up to this many elements costs less than one more kernel and its `result` elements. */
const worthCopying = (result: number): number => 2 * result + 2048;

/**
 * `x + y` as one longer product, if both are products with equal attributes: `a b + c d` is `[a c] [b; d]`. Null otherwise, or if the copies cost more
 * than they save.
 *
 * The gradient of a weight that every step of a sequence uses is such a sum, with a product per step. Each product would write a result as large as
 * the weight, and the next would read it. Concatenated factors move fewer bytes if they are small compared with the result, and need one kernel instead
 * of one per step.
 */
export function sumOfProducts(graph: PlanGraph, x: PlanNode, y: PlanNode): PlanNode | null {
  if (isPlanOp(x, 'permute') && isPlanOp(y, 'permute')) {
    if (x.attr.axes.join() !== y.attr.axes.join()) return null;
    const sum = sumOfProducts(graph, x.src[0]!, y.src[0]!);
    return sum && graph.make('permute', x.attr, [sum], x.shape, x.dtype);
  }
  if (!isPlanOp(x, 'dotGeneral') || !isPlanOp(y, 'dotGeneral') || isSmallFloat(x.dtype)) return null;
  if (x.shape.join() !== y.shape.join()) return null;
  const { lhsContract, rhsContract } = y.attr;
  // Products of single elements have no axis to be joined along.
  if (lhsContract.length === 0) return null;
  const axes = [lhsContract[0]!, rhsContract[0]!];
  // A sum of lengths that are sizes is no size: there the factors get an axis that counts the products.
  const isSized = [x, y].some(({ src }) => src.some((s, i) => graph.sizedAmong(s.shape, [axes[i]!])));
  const [a, b] = [x, y].map((each) => (isSized ? graph.size!.counted(graph, each, y.attr) : each)) as [
    Product,
    Product,
  ];
  if (JSON.stringify(a.attr) !== JSON.stringify(b.attr)) return null;
  const along = isSized ? [0, 0] : axes;
  const same = (s: PlanNode, t: PlanNode, axis: number): boolean =>
    s.dtype === t.dtype && s.shape.every((n, i) => i === axis || n === t.shape[i]);
  if (!a.src.every((s, i) => same(s, b.src[i]!, along[i]!))) return null;
  if (y.src.reduce((n, s) => n + typicalOf(graph.size, s.size), 0) > worthCopying(typicalOf(graph.size, y.size)))
    return null;
  const src = a.src.map((s, i) => {
    const axis = along[i]!;
    const parts = [s, b.src[i]!].flatMap((t) => (isPlanOp(t, 'concat') && t.attr.axis === axis ? t.src : [t]));
    const shape = s.shape.map((n, k) => (k === axis ? n + b.src[i]!.shape[k]! : n));
    return graph.make('concat', { axis }, parts, shape, s.dtype);
  });
  return graph.make('dotGeneral', a.attr, src, x.shape, x.dtype);
}

/** More phases than this make too many kernels. */
const mostPhases = 16;

/**
 * The same convolution without dilation of its input along some axes, that is without zeros between its elements. Null if it is better left whole.
 *
 * Transposed convolutions, and gradients with respect to the input of a strided convolution, are of this kind. At any output only one kernel element in
 * `hole` (the dilation) meets an element of the input. Which ones depends on the output's position modulo `hole`. So the outputs with one remainder (a
 * phase) are a convolution of the input with every n-th element of the kernel. The other products are with zeros: three of four for strides of two in
 * two dimensions. Each phase is a convolution of its own, or all are features of one where the engine brings that along (phases-as-features.ts).
 */
export function splitDilated(
  graph: PlanGraph,
  attr: ConvAttr,
  [lhs, rhs]: readonly [PlanNode, PlanNode],
  shape: Shape,
  dtype: DType,
  axes: readonly number[],
): PlanNode | null {
  // A phase that meets no element of the kernel is zeros.
  const kernels = axes.reduce((n, i) => n * Math.min(attr.lhsDilation[i]!, rhs.shape[i + 2]!), 1);
  const isMany = kernels > mostPhases;
  const together = graph.phases?.(graph, attr, [lhs, rhs], shape, dtype, axes, isMany) ?? null;
  if (isMany || together !== null) return together;
  /** The convolution of each phase along the first axis, itself split along the others; their outputs interleaved. */
  const phasesOf = (attr: ConvAttr, rhs: PlanNode, shape: Shape, [i, ...others]: readonly number[]): PlanNode => {
    if (i === undefined)
      return graph.make('conv', attr, [lhs, inMemory(graph, rhs, sizeOf(shape) / shape[1]!)], shape, dtype);
    const hole = attr.lhsDilation[i]!;
    const axis = i + 2;
    const at = (list: Shape, value: number): number[] => list.map((n, k) => (k === axis ? value : n));
    const count = Math.ceil(shape[axis]! / hole);
    const partShape = at(shape, count);
    const none = shape.map(() => 0);
    const ones = shape.map(() => 1);
    const phaseShape = [...partShape.slice(0, axis + 1), 1, ...partShape.slice(axis + 1)];
    const parts = Array.from({ length: hole }, (_, phase) => {
      const cut = phaseOf(attr, i, phase, lhs.shape[axis]!, rhs.shape[axis]!, count);
      if (cut === null) return graph.constant(0, phaseShape, dtype);
      const length = at(rhs.shape, cut.taps);
      const taken = { start: at(none, cut.first), length, step: at(ones, cut.step) };
      const kernel = graph.make('slice', taken, [rhs], length, rhs.dtype);
      return graph.reshape(phasesOf(cut.attr, kernel, partShape, others), phaseShape);
    });
    const together = phaseShape.map((n, k) => (k === axis + 1 ? hole : n));
    const side = graph.make('concat', { axis: axis + 1 }, parts, together, dtype);
    const whole = graph.reshape(side, at(shape, count * hole));
    return graph.make('slice', { start: none, length: shape, step: ones }, [whole], shape, dtype);
  };
  return phasesOf(attr, rhs, shape, axes);
}

/** Results for which each element of the kernel is needed, from which on its elements are copied to lie side by side. */
const worthPlacing = 512;

/**
 * The elements of a kernel that a phase uses, side by side in memory. In the kernel they lie apart, so that each read brings others that the phase does not
 * need, and all groups of results read them. `results`: of each feature.
 */
export function inMemory(graph: PlanGraph, kernel: PlanNode, results: number): PlanNode {
  if (results < worthPlacing || (kernel.op !== 'slice' && kernel.op !== 'reshape')) return kernel;
  const copy = graph.exactly('contiguous', null, [kernel], kernel.shape, kernel.dtype);
  copy.forced = true;
  return copy;
}

/** The kernel elements that one phase uses along an axis, and their convolution; null where it uses none. */
interface Cut {
  readonly first: number;
  readonly step: number;
  readonly taps: number;
  readonly attr: ConvAttr;
}

function phaseOf(attr: ConvAttr, i: number, phase: number, n: number, taps: number, count: number): Cut | null {
  const hole = attr.lhsDilation[i]!;
  const dilation = attr.rhsDilation[i]!;
  const low = attr.padLow[i]!;
  // Position `phase + first * dilation - low` of the dilated input holds an element; `step` kernel elements later comes the next.
  const meets = (k: number): boolean => (phase + k * dilation - low) % hole === 0;
  let first = 0;
  while (first < taps && !meets(first)) first++;
  if (first >= taps) return null;
  let step = 1;
  while ((step * dilation) % hole !== 0) step++;
  const phaseTaps = Math.ceil((taps - first) / step);
  const next = (step * dilation) / hole;
  const padLow = -(phase + first * dilation - low) / hole + 0;
  const padHigh = count + dilated(phaseTaps, next) - 1 - n - padLow;
  const set = (list: readonly number[], value: number): number[] => list.map((x, k) => (k === i ? value : x));
  return {
    first,
    step,
    taps: phaseTaps,
    attr: {
      ...attr,
      lhsDilation: set(attr.lhsDilation, 1),
      rhsDilation: set(attr.rhsDilation, next),
      padLow: set(attr.padLow, padLow),
      padHigh: set(attr.padHigh, padHigh),
    },
  };
}
