/**
 * Observes one call of a compiled function and makes its script. In: events of the library while the function runs
 * (graph/state.ts), plans and allocations. Out: a Script; or, for a call that a script cannot repeat, the reason.
 */
import type { Binding, Command, IEngine } from '../engine/engine.ts';
import type { PoolBuffer } from '../engine/pool.ts';
import { rangeOf, watchRange } from '../graph/known-range.ts';
import { type KnownRange, type Observer, graph } from '../graph/state.ts';
import type { Node, StorageBuffer, TrackedHandle } from '../graph/node.ts';
import { bufferNode } from '../graph/primitives.ts';
import { isLeaf, releasedSlot } from '../graph/recorder.ts';
import { isHandle, withOperands } from '../graph/scope.ts';
import type { CapturedGraph } from '../planner/capture/captured-graph.ts';
import type { KernelEntry } from '../planner/lowering/kernel-cache.ts';
import type { Plan } from '../planner/plan.ts';
import { queue } from '../runtime/queue.ts';
import { runs, type EngineState } from '../runtime/state.ts';
import { type DType, dtypeInfo, type TypedArray } from '@polygrad/compiler/shape/dtype';
import { OperationError } from '@polygrad/compiler/shape/errors';
import { mapNested } from '@polygrad/compiler/shape/nested';
import { sizeOf } from '@polygrad/compiler/shape/view';
import { type TensorHandle, wrap } from '../tensor/handle.ts';
import {
  type Assigned,
  type Decision,
  type Effect,
  type Flushed,
  type Input,
  type Made,
  type Place,
  Result,
  type Scalar,
  type Script,
  type Source,
  type Step,
  type Storage,
  type Upload,
  knownValue,
} from './script.ts';
import { Draws, Numbers, Renumbering, Slots } from './slots.ts';

/** Most commands of a script: they are submitted together, so that all run or none. */
const mostSteps = 8192;

/** A reason for no script. */
const keeps = 'it keeps a tensor that it does not return';

/** What holds for every call that runs a compiled function, recorded or not: it must not read values, because replays would not. */
export class Watch {
  /** The refused read; the function may have caught the error. */
  refused: OperationError | null = null;

  /** Runs a function. */
  watching<T>(body: () => T): T {
    graph.refuseRead = () => this.#refuse();
    try {
      return body();
    } finally {
      graph.refuseRead = null;
    }
  }

  #refuse(): never {
    this.refused = new OperationError(
      'compile',
      'a value is read inside a compiled function, which later calls would not do; return the tensor and read it after the call, or choose by value with where()',
    );
    throw this.refused;
  }
}

export class Observation extends Watch implements Observer {
  readonly #state: EngineState;
  #arguments: readonly unknown[];
  readonly #newest: number = graph.newest;
  readonly #root = graph.root;
  readonly #tracked = graph.leaves;
  readonly #forgotten: object | undefined;
  readonly #flushes: number;
  readonly #kernels: number;
  /** Why there is no script, once there is a reason. */
  reason: string | null = null;
  /** Every source still has its tensor; `freeArguments` comes later. */
  readonly #inputs: Input[] = [];
  /** The nodes of inputs. Scripts do not hold them. */
  readonly #nodes: Node[] = [];
  readonly #byNode = new Map<Node, Input>();
  readonly #known = new Set<TrackedHandle>();
  /** Tensors that the call made. A list, as sets of so many take longer. */
  readonly #made: TrackedHandle[] = [];
  readonly #assigned = new Set<TrackedHandle>();
  readonly #uploads: { readonly buffer: PoolBuffer; readonly leaf: Node; readonly data: TypedArray }[] = [];
  readonly #slots = new Slots();
  readonly #steps: Step[] = [];
  readonly #flushed: Flushed[] = [];
  readonly #held: KernelEntry[] = [];
  readonly #numbers = new Numbers();
  readonly #draws = new Draws(graph.calls);
  readonly #effects: Effect[] = [];
  readonly decisions: Decision[] = [];

  constructor(state: EngineState, args: readonly unknown[]) {
    super();
    this.#state = state;
    this.#arguments = args;
    const { forgotten, flushes, kernels } = state;
    this.#forgotten = forgotten;
    this.#flushes = flushes;
    this.#kernels = kernels;
  }

  /** Observes while a function runs and its pending work is flushed. */
  during<T>(body: () => T): T {
    const { submit } = runs;
    graph.observer = this;
    runs.submit = (engine, commands) => {
      submit(engine, commands);
      this.#submitted(engine, commands);
    };
    try {
      const newest = this.#newest;
      // A tensor from outside names a node from before until `assign` tells.
      return withOperands(
        (handle, instead) => {
          const { disposed, node } = handle as TensorHandle;
          if (instead === null && !disposed && node.id <= newest) this.used(handle);
          return instead;
        },
        () => this.watching(body),
      );
    } finally {
      graph.observer = undefined;
      runs.submit = submit;
    }
  }

  /** Gives up: held data may be overwritten now. */
  #fail(reason: string): void {
    this.reason ??= reason;
    this.#releaseUploads();
  }

  #releaseUploads(): void {
    for (const { buffer } of this.#uploads.splice(0)) buffer.release();
  }

  // Events of the function.

  /** A tensor is an operand. */
  used(tracked: TrackedHandle): void {
    if (this.#known.has(tracked) || this.#isMade(tracked)) return;
    this.#known.add(tracked);
    const handle = tracked as TensorHandle;
    const { node } = handle;
    const sources: Source[] = [];
    for (let argument = 0; argument < this.#arguments.length; argument++)
      if (this.#arguments[argument] === handle) sources.push({ handle, argument });
    if (sources.length === 0) sources.push({ handle, argument: -1 });
    const known = this.#byNode.get(node);
    if (known !== undefined) {
      known.sources.push(...sources);
      known.names++;
      return;
    }
    const { storage } = node;
    const reason = this.#obstacle(node);
    if (reason !== null || storage === null) {
      this.#fail(reason ?? '');
      return;
    }
    const buffer = storage.buffer as PoolBuffer;
    const unit = this.#state.elementBytes[dtypeInfo[node.dtype].id]!;
    const offset = storage.view.offset * unit;
    const slot = this.#inputs.length;
    const first = this.#slots.of(buffer);
    const { shape, dtype, requiresGrad } = node;
    const { strides } = storage.view;
    const shift = first === undefined ? 0 : offset - first.base;
    const beside = first === undefined ? slot : first.slot;
    const place = { strides, unit, offset, beside, shift };
    const input = {
      sources,
      names: 1,
      shape,
      dtype,
      ...place,
      requiresGrad,
      value: knownValue(node),
      limits: null,
      written: false,
    };
    this.#inputs.push(input);
    this.#nodes.push(node);
    watchRange(node);
    this.#byNode.set(node, input);
    if (first === undefined) this.#slots.add(buffer, { slot, base: offset });
  }

  /** Why a value cannot be an input of a script. */
  #obstacle(node: Node): string | null {
    const { id, storage, requiresGrad, slot } = node;
    if (id > this.#newest || storage === null) return 'it uses a tensor that is not computed yet';
    if ((storage.buffer as PoolBuffer).pool !== this.#state.pool) return 'it uses a tensor on another engine';
    if (requiresGrad && !isLeaf(node)) return 'it uses a tensor from outside that has a history of gradients';
    return slot === null || slot.grad === null ? null : 'backward() finds gradients that are there already';
  }

  made(handle: TrackedHandle): void {
    this.#made.push(handle);
  }

  /** True for a tensor that the call made: nearly all of those name a node that is new. */
  #isMade(handle: TrackedHandle): boolean {
    return (handle as TensorHandle).node.id > this.#newest ? !this.#assigned.has(handle) : this.#made.includes(handle);
  }

  assign(handle: TrackedHandle): void {
    if (this.#isMade(handle)) {
      // For example a module's state that is made at first use. Failing now releases held data, so that later calls find this call's plan.
      if ((handle as TensorHandle).kept) this.#fail(keeps);
      return;
    }
    this.used(handle);
    this.#assigned.add(handle);
  }

  disposed(handle: TrackedHandle): void {
    if (!this.#isMade(handle)) this.#fail('it disposes a tensor from outside');
  }

  upload(leaf: Node, data: TypedArray): void {
    const buffer = leaf.storage!.buffer as PoolBuffer;
    if (buffer.pool !== this.#state.pool) {
      this.#fail('it makes a tensor of data on another engine');
      return;
    }
    if (this.reason !== null) return;
    // The data must not change.
    buffer.retain();
    this.#uploads.push({ buffer, leaf, data: data.slice() });
  }

  split(key: readonly number[], parts: readonly (readonly number[])[]): void {
    this.#draws.split(key, parts);
  }

  words(nodes: readonly Node[], key: readonly number[]): void {
    const draw = this.#draws.of(key);
    if (draw === null) return;
    this.#draws.bound.add(draw.call);
    for (const [word, node] of nodes.entries())
      this.#numbers.add(node, { kind: 'word', ...draw, word, after: this.#effects.length });
  }

  number(node: Node, read: () => number): void {
    if (node.op !== 'scalar') this.#fail('it uses hostNumber() inside an operation of the library');
    this.#numbers.add(node, { kind: 'read', read, dtype: node.dtype, after: this.#effects.length });
  }

  value(read: () => unknown, value: unknown): void {
    this.decisions.push({ read, value });
  }

  effect(run: () => void, undo: (() => void) | undefined): void {
    this.#effects.push({ run, undo });
  }

  within(range: KnownRange, least: number, most: number): void {
    for (const [i, input] of this.#inputs.entries()) {
      if (rangeOf(this.#nodes[i]!) !== range) continue;
      const [low, high] = input.limits ?? [least, most];
      input.limits = [Math.max(low, least), Math.min(high, most)];
    }
  }

  // Events of the flush.

  alloc(counted: StorageBuffer): void {
    const buffer = counted as PoolBuffer;
    if (buffer.pool === this.#state.pool) this.#slots.addFresh(buffer);
  }

  plan(found: unknown, graphOf: unknown): void {
    const [plan, captured] = [found as Plan, graphOf as CapturedGraph];
    const { nodes, key } = captured;
    const scalars: Scalar[] = [];
    const leaves: number[] = [];
    for (let i = 0; i < captured.count; i++) {
      const node = nodes[i]!;
      if (node.op === 'scalar' && node.storage === null) scalars.push(this.#numbers.of(node));
    }
    for (let i = 0; i < captured.leaves.length; i++) {
      const node = nodes[captured.leaves.data[i]!]!;
      const { buffer, view } = captured.storageOf(node);
      const spot = this.#slots.of(buffer as PoolBuffer);
      const isInput = spot !== undefined && spot.slot >= 0;
      const bytes = view.offset * this.#state.elementBytes[dtypeInfo[node.dtype].id]!;
      leaves.push(isInput ? spot.slot : -1, isInput ? bytes - spot.base : 0);
    }
    const { kernels, sizes } = plan;
    const operations = key.length - captured.donatable.length - 1;
    this.#flushed.push({ key: key.data.slice(0, key.length), operations, kernels, sizes, leaves, scalars });
    for (const { donor } of plan.buffers) {
      if (donor < 0) continue;
      const spot = this.#slots.of(nodes[donor]!.storage!.buffer as PoolBuffer);
      if (spot !== undefined && spot.slot >= 0) this.#inputs[spot.slot]!.written = true;
    }
    this.#state.kernelCache.take(kernels);
    this.#held.push(...kernels);
    this.#numbers.planned(plan, nodes);
  }

  #submitted(engine: IEngine, commands: readonly Command[]): void {
    if (engine !== this.#state.engine) this.#fail('it computes on several engines');
    else if (this.#steps.length + commands.length > mostSteps) this.#fail('its loops have too many steps');
    else for (const command of commands) this.#steps.push(this.#step(command));
  }

  #place(binding: Binding): Place {
    const place = this.#slots.placeOf(binding);
    if (place !== null) return place;
    this.#fail('it computes from memory that no tensor names');
    return { slot: 0, offset: binding.offset, bytes: binding.bytes };
  }

  #step(command: Command): Step {
    if (command.kind === 'copy') {
      const { kind, from, to } = command;
      return { kind, from: this.#place(from), to: this.#place(to) };
    }
    if (command.kind === 'fill') return { ...command, to: this.#place(command.to) };
    const { kind, kernel, groups } = command;
    const bindings = command.bindings.map((binding) => this.#place(binding));
    const known = this.#numbers.ofDispatch(kernel);
    if (known === null && command.scalars.length > 0) this.#fail('numbers of its kernels cannot be told apart');
    return { kind, kernel, bindings, scalars: known ?? command.scalars, groups };
  }

  // The script.

  /** The script of a call that has returned and is flushed; null, with a reason, if there is none. Then releases what the observation holds. */
  finish(result: unknown): Script | null {
    const script = this.reason === null ? this.#script(result) : null;
    if (script === null || this.reason !== null) {
      this.end();
      return null;
    }
    this.#state.recordings = (this.#state.recordings ?? 0) + 1;
    return script;
  }

  /** Disposes the results of the call. */
  disposeMade(): void {
    for (const handle of this.#made) handle.dispose();
  }

  /** Forgets the tensors and nodes of the call. V8 collects an observation late, and with it all that it names. */
  forget(): void {
    this.#arguments = [];
    this.#made.length = this.#nodes.length = 0;
    for (const known of [this.#byNode, this.#known, this.#assigned, this.#slots, this.#numbers]) known.clear();
  }

  /** Releases what was held for a script. */
  end(): void {
    this.#releaseUploads();
    const { kernelCache, pool } = this.#state;
    if (pool.lost === null) kernelCache.drop(this.#held.splice(0));
  }

  #script(result: unknown): Script | null {
    if (graph.taken !== 0) this.#fail('it leaves a tape open');
    if (queue.states.length > 0) this.#fail('its work waits for the device');
    if (graph.root !== this.#root || this.#draws.count < 0) this.#fail('it calls seed()');
    if (this.#draws.count > this.#draws.bound.size) this.#fail('it draws random numbers on the host (permutation)');
    this.#checkInputs();
    const returned = new Map<TrackedHandle, number>();
    const made: Made[] = [];
    const template = this.#template(result, (handle) => {
      const known = returned.get(handle);
      if (known !== undefined) return known;
      const { node, label } = handle;
      if (node.requiresGrad && node.slot !== releasedSlot)
        this.#fail('it returns a tensor with a history of gradients');
      const { shape, dtype } = node;
      const { slot, offset, strides } = this.#storageOf(node);
      const released = node.slot === releasedSlot;
      const at = made.push({ slot, offset, strides, shape, dtype, released, label }) - 1;
      returned.set(handle, at);
      return at;
    });
    for (const handle of this.#made) if (!handle.disposed && !returned.has(handle)) this.#fail(keeps);
    const renumbering = new Renumbering(
      this.#slots,
      this.#inputs.length,
      this.#uploads.map(({ buffer }) => buffer),
    );
    const assigned = this.#assignments(renumbering);
    if (this.reason !== null) return null;
    const state = this.#state;
    return {
      state,
      forgotten: this.#forgotten,
      tracked: this.#tracked,
      inputs: this.#inputs,
      uploads: this.#takeUploads(),
      fresh: renumbering.fresh(this.#slots.fresh),
      steps: renumbering.steps(this.#steps),
      flushed: this.#flushed,
      live: this.#numbers.live,
      effects: this.#effects,
      decisions: this.decisions,
      draws: this.#draws.count,
      assigned,
      made: made.map((one) => ({ ...one, slot: renumbering.slot(one.slot) })),
      result: template,
      flushes: state.flushes - this.#flushes,
      kernels: state.kernels - this.#kernels,
      hold: { entries: this.#held, users: 1 },
    };
  }

  #checkInputs(): void {
    for (const [at, { sources, requiresGrad }] of this.#inputs.entries())
      for (let i = 0; i < sources.length; i++) {
        const handle = sources[i]!.handle!;
        if (handle.node !== this.#nodes[at] && !this.#assigned.has(handle))
          this.#fail('it changes what a tensor from outside names');
        if (handle.node.requiresGrad !== requiresGrad) this.#fail('it changes requiresGrad of a tensor from outside');
        if (handle.node.slot?.grad) this.#fail('backward() leaves gradients in tensors from outside');
      }
  }

  /** The result with placeholders for tensors. */
  #template(result: unknown, made: (handle: TensorHandle) => number): unknown {
    const leaf = (value: unknown): unknown => {
      if (isHandle(value)) {
        const handle = value as TensorHandle;
        if (this.#isMade(handle)) return new Result(made(handle), -1, -1);
        this.used(handle);
        for (const [input, { sources }] of this.#inputs.entries()) {
          const source = sources.findIndex((one) => one.handle === handle);
          if (source >= 0) return new Result(-1, input, source);
        }
        this.#fail('it returns a tensor from outside that cannot be found');
      } else if (typeof value === 'object' && value !== null) {
        if (value instanceof Map) this.#fail('it returns a Map');
      }
      return value;
    };
    try {
      return mapNested('compile', result, null, leaf, () => null);
    } catch {
      this.#fail('its result holds itself');
      return null;
    }
  }

  #storageOf(node: Node): Storage {
    const storage = this.#slots.storageOf(node, this.#state.elementBytes);
    if (storage !== null) return storage;
    this.#fail('a result is not computed');
    return { slot: 0, offset: 0, strides: [] };
  }

  #assignments(renumbering: Renumbering): Assigned[] {
    const found: Assigned[] = [];
    for (let at = 0; at < this.#inputs.length; at++) {
      const input = this.#inputs[at]!;
      const { sources, written, names } = input;
      for (let source = 0; source < sources.length; source++) {
        const handle = sources[source]!.handle!;
        const { node } = handle;
        if (!this.#assigned.has(handle) || node === this.#nodes[at]) continue;
        if (source > 0 && sources.findIndex((one) => one.handle === handle) < source) continue;
        const { slot, offset, strides } = this.#storageOf(node);
        const inPlace = written && slot === at && offset === 0 && names === 1;
        found.push({ slot: renumbering.slot(slot), offset, strides, input: at, source, inPlace });
      }
    }
    // Memory that is overwritten must be that of an assigned tensor, or a handle would still name the old value.
    const inBuffer = new Int32Array(this.#inputs.length);
    for (const { beside } of this.#inputs) inBuffer[beside]!++;
    for (const { written, sources, offset, shape, unit, beside } of this.#inputs) {
      if (!written) continue;
      const isWhole = offset === 0 && inBuffer[beside] === 1 && sizeOf(shape) > 0 && unit > 0;
      if (!isWhole || !sources.every(({ handle }) => this.#assigned.has(handle!)))
        this.#fail('it overwrites a tensor in a way that cannot be repeated');
    }
    return found;
  }

  /** The uploaded host data, as tensors that belong to the script. */
  #takeUploads(): Upload[] {
    return this.#uploads.splice(0).map(({ buffer, leaf: { shape, dtype }, data }) => {
      const strides = shape.map((_, axis) => sizeOf(shape.slice(axis + 1)));
      const handle = wrap(
        bufferNode({ buffer, view: { strides, offset: 0 } }, shape, dtype as DType),
      ) as unknown as TensorHandle;
      handle.kept = true;
      return { handle, data };
    });
  }
}
