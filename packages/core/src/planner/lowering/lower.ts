/**
 * From decided kernels to loop nests: demands become expressions, sources first; loads and stores get slots.
 *
 * The partition decided what is computed where. Slots say which node's memory each PARAM is; scalars say which number
 * is bound.
 */
import { rareForms } from '#rare';
import type { Exprs, Range } from '@polygrad/compiler/ir/expr';
import { type FreeRanges, sizeLimit, typicalOf } from '@polygrad/compiler/ir/free-ranges';
import type { KNode, KNodeOf, LoopKernel, LoopStore } from '@polygrad/compiler/ir/ir';
import { assumeBounds, highOf, idOf, lowOf, nodesOf } from '@polygrad/compiler/ir/node';
import { flattened, Rewriter, step } from '@polygrad/compiler/ir/rewrite';
import { linearOf } from '@polygrad/compiler/ir/simplify/integers';
import { type DType, dtypeInfo } from '@polygrad/compiler/shape/dtype';
import { rowMajorStrides, type Shape } from '@polygrad/compiler/shape/view';
import { isPlanOp, type PlanNode, type PlanSize } from '../capture/plan-graph.ts';
import type { Demand, DraftContext, KernelDraft } from '../fusion/draft.ts';
import type { Unit } from '../fusion/order.ts';
import type { Partition } from '../fusion/partition.ts';
import type { Donations } from '../arena.ts';
import type { Rebased } from '../rare/forms.ts';
import { flatten, type Index } from './index-map.ts';
import { makeValue, type Slot } from './rules.ts';

// Rebasing: a PARAM whose accesses begin late in a tensor is bound where they begin. The steps of an unrolled loop read one
// tensor at different places; with the place in the binding they are one kernel.

/** What an engine allows. */
export interface RebaseOptions {
  readonly elementBytes: readonly number[];
  readonly bindAlign: number;
}

/** The first and last element of a PARAM that is touched. */
interface Reach {
  first: number;
  last: number;
}

/** The kernel with every read-only or write-only PARAM bound at its first touched element; null where nothing would change, or it is left as it is. */
export function rebase(loop: LoopKernel, e: Exprs, { elementBytes, bindAlign }: RebaseOptions): Rebased | null {
  const loads: KNodeOf<'LOAD'>[] = [];
  const reaches = new Map<KNode, Reach>();
  for (const n of nodesOf(loop.stores.map(({ store }) => store))) {
    if ((n.op !== 'LOAD' && n.op !== 'STORE') || n.src[0]?.op !== 'PARAM') continue;
    const [param, index] = n.src as readonly [KNodeOf<'PARAM'>, KNode];
    if (n.op === 'LOAD') loads.push(n);
    const reach = reaches.get(param) ?? { first: param.arg.length, last: 0 };
    reach.first = Math.min(reach.first, lowOf(index));
    reach.last = Math.max(reach.last, highOf(index));
    reaches.set(param, reach);
  }
  const shifts = loop.params.map((param) => {
    const { access, length } = param.arg;
    const first = access === 'readwrite' ? 0 : (reaches.get(param)?.first ?? 0);
    const bytes = elementBytes[dtypeInfo[param.dtype].id]!;
    const unit = bindAlign > bytes ? bindAlign / bytes : 1;
    return first > 0 && first < length ? first - (first % unit) : 0;
  });
  if (shifts.every((shift) => shift === 0)) return null;
  const lasts = loop.params.map((param) => reaches.get(param)?.last ?? 0);
  return rareForms()?.shifted(loop, e, loads, lasts, shifts) ?? null;
}

// The memory order of a temporary's axes: that of the values it is computed from.
//
// Images with channels last are computed on as [N, C, ...spatial] views. A temporary stored in the order of its axes would be accessed
// across the direction in which everything around it runs. Outputs and operands of programs must be row-major.

/** Tensors of lower rank stay row-major, so that more kernels are equal. */
const leastRank = 3;

/**
 * Strides of a temporary of this shape whose element at `at` is `value`; row-major unless the sources agree on another order.
 *
 * In a plan for a class of sizes strides are those at capacity, or follow the size. Those at capacity have the sized axis outermost: at a small size only the
 * beginning is used, and only that is allocated.
 */
export function stridesFor(
  shape: Shape,
  at: Index,
  value: KNode,
  { free, size }: Pick<DraftContext, 'free' | 'size'>,
): readonly number[] {
  const order = orderFor(shape, at, value, free);
  if (order === null) return rowMajorStrides(shape);
  size?.outermost(shape, order);
  const strides = [...rowMajorStrides(shape)];
  let step = 1;
  for (const axis of order.reverse()) {
    strides[axis] = step;
    step *= shape[axis]!;
  }
  return strides;
}

/** The axes that are longer than 1, outermost first; null for few. */
function orderFor(shape: Shape, at: Index, value: KNode, free: FreeRanges): number[] | null {
  const axes = shape.flatMap((n, axis) => (n === 1 ? [] : [axis]));
  if (axes.length < leastRank) return null;
  const loops = axes.map((axis) => at[axis]!);
  if (!loops.every((x): x is Range => x.op === 'RANGE')) return axes;
  const reads = loadsOf(value).map((load) => stepsOf(load.src[1], loops, free));
  const whole = reads.filter((steps) => steps.every((step) => step > 0));
  const orders = whole.map((steps) =>
    axes
      .map((axis, i) => ({ axis, step: steps[i]! }))
      .sort((x, y) => y.step - x.step || x.axis - y.axis)
      .map((x) => x.axis),
  );
  const [order] = orders;
  // Where the sources disagree, in any order one of them is read across.
  return order === undefined || orders.some((other) => other.join() !== order.join()) ? axes : order;
}

/** About how far apart in memory the elements of consecutive iterations are, for each loop; 0 where the index does not depend on it. */
function stepsOf(index: KNode, loops: readonly Range[], free: FreeRanges): number[] {
  const { terms, coefs } = linearOf(index);
  return loops.map((loop) =>
    terms.reduce((most, t, i) => (free.has(t, loop) ? Math.max(most, Math.abs(coefs[i]!)) : most), 0),
  );
}

function loadsOf(value: KNode): KNode[] {
  const found: KNode[] = [];
  const seen = new Set<KNode>();
  const stack: KNode[] = [value];
  for (let n = stack.pop(); n !== undefined; n = stack.pop()) {
    if (seen.has(n)) continue;
    seen.add(n);
    if (n.op === 'LOAD' && n.src[0]?.op === 'PARAM') found.push(n);
    stack.push(...n.src);
  }
  return found;
}

export interface LoweredKernel {
  readonly unit: Unit;
  /** The factory that made its nodes. */
  readonly e: Exprs;
  readonly loop: LoopKernel;
  /** True for a matrix product, a convolution or the like: lowered by tiles where that is better. */
  readonly isContraction: boolean;
  readonly slots: readonly Slot[];
  /** For each SCALAR slot the position of its scalar in the captured graph. */
  readonly scalars: readonly number[];
}

/** Slots of one kernel while it is lowered. */
class Slots {
  readonly params: KNodeOf<'PARAM'>[] = [];
  readonly slots: Slot[] = [];
  readonly scalars: number[] = [];
  readonly scalarTypes: DType[] = [];
  readonly #known = new Map<PlanNode, KNodeOf<'PARAM'>>();
  readonly #e: Exprs;
  readonly #size: PlanSize | null;

  constructor({ e, size }: DraftContext) {
    this.#e = e;
    this.#size = size;
    size?.capacities.forEach((_, i) => {
      this.scalars.push(-1 - i);
      this.scalarTypes.push('int32');
    });
  }

  of(node: PlanNode, access: Slot['access']): KNodeOf<'PARAM'> {
    let param = this.#known.get(node);
    if (param === undefined) {
      const { leaf, size } = node;
      const fewer = this.#size?.bytesOf(node, 1, 0) ? 1 : undefined;
      param = this.#e.param(this.params.length, node.dtype, access, leaf?.span ?? size, fewer);
      this.#known.set(node, param);
      this.params.push(param);
      this.slots.push({ node, access, shift: 0 });
    }
    return param;
  }

  /** The output and the leaf that it overwrites share a slot. */
  inPlace(output: PlanNode, leaf: PlanNode): void {
    const param = this.of(output, 'readwrite');
    this.#known.set(leaf, param);
  }

  scalar(local: number, dtype: DType): KNode {
    let slot = this.scalars.indexOf(local);
    if (slot < 0) {
      slot = this.scalars.length;
      this.scalars.push(local);
      this.scalarTypes.push(dtype);
    }
    return this.#e.scalar(slot, dtype);
  }
}

/** Loop nests of all units in the given order; null for programs. */
export function lowerKernels(
  p: Partition,
  units: readonly Unit[],
  donations: Donations,
  options: RebaseOptions,
): (LoweredKernel | null)[] {
  const { e, size } = p.context;
  const slots = new Map<KernelDraft, Slots>();
  for (const unit of units) {
    const shared = new Slots(p.context);
    for (const kernel of unit) slots.set(kernel, shared);
  }
  for (const [output, leaf] of donations) slots.get(p.homes[output.index]!.kernel)?.inPlace(output, leaf);

  const arranged = new Map<PlanNode, readonly number[]>();
  const load = (demand: Demand, node: PlanNode, index: Index, gate: KNode | null): KNode => {
    const param = slots.get(demand.kernel)!.of(node, 'read');
    return e.load(param, placeIn(p.context, node, index, arranged), gate ?? undefined);
  };
  const scalar = (demand: Demand): KNode => slots.get(demand.kernel)!.scalar(demand.node.scalar, demand.node.dtype);
  const context = { e, load, scalar };
  for (const node of p.graph.nodes) {
    // Stores come first: what a temporary is made of decides its memory order, which its readers need.
    const home = p.homes[node.index];
    if (home != null && !home.kernel.handwritten) {
      if (home.staged === null) {
        home.value = makeValue(context, home);
        if (!p.mustStore(node)) arranged.set(node, stridesFor(node.shape, home.index, home.value, p.context));
      }
      size?.noteTemporary(node, p.readersOf(node), arranged.get(node));
      // Parts that are stored by themselves, or together nowhere.
    } else if (isPlanOp(node, 'concat')) size?.noteTemporary(node, p.readersOf(node));
    for (const demand of p.demandsOf(node)) {
      if (demand.kernel.handwritten || demand.staged !== null || demand === home) continue;
      if (demand.inline || (node.role === 'leaf' && node.leaf === null)) demand.value = makeValue(context, demand);
      else demand.value = load(demand, node, demand.index, demand.gate);
    }
    for (const demand of p.demandsOf(node)) {
      if (demand.staged === null) continue;
      const { from, ranges, at } = demand.staged;
      demand.value = e.load(e.stage('shared', from.value!, ranges), at);
    }
  }
  return units.map((unit) =>
    unit.some((kernel) => kernel.handwritten) ? null : finish(e, unit, slots.get(unit[0]!)!, arranged, options),
  );
}

/** Loops of outer rows first; within a row in the order of the axes. */
function orderedAxes(kernel: KernelDraft): Range[] {
  const axes: Range[] = [];
  for (const group of [...kernel.rows, new Set(kernel.axes)]) {
    for (const axis of kernel.axes) if (group.has(axis) && !axes.includes(axis)) axes.push(axis);
  }
  return axes;
}

type Arranged = ReadonlyMap<PlanNode, readonly number[]>;

/**
 * Position of an element in memory. Strides of temporaries are those at the plan's capacity unless they follow the size; leaves and outputs have the bound size,
 * and strides that follow from it.
 */
function placeIn({ e, size }: DraftContext, node: PlanNode, index: Index, arranged: Arranged): KNode {
  const { leaf, shape } = node;
  const strides = leaf?.strides ?? arranged.get(node);
  const held = size !== null && (leaf !== null || node.forced || size.follows(node));
  const bound = held ? size.placeIn(e, node, index, strides ?? rowMajorStrides(shape)) : null;
  return bound ?? flatten(e, shape, index, strides, leaf?.shift);
}

/** For what comes late with sizes, which imports no code. */
const tools = { Rewriter, flattened, step, linearOf, sizeLimit, typicalOf, lowOf, highOf, idOf, assumeBounds };

function finish(e: Exprs, unit: Unit, slots: Slots, arranged: Arranged, options: RebaseOptions): LoweredKernel {
  const stores = unit.flatMap((kernel) => storesOf(kernel, slots, arranged));
  const given: LoopKernel = { name: nameOf(unit), params: slots.params, scalars: slots.scalarTypes, stores };
  const [kernel] = unit as readonly [KernelDraft];
  const { size } = kernel.context;
  const contracts = unit.length === 1 && isContraction(kernel);
  const { scalars } = slots;
  const roots = stores.flatMap(({ store, ranges }) => [store, ...ranges]);
  if (scalars.every((local) => local < 0) && size?.isIn(nodesOf(roots)) === false) {
    // The kernel does not depend on the size, so it is the one that a plan of one size has.
    scalars.length = 0;
    slots.scalarTypes.length = 0;
  }
  const loop = size === null || contracts ? given : size.merged(given, e, tools);
  const rebased = rebase(loop, e, options);
  const bound = { unit, e, isContraction: contracts, scalars };
  if (rebased === null) return { ...bound, loop, slots: slots.slots };
  const moved = slots.slots.map((slot, i) => ({ ...slot, shift: rebased.shifts[i]! }));
  return { ...bound, loop: rebased.loop, slots: moved };
}

/** True for a kernel around a sum of products in which every loop belongs to one of the factors, or to both. */
function isContraction({ contraction, axes, context }: KernelDraft): boolean {
  if (contraction === null) return false;
  let sum = contraction.value!;
  // The sum is below a cast back to 16 bits.
  if (sum.op === 'CAST') sum = sum.src[0];
  if (sum.op !== 'REDUCE' || sum.src.length !== contraction.ranges.length + 1) return false;
  const product = sum.src[0];
  return product.op === 'MUL' && axes.every((axis) => product.src.some((factor) => context.free.has(factor, axis)));
}

function storesOf(kernel: KernelDraft, slots: Slots, arranged: Arranged): LoopStore[] {
  const { context } = kernel;
  const axes = orderedAxes(kernel);
  const stores = kernel.stores.map(({ demand, ranges, target, at }): LoopStore => {
    const store = context.e.store(slots.of(target, 'write'), placeIn(context, target, at, arranged), demand.value!);
    return { store, ranges: kernel.rows.length === 0 ? ranges : axes.filter((axis) => ranges.includes(axis)) };
  });
  // Outer stores first, in the order of execution.
  return stores.sort((a, b) => a.ranges.length - b.ranges.length);
}

/** The name in a profile: the operations at the ends of the kernel and its extents. */
function nameOf(unit: Unit): string {
  const [kernel] = unit as readonly [KernelDraft];
  const ends = kernel.stores.map((s) => s.target.op);
  const first = kernel.contraction?.node.op;
  const names = first === undefined || ends.includes(first) ? ends : [first, ...ends];
  const shown = names.length > 4 ? [...names.slice(0, 3), `${names.length - 3}more`] : names;
  const name = `${shown.join('_')}_${kernel.stores[0]?.target.shape.join('x') || '1'}`;
  return unit.length > 1 ? `${name}_and${unit.length - 1}` : name;
}
