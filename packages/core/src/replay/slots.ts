/**
 * What stands in a script for memory, numbers and random keys, while a call is observed. In: buffers, plans and keys as they turn up. Out: slots and
 * places, numbers of dispatches, and the calls of the generator that keys come from.
 */
import type { Binding, CompiledKernel, EngineBuffer } from '../engine/engine.ts';
import type { PoolBuffer } from '../engine/pool.ts';
import type { Attrs, Node } from '../graph/node.ts';
import { graph } from '../graph/state.ts';
import type { Plan } from '../planner/plan.ts';
import { dtypeInfo } from '@polygrad/compiler/shape/dtype';
import { generatedKey } from '../tensor/random-key.ts';
import type { Fresh, Live, Place, Scalar, Step, Storage } from './script.ts';

/** Which slot a buffer is, and where the slot begins in it. */
interface SlotAddress {
  readonly slot: number;
  /** Bytes of the buffer before the slot's offset 0. */
  readonly base: number;
}

/** Memory. Uploads count as fresh, which they were allocated as; `Renumbering` gives them their slots behind the inputs. */
export class Slots {
  readonly fresh: Fresh[] = [];
  readonly #byMemory = new Map<EngineBuffer, SlotAddress>();
  readonly #byBuffer = new Map<PoolBuffer, SlotAddress>();

  clear(): void {
    this.#byMemory.clear();
    this.#byBuffer.clear();
  }

  /** The address of a buffer; undefined if it has not turned up. */
  of(buffer: PoolBuffer): SlotAddress | undefined {
    return this.#byBuffer.get(buffer);
  }

  add(buffer: PoolBuffer, address: SlotAddress): void {
    this.#byBuffer.set(buffer, address);
    this.#byMemory.set(buffer.memory, address);
  }

  /** Adds memory that the call allocates. */
  addFresh(buffer: PoolBuffer): void {
    const { bytes, classIndex } = buffer;
    this.add(buffer, { slot: -this.fresh.push({ bytes, sizeClass: classIndex }), base: 0 });
  }

  /** The place of a binding; null if no tensor names its memory. */
  placeOf({ buffer, offset, bytes }: Binding): Place | null {
    const address = this.#byMemory.get(buffer);
    return address === undefined ? null : { slot: address.slot, offset: offset - address.base, bytes };
  }

  /** Where the value of a node is; null if it is not computed. */
  storageOf({ storage, dtype }: Node, elementBytes: readonly number[]): Storage | null {
    const address = storage === null ? undefined : this.of(storage.buffer as PoolBuffer);
    if (storage === null || address === undefined) return null;
    const { strides, offset } = storage.view;
    return { slot: address.slot, offset: offset - address.base / elementBytes[dtypeInfo[dtype].id]!, strides };
  }
}

/** Slots of a finished script, in which uploads stand behind the inputs. */
export class Renumbering {
  readonly #inputs: number;
  /** The slot that each upload was while recording. */
  readonly #uploads: readonly (number | undefined)[];

  constructor(slots: Slots, inputs: number, uploads: readonly PoolBuffer[]) {
    this.#inputs = inputs;
    this.#uploads = uploads.map((buffer) => slots.of(buffer)?.slot);
  }

  slot(slot: number): number {
    const at = slot >= 0 ? -1 : this.#uploads.indexOf(slot);
    return at < 0 ? slot : this.#inputs + at;
  }

  /** Fresh memory, with null for uploads. */
  fresh(all: readonly Fresh[]): readonly (Fresh | null)[] {
    return all.map((one, i) => (this.slot(-1 - i) < 0 ? one : null));
  }

  steps(steps: readonly Step[]): readonly Step[] {
    if (this.#uploads.length === 0) return steps;
    const place = (p: Place): Place => ({ ...p, slot: this.slot(p.slot) });
    return steps.map((step): Step => {
      if (step.kind === 'dispatch') return { ...step, bindings: step.bindings.map(place) };
      if (step.kind === 'fill') return { ...step, to: place(step.to) };
      return { ...step, from: place(step.from), to: place(step.to) };
    });
  }
}

/** Origin of a random key: a call of the generator, counted from the beginning, and how it was split since. */
interface Draw {
  readonly call: number;
  readonly path: readonly number[];
}

/** Random keys. */
export class Draws {
  /** Calls of the generator whose bits are computed from numbers of the observed call. */
  readonly bound: Set<number> = new Set();
  readonly #before: number;
  readonly #parts = new Map<readonly number[], Draw>();

  /** @param before calls of the generator before the observed call */
  constructor(before: number) {
    this.#before = before;
  }

  /** Calls of the generator since then; negative if it was seeded again. */
  get count(): number {
    return graph.calls - this.#before;
  }

  /** Null for a key that is not the generator's. */
  of(key: readonly number[]): Draw | null {
    const known = this.#parts.get(key);
    if (known !== undefined) return known;
    for (let call = 0; call < this.count; call++) {
      const [high, low] = generatedKey(this.#before + call);
      if (high === key[0] && low === key[1]) return { call, path: [] };
    }
    return null;
  }

  split(key: readonly number[], parts: readonly (readonly number[])[]): void {
    const draw = this.of(key);
    if (draw === null) return;
    for (const [i, part] of parts.entries()) this.#parts.set(part, { call: draw.call, path: [...draw.path, i] });
  }
}

/** A plan that ran, and which of its dispatches comes next. */
interface Planned {
  readonly plan: Plan;
  readonly scalars: readonly (readonly Scalar[])[];
  next: number;
}

/** Numbers: those of the observed call, and those read at every call. */
export class Numbers {
  /** Numbers that are read at every call. */
  readonly live: Live[] = [];
  readonly #liveOf = new Map<Node, number>();
  readonly #planned: Planned[] = [];

  /** Forgets nodes and plans. */
  clear(): void {
    this.#liveOf.clear();
    this.#planned.length = 0;
  }

  add(node: Node, live: Live): void {
    this.#liveOf.set(node, this.live.push(live) - 1);
  }

  /** The number of a `scalar` node. */
  of(node: Node): Scalar {
    const live = this.#liveOf.get(node);
    return live === undefined ? (node.attr as Attrs['scalar']).value : { live };
  }

  planned(plan: Plan, nodes: readonly (Node | undefined)[]): void {
    const scalars = plan.dispatches.map((dispatch) =>
      dispatch.scalars.map((local) => (local < 0 ? plan.sizes[-1 - local]! : this.of(nodes[local]!))),
    );
    this.#planned.push({ plan, scalars, next: 0 });
  }

  /** The numbers of a kernel's next dispatch, according to its plan. With loops, plans alternate. Null if no plan expects it next. */
  ofDispatch(kernel: CompiledKernel): readonly Scalar[] | null {
    for (let i = this.#planned.length - 1; i >= 0; i--) {
      const planned = this.#planned[i]!;
      const { dispatches } = planned.plan;
      if (dispatches[planned.next]?.kernel !== kernel) continue;
      const found = planned.scalars[planned.next]!;
      planned.next = (planned.next + 1) % dispatches.length;
      return found;
    }
    return null;
  }
}
