/** Programs whose memory lies between pages that nobody may touch: an access outside ends the process. */
import { createRequire } from 'node:module';
import { legalize } from '@polygrad/core/kernel';
import { storageBytes, toDevice } from '@polygrad/core/internals';
import { emitMachineCode, type MachineTarget } from '@polygrad/emit-machine';
import type { ProgramCase } from '@polygrad/testing';
import type { Addon } from '../addon.ts';
import type { NativeEngine } from '../engine.ts';
import { SharedMemory } from '../memory.ts';
import { faultyAddon } from './faults.ts';

interface GuardingAddon extends Addon {
  closePages(engine: number, offset: number, bytes: number, closed: 0 | 1): void;
}

const page = 4096;

/** Memories at the start of their pages, or up to the end of them. */
export type Placement = 'start' | 'end';

/** Runs cases, each memory of which has a closed page before it and another one behind it. */
export class GuardedMemory {
  readonly #addon: GuardingAddon = createRequire(import.meta.url)(faultyAddon()) as GuardingAddon;
  // Memory that grows starts at a page of its own.
  readonly #bytes = new Uint8Array(new SharedMemory(256 * page, 256 * page).buffer);
  readonly #engine: number;

  constructor() {
    this.#engine = this.#addon.create(this.#bytes, 1);
  }

  /** What all memories hold afterwards, one behind the other. */
  run(engine: NativeEngine, c: ProgramCase, target: MachineTarget, placement: Placement): Uint8Array {
    const { program, data, scalars } = c;
    const legal = legalize(program, engine.caps);
    const places: { readonly at: number; readonly bytes: number }[] = [];
    const closed = [0];
    let next = page;
    for (const [slot, array] of data.entries()) {
      const { dtype } = program.params[slot]!;
      const bytes = array.length * storageBytes(engine, dtype);
      const room = Math.ceil(bytes / page) * page;
      const at = placement === 'start' ? next : next + room - bytes;
      places.push({ at, bytes });
      const stored = toDevice(engine, dtype, array);
      this.#bytes.set(new Uint8Array(stored.buffer, stored.byteOffset, bytes), at);
      next += room;
      closed.push(next);
      next += page;
    }
    const { bytes } = emitMachineCode(legal, target);
    const [x, y, z] = legal.grid;
    const code = this.#addon.compile(this.#engine, bytes, data.length, scalars.length, x * y * z);
    const cells = Float64Array.of(0, code, 0, ...places.flatMap((p) => [p.at, p.bytes]), ...scalars.map(() => 0));
    const values = new DataView(cells.buffer, (cells.length - scalars.length) * 8);
    for (const [i, value] of scalars.entries()) {
      if (legal.scalars[i] === 'float32') values.setFloat32(i * 8, Number(value), true);
      else values.setInt32(i * 8, Number(value), true);
    }
    const close = (how: 0 | 1): void => {
      for (const at of closed) this.#addon.closePages(this.#engine, at, page, how);
    };
    close(1);
    const fault = this.#addon.submit(this.#engine, cells, cells.length);
    close(0);
    this.#addon.release(this.#engine, code);
    if (fault !== 0) throw new Error(`check ${fault} failed in ${c.name}`);
    return Buffer.concat(places.map((p) => this.#bytes.slice(p.at, p.at + p.bytes)));
  }

  dispose(): void {
    this.#addon.dispose(this.#engine);
  }
}
