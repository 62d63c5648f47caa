/**
 * What is bound to a size: bytes and strides of what is held and handed out, updates that programs go through, and the plan itself.
 *
 * What a plan keeps to itself is laid out for its capacity.
 */
import { definitionOf } from '../../graph/definition.ts';
import type { Attrs, PrimitiveName } from '../../graph/node.ts';
import type { Exprs } from '../../ir/expr.ts';
import { groupsAt } from '../../ir/groups.ts';
import type { KNode } from '../../ir/ir.ts';
import { type PlanGraph, type PlanNode, type PlanSize, sizeFactor, SizesRefused } from '../capture/plan-graph.ts';
import { sizeScalar } from '../fusion/draft.ts';
import type { Index } from '../lowering/index-map.ts';
import { block, type BufferPlan, type Plan } from '../plan.ts';

/** A number of a plan with another size in it. */
function atSize(n: number, capacity: number, size: number): number {
  let value = n;
  for (let left = n; left !== 0 && left % capacity === 0; left /= capacity) value = (value / capacity) * size;
  return value;
}

/** The plan of a class of sizes, bound to one of them. `isThreads`: groups are of several threads, and as many as the size asks for. */
export function sized(plan: Plan, size: number, isThreads: boolean): Plan {
  const fit = <T extends { readonly bytes: number; readonly bytesAt: BufferPlan['bytesAt'] }>(x: T): T =>
    x.bytesAt === null ? x : { ...x, bytes: x.bytesAt(size) };
  const hasSize = (x: number): boolean => x !== 0 && x % plan.size === 0;
  return {
    ...plan,
    size,
    dispatches: plan.dispatches.map((d) => ({
      ...d,
      bindings: d.bindings.map(fit),
      groups: isThreads ? groupsAt(d.kernel.program, size) : null,
    })),
    buffers: plan.buffers.map((buffer) => ({ ...buffer, ...block(fit(buffer).bytes) })),
    outputs: plan.outputs.map((output) => {
      const { strides, offset } = output.view;
      if (!strides.some(hasSize)) return output;
      return { ...output, view: { strides: strides.map((x) => atSize(x, plan.size, size)), offset } };
    }),
  };
}

/** `PlanSize.bytesAt`. */
export function bytesAt(
  capacity: number,
  node: PlanNode,
  bytes: number,
  start: number,
): ((n: number) => number) | null {
  const { shape, leaf } = node;
  if ([...shape, ...(leaf?.strides ?? [])].every((x) => x === 0 || x % capacity !== 0)) return null;
  const at = (x: number, n: number): number => atSize(x, capacity, n);
  if (leaf === null) return (n) => shape.reduce((all, extent) => all * at(extent, n), bytes) - start;
  const { span, strides } = leaf;
  const reach = (n: number): number =>
    shape.reduce((all, extent, axis) => all + Math.abs(at(strides[axis]!, n)) * (at(extent, n) - 1), 0);
  const aligned = span - reach(capacity);
  return (n) => (aligned + reach(n)) * bytes - start;
}

/** `PlanSize.placeIn`. */
export function placeIn(
  e: Exprs,
  size: PlanSize,
  node: PlanNode,
  index: Index,
  strides: readonly number[],
): KNode | null {
  const { leaf, shape } = node;
  const stretchOf = (extent: number): number => extent / (size.stretches.get(extent) ?? 1);
  if (shape.every((extent, axis) => sizeFactor(size, strides[axis]!) === 0 && stretchOf(extent) === extent))
    return null;
  const n = sizeScalar(e, size);
  let flat: KNode = e.i32(leaf?.shift ?? 0);
  shape.forEach((extent, axis) => {
    let [position, stride] = [index[axis]!, strides[axis]!];
    if (extent === 1 || stride === 0) return;
    const stretch = stretchOf(extent);
    if (stretch < extent) {
      const bound = e.mul(n, sizeFactor(size, stretch));
      position = e.add(e.mul(e.idiv(position, stretch), bound), e.irem(position, stretch));
    }
    let step: KNode = e.i32(1);
    for (; stride % size.capacity === 0; stride /= size.capacity) step = e.mul(step, n);
    flat = e.add(flat, e.mul(position, e.mul(step, stride)));
  });
  return flat;
}

/**
 * `PlanSize.forPrograms`: what is held with strides that depend on the size is copied, for programs are written for strides that are fixed. Of a
 * sum of updates, updates beyond the size add nothing to the first element.
 */
export function forPrograms(
  size: PlanSize,
  graph: PlanGraph,
  op: PrimitiveName,
  attr: unknown,
  src: readonly PlanNode[],
): readonly PlanNode[] {
  const { role, roleOf } = definitionOf(op);
  if ((roleOf?.(attr as Attrs[PrimitiveName], src) ?? role) !== 'program') return src;
  const fixed = src.map((x) => {
    const { shape, dtype, leaf } = x;
    const isBound = leaf?.strides.some((stride, axis) => shape[axis]! > 1 && sizeFactor(size, stride) > 0);
    return isBound ? graph.exactly('contiguous', null, [x], shape, dtype) : x;
  });
  if (op !== 'scatterAdd') return fixed;
  const [base] = fixed as [PlanNode];
  // A program goes through all elements of a capacity.
  if (base.shape.some((n) => sizeFactor(size, n) > 0)) throw new SizesRefused(`sums into shape [${base.shape}]`);
  return fixed.map((x, i) => {
    const high = x.shape.map((n) => Number(sizeFactor(size, n) > 0));
    if (i === 0 || !high.includes(1)) return x;
    if (x.shape.some((n) => (size.stretches.get(n) ?? 1) > 1)) throw new SizesRefused(`updates of shape [${x.shape}]`);
    const filled = x.shape.map((n, axis) => n + high[axis]!);
    return graph.make('pad', { low: high.map(() => 0), high, value: 0 }, [x], filled, x.dtype);
  });
}
