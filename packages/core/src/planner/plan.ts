/**
 * Plans: everything about a flush that depends only on its structure, as compiled kernels and the bindings of their slots.
 * Also how a plan is made from a captured graph.
 */
import { told } from '#shown-as';
import { fault } from '@polygrad/compiler/shape/errors';
import type { CompiledKernel, DispatchCommand, Groups, IEngine, Planner } from '../engine/engine.ts';
import { block } from '../engine/pool.ts';
import { type DType, dtypeInfo } from '@polygrad/compiler/shape/dtype';
import { definitionOf } from '../graph/definition.ts';
import type { View } from '@polygrad/compiler/shape/view';
import type { CapturedGraph } from './capture/captured-graph.ts';
import { type Donations, findDonations, layOut, type Lifetime } from './arena.ts';
import type { KernelDraft } from './fusion/draft.ts';
import { importGraph } from './capture/import-graph.ts';
import { KernelCache, type KernelEntry } from './lowering/kernel-cache.ts';
import { type LoweredKernel, lowerKernels } from './lowering/lower.ts';
import type { Slot } from './lowering/rules.ts';
import { entryOf } from './lowering/nests.ts';
import { bindingsOf, mostValues, type Unit, unitsOf } from './fusion/order.ts';
import { decided } from './fusion/decide.ts';
import { type Partition, relieve, shorten } from './fusion/partition.ts';
import {
  type PlanGraph,
  type PlanNode,
  type PlanSize,
  type SizedBytes,
  type SizedGraph,
  SizesRefused,
  type Phases,
} from './capture/plan-graph.ts';

/**
 * What a slot of a dispatch is bound to. 'leaf': the leaf at position `at` of the captured graph, from `offset` bytes before the element at its
 * view's offset, in elements of `unit` bytes. 'taken': byte `offset` of buffer `at` among those allocated for this run, outputs first,
 * then blocks.
 */
export interface BindingPlan {
  readonly kind: 'leaf' | 'taken';
  readonly at: number;
  readonly unit: number;
  readonly offset: number;
  readonly bytes: number;
  /** The bytes as a function of the sizes, where they depend on them. */
  readonly sized: SizedBytes | null;
  /** Which of the plan's temporaries it is part of; -1: none, or one whose place is fixed. */
  readonly temp: number;
}

/** A temporary of a plan for a class of sizes, and its place at capacity. */
export interface TemporaryPlan extends Lifetime {
  readonly block: number;
  readonly offset: number;
  /** The bytes as a function of the sizes, where they depend on them. */
  readonly sized: SizedBytes | null;
}

export interface DispatchPlan {
  readonly kernel: CompiledKernel;
  readonly bindings: readonly BindingPlan[];
  /** Positions in the captured graph of scalar nodes; -1, -2 ... are the plan's sizes. */
  readonly scalars: readonly number[];
  /** Groups to run at the bound sizes, where that is not the whole grid of the program. */
  readonly groups?: Groups | null;
}

/** Memory of an output: new, or that of the leaf at `donor`. */
export interface BufferPlan {
  readonly bytes: number;
  readonly sizeClass: number;
  readonly donor: number;
  /** The bytes as a function of the sizes, where they depend on them. */
  readonly sized: SizedBytes | null;
}

/** Where an output's value is: a view of an output buffer, or of a leaf. In the latter case offsets count from the leaf's own. */
export interface OutputPlan {
  readonly leaf: boolean;
  readonly at: number;
  readonly view: View;
}

export interface Plan {
  readonly dispatches: readonly DispatchPlan[];
  readonly buffers: readonly BufferPlan[];
  /** The place of each output of the captured graph. */
  readonly outputs: readonly OutputPlan[];
  /** Temporaries, if some depend on the sizes: they get places anew for each size that the plan is bound to. */
  readonly temporaries: readonly TemporaryPlan[];
  /** Blocks for temporaries. */
  readonly blocks: readonly { readonly bytes: number; readonly sizeClass: number }[];
  /** Its entries in the kernel cache. */
  readonly kernels: readonly KernelEntry[];
  /** The bound sizes, if the plan belongs to a family; in a plan for a class, the capacities. */
  readonly sizes: readonly number[];
  /** What the placer decided for this plan (placement/placer.ts), and by which rules; null: not decided. */
  placed: { readonly by: object } | null;
  /** Equal to the placer's `stays` if the plan needs no further decision: work that no reader waits for runs on the current engine. */
  stays: object | null;
  /** The commands of its last run; none before the first. A new list takes their place, so that they may be kept. */
  commands: readonly DispatchCommand[];
}

export interface PlanOptions {
  readonly engine: IEngine;
  readonly kernels: KernelCache;
  readonly elementBytes: readonly number[];
  /** Makes a plan, or finds it where earlier ones are kept. */
  readonly makePlan: MakePlan;
}

/** Makes the plan of a captured graph, for one size or, with a sized captured graph, for a class of sizes. */
export type MakePlan = (captured: CapturedGraph, options: PlanOptions, sizedGraph: SizedGraph | null) => Plan;

/** Makes the plan of a captured graph. Throws CompileError where the engine refuses a kernel, and then keeps nothing. */
export function makePlan(captured: CapturedGraph, options: PlanOptions, sizedGraph: SizedGraph | null): Plan {
  const { engine, elementBytes } = options;
  const { caps } = engine;
  const { graph, places } = importGraph(
    captured,
    { elementBytes, bindAlign: caps.bindAlign, phases: caps.lowering.planner.phases },
    sizedGraph,
  );
  const { size } = graph;
  const sizedBytes = (node: PlanNode, start = 0): SizedBytes | null =>
    size === null ? null : size.bytesOf(node, elementSize(node.dtype, elementBytes), start);
  const bytesOf = (node: PlanNode): number => (node.leaf?.span ?? node.size) * elementSize(node.dtype, elementBytes);

  const bases = new Set<PlanNode>();
  const viewed = new Set<PlanNode>();
  for (const { base } of places) if (base !== null) (base.leaf === null ? bases : viewed).add(base);
  const { partition, units } = partitionWithin(graph, caps.maxBindings);
  const donations = findDonations(partition, units, bases, viewed);
  const kernels = lowerKernels(partition, units, donations, { elementBytes, bindAlign: caps.bindAlign });
  const lowered = units.map((unit, i) =>
    toPrograms(unit, kernels[i] as LoweredKernel | null, donations, size, options),
  );

  const entries = lowered.map(({ entry }) => entry);
  const outputIndex = new Map([...bases].map((node, i) => [node, i]));
  const hasEmpty = places.some(({ base }) => base === null);
  const memory = placeTemporaries(lowered, outputIndex, bases.size + Number(hasEmpty), bytesOf, sizedBytes, options);
  if (size !== null && memory.blocks.some((bytes) => bytes > caps.maxBufferBytes))
    throw new SizesRefused('temporaries of the greatest size');
  options.kernels.take(entries);
  const dispatches = lowered.flatMap(({ slots, scalars, entry }, u) =>
    entry.bindings.map((bindings, i): DispatchPlan => {
      const bound = bindings.map((b): BindingPlan => {
        if ('temp' in b) return memory.scratch(u, b.temp);
        return bindSlot(slots[b.param]!);
      });
      return { kernel: entry.compiled[i]!, bindings: bound, scalars };
    }),
  );

  function bindSlot({ node, shift }: Slot): BindingPlan {
    const { leaf } = node;
    const unit = elementSize(node.dtype, elementBytes);
    const start = shift * unit;
    const [bytes, sized] = [bytesOf(node) - start, sizedBytes(node, start)];
    if (leaf !== null)
      return { kind: 'leaf', at: leaf.local, unit, offset: leaf.shift * unit - start, bytes, sized, temp: -1 };
    const buffer = outputIndex.get(node);
    if (buffer !== undefined) return { kind: 'taken', at: buffer, unit, offset: start, bytes, sized, temp: -1 };
    const place = memory.node(node);
    return { ...place, offset: place.offset + start, bytes };
  }

  const buffers: BufferPlan[] = [...bases].map((node) => ({
    ...block(bytesOf(node)),
    donor: donations.get(node)?.leaf?.local ?? -1,
    sized: sizedBytes(node),
  }));
  if (hasEmpty) buffers.push({ ...block(0), donor: -1, sized: null });
  return {
    dispatches,
    buffers,
    outputs: places.map(({ base, view }): OutputPlan => {
      if (base === null) return { leaf: false, at: bases.size, view };
      if (base.leaf !== null) return { leaf: true, at: base.leaf.local, view };
      return { leaf: false, at: outputIndex.get(base)!, view };
    }),
    temporaries: memory.temporaries,
    blocks: memory.blocks.map(block),
    kernels: entries,
    sizes: size?.capacities ?? [],
    placed: null,
    stays: null,
    commands: [],
  };
}

function elementSize(dtype: DType, elementBytes: readonly number[]): number {
  return elementBytes[dtypeInfo[dtype].id]!;
}

/** Partitions until no kernel binds more than the engine allows or computes too much: each try forces part of such kernels into memory. */
function partitionWithin(graph: PlanGraph, maxBindings: number): { partition: Partition; units: Unit[] } {
  const alone = new Set<PlanNode>();
  for (let attempt = 0; ; attempt++) {
    const partition = decided(graph, alone, maxBindings);
    const forced = new Set<PlanNode>();
    let relieved = false;
    for (const [kernel, bound] of bindingsOf(partition)) {
      if (bound.size > maxBindings) {
        relieved = true;
        relieve(kernel, maxBindings, alone, forced);
      } else if (kernel.demands.length > mostValues) relieved = shorten(kernel, mostValues, alone, forced) || relieved;
    }
    if (!relieved) return { partition, units: unitsOf(partition, maxBindings) };
    if (attempt > graph.nodes.length)
      throw fault('plan', told && `a kernel needs more than the ${maxBindings} bindings this engine has`);
  }
}

interface Programs {
  readonly slots: readonly Slot[];
  readonly scalars: readonly number[];
  readonly entry: KernelEntry;
}

function toPrograms(
  unit: Unit,
  kernel: LoweredKernel | null,
  donations: Donations,
  size: PlanSize | null,
  { engine, kernels }: PlanOptions,
): Programs {
  if (kernel !== null) return { slots: kernel.slots, scalars: kernel.scalars, entry: entryOf(kernels, kernel, engine) };
  const [{ stores }] = unit as readonly [KernelDraft];
  const { node } = stores[0]!.demand;
  const programs = definitionOf(node.op).programs;
  if (programs === undefined) throw fault('plan', told && `${node.op} has no programs`);
  const { slots, scalars, key, lower } = programs(node, donations, size);
  return {
    slots,
    scalars,
    entry: kernels.findOr(key, () => lower(engine.caps, engine.caps.lowering.choices?.(engine))),
  };
}

interface Temporaries {
  readonly temporaries: readonly TemporaryPlan[];
  readonly blocks: readonly number[];
  node(node: PlanNode): BindingPlan;
  scratch(unit: number, temp: number): BindingPlan;
}

/** Places everything that lives only within the plan: nodes between kernels, and temporary buffers of contractions and programs. */
function placeTemporaries(
  lowered: readonly Programs[],
  outputs: ReadonlyMap<PlanNode, number>,
  firstBlock: number,
  bytesOf: (node: PlanNode) => number,
  sizedOf: (node: PlanNode) => SizedBytes | null,
  { engine }: PlanOptions,
): Temporaries {
  const items: (Lifetime & Pick<TemporaryPlan, 'sized'>)[] = [];
  const nodes = new Map<PlanNode, number>();
  const scratch: number[][] = [];
  lowered.forEach(({ slots, entry }, u) => {
    scratch.push(entry.temps.map((bytes) => items.push({ bytes, first: u, last: u, sized: null }) - 1));
    for (const { node } of slots) {
      if (node.leaf !== null || outputs.has(node)) continue;
      const known = nodes.get(node);
      if (known === undefined)
        nodes.set(node, items.push({ bytes: bytesOf(node), first: u, last: u, sized: sizedOf(node) }) - 1);
      else (items[known] as { last: number }).last = u;
    }
  });
  const { blocks, places } = layOut(items, engine.caps);
  const changes = items.some(({ sized }) => sized !== null);
  const bind = (item: number): BindingPlan => {
    const { block, offset } = places[item]!;
    return {
      kind: 'taken',
      at: firstBlock + block,
      unit: 1,
      offset,
      bytes: items[item]!.bytes,
      sized: null,
      temp: changes ? item : -1,
    };
  };
  return {
    temporaries: changes ? items.map((item, i) => ({ ...item, ...places[i]! })) : [],
    blocks,
    node: (node) => bind(nodes.get(node)!),
    scratch: (unit, temp) => bind(scratch[unit]![temp]!),
  };
}

declare module '../engine/engine.ts' {
  interface Planner {
    readonly makePlan: MakePlan;
    /** Kernels that plans of an engine share; none yet. */
    kernelsOf(engine: IEngine): KernelCache;
    /** How convolutions of dilated inputs may be split (capture/phases-as-features.ts). */
    readonly phases?: Phases | undefined;
  }
}

/** The planner, which engines bring along (`caps.lowering.planner`), so that pages load it together with an engine. */
export const planner: Planner = { makePlan, kernelsOf: (engine) => new KernelCache(engine) };
