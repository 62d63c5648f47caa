/** Bind groups: which buffers a dispatch sees. Made once for each kernel signature and choice of buffers, then found again. */
import type { Binding } from '@polygrad/core/engine';
import { Cache } from './cache.ts';
import type { Signature } from './layouts.ts';
import type { WebGpuBuffer } from '../memory.ts';

/** Bind groups kept. A training step of a network of a hundred layers uses a few hundred. */
const mostGroups = 8192;

export class BindGroups {
  readonly #device: GPUDevice;
  readonly #cache = new Cache<GPUBindGroup>(mostGroups);

  constructor(device: GPUDevice) {
    this.#device = device;
  }

  /** The group of these bindings, whose buffers are of this engine. */
  find({ id, tensors }: Signature, bindings: readonly Binding[]): GPUBindGroup {
    let key = `${id}`;
    for (const { buffer, offset, bytes } of bindings) key += ` ${(buffer as WebGpuBuffer).id}:${offset}:${bytes}`;
    let group = this.#cache.get(key);
    if (group === undefined) {
      const entries = bindings.map(({ buffer, offset, bytes }, binding) => ({
        binding,
        resource: { buffer: (buffer as WebGpuBuffer).gpu, offset, size: bindingSize(bytes) },
      }));
      group = this.#device.createBindGroup({ layout: tensors, entries });
      this.#cache.set(key, group);
    }
    return group;
  }

  clear(): void {
    this.#cache.clear();
  }
}

/** WebGPU binds multiples of four bytes and never none; buffers have the room. */
function bindingSize(bytes: number): number {
  return Math.max(4, Math.ceil(bytes / 4) * 4);
}
