/**
 * Where memory stands in a script that is being recorded. In: buffers as they turn up. Out: slots, and places and storages in their words.
 *
 * While recording, uploads count as fresh memory, which they were allocated as. `Renumbering` gives them their slots behind the inputs.
 */
import type { Binding, EngineBuffer } from '../engine/engine.ts';
import type { PoolBuffer } from '../engine/pool.ts';
import type { Node } from '../graph/node.ts';
import { dtypeInfo } from '@polygrad/compiler/shape/dtype';
import type { Fresh, Place, Step, Storage } from './script.ts';

/** Which slot a buffer is, and where the slot begins in it. */
interface SlotAddress {
  readonly slot: number;
  /** Bytes of the buffer before the slot's offset 0. */
  readonly base: number;
}

export class Slots {
  readonly fresh: Fresh[] = [];
  readonly #byMemory = new Map<EngineBuffer, SlotAddress>();
  readonly #byBuffer = new Map<PoolBuffer, SlotAddress>();

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
