/**
 * Times of the commands of one batch, measured by the device: every dispatch is a pass of its own, with a timestamp before
 * and after.
 */
import { host } from '#host';
import { mapRead, usage } from '../constants.ts';

/** Most passes measured: WebGPU allows 4096 queries in a set. */
const mostPasses = 2048;

export class Stopwatch {
  readonly #device: GPUDevice;
  readonly #commands: number;
  readonly #queries: GPUQuerySet;
  /** The command that each measured pass belongs to. */
  readonly #owners: number[] = [];
  readonly #unmeasured = new Set<number>();
  #staged: GPUBuffer | null = null;

  /** For a batch of so many commands. */
  constructor(device: GPUDevice, commands: number) {
    this.#device = device;
    this.#commands = commands;
    this.#queries = device.createQuerySet({ type: 'timestamp', count: 2 * mostPasses });
  }

  /** What the next pass writes, which is for the command of this index; undefined where there are too many. */
  writes(command: number): GPUComputePassTimestampWrites | undefined {
    const at = this.#owners.length;
    if (at >= mostPasses) {
      this.#unmeasured.add(command);
      return undefined;
    }
    this.#owners.push(command);
    return { querySet: this.#queries, beginningOfPassWriteIndex: 2 * at, endOfPassWriteIndex: 2 * at + 1 };
  }

  /** Appends to the last commands of the batch what brings the stamps home. */
  finish(encoder: GPUCommandEncoder): void {
    const count = this.#owners.length;
    if (count === 0) return;
    const size = 16 * count;
    const resolved = this.#device.createBuffer({ size, usage: usage.queryResolve | usage.copySrc });
    encoder.resolveQuerySet(this.#queries, 0, 2 * count, resolved, 0);
    this.#staged = this.#device.createBuffer({ size, usage: usage.mapRead | usage.copyDst });
    encoder.copyBufferToBuffer(resolved, 0, this.#staged, 0, size);
  }

  /** Nanoseconds of each command; NaN for those that were not measured. */
  async read(): Promise<number[]> {
    const times = new Array<number>(this.#commands).fill(Number.NaN);
    const staged = this.#staged;
    if (staged !== null) {
      await host.paced(() => staged.mapAsync(mapRead));
      const stamps = new BigUint64Array(staged.getMappedRange());
      this.#owners.forEach((command, pass) => {
        const spent = Math.max(0, Number(stamps[2 * pass + 1]! - stamps[2 * pass]!));
        times[command] = (Number.isNaN(times[command]) ? 0 : times[command]!) + spent;
      });
      for (const command of this.#unmeasured) times[command] = Number.NaN;
      staged.destroy();
    }
    this.#queries.destroy();
    return times;
  }
}
