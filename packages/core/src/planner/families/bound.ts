/**
 * Computes what depends on the sizes that a plan is bound to: bytes and strides of leaves and outputs, bytes and places of temporaries, updates of
 * programs, and the bound plan itself.
 *
 * Temporaries lie as tensors of the bound size do where several axes end at sizes, or the innermost: loops over them are one then. Of others
 * strides are those at capacity, so that kernels know them. They are as long as they are used.
 */
import type { EngineCaps } from '../../engine/engine.ts';
import { block } from '../../engine/pool.ts';
import { definitionOf } from '../../graph/definition.ts';
import type { Attrs, PrimitiveName } from '../../graph/node.ts';
import type { Exprs } from '@polygrad/compiler/ir/expr';
import { groupsAt } from '@polygrad/compiler/ir/groups';
import type { KNode } from '@polygrad/compiler/ir/ir';
import { rowMajorStrides, type Shape } from '@polygrad/compiler/shape/view';
import {
  type PlanGraph,
  type PlanNode,
  type PlanSize,
  type Product,
  type SizedBytes,
  sizeFactor,
  SizesRefused,
} from '../capture/plan-graph.ts';
import type { Index } from '../lowering/index-map.ts';
import type { BindingPlan, Plan } from '../plan.ts';
import { layOut } from '../arena.ts';
import { atSizes, bytesAt } from '../sized-bytes.ts';

/** `PlanSize.factorOf`. */
export function factorOf(capacities: readonly number[], n: number): number {
  if (n === 0) return 0;
  const left = atSizes(
    n,
    capacities,
    capacities.map(() => 1),
  );
  return left === n ? 0 : left;
}

/** `PlanSize.typical`: the geometric mean of the least and the greatest size. */
export function typical({ capacities, low, high }: Pick<PlanSize, 'capacities' | 'low' | 'high'>, n: number): number {
  return atSizes(
    n,
    capacities,
    low.map((least, i) => Math.round(Math.sqrt(least * high[i]!))),
  );
}

/** `PlanSize.bound`: the sizes are the first scalars of every kernel. */
export function bound(e: Exprs, { capacities, low, high }: PlanSize, n: number): KNode {
  let left = n;
  let product: KNode = e.i32(1);
  capacities.forEach((capacity, i) => {
    for (; left !== 0 && left % capacity === 0; left /= capacity)
      product = e.mul(product, e.scalar(i, 'int32', low[i]!, high[i]!));
  });
  return e.mul(product, left);
}

/** The plan of a class, bound to these sizes. */
export function sized(plan: Plan, sizes: readonly number[], caps: EngineCaps): Plan {
  const { temporaries } = plan;
  const now = temporaries.map(({ bytes, first, last, sized }) => ({
    bytes: sized === null ? bytes : bytesAt(sized, plan.sizes, sizes),
    first,
    last,
  }));
  const { blocks, places } = layOut(now, caps);
  // Field by field: copies of all fields take several times as long.
  const fit = (binding: BindingPlan): BindingPlan => {
    const { kind, at, unit, offset, sized, temp } = binding;
    if (temp >= 0) {
      const place = places[temp]!;
      const start = offset - temporaries[temp]!.offset;
      const bytes = now[temp]!.bytes - start;
      return { kind, at: plan.buffers.length + place.block, unit, offset: place.offset + start, bytes, sized, temp };
    }
    if (sized === null) return binding;
    return { kind, at, unit, offset, bytes: bytesAt(sized, plan.sizes, sizes), sized, temp };
  };
  const hasSize = (x: number): boolean => x !== 0 && plan.sizes.some((capacity) => x % capacity === 0);
  return {
    ...plan,
    sizes,
    placed: null,
    stays: null,
    commands: [],
    dispatches: plan.dispatches.map(({ kernel, bindings, scalars }) => ({
      kernel,
      bindings: bindings.map(fit),
      scalars,
      groups: caps.simt ? groupsAt(kernel.program, sizes) : null,
    })),
    buffers: plan.buffers.map((buffer) => {
      const { donor, sized } = buffer;
      if (sized === null) return buffer;
      const { bytes, sizeClass } = block(bytesAt(sized, plan.sizes, sizes));
      return { bytes, sizeClass, donor, sized };
    }),
    blocks: temporaries.length > 0 ? blocks.map(block) : plan.blocks,
    outputs: plan.outputs.map((output) => {
      const { strides, offset } = output.view;
      if (!strides.some(hasSize)) return output;
      return { ...output, view: { strides: strides.map((x) => atSizes(x, plan.sizes, sizes)), offset } };
    }),
  };
}

/** `PlanSize.bytesOf`. */
export function sizedBytes(
  size: PlanSize,
  temporaries: ReadonlyMap<PlanNode, SizedBytes>,
  node: PlanNode,
  unit: number,
  start: number,
): SizedBytes | null {
  const { shape, leaf, forced } = node;
  if (leaf === null && !forced) {
    const reach = temporaries.get(node);
    return reach === undefined ? null : { ...reach, unit, more: unit - start };
  }
  if ([...shape, ...(leaf?.strides ?? [])].every((x) => sizeFactor(size, x) === 0)) return null;
  if (leaf === null) return { unit, shape, strides: null, more: 0 - start };
  const { span, strides } = leaf;
  const { capacities } = size;
  const reach = bytesAt({ unit: 1, shape, strides, more: 0 }, capacities, capacities);
  return { unit, shape, strides, more: (span - reach) * unit - start };
}

/** `PlanSize.noteTemporary`: of each temporary, in elements. */
export function noteTemporary(
  size: PlanSize,
  temporaries: Map<PlanNode, SizedBytes>,
  node: PlanNode,
  readers: ReadonlySet<{ readonly handwritten: boolean }>,
  simt: boolean,
  strides: readonly number[] = rowMajorStrides(node.shape),
): void {
  const { shape, forced } = node;
  if (forced || [...readers].some(({ handwritten }) => handwritten)) return;
  if (shape.every((n) => sizeFactor(size, n) === 0)) return;
  const [lengths, steps]: [number[], number[]] = [[], []];
  for (const [axis, extent] of shape.entries()) {
    // At capacity each stretch has room for the greatest size.
    let step = strides[axis]!;
    for (const length of [...(size.stretches.get(extent) ?? [extent])].reverse()) {
      lengths.push(length);
      steps.push(step);
      step *= length;
    }
  }
  const own = { unit: 1, shape: lengths, strides: steps, more: 1 };
  temporaries.set(node, !simt && isTight(size, shape) ? own : { ...own, fixed: true });
}

/** True where several axes end at sizes, or the innermost. Products by groups of threads need strides that are numbers. */
const isTight = (size: PlanSize, shape: Shape): boolean =>
  shape.filter((n) => sizeFactor(size, n) > 0).length > 1 || sizeFactor(size, shape.at(-1)!) > 0;

/** `PlanSize.outermost`. */
export function outermost(size: PlanSize, shape: Shape, order: number[], simt: boolean): void {
  if (!simt && isTight(size, shape)) return;
  const sized = order.findIndex((axis) => sizeFactor(size, shape[axis]!) > 0);
  if (sized > 0 && sized < order.length - 1) order.unshift(...order.splice(sized, 1));
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
  if (shape.every((extent, axis) => sizeFactor(size, strides[axis]!) === 0 && !size.stretches.has(extent))) return null;
  let flat: KNode = e.i32(leaf?.shift ?? 0);
  shape.forEach((extent, axis) => {
    if (extent === 1 || strides[axis] === 0) return;
    const position = numberOf(e, size, extent, index[axis]!);
    flat = e.add(flat, e.mul(position, bound(e, size, strides[axis]!)));
  });
  return flat;
}

/** `PlanSize.numberOf`. */
export function numberOf(e: Exprs, size: PlanSize, extent: number, position: KNode): KNode {
  const stretches = size.stretches.get(extent) ?? [extent];
  let [place, rest, behind]: [KNode | null, KNode, number] = [null, position, 1];
  for (let i = stretches.length - 1; i > 0; i--) {
    const within = e.mul(e.irem(rest, stretches[i]!), bound(e, size, behind));
    place = place === null ? within : e.add(within, place);
    rest = e.idiv(rest, stretches[i]!);
    behind *= stretches[i]!;
  }
  return place === null ? position : e.add(e.mul(rest, bound(e, size, behind)), place);
}

/** `PlanSize.positionOf`. */
export function positionOf(e: Exprs, size: PlanSize, extent: number, number: KNode): KNode {
  const [, ...inner] = size.stretches.get(extent) ?? [extent];
  let [position, rest, behind]: [KNode, KNode, number] = [e.i32(0), number, 1];
  for (const stretch of inner.reverse()) {
    const length = bound(e, size, stretch);
    position = e.add(e.mul(e.irem(rest, length), behind), position);
    rest = e.idiv(rest, length);
    behind *= stretch;
  }
  return e.add(e.mul(rest, behind), position);
}

/**
 * `PlanSize.forPrograms`: copies leaves whose strides depend on sizes, because programs need fixed strides. Updates of a
 * scatter beyond the sizes have no effect: they add zero to the first element, or repeat the last update.
 */
export function forPrograms(
  size: PlanSize,
  graph: PlanGraph,
  op: PrimitiveName,
  attr: unknown,
  src: readonly PlanNode[],
): readonly PlanNode[] {
  const { role, roleOf, sizedPrograms } = definitionOf(op);
  if (sizedPrograms === true || (roleOf?.(attr as Attrs[PrimitiveName], src) ?? role) !== 'program') return src;
  const fixed = src.map((x) => {
    const { shape, dtype, leaf } = x;
    const isBound = leaf?.strides.some((stride, axis) => shape[axis]! > 1 && sizeFactor(size, stride) > 0);
    return isBound ? graph.exactly('contiguous', null, [x], shape, dtype) : x;
  });
  if (op !== 'scatterAdd' && op !== 'scatter') return fixed;
  const [base, ...given] = fixed as [PlanNode, ...PlanNode[]];
  // A program goes through all elements of a capacity.
  if (base.shape.some((n) => sizeFactor(size, n) > 0)) throw new SizesRefused(`updates of shape [${base.shape}]`);
  const by = op === 'scatterAdd' ? 'add' : (attr as Attrs['scatter']).op;
  return [base, ...given.map((x, i) => filled(size, graph, x, by === 'add' ? 0 : by === 'prod' ? i : null))];
}

/** Pads beyond the sizes: with a number, or with the last element. */
function filled(size: PlanSize, graph: PlanGraph, x: PlanNode, value: number | null): PlanNode {
  const { dtype } = x;
  const high = x.shape.map((n) => Number(sizeFactor(size, n) > 0));
  if (!high.includes(1)) return x;
  if (x.shape.some((n) => size.stretches.has(n))) throw new SizesRefused(`updates of shape [${x.shape}]`);
  const shape = x.shape.map((n, axis) => n + high[axis]!);
  const padded = (y: PlanNode, by: number): PlanNode =>
    graph.make('pad', { low: high.map(() => 0), high, value: by }, [y], shape, y.dtype);
  if (value !== null) return padded(x, value);
  const start = high.map((is) => 0 - is);
  const length = x.shape.map((n, axis) => (high[axis] === 1 ? 1 : n));
  const last = graph.make('slice', { start, length, step: high.map(() => 1) }, [x], length, dtype);
  const isThere = padded(graph.constant(1, x.shape, 'bool'), 0);
  return graph.make(
    'where',
    null,
    [isThere, padded(x, 0), graph.make('expand', { shape }, [last], shape, dtype)],
    shape,
    dtype,
  );
}

/** `PlanSize.counted`. */
export function counted(graph: PlanGraph, { attr, src }: Product, plain: Product['attr']): Product {
  const behind = (axes: readonly number[]): number[] => axes.map((axis) => axis + 1);
  const now = {
    lhsBatch: behind(plain.lhsBatch),
    rhsBatch: behind(plain.rhsBatch),
    lhsContract: [0, ...behind(plain.lhsContract)],
    rhsContract: [0, ...behind(plain.rhsContract)],
  };
  if (JSON.stringify(attr) !== JSON.stringify(plain)) return { attr, src };
  return { attr: now, src: src.map((s) => graph.reshape(s, [1, ...s.shape])) };
}

/** `PlanSize.startsLater`. */
export function startsLater(
  size: PlanSize,
  start: readonly number[],
  from: Shape,
  strides: readonly number[],
): boolean {
  if (start.some((at, axis) => size.factorOf(Math.abs(from[axis]! * at)) > 0)) return true;
  if (start.some((at, axis) => at !== 0 && size.factorOf(strides[axis]!) !== 0))
    throw new SizesRefused(`an output at [${start}]`);
  return false;
}

/** `PlanSize.isIn`. */
export function isIn(nodes: ReadonlySet<KNode>): boolean {
  return [...nodes].some((n) => n.op === 'SCALAR' && n.arg.low !== undefined);
}
