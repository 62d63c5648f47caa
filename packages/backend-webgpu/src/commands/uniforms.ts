/**
 * The uniform ring: the numbers of all dispatches of a submission, one piece each, written to the device in one go.
 *
 * Commands run in order, the writes too, so a piece may be written anew while earlier submissions that read it are still
 * queued. The ring goes round all the same, which spares the device from waiting between a reader and the next write.
 */
import type { PrintedScalar } from '@polygrad/emit-c';
import { usage } from '../constants.ts';
import type { Layouts } from '../kernels/layouts.ts';

const ringBytes = 1 << 18;
/** Kernels' blocks are bound with a size from this many bytes on, doubled as needed, so that few bind groups serve all. */
const leastBound = 256;

export class Uniforms {
  readonly #device: GPUDevice;
  readonly #layouts: Layouts;
  readonly #align: number;
  readonly #ring: GPUBuffer;
  readonly #groups = new Map<number, GPUBindGroup>();
  readonly view: DataView = new DataView(new ArrayBuffer(ringBytes));
  /** Pieces from `#from` to `#to` are taken and not written yet. */
  #from: number;
  #to: number;
  /** Bytes at the start that stay zero: the piece of dispatches whose numbers are all zero. */
  readonly #zeros: number;

  constructor(device: GPUDevice, layouts: Layouts) {
    this.#device = device;
    this.#layouts = layouts;
    this.#align = device.limits.minUniformBufferOffsetAlignment;
    this.#zeros = Math.max(leastBound, this.#align);
    this.#from = this.#to = this.#zeros;
    this.#ring = device.createBuffer({ label: 'uniforms', size: ringBytes, usage: usage.uniform | usage.copyDst });
  }

  get layout(): GPUBindGroupLayout {
    return this.#layouts.uniform;
  }

  /** Largest block of one dispatch. */
  get mostBytes(): number {
    return Math.min(this.#device.limits.maxUniformBufferBindingSize, ringBytes / 4);
  }

  /** Offset of a piece of `bytes` zeroed bytes in `view`; -1 if what is taken must be written and submitted first. */
  take(bytes: number): number {
    const bound = boundBytes(bytes);
    if (this.#to + bound > ringBytes) {
      if (this.#to > this.#from) return -1;
      this.#from = this.#to = this.#zeros;
    }
    const at = this.#to;
    this.#to += Math.ceil(bytes / this.#align) * this.#align;
    new Uint8Array(this.view.buffer, at, bytes).fill(0);
    return at;
  }

  /** Gives back the piece taken last, at `at`, whose contents turned out to be zero, and returns the one to use instead. */
  giveBack(at: number, bytes: number): number {
    if (bytes > this.#zeros) return at;
    this.#to = at;
    return 0;
  }

  /** Writes what was taken since the last time; the commands that read it are submitted next. */
  write(): void {
    if (this.#to === this.#from) return;
    const from = this.#from;
    this.#device.queue.writeBuffer(this.#ring, from, this.view.buffer as ArrayBuffer, from, this.#to - from);
    this.#from = this.#to;
  }

  /** The bind group of blocks of this size, to be used with an offset from `take`. */
  group(bytes: number): GPUBindGroup {
    const size = boundBytes(bytes);
    let group = this.#groups.get(size);
    if (group === undefined) {
      const entries = [{ binding: 0, resource: { buffer: this.#ring, size } }];
      group = this.#device.createBindGroup({ layout: this.#layouts.uniform, entries });
      this.#groups.set(size, group);
    }
    return group;
  }
}

function boundBytes(bytes: number): number {
  let size = leastBound;
  while (size < bytes) size *= 2;
  return size;
}

/** Writes a number at `base` plus its place; says if all its bits are zero. */
export function writeScalar(
  view: DataView,
  base: number,
  { dtype, at }: PrintedScalar,
  value: number | bigint,
): boolean {
  const number = Number(value);
  const place = base + at;
  switch (dtype) {
    case 'float32':
    case 'float16':
      view.setFloat32(place, number, true);
      break;
    case 'bool':
      view.setUint32(place, number === 0 ? 0 : 1, true);
      break;
    default:
      // Numbers outside the range wrap, as everywhere; DataView does so for finite ones.
      view.setInt32(place, number, true);
  }
  return view.getUint32(place, true) === 0;
}
