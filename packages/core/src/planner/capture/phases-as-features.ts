/**
 * Convolutions of a dilated input (rare/forms.ts) as one convolution whose features are those of all phases.
 *
 * That is possible where all phases use equally many elements of the kernel. They meet all elements at the same place, so results may begin and end with
 * parts of a phase, which are computed for nothing. The gradient by the input of 16 x 16 patches has 256 phases, too many for kernels of their own. Pages
 * do not load this.
 */
import type { ConvAttr } from '../../graph/node.ts';
import { type Shape, sizeOf } from '@polygrad/compiler/shape/view';
import type { Phases, PlanGraph, PlanNode } from './plan-graph.ts';
import { inMemory } from '../rare/forms.ts';

/** Products that take as long as an element of a phase's copy of the input. */
const productsOfCopy = 16;

/** A spatial axis along which every phase uses equally many elements of the kernel. */
interface Side {
  /** How many phases it has: 1 without holes. */
  readonly hole: number;
  /** Elements of the kernel that a phase uses, one after another, and positions of each phase. */
  readonly taps: number;
  readonly count: number;
  readonly padLow: number;
  /** Where the result begins among the phases side by side. */
  readonly first: number;
}

/** The axes of a convolution whose phases may be features of one; null where phases differ, or where positions of phases hang on a size in another way. */
function sidesOf(
  graph: PlanGraph,
  attr: ConvAttr,
  axes: readonly number[],
  kernel: Shape,
  shape: Shape,
): readonly Side[] | null {
  const sides = attr.padLow.map((low, i): Side | null => {
    const size = shape[i + 2]!;
    if (!axes.includes(i)) return { hole: 1, taps: kernel[i + 2]!, count: size, padLow: low, first: 0 };
    const hole = attr.lhsDilation[i]!;
    const taps = kernel[i + 2]! / hole;
    // Results at hole * a - r + low, r below the hole, meet elements a to a + taps - 1 of the input.
    const from = Math.ceil(-low / hole);
    const count = Math.ceil((size - 1 - low) / hole) - from + 1;
    const isSized = graph.sizedAmong(shape, [i + 2]) && count * hole !== size;
    if (attr.rhsDilation[i] !== 1 || taps % 1 !== 0 || isSized) return null;
    return { hole, taps, count, padLow: -from, first: hole - 1 - low - hole * from };
  });
  return attr.batchGroups > 1 || sides.includes(null) ? null : (sides as Side[]);
}

/** One convolution whose features are those of all phases, which are put side by side then; null where phases differ, or several convolutions are as good. */
export const phasesAsFeatures: Phases = (graph, attr, [lhs, rhs], shape, dtype, axes, isMany) => {
  const sides = sidesOf(graph, attr, axes, rhs.shape, shape);
  if (sides === null) return null;
  const phases = sides.reduce((n, { hole }) => n * hole, 1);
  const products = (sizeOf(shape) * sizeOf(rhs.shape.slice(1))) / phases;
  const more = sides.reduce((n, { count, hole }, i) => (n * count * hole) / shape[i + 2]!, 1) - 1;
  if (!isMany && products * more >= productsOfCopy * (phases - 1) * lhs.size) return null;
  const { groups } = attr;
  const rank = sides.length;
  const [images, features, depth] = [shape[0]!, shape[1]! / groups, rhs.shape[1]!];
  const holes = sides.map((s) => s.hole);
  const counts = sides.map((s) => s.count);
  const all = groups * sizeOf(holes) * features;
  const permuted = (x: PlanNode, axes: readonly number[]): PlanNode =>
    graph.make(
      'permute',
      { axes },
      [x],
      axes.map((axis) => x.shape[axis]!),
      x.dtype,
    );
  const taken = (x: PlanNode, start: Shape, length: Shape, step: Shape): PlanNode =>
    graph.make('slice', { start, length, step }, [x], length, x.dtype);

  // [g O, C, taps * holes ...] to [g holes O, C, taps ...], the phases in the order of results.
  const cut = [groups, features, depth, ...sides.flatMap((s) => [s.taps, s.hole])];
  const isHole = (axis: number): boolean => axis > 3 && axis % 2 === 0;
  const turned = taken(
    graph.reshape(rhs, cut),
    cut.map((n, axis) => (isHole(axis) ? n - 1 : 0)),
    cut,
    cut.map((_, axis) => (isHole(axis) ? -1 : 1)),
  );
  const taps = sides.map((_, i) => 3 + 2 * i);
  const kernel = graph.reshape(permuted(turned, [0, ...taps.map((axis) => axis + 1), 1, 2, ...taps]), [
    all,
    depth,
    ...sides.map((s) => s.taps),
  ]);
  const whole: ConvAttr = {
    ...attr,
    lhsDilation: attr.lhsDilation.map((n, i) => n / sides[i]!.hole),
    padLow: sides.map((s) => s.padLow),
    padHigh: sides.map((s, i) =>
      s.hole === 1 ? attr.padHigh[i]! : s.count + s.taps - 1 - lhs.shape[i + 2]! - s.padLow,
    ),
  };
  const results = [images, all, ...counts];
  const conv = graph.make('conv', whole, [lhs, inMemory(graph, kernel, images * sizeOf(counts))], results, dtype);

  // [N, g holes O, positions ...] to [N, g O, positions * holes ...].
  const apart = graph.reshape(conv, [images, groups, ...holes, features, ...counts]);
  const order = [0, 1, 2 + rank, ...sides.flatMap((_, i) => [3 + rank + i, 2 + i])];
  const side = graph.reshape(permuted(apart, order), [images, shape[1]!, ...sides.map((s) => s.count * s.hole)]);
  return taken(
    side,
    [0, 0, ...sides.map((s) => s.first)],
    shape,
    shape.map(() => 1),
  );
};
