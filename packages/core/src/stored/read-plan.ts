/**
 * Plans read for the captured graph that asks: every slot, size and offset is checked against it. plans.ts writes them.
 *
 * Numbers of a plan for a class of sizes are those at capacity, as in the sized captured graph it is checked against. How bytes depend on sizes is
 * written only for buffers: for bindings to them, and to leaves, it follows.
 */
import { CompileError } from '../engine/errors.ts';
import { block } from '../engine/pool.ts';
import type { Lowered } from '@polygrad/compiler/codegen/lowering';
import type { Program } from '@polygrad/compiler/ir/ir';
import { type CapturedGraph, viewBase } from '../planner/capture/captured-graph.ts';
import type { PlanSize, SizedBytes, SizedGraph } from '../planner/capture/plan-graph.ts';
import type { KernelEntry } from '../planner/lowering/kernel-cache.ts';
import type {
  BindingPlan,
  BufferPlan,
  DispatchPlan,
  OutputPlan,
  Plan,
  PlanOptions,
  TemporaryPlan,
} from '../planner/plan.ts';
import { bytesAt } from '../planner/sized-bytes.ts';
import { execute, forgetPlans, planOf, registerFound } from '../runtime/run.ts';
import type { EngineState } from '../runtime/state.ts';
import { graph } from '../graph/state.ts';
import { type DType, dtypeInfo } from '@polygrad/compiler/shape/dtype';
import { PolygradError } from '@polygrad/compiler/shape/errors';
import { ByteReader, check } from './bytes.ts';
import { type Entry, isFor, type Signature } from './entries.ts';
import { isLong } from './kernels.ts';

/** Reads where a kernel is: a key that equal kernels share, and how to read it if it is new. */
export type KernelReader = (from: ByteReader) => { readonly key: string; readonly read: () => Lowered };

/** What a plan says of memory, checked against the captured graph: for a class of sizes at its least, its greatest, and at capacity. */
class Places {
  readonly captured: CapturedGraph;
  readonly options: PlanOptions;
  readonly buffers: readonly BufferPlan[];
  readonly blocks: Plan['blocks'];
  readonly temporaries: readonly TemporaryPlan[];
  readonly #sized: SizedGraph | null;
  readonly #capacities: readonly number[];
  readonly #sizes: readonly (readonly number[])[];
  readonly #leaves: ReadonlySet<number>;

  constructor(
    captured: CapturedGraph,
    sized: SizedGraph | null,
    options: PlanOptions,
    buffers: readonly BufferPlan[],
    blocks: Plan['blocks'],
    temporaries: readonly TemporaryPlan[],
  ) {
    this.captured = captured;
    this.options = options;
    this.buffers = buffers;
    this.blocks = blocks;
    this.temporaries = temporaries;
    this.#sized = sized;
    const { capacities, low, high }: Pick<PlanSize, 'capacities' | 'low' | 'high'> = sized?.size ?? oneSize;
    this.#capacities = capacities;
    this.#sizes = sized === null ? [capacities] : [low, high, capacities];
    this.#leaves = new Set(captured.leaves.values());
    const donatable = new Set(captured.donatable.values());
    for (const buffer of buffers) {
      const { bytes, donor } = buffer;
      this.#checkBytes(bytes);
      check(bytesAt(this.#bytesOf(buffer), capacities, capacities) === bytes, 'the bytes of a buffer');
      if (donor === -1) continue;
      // Each donor gives its memory once.
      check(donatable.delete(donor), 'a donor');
      for (const n of this.#sizes)
        check(bytesAt(this.#bytesOf(buffer), capacities, n) <= this.#leaf(donor, n).end, 'the bytes of a donor');
    }
    for (const { bytes } of blocks) this.#checkBytes(bytes);
    for (const temporary of temporaries) {
      const { bytes, block, offset } = temporary;
      const own = this.#bytesOf(temporary);
      const fits = this.#sizes.every((n) => bytesAt(own, capacities, n) <= bytes);
      const isIn = offset >= 0 && offset + bytes <= (blocks[block]?.bytes ?? 0);
      check(fits && isIn && bytesAt(own, capacities, capacities) === bytes, 'a temporary');
    }
  }

  #checkBytes(bytes: number): void {
    check(bytes <= this.options.engine.caps.maxBufferBytes, 'the bytes of a buffer');
  }

  elementBytes(dtype: DType): number {
    return this.options.elementBytes[dtypeInfo[dtype].id]!;
  }

  #bytesOf({ bytes, sized }: Pick<BufferPlan, 'bytes' | 'sized'>): SizedBytes {
    return sized ?? { unit: 0, shape: [], strides: null, more: bytes };
  }

  /** The elements of a leaf at capacity, as bytes. */
  #elementsOf(local: number): SizedBytes & { readonly strides: readonly number[] } {
    check(this.#leaves.has(local), 'a leaf');
    const node = this.captured.nodes[local]!;
    const { strides: own } = this.captured.storageOf(node).view;
    const unit = this.elementBytes(node.dtype);
    const sized = this.#sized;
    if (sized === null) return { unit, shape: node.shape, strides: own, more: unit };
    return { unit, shape: sized.shapeOf(local), strides: sized.stridesOf(local, own), more: unit };
  }

  /** The bytes of a leaf from its view's offset: the greatest begin, and the end. */
  #leaf(local: number, n: readonly number[]): { readonly unit: number; readonly begin: number; readonly end: number } {
    const elements = this.#elementsOf(local);
    const { unit } = elements;
    const node = this.captured.nodes[local]!;
    const { strides, offset } = this.captured.storageOf(node).view;
    // Strides of a sized leaf are not negative, so it begins at its offset.
    const first = viewBase(node.shape, strides, offset);
    const aligned = (first * unit) % this.options.engine.caps.bindAlign;
    const begin = (first - offset) * unit;
    const bytes = elements.shape.includes(0) ? 0 : bytesAt(elements, this.#capacities, n);
    return { unit, begin: begin - aligned, end: begin + bytes };
  }

  /** How the bytes of a binding depend on sizes. */
  sizedOf({ kind, at, offset, bytes }: BindingPlan): SizedBytes | null {
    const { size } = this.#sized ?? {};
    if (size === undefined) return null;
    if (kind === 'taken') {
      const sized = this.buffers[at]?.sized ?? null;
      return sized === null ? null : { ...sized, more: 0 - offset };
    }
    const elements = this.#elementsOf(at);
    if ([...elements.shape, ...elements.strides].every((x) => size.factorOf(x) === 0)) return null;
    const reach = bytesAt({ ...elements, more: 0 }, size.capacities, size.capacities);
    return { ...elements, more: bytes - reach };
  }

  #taken(at: number): number {
    const place = this.buffers[at] ?? this.blocks[at - this.buffers.length];
    check(place !== undefined, 'a buffer');
    return place.bytes;
  }

  /** @param dispatch the kernel's place among those of the plan */
  checkBinding(binding: BindingPlan, { dtype, arg }: Program['params'][number], dispatch: number): void {
    const { kind, at, unit, offset, bytes, sized, temp } = binding;
    const own = this.temporaries[temp];
    const isTemporary = kind === 'taken' && at >= this.buffers.length && this.temporaries.length > 0;
    if (isTemporary || temp >= 0)
      check(
        isTemporary &&
          own !== undefined &&
          at === this.buffers.length + own.block &&
          own.first <= dispatch &&
          dispatch <= own.last &&
          offset >= own.offset &&
          offset + bytes === own.offset + own.bytes &&
          (own.sized === null || arg.fewer === 1),
        'a temporary',
      );
    check(arg.length * this.elementBytes(dtype) <= bytes, 'the length of a binding');
    if (kind === 'taken') {
      check(offset >= 0 && offset % this.options.engine.caps.bindAlign === 0, 'an offset');
      // At other sizes it ends where the buffer does.
      check(sized === null ? offset + bytes <= this.#taken(at) : offset + bytes === this.#taken(at), 'a binding');
      return;
    }
    for (const n of this.#sizes) {
      const leaf = this.#leaf(at, n);
      check(arg.access === 'read' && unit === leaf.unit, 'a leaf that is bound');
      const own = bytesAt(this.#bytesOf(binding), this.#capacities, n);
      check(own >= 0 && -offset >= leaf.begin && own - offset <= leaf.end, 'a part of a leaf');
    }
  }

  checkOutput({ leaf, at, view: { strides, offset } }: OutputPlan, local: number): void {
    const { shape: own, dtype } = this.captured.nodes[local]!;
    const shape = this.#sized?.shapeOf(local) ?? own;
    check(strides.length === shape.length, 'the rank of an output');
    check(leaf || at < this.buffers.length, 'the buffer of an output');
    const unit = this.elementBytes(dtype);
    if (shape.includes(0)) return;
    const isSized = this.#sized !== null && shape.some((x) => this.#sized!.size.factorOf(x) > 0);
    check(!isSized || strides.every((stride) => stride >= 0), 'the strides of an output');
    const first = viewBase(shape, strides, offset) * unit;
    for (const n of this.#sizes) {
      const place = leaf
        ? this.#leaf(at, n)
        : { unit, begin: 0, end: bytesAt(this.#bytesOf(this.buffers[at]!), this.#capacities, n) };
      const bytes = bytesAt({ unit, shape, strides, more: unit }, this.#capacities, n);
      check(unit === place.unit && first >= place.begin && first + bytes <= place.end, 'the place of an output');
    }
  }

  checkScalar(local: number, dtype: DType): void {
    if (local < 0) {
      check(-1 - local < this.#capacities.length && dtype === 'int32', 'a size');
      return;
    }
    const node = this.captured.nodes[local];
    const isBound = node?.op === 'scalar' || (node?.op === 'constant' && this.#sized?.isBound(local) === true);
    check(local < this.captured.count && isBound && node.storage === null, 'a scalar');
    check(isLong(node.dtype) === isLong(dtype), 'the dtype of a scalar');
  }
}

const ofShape = (unit: number, shape: readonly number[]): SizedBytes => ({ unit, shape, strides: null, more: 0 });

/** In place of sizes, for a plan of one size. */
const oneSize = { capacities: [], low: [], high: [] } as const;

/**
 * The plan of a captured graph, or of a class of its sizes; the kernel cache holds its kernels from now on. Throws Damaged for wrong bytes.
 */
export function readPlan(
  bytes: Uint8Array,
  kernelIn: KernelReader,
  captured: CapturedGraph,
  options: PlanOptions,
  sized: SizedGraph | null,
): Plan {
  const from = new ByteReader(bytes);
  const { kernels } = options;
  const entries: KernelEntry[] = [];
  const { capacities } = sized?.size ?? oneSize;
  let taken = false;
  try {
    const sizes = from.ints();
    check(sizes.length === capacities.length && sizes.every((x, i) => x === capacities[i]), 'the sizes of a plan');
    from.list(() => {
      const { key, read } = kernelIn(from);
      entries.push(kernels.findOr(key, read));
    });
    const used = from.list(() => from.among(entries));
    const bound = used.map(({ bindings }) =>
      bindings.map(() => {
        const places = from.list((): BindingPlan => {
          const at = from.uint();
          const [unit, offset, size, temp] = [from.uint(), from.int(), from.uint(), from.uint() - 1];
          const kind = at % 2 === 1 ? 'leaf' : 'taken';
          return { kind, at: Math.floor(at / 2), unit, offset, bytes: size, sized: null, temp };
        });
        return { bindings: places, scalars: from.ints() };
      }),
    );
    const buffers = from.list((): BufferPlan => {
      const [own, donor, unit, shape] = [from.uint(), from.int(), from.uint(), from.ints()];
      return { ...block(own), donor, sized: unit === 0 ? null : ofShape(unit, shape) };
    });
    const blocks = from.list(() => block(from.uint()));
    const temporaries = from.list((): TemporaryPlan => {
      const [own, first, last, at, offset, unit] = from.ints() as [number, number, number, number, number, number];
      const place = { bytes: own, first, last, block: at, offset };
      if (unit === 0) return { ...place, sized: null };
      const [shape, strides] = [from.ints(), from.ints()];
      const isHeld = strides.length === 0;
      return { ...place, sized: isHeld ? ofShape(unit, shape) : { unit, shape, strides, more: unit, fixed: true } };
    });
    const outputs = from.list((): OutputPlan => {
      const at = from.uint();
      return { leaf: at % 2 === 1, at: Math.floor(at / 2), view: { strides: from.ints(), offset: from.int() } };
    });
    check(from.done && outputs.length === captured.outputs.length, 'the end of a plan');
    const places = new Places(captured, sized, options, buffers, blocks, temporaries);
    for (const [i, output] of outputs.entries()) places.checkOutput(output, captured.outputs.data[i]!);
    for (const [u, entry] of used.entries()) {
      for (const [i, { params, scalars }] of slotsOfKernel(entry).entries()) {
        const { bindings, scalars: locals } = bound[u]![i]!;
        check(params.length === bindings.length && scalars.length === locals.length, 'the slots of a kernel');
        for (const [slot, b] of bindings.entries()) {
          bindings[slot] = { ...b, sized: places.sizedOf(b) };
          places.checkBinding(bindings[slot], params[slot]!, u);
        }
        for (const [slot, local] of locals.entries()) places.checkScalar(local, scalars[slot]!);
      }
    }
    kernels.take(used);
    taken = true;
    const dispatches = used.flatMap(({ compiled }, u) =>
      compiled.map((kernel, i): DispatchPlan => ({ kernel, ...bound[u]![i]! })),
    );
    const fixed = { placed: null, stays: null, commands: [] };
    return { dispatches, buffers, outputs, temporaries, blocks, kernels: used, sizes, ...fixed };
  } finally {
    // Kernels of a refused plan are dropped, unless other plans use them.
    if (!taken) kernels.drop([...new Set(entries)].filter(({ uses }) => uses === 0));
  }
}

/** The slots of kernels that were read: engines build programs again on request. */
const slotsOf = new WeakMap<KernelEntry, readonly Pick<Program, 'params' | 'scalars'>[]>();

function slotsOfKernel(entry: KernelEntry): readonly Pick<Program, 'params' | 'scalars'>[] {
  let slots = slotsOf.get(entry);
  if (slots === undefined) {
    slots = entry.lowered!.dispatches.map(({ program: { params, scalars } }) => ({ params, scalars }));
    slotsOf.set(entry, slots);
  }
  return slots;
}

/** Plans that were found, and how each is given up where the driver refuses a kernel of it only when it runs. */
const foundPlans = new WeakMap<Plan, (why: string) => void>();

/**
 * For when a driver refuses a kernel of a plan, or a reader is told so. Gives up this plan and those whose kernels were refused, if
 * they were found. Forgets all: they are found or made when they are asked for again. False for other errors.
 */
function giveUpRefused(state: EngineState, error: unknown, plan?: Plan): boolean {
  const { code, message } = (error ?? {}) as Partial<PolygradError>;
  if (code !== 'COMPILE') return false;
  state.plans.forEach((one) => {
    if (one === plan || one.dispatches.some(({ kernel }) => kernel.failure != null))
      foundPlans.get(one)?.(message!.split('\n', 1)[0]!);
  });
  forgetPlans(state);
  return true;
}

/**
 * The same as `execute`, by another plan where the driver refuses a kernel of one that was found: then the batch has not begun. Throws the error where the plan
 * was made here, or a recorded call has seen it already; the next one finds another.
 */
const executeFound: typeof execute = (plan, captured, state, patient) => {
  try {
    return execute(plan, captured, state, patient);
  } catch (error) {
    if (!foundPlans.has(plan) || !giveUpRefused(state, error, plan) || graph.observer !== undefined) throw error;
    return execute(planOf(state, captured), captured, state, patient);
  }
};

/** Entries to look for a plan in, and how their kernels are read. Also who is told of an entry that cannot be used, and is dropped. */
export interface KeptEntries<E extends Entry> {
  readonly entries: E[];
  readonly kernelIn: KernelReader;
  readonly refuse: (entry: E, why: string) => void;
}

/** The plan that one of some entries holds for a signature in a context, or null: none is for it, or it cannot be used. */
export function planAmong<E extends Entry>(
  { entries, kernelIn, refuse }: KeptEntries<E>,
  context: string,
  signature: Signature,
  captured: CapturedGraph,
  options: PlanOptions,
  sized: SizedGraph | null,
): Plan | null {
  const entry = entries.find((each) => isFor(each, context, signature));
  if (entry === undefined) return null;
  const giveUp = (why: string): void => {
    const at = entries.indexOf(entry);
    if (at < 0) return;
    entries.splice(at, 1);
    refuse(entry, why);
  };
  try {
    const plan = readPlan(entry.plan, kernelIn, captured, options, sized);
    foundPlans.set(plan, giveUp);
    registerFound(executeFound, giveUpRefused);
    return plan;
  } catch (error) {
    // A lost device, or code that is being loaded, says nothing about the plan.
    if (error instanceof PolygradError && !(error instanceof CompileError)) throw error;
    giveUp(error instanceof Error ? error.message : String(error));
    return null;
  }
}
