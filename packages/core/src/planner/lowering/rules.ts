/**
 * What a definition (graph/definition.ts) says about lowering its primitive, and the two halves that kernels call.
 *
 * `sources` maps "element at this index" to "elements of the sources at those". It runs while kernels are decided, consumers first,
 * so it may use index expressions and loops but not values. `value` computes the element from those: `parts` of the demand are the sources in the order
 * of the requests, `notes` the conditions that `sources` kept for it. It runs sources first. Where a demand's gate is false the value is
 * arbitrary, so only padding and sums look at gates.
 */
import { told } from '#shown-as';
import { fault } from '@polygrad/compiler/shape/errors';
import type { Lowered } from '@polygrad/compiler/codegen/lowering';
import type { EngineCaps } from '../../engine/engine.ts';
import type { Attrs, PrimitiveName } from '../../graph/node.ts';
import { definitionOf } from '../../graph/definition.ts';
import type { Exprs, Range } from '@polygrad/compiler/ir/expr';
import type { KNode } from '@polygrad/compiler/ir/ir';
import type { BinaryOp, TernaryOp, UnaryOp } from '@polygrad/compiler/ir/operations';
import type { ProgramChoices } from '@polygrad/compiler/programs/choices';
import type { ProgramSizes, TensorView } from '@polygrad/compiler/programs/program-set';
import type { SlotView } from '@polygrad/compiler/programs/scan/scan';
import type { ScatterOperand } from '@polygrad/compiler/programs/scatter/update';
import { type DType, dtypeInfo } from '@polygrad/compiler/shape/dtype';
import { isRowMajor, rowMajorStrides, type Shape } from '@polygrad/compiler/shape/view';
import type { IntWriter } from '../capture/cache.ts';
import { isBakedIn, type PlanNode, type PlanSize, SizesRefused } from '../capture/plan-graph.ts';
import type { Demand, KernelDraft } from '../fusion/draft.ts';
import { bothGates, broadcastIndex, type Index } from './index-map.ts';

declare module '../../graph/definition.ts' {
  interface LoweringRules<P extends PrimitiveName> {
    /**
     * Its attributes as integers, for plan keys; absent where there are none. Two nodes have the same integers exactly when all
     * attributes on which a kernel may depend are equal. Shapes of computed nodes follow from primitive, attributes and sources.
     */
    readonly encode?: ((attr: Attrs[P], out: IntWriter) => void) | null;
    /** The role of a particular node, where attributes or sizes decide it. */
    readonly roleOf?: (attr: Attrs[P], src: readonly { readonly shape: Shape }[]) => Role;
    /** The kernel operation of an elementwise primitive that is exactly one. */
    readonly kernelOp?: UnaryOp | BinaryOp | TernaryOp | null;
    /** Movements without gates: the index into the source. */
    readonly move?: (e: Exprs, node: PlanNode<P>, index: Index, size: PlanSize | null) => Index;
    /** Which elements of the sources an element needs. Absent: the same element of each, or what `move` says. */
    readonly sources?: SourceRule<P>;
    /** The element, computed from those. Absent: the kernel operation, or the value of the source. */
    readonly value?: ValueRule<P>;
    /** For primitives lowered to programs. `size`: the plan's sizes, for programs that handle sizes (`sizedPrograms`). */
    readonly programs?: (
      node: PlanNode<P>,
      donations: ReadonlyMap<PlanNode, PlanNode>,
      size: PlanSize | null,
    ) => ProgramUnit;
    /** True if its programs end at the bound sizes, and read leaves without a copy. */
    readonly sizedPrograms?: boolean;
    /** When its programs may update a source in place. */
    readonly updates?: UpdateRule;
  }
}

/** What a `sources` rule works with. `need` requests an element of a source; the demands it makes are `parts`, in the order of the calls. */
export interface SourceContext {
  readonly e: Exprs;
  readonly demand: Demand;
  need(source: PlanNode, index: Index, gate?: KNode | null): void;
  /** As `need`, inside the loops of a reduction; `operand` for sources of a contraction. */
  needInside(source: PlanNode, index: Index, gate: KNode | null, loops: readonly Range[], operand: boolean): void;
  /** Loops of this node's reduction; reductions that may run together share them. */
  loops(extents: readonly number[]): readonly KNode[];
  /** Loops that no other reduction shares. */
  ownLoops(extents: readonly number[]): readonly KNode[];
  note(condition: KNode): void;
  /** Requests a source in memory, because its index is not known yet. */
  needInMemory(source: PlanNode): void;
}

export type SourceRule<P extends PrimitiveName> = (c: SourceContext, node: PlanNode<P>, index: Index) => void;

/** The node whose memory a chain of plain movements reads. */
export function movedFrom(node: PlanNode): PlanNode {
  let base = node;
  while (definitionOf(base.op).move !== undefined && !base.forced) base = base.src[0]!;
  return base;
}

/** The loops among index expressions (axes of size 1 have none). */
export function ranges(own: readonly KNode[]): Range[] {
  return own.filter((n): n is Range => n.op === 'RANGE');
}

/** Requests every element of the sources that the node needs at this index. Without a rule that is the same element of each. */
export function needSources(c: SourceContext): void {
  const { node, index } = c.demand;
  const { sources, move } = definitionOf(node.op);
  if (sources !== undefined) sources(c, node, index);
  else if (move !== undefined) c.need(node.src[0]!, move(c.e, node, index, c.demand.kernel.context.size));
  else for (const s of node.src) c.need(s, broadcastIndex(c.e, s.shape, index.length, index));
}

export interface ValueContext {
  readonly e: Exprs;
  /** Loads an element of a node in memory for the demand's kernel. */
  load(demand: Demand, node: PlanNode, index: Index, gate: KNode | null): KNode;
  /** A number bound at each run. */
  scalar(demand: Demand): KNode;
}

export type ValueRule<P extends PrimitiveName> = (c: ValueContext, demand: Demand, node: PlanNode<P>) => KNode;

/** The value of the demand's part `i`. */
export const part = (demand: Demand, i = 0): KNode => demand.parts[i]!.value!;

/** `value` where the gate holds, else `other`; a gated load takes `other` as its default, without a select. */
export function gated(
  e: Exprs,
  gate: KNode | null | undefined,
  outer: KNode | null,
  value: KNode,
  other: number | bigint,
): KNode {
  if (gate === undefined || gate === null) return value;
  const alt = e.constant(value.dtype as DType, other);
  if (value.op === 'LOAD' && value.src[2] !== undefined && value.src[2] === bothGates(e, outer, gate)) {
    return e.load(value.src[0], value.src[1], value.src[2], alt);
  }
  return e.where(gate, value, alt);
}

/** Accumulator dtype: float32 for 16-bit floats, int32 for small integers (it wraps to the same bits). */
export function widened(dtype: DType): DType {
  const { kind, bytes } = dtypeInfo[dtype];
  if (kind === 'bool' || bytes >= 4) return dtype;
  return kind === 'float' ? 'float32' : 'int32';
}

/** The sum over the demand's loops. */
export function sum(e: Exprs, demand: Demand, value: KNode): KNode {
  return e.reduce('sum', value, demand.ranges);
}

/** The expression of a demand that is computed in place. */
export function makeValue(c: ValueContext, demand: Demand): KNode {
  const { node } = demand;
  const { value, kernelOp, role } = definitionOf(node.op);
  if (value !== undefined) return value(c, demand, node);
  if (kernelOp == null) {
    if (role === 'elementwise') throw fault('lower', told && `primitive ${node.op} has no rule for its value`);
    return part(demand);
  }
  const { e } = c;
  if (demand.parts.length === 1) return e.unary(kernelOp as Parameters<Exprs['unary']>[0], part(demand));
  if (demand.parts.length === 3)
    return e.ternary(kernelOp as Parameters<Exprs['ternary']>[0], part(demand, 0), part(demand, 1), part(demand, 2));
  return e.binary(kernelOp as Parameters<Exprs['binary']>[0], part(demand, 0), part(demand, 1));
}

// Nodes lowered to programs of the builder: scatters, scans and sorts (programs/). Their sources are in memory. The definitions of
// those primitives bring this code.

/** What a `programs` rule works with. */
export interface ProgramContext {
  readonly out: TensorView;
  /** A source in memory. */
  slot(i: number): SlotView;
  /** A source in memory, or a number that is written into the programs. */
  operand(i: number): ScatterOperand;
  /** True if the first source already is in the memory of the result, and so has no slot. */
  readonly inPlace: boolean;
  /** The sizes, where the node depends on some and its programs handle them. */
  readonly sizes: ProgramSizes | null;
}

export type ProgramRule = (context: ProgramContext, caps: EngineCaps, choices?: ProgramChoices) => Lowered;

/** What a PARAM is: memory of a node that is read, written, or written over a leaf that is read. */
export interface Slot {
  readonly node: PlanNode;
  readonly access: 'read' | 'write' | 'readwrite';
  /** Elements of the node before the bound address. */
  readonly shift: number;
}

/** A node's programs, made when its key is new, and their bindings. */
export interface ProgramUnit {
  readonly slots: readonly Slot[];
  /** As in a loop nest (lower.ts). */
  readonly scalars: readonly number[];
  readonly key: string;
  readonly lower: (caps: EngineCaps, choices?: ProgramChoices) => Lowered;
}

/** The programs that a primitive's rule makes for a node. `size`: for programs that handle sizes. */
export function programsOf(
  node: PlanNode,
  rule: ProgramRule,
  inPlace: boolean = false,
  size: PlanSize | null = null,
): ProgramUnit {
  const sizes = isSized(node, size) ? size : null;
  const viewOf = (n: PlanNode): TensorView => viewIn(sizes, n);
  const updated = inPlace ? node.src[0]! : null;
  const read: Slot[] = [];
  for (const source of node.src)
    if (source !== updated && !isBakedIn(node, source) && !read.some((slot) => slot.node === source))
      read.push({ node: source, access: 'read', shift: 0 });
  const slots: Slot[] = [{ node, access: 'write', shift: 0 }, ...read];
  const slotOf = (source: PlanNode): number => slots.findIndex((slot) => slot.node === source);
  const described = [node, ...node.src].map((n) =>
    isBakedIn(node, n) ? { constant: String((n as PlanNode<'constant'>).attr.value), sign: signOf(n) } : viewOf(n),
  );
  const classes = sizes === null ? '' : ` ${[sizes.capacities, sizes.low, sizes.high].join(' ')}`;
  const key = `${node.op} ${JSON.stringify(node.attr)} ${JSON.stringify(described)} ${node.src.map(slotOf).join()}${classes}`;
  const source = (i: number): PlanNode => node.src[i]!;
  const slot = (i: number): SlotView => ({ slot: slotOf(source(i)), view: viewOf(source(i)) });
  const operand = (i: number): ScatterOperand =>
    isBakedIn(node, source(i)) ? { constant: (source(i) as PlanNode<'constant'>).attr.value } : slot(i);
  return {
    slots,
    scalars: (sizes?.capacities ?? []).map((_, i) => -1 - i),
    key,
    lower: (caps, choices) => rule({ out: viewOf(node), slot, operand, inPlace, sizes }, caps, choices),
  };
}

/** True for a node that depends on the sizes of a plan. Its programs visit elements in the order of positions. */
function isSized(node: PlanNode, size: PlanSize | null): boolean {
  if (size === null) return false;
  const extents = [node, ...node.src].flatMap(({ shape }) => shape);
  if (extents.some((n) => size.stretches.has(n))) throw new SizesRefused(`${node.op} of shape [${node.shape}]`);
  return extents.some((n) => size.factorOf(n) > 0);
}

/** Adds a donation (planner/arena.ts) where a program can write its result, an output, into the memory of a leaf. */
export type UpdateRule = (
  kernel: KernelDraft,
  drafts: { demandsOf(node: PlanNode): readonly Demand[]; readersOf(node: PlanNode): ReadonlySet<KernelDraft> },
  outputs: ReadonlySet<PlanNode>,
  pinned: ReadonlySet<PlanNode>,
  donations: Map<PlanNode, PlanNode>,
  position: ReadonlyMap<KernelDraft, number>,
) => void;

/** For programs that update their first source in place: they must be its last reader, and read it nowhere else. */
export const updatesFirst: UpdateRule = (kernel, drafts, outputs, pinned, donations, position) => {
  const node = kernel.stores[0]!.target;
  const leaf = node.src[0]!;
  const { leaf: info } = leaf;
  const isBefore = (other: KernelDraft): boolean => other === kernel || position.get(other)! < position.get(kernel)!;
  if (
    kernel.handwritten &&
    outputs.has(node) &&
    info?.donatable === true &&
    !pinned.has(leaf) &&
    leaf.dtype === node.dtype &&
    info.span === node.size &&
    isRowMajor(leaf.shape, { strides: info.strides, offset: 0 }) &&
    node.src.every((source, i) => (source === leaf) === (i === 0)) &&
    [...drafts.readersOf(leaf)].every(isBefore) &&
    drafts.demandsOf(leaf).every((demand) => isBefore(demand.kernel))
  )
    donations.set(node, leaf);
};

/** JSON has no -0. */
function signOf(node: PlanNode): boolean {
  return Object.is((node as PlanNode<'constant'>).attr.value, -0);
}

function viewIn(size: PlanSize | null, node: PlanNode): TensorView {
  const { dtype, shape, leaf } = node;
  const view = {
    dtype,
    shape,
    strides: leaf?.strides ?? rowMajorStrides(shape),
    shift: leaf?.shift ?? 0,
    span: leaf?.span ?? node.size,
  };
  return size?.bytesOf(node, 1, 0) ? { ...view, held: true } : view;
}
