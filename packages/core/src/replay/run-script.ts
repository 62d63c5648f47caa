/**
 * Runs scripts. In: a script and the arguments of a call. Out: the result; or null, and then nothing has changed.
 *
 * A run checks that the present state fits, reads the numbers, allocates memory, submits the commands, and gives tensors their new
 * values. If the script does not fit, or fails before its commands are submitted, the function itself is called.
 */
import type { Binding, Command, IEngine } from '../engine/engine.ts';
import type { PoolBuffer } from '../engine/pool.ts';
import { noticed } from '../engine/registry.ts';
import { engines, getEngine } from '../engine/registry.ts';
import { forgetRange, rangeOf } from '../graph/known-range.ts';
import { type NodeStorage, nextMark } from '../graph/node.ts';
import { bufferNode, numberOf } from '../graph/primitives.ts';
import { finishFlush, releasedSlot } from '../graph/recorder.ts';
import { beginOp } from '../graph/scope.ts';
import { graph } from '../graph/state.ts';
import { transactions } from '../graph/transactions.ts';
import { download } from '../runtime/reading.ts';
import { stateOf, unstarted } from '../runtime/run.ts';
import { runs } from '../runtime/state.ts';
import { copies } from '../runtime/copies.ts';
import { dtypeInfo } from '@polygrad/compiler/shape/dtype';
import { checkWeak } from '@polygrad/compiler/shape/promotion';
import { mapNested } from '@polygrad/compiler/shape/nested';
import { type TensorHandle, wrap } from '../tensor/handle.ts';
import { generatedKey, type RandomKey, threefry } from '../tensor/random-key.ts';
import type { Tensor } from '../tensor/types.ts';
import { type Input, type Live, Result, type Script, type Step, type Storage, knownValue } from './script.ts';

/** A command as it was last built, and from what. */
interface Built {
  readonly step: Step;
  /** Slots of memory that it binds. */
  readonly slots: readonly number[];
  readonly hasNumbers: boolean;
  command: Command | null;
  /** When it was built. */
  at: number;
}

/** A script with what its last run leaves for the next one: most of its commands stay the same. */
export class Runner {
  readonly script: Script;
  /** Made at the first run. */
  #steps: readonly Built[] | null = null;
  /** Buffers by slot, fresh ones last, with their addresses and when those were set. */
  readonly #buffers: (PoolBuffer | null)[];
  readonly #memory: (PoolBuffer['memory'] | null)[];
  readonly #bases: number[];
  readonly #since: number[];
  #clock = 1;
  /** For each input the value checked last, and the number of its node: nodes would outlive their tensors here. */
  readonly #nodes: number[];
  readonly #storages: (NodeStorage | null)[];
  readonly #first: number;
  readonly #numbers: (number | bigint)[];

  constructor(script: Script) {
    this.script = script;
    const { inputs, uploads, fresh, live } = script;
    this.#first = inputs.length + uploads.length;
    const count = this.#first + fresh.length;
    this.#buffers = new Array<null>(count).fill(null);
    this.#memory = new Array<null>(count).fill(null);
    this.#bases = new Array<number>(count).fill(0);
    this.#since = new Array<number>(count).fill(0);
    this.#nodes = new Array<number>(inputs.length).fill(0);
    this.#storages = new Array<null>(inputs.length).fill(null);
    this.#numbers = new Array<number>(live.length).fill(0);
  }

  #built(step: Step): Built {
    const places = step.kind === 'dispatch' ? step.bindings : step.kind === 'copy' ? [step.from, step.to] : [step.to];
    const slots: number[] = [];
    for (let i = 0; i < places.length; i++) {
      const at = this.#at(places[i]!.slot);
      if (!slots.includes(at)) slots.push(at);
    }
    const hasNumbers = step.kind === 'dispatch' && step.scalars.some((scalar) => typeof scalar === 'object');
    return { step, slots, hasNumbers, command: null, at: 0 };
  }

  #at(slot: number): number {
    return slot >= 0 ? slot : this.#first - 1 - slot;
  }

  /** The tensor that names an input. */
  #handle({ sources }: Input, source: number, args: readonly unknown[]): TensorHandle {
    const { handle, argument } = sources[source]!;
    return handle ?? (args[argument] as TensorHandle);
  }

  /** True if the script would do what the function would do with these arguments, as far as is visible. */
  fits(args: readonly unknown[]): boolean {
    const { state, inputs, uploads, decisions, tracked, forgotten } = this.script;
    if (stateOf(getEngine()) !== state) return false;
    if (graph.leaves !== tracked || state.forgotten !== forgotten || state.pool.lost !== null) return false;
    const mark = nextMark();
    this.#clock++;
    for (let i = 0; i < inputs.length; i++) if (!this.#inputFits(i, inputs[i]!, args, mark)) return false;
    for (const { handle } of uploads) if (handle.disposed) return false;
    for (const { read, value } of decisions) if (!Object.is(read(), value)) return false;
    return true;
  }

  #inputFits(at: number, input: Input, args: readonly unknown[], mark: number): boolean {
    const { sources, written } = input;
    const { node } = this.#handle(input, 0, args);
    for (let i = 0; i < sources.length; i++) {
      const { handle, argument } = sources[i]!;
      const named = handle ?? (args[argument] as TensorHandle);
      if (named.disposed || named.node !== node || (argument >= 0 && args[argument] !== named)) return false;
    }
    const { storage } = node;
    if (storage === null || node.pins !== 0 || node.requiresGrad !== input.requiresGrad) return false;
    const { slot } = node;
    if (slot !== null ? slot === releasedSlot || slot.grad !== null : node.requiresGrad) return false;
    const buffer = storage.buffer as PoolBuffer;
    if (storage !== this.#storages[at] || node.id !== this.#nodes[at]) {
      if (!this.#lies(input, storage, buffer) || !Object.is(knownValue(node), input.value)) return false;
      // The function says what is wrong.
      const range = input.limits === null ? null : rangeOf(node);
      if (range !== null && (range[0] < input.limits![0] || range[1] > input.limits![1])) return false;
      this.#nodes[at] = node.id;
      this.#storages[at] = storage;
    }
    // Memory may be overwritten only if nothing else uses it.
    if (written && (buffer.refs !== 1 || node.handles !== input.names || node.uses !== 0)) return false;
    if (buffer.memory.refused != null) return false;
    this.#keep(at, buffer, storage.view.offset * input.unit);
    if (buffer.mark !== mark) {
      if (input.beside !== at) return false;
      buffer.mark = mark;
      buffer.index = at;
      return true;
    }
    return buffer.index === input.beside && this.#bases[at]! - this.#bases[buffer.index]! === input.shift;
  }

  /** True if a plan could use a value at this position in the same way. */
  #lies({ strides, offset, unit, written }: Input, { view }: NodeStorage, buffer: PoolBuffer): boolean {
    const { state } = this.script;
    if (buffer.pool !== state.pool) return false;
    for (let axis = 0; axis < strides.length; axis++) if (view.strides[axis] !== strides[axis]) return false;
    return written
      ? view.offset * unit === offset
      : (view.offset * unit - offset) % Math.max(16, state.engine.caps.bindAlign) === 0;
  }

  #keep(at: number, buffer: PoolBuffer, base: number): void {
    this.#buffers[at] = buffer;
    const { memory } = buffer;
    if (memory === this.#memory[at] && base === this.#bases[at]) return;
    this.#since[at] = this.#clock;
    this.#memory[at] = memory;
    this.#bases[at] = base;
  }

  /** Runs a script that fits. Null, with nothing done, if that is impossible now. */
  run(args: readonly unknown[]): { readonly value: unknown } | null {
    const { state, effects, draws, uploads, inputs, fresh } = this.script;
    const { engine, pool } = state;
    // A flush reports that protected tensors went back to older values.
    if (engines.untold !== null) return null;
    const { calls } = graph;
    let done = 0;
    let taken = 0;
    try {
      // A number is read after the effects before it.
      let asked = this.#askNumbers(0, 0, calls);
      while (done < effects.length) {
        effects[done]!.run();
        asked = this.#askNumbers(++done, asked, calls);
      }
      for (let i = 0; i < uploads.length; i++)
        this.#keep(inputs.length + i, uploads[i]!.handle.node.storage!.buffer as PoolBuffer, 0);
      for (; taken < fresh.length; taken++) {
        const one = fresh[taken]!;
        if (one !== null) this.#keep(this.#first + taken, pool.alloc(one.bytes, one.sizeClass), 0);
      }
      if (engine.confirming?.() != null) throw notNow;
      for (let at = 0; at < inputs.length; at++) if (inputs[at]!.written) this.#buffers[at]!.dropCopies();
      if (this.script.steps.length > 0) this.#submit(engine);
    } catch (error) {
      // A batch that may have begun cannot be repeated on what it changed.
      noticed(engine, error);
      // The function is called instead; it meets the same problem and reports it.
      while (done > 0) effects[--done]!.undo?.();
      while (taken > 0) this.#giveBack(--taken);
      return null;
    }
    graph.calls = calls + draws;
    for (const { undo } of effects) if (undo !== undefined) transactions.committed?.push(undo);
    const value = this.#hand(args);
    while (taken > 0) this.#giveBack(--taken);
    this.#count();
    return { value };
  }

  #submit(engine: IEngine): void {
    const commands = this.#commands();
    try {
      runs.submit(engine, commands);
    } catch (error) {
      const overwrites = this.script.inputs.some(({ written }) => written);
      throw unstarted(error, engine, commands, overwrites);
    }
  }

  #giveBack(at: number): void {
    const slot = this.#first + at;
    if (this.script.fresh[at] !== null) this.#buffers[slot]!.release();
    this.#buffers[slot] = null;
  }

  #count(): void {
    const { state, flushes, kernels } = this.script;
    state.replays = (state.replays ?? 0) + 1;
    state.flushes += flushes;
    state.kernels += kernels;
    state.inFlight += flushes;
    state.pool.age();
    if (graph.pending.length > 0) finishFlush();
    copies.keeper?.shadow(download);
  }

  /** Reads the numbers from `at` on that come after `effects` effects; returns where the next ones begin. */
  #askNumbers(effects: number, at: number, calls: number): number {
    const { live } = this.script;
    for (; at < live.length && live[at]!.after <= effects; at++) this.#numbers[at] = numberFor(live[at]!, calls);
    return at;
  }

  #commands(): Command[] {
    const batch = (this.#steps ??= this.script.steps.map((step) => this.#built(step)));
    const commands = new Array<Command>(batch.length);
    for (let i = 0; i < batch.length; i++) {
      const built = batch[i]!;
      const { command } = built;
      if (command === null || this.#moved(built)) {
        built.command = this.#build(built.step);
        built.at = this.#clock;
      } else if (built.hasNumbers && built.step.kind === 'dispatch')
        built.command = { ...(command as Extract<Command, { kind: 'dispatch' }>), scalars: this.#scalars(built.step) };
      commands[i] = built.command!;
    }
    return commands;
  }

  #moved({ slots, at }: Built): boolean {
    for (let i = 0; i < slots.length; i++) if (this.#since[slots[i]!]! > at) return true;
    return false;
  }

  #bind({ slot, offset, bytes }: { slot: number; offset: number; bytes: number }): Binding {
    const at = this.#at(slot);
    return { buffer: this.#memory[at]!, offset: offset + this.#bases[at]!, bytes };
  }

  #scalars({ scalars }: Extract<Step, { kind: 'dispatch' }>): (number | bigint)[] {
    const values = new Array<number | bigint>(scalars.length);
    for (let i = 0; i < scalars.length; i++) {
      const scalar = scalars[i]!;
      values[i] = typeof scalar === 'object' ? this.#numbers[scalar.live]! : scalar;
    }
    return values;
  }

  #build(step: Step): Command {
    if (step.kind === 'copy') return { kind: 'copy', from: this.#bind(step.from), to: this.#bind(step.to) };
    if (step.kind === 'fill') return { kind: 'fill', to: this.#bind(step.to), pattern: step.pattern };
    const { kind, kernel, bindings, groups } = step;
    const bound = new Array<Binding>(bindings.length);
    for (let i = 0; i < bindings.length; i++) bound[i] = this.#bind(bindings[i]!);
    return { kind, kernel, bindings: bound, scalars: this.#scalars(step), groups };
  }

  /** Makes tensors name the results; returns the function's result. */
  #hand(args: readonly unknown[]): unknown {
    const { made, assigned, result, inputs } = this.script;
    // Storages first: old values are released when tensors name new ones.
    const values = made.map(({ shape, dtype, ...storage }, i) => {
      const node = bufferNode(this.#storage(storage, made[i]!.dtype), shape, dtype);
      if (storage.released) {
        node.slot = releasedSlot;
        node.requiresGrad = true;
      }
      return node;
    });
    const changes = assigned.map((change) => {
      if (change.inPlace) {
        copies.overwritten++;
        forgetRange(this.#handle(inputs[change.input]!, change.source, args).node);
        return null;
      }
      const { shape, dtype } = inputs[change.input]!;
      return bufferNode(this.#storage(change, dtype), shape, dtype);
    });
    for (const [i, change] of assigned.entries()) {
      const node = changes[i];
      if (node == null) continue;
      const handle = this.#handle(inputs[change.input]!, change.source, args);
      handle.rebind(node, handle.node.slot);
    }
    const handles: Tensor[] = [];
    const handleOf = (at: number): Tensor => {
      if (handles[at] === undefined) {
        beginOp(made[at]!.label);
        handles[at] = wrap(values[at]!);
      }
      return handles[at];
    };
    const tensor = (value: unknown): unknown => {
      if (!(value instanceof Result)) return value;
      return value.made >= 0 ? handleOf(value.made) : this.#handle(inputs[value.input]!, value.source, args);
    };
    return typeof result !== 'object' || result === null || result instanceof Result
      ? tensor(result)
      : mapNested('compile', result, null, tensor, () => null);
  }

  /** A storage with a reference to its buffer. */
  #storage({ slot, offset, strides }: Storage, dtype: Input['dtype']): NodeStorage {
    const at = this.#at(slot);
    const buffer = this.#buffers[at]!;
    buffer.retain();
    const unit = this.script.state.elementBytes[dtypeInfo[dtype].id]!;
    return { buffer, view: { strides, offset: offset + this.#bases[at]! / unit } };
  }
}

const notNow = new Error('the device has not said yet whether it has the memory');

function numberFor(live: Live, calls: number): number | bigint {
  if (live.kind === 'read') {
    const value: unknown = live.read();
    // The function throws the error.
    if (typeof value !== 'number' && typeof value !== 'bigint') throw notNow;
    checkWeak('hostNumber', value, live.dtype);
    return numberOf(value, live.dtype);
  }
  let key: RandomKey = generatedKey(calls + live.call);
  for (const part of live.path) key = threefry(key, [part, 1]);
  return key[live.word]!;
}
