/**
 * The captured graph of a flush at the capacities of its sizes' classes, of which a plan for all of these sizes is made. Sizes that were found (sizes.ts) go in; null comes
 * out where a node is not computed alike for every size (uniform.ts), or shapes follow from each other by no rule.
 */
import { cutReductions } from '@polygrad/compiler/codegen/loops/joined-reductions';
import { cutJoints } from '@polygrad/compiler/codegen/loops/joints';
import { shortAndLong } from '@polygrad/compiler/codegen/loops/short-and-long';
import { type LoopTools, mergeSized } from '@polygrad/compiler/codegen/loops/sized';
import { repeatRows } from '@polygrad/compiler/codegen/loops/repeated-rows';
import { reduceInSquares } from '@polygrad/compiler/codegen/loops/sized-squares';
import type { Exprs } from '@polygrad/compiler/ir/expr';
import type { KNode } from '@polygrad/compiler/ir/ir';
import type { Rewriter } from '@polygrad/compiler/ir/rewrite';
import type { Shape } from '@polygrad/compiler/shape/view';
import { definitionAt } from '../../graph/definition.ts';
import type { Attrs, Node } from '../../graph/node.ts';
import { unrecorded } from '../../graph/primitives.ts';
import type { CapturedGraph } from '../capture/captured-graph.ts';
import type { PlanNode, PlanSize, SizedBytes, SizedGraph } from '../capture/plan-graph.ts';
import {
  bound,
  counted,
  factorOf,
  forPrograms,
  isIn,
  noteTemporary,
  numberOf,
  outermost,
  placeIn,
  positionOf,
  sizedBytes,
  startsLater,
  typical,
} from './bound.ts';
import { capacitiesFor, classesFrom, leastAmong, type SizeClass } from './classes.ts';
import { attrAt, numbersAt, type Sizes, type Sums, valuesOf, withSums } from './sizes.ts';
import { checkExtents, countedAxes, isUniform, type SizedShape, stretchesOf } from './uniform.ts';

/**
 * The stretches of axes at capacity, if every node is uniform and leaves are read alike at all sizes; else null.
 */
function uniformStretches(
  sizes: Sizes,
  captured: CapturedGraph,
  isSize: (n: number) => boolean,
  shapeOf: (i: number) => Shape,
): ReadonlyMap<number, readonly number[]> | null {
  const shapes = sizes.axes.map((axes, i): SizedShape => {
    const shape = shapeOf(i);
    return { shape, axes: axes === null ? null : shape.map(isSize) };
  });
  const reshapes: [Shape, Shape][] = [];
  for (let i = 0; i < shapes.length; i++) {
    const node = captured.nodes[i]!;
    const shape = shapes[i]!;
    if (node.storage !== null) {
      const { strides } = captured.storageOf(node).view;
      if ((shape.axes !== null || sizes.strides.has(i)) && strides.some((stride) => stride < 0)) return null;
      continue;
    }
    const src = node.src.map(({ index }) => shapes[index]!);
    if (!isUniform(node.op, sizes.sample.attrs[i], shape, src)) return null;
    if (node.op === 'reshape') reshapes.push([src[0]!.shape, shape.shape]);
    if (sizes.bound.has(i) && typeof (node.attr as { value: unknown }).value !== 'number') return null;
  }
  const stretches = stretchesOf(isSize, reshapes);
  if (stretches === null) return null;
  // Along a counted axis there must be one stretch.
  for (const [i, { shape }] of shapes.entries()) {
    const { op, storage, src } = captured.nodes[i]!;
    if (storage !== null) continue;
    const from = src.map(({ index }) => shapes[index]!.shape);
    const axes = countedAxes(op, sizes.sample.attrs[i], shape, from);
    if (axes.some((axis) => [shape, ...from].some((along) => stretches.has(along[axis]!)))) return null;
  }
  return stretches;
}

interface Rule {
  shape(src: readonly Node[], attr: unknown, op: string): Shape;
}

/** True if shapes follow from each other by the rules of shapes at other sizes too: two numbers that look like one size may differ. */
function followsRules(sizes: Sizes, capacities: readonly number[], captured: CapturedGraph): boolean {
  const { sample, terms, sums, axes } = sizes;
  // Independent ones at capacity; capacities of sums are other numbers than the sums.
  const values = valuesOf(
    terms,
    withSums(sums, (size) => capacities[size]!),
  );
  const shapes = sample.shapes.map((shape, i) => numbersAt(shape, axes[i]!, values));
  const nodes: Node[] = [];
  for (let i = 0; i < captured.count; i++) {
    const node = captured.nodes[i]!;
    const shape = shapes[i]!;
    const src = node.src.map(({ index }) => nodes[index]!);
    const attr = node.storage === null ? attrAt(sizes, i, node, (k) => shapes[k]!, values) : null;
    if (node.storage === null) {
      const { infer } = definitionAt(node.kind);
      try {
        const inferred = (infer as Rule).shape(src, attr, node.op);
        if (inferred.some((n, axis) => n !== shape[axis])) return false;
      } catch {
        return false;
      }
    }
    nodes.push(unrecorded(node, src, attr as Node['attr'], shape));
  }
  return true;
}

/** The captured graph at the capacities of classes; null where a node is not uniform (uniform.ts). `simt`: groups have threads. */
export function sizedGraph(
  sizes: Sizes,
  classes: readonly SizeClass[],
  captured: CapturedGraph,
  simt: boolean,
): SizedGraph | null {
  const { sample, axes } = sizes;
  const capacities = capacitiesFor(classes, sizes, captured);
  const values = valuesOf(sizes.terms, capacities);
  const isSize = (n: number): boolean => n !== 0 && capacities.some((capacity) => n % capacity === 0);
  const shapes = sample.shapes.map((shape, i) => numbersAt(shape, axes[i]!, values));
  const shapeOf = (i: number): Shape => shapes[i]!;
  const attrs = sample.attrs.map((_, i) => {
    const node = captured.nodes[i]!;
    return node.storage === null ? attrAt(sizes, i, node, shapeOf, values, true) : null;
  });
  const attrOf = (i: number): unknown => attrs[i];
  const stretches = uniformStretches(sizes, captured, isSize, shapeOf);
  if (stretches === null || !followsRules(sizes, capacities, captured)) return null;
  const temporaries = new Map<PlanNode, SizedBytes>();
  const size: PlanSize = {
    capacities,
    low: classes.map(({ low }) => low),
    high: classes.map(({ high }) => high),
    stretches,
    factorOf: (n) => factorOf(capacities, n),
    typical: (n) => typical(size, n),
    bound: (e, n) => bound(e, size, n),
    check: (op, attr, src, shape) => checkExtents(isSize, op, attr, src, shape),
    bytesOf: (node, elementBytes, start) => sizedBytes(size, temporaries, node, elementBytes, start),
    noteTemporary: (node, readers, strides) => noteTemporary(size, temporaries, node, readers, simt, strides),
    follows: (node) => temporaries.has(node) && temporaries.get(node)!.fixed === undefined,
    outermost: (shape, order) => outermost(size, shape, order, simt),
    placeIn: (e, node, index, strides) => placeIn(e, size, node, index, strides),
    merged: (loop, e, tools) => {
      if (simt) return mergeSized(loop, e, tools);
      const full = inOthers(sizes.sums, size, e, tools);
      const merged = mergeSized(cutJoints(cutReductions(loop, e, tools, full), e, tools, full), e, tools);
      return shortAndLong(merged, e, tools, (part) => repeatRows(reduceInSquares(part, e, tools), e, tools));
    },
    numberOf: (e, extent, position) => numberOf(e, size, extent, position),
    positionOf: (e, extent, number) => positionOf(e, size, extent, number),
    forPrograms: (graph, op, attr, src) => forPrograms(size, graph, op, attr, src),
    counted,
    startsLater: (start, from, strides) => startsLater(size, start, from, strides),
    isIn,
  };
  return {
    size,
    key: () => keyAt(sizes, values, size, captured, attrs),
    stridesOf: (i, own) => numbersAt(own, sizes.strides.get(i) ?? null, values),
    shapeOf,
    attrOf,
    isBound: (i) => sizes.bound.has(i),
  };
}

/** A rewriter that puts sizes which follow from others in terms of these. */
function inOthers(sums: Sums, size: PlanSize, e: Exprs, { Rewriter }: LoopTools): Rewriter {
  const rewriter = new Rewriter(e, new Map());
  const numbers = size.capacities.map((capacity) => bound(e, size, capacity));
  for (const [i, sum] of sums.entries())
    if (sum !== null)
      rewriter.set(
        numbers[i]!,
        sum.of.reduce((all: KNode, j) => e.add(all, numbers[j]!), e.i32(sum.more)),
      );
  return rewriter;
}

/** Where the key has the width behind an axis of a padding: after its primitive, and the widths in front with how many they are. */
const highAt = (start: number, axis: number, { low }: Attrs['pad']): number => start + 3 + low.length + axis;

/** `SizedGraph.key`. Computed shapes follow from the key, and bound constants do not matter, so neither is written. */
function keyAt(
  { sample: { starts }, sums, holes, factors, of, less, bound }: Sizes,
  values: readonly number[],
  { capacities, low, high, stretches }: PlanSize,
  { key: { data, length }, nodes }: CapturedGraph,
  attrs: readonly unknown[],
): Int32Array {
  const key = Array.from(data.subarray(0, length));
  for (const [i, at] of holes.entries()) key[at] = factors[i]! > 0 ? factors[i]! * values[of[i]!]! - less[i]! : 0;
  const list = (numbers: Iterable<number>): number[] => {
    const all = [...numbers];
    return [all.length, ...all];
  };
  for (const [i, attr] of attrs.entries())
    if (attr !== null && nodes[i]!.op === 'pad')
      for (const [axis, x] of (attr as Attrs['pad']).high.entries())
        key[highAt(starts[i]!, axis, attr as Attrs['pad'])] = x;
  const long = [...stretches].flatMap(([extent, parts]) => [extent, ...list(parts)]);
  const follow = sums.flatMap((sum, i) => (sum === null ? [] : [i, sum.more, ...list(sum.of)]));
  return Int32Array.from([
    ...key,
    ...list(capacities),
    ...list(low),
    ...list(high),
    ...list(bound),
    ...list(long),
    ...list(follow),
  ]);
}

/** True if every node is uniform, so that one plan serves all sizes. */
export function isPlannable(sizes: Sizes, captured: CapturedGraph): boolean {
  const classes = classesFrom(leastAmong, sizes.n, sizes.sums);
  return sizedGraph(sizes, classes, captured, false) !== null;
}
