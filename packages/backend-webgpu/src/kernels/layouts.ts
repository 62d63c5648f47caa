/** Layouts of bind groups and pipelines: kernels that bind the same number of tensors in the same way share them. */
import { computeStage } from '../constants.ts';
import type { Shader } from './shader.ts';

/** How a kernel binds: tensors in group 0, its numbers (a piece of the uniform ring) in group 1. */
export interface Signature {
  readonly id: number;
  readonly tensors: GPUBindGroupLayout;
  readonly layout: GPUPipelineLayout;
}

export class Layouts {
  readonly #device: GPUDevice;
  /** Of the piece of the uniform ring; the same for all kernels. */
  readonly uniform: GPUBindGroupLayout;
  readonly #known = new Map<string, Signature>();

  constructor(device: GPUDevice) {
    this.#device = device;
    this.uniform = device.createBindGroupLayout({
      entries: [{ binding: 0, visibility: computeStage, buffer: { type: 'uniform', hasDynamicOffset: true } }],
    });
  }

  signature({ bindings, uniformBytes }: Shader): Signature {
    const numbers = uniformBytes > 0;
    const key = `${bindings.map((b) => b.access).join()} ${numbers}`;
    let found = this.#known.get(key);
    if (found === undefined) {
      const tensors = this.#device.createBindGroupLayout({
        entries: bindings.map(({ access }, binding) => ({
          binding,
          visibility: computeStage,
          buffer: { type: access === 'read' ? 'read-only-storage' : 'storage' },
        })),
      });
      const bindGroupLayouts = numbers ? [tensors, this.uniform] : [tensors];
      const layout = this.#device.createPipelineLayout({ bindGroupLayouts });
      this.#known.set(key, (found = { id: this.#known.size, tensors, layout }));
    }
    return found;
  }
}
