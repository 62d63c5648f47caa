/** The two kernels the engine writes itself: repeating a word, and changing some bytes of one. */
import { computeStage } from '../constants.ts';

const threads = 256;
/** Groups of one row; more are folded into further rows. */
const rowGroups = 32768;

// `words` from `first` on become (old & keep) | set.
const source = `
struct Numbers { first: u32, count: u32, keep: u32, value: u32 }
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@group(1) @binding(0) var<uniform> numbers: Numbers;
@compute @workgroup_size(${threads})
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  let at = (group.y * ${rowGroups}u + group.x) * ${threads}u + thread;
  if (at < numbers.count) {
    let place = numbers.first + at;
    data[place] = (data[place] & numbers.keep) | numbers.value;
  }
}`;

/** Words `first` to `first + count` of a buffer: bits outside `keep` are cleared, those of `set` are set. */
export interface Overwrite {
  readonly first: number;
  readonly count: number;
  readonly keep: number;
  readonly set: number;
}

/** The pipeline; made at once, because it is small and work waits for it. */
export class Overwriter {
  readonly #device: GPUDevice;
  readonly #numbers: GPUBindGroupLayout;
  #pipeline: GPUComputePipeline | null = null;
  #tensors: GPUBindGroupLayout | null = null;

  constructor(device: GPUDevice, uniform: GPUBindGroupLayout) {
    this.#device = device;
    this.#numbers = uniform;
  }

  get pipeline(): GPUComputePipeline {
    return (this.#pipeline ??= this.#device.createComputePipeline({
      label: 'overwrite',
      layout: this.#device.createPipelineLayout({ bindGroupLayouts: [this.layout, this.#numbers] }),
      compute: { module: this.#device.createShaderModule({ label: 'overwrite', code: source }), entryPoint: 'main' },
    }));
  }

  get layout(): GPUBindGroupLayout {
    const entry: GPUBindGroupLayoutEntry = { binding: 0, visibility: computeStage, buffer: { type: 'storage' } };
    return (this.#tensors ??= this.#device.createBindGroupLayout({ entries: [entry] }));
  }

  /** Groups along x and y for so many words. */
  grid(count: number): [number, number] {
    const groups = Math.ceil(count / threads);
    return [Math.min(groups, rowGroups), Math.ceil(groups / rowGroups)];
  }
}
