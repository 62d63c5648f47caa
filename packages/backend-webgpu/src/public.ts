/**
 * The types that programs name. Nothing here leads to WebGPU's own types, so that programs for Node compile without those of the DOM.
 */
import { type IEngine, PolygradError } from '@polygrad/core/engine';

/** WebGPU's `GPUAdapter`, where the program's types have it. */
export type Adapter = typeof globalThis extends { readonly GPUAdapter: { readonly prototype: infer A } } ? A : object;

/** Commands since the engine was made. */
export interface Traffic {
  submissions: number;
  dispatches: number;
  passes: number;
}

/** What engines may have, and this one does. */
type Had = 'confirming' | 'ready' | 'source';

/** An engine on a WebGPU device. `createWebGpuEngine` makes one. */
export interface WebGpuEngine extends Omit<IEngine, Had>, Required<Pick<IEngine, Had>> {
  readonly name: 'webgpu';
  /** True where a processor pretends to be a GPU: the CPU engine is faster. */
  readonly software: boolean;
  /** True where the driver's compiler regroups float arithmetic (docs/numerics.md): kernels then keep it from that. */
  readonly reassociates: boolean;
  /** Submissions, passes and dispatches since the start; for tests and reports. */
  readonly traffic: Readonly<Traffic>;
  /** Pipelines being made, and batches that wait for them. */
  readonly waiting: { readonly pipelines: number; readonly batches: number };
}

/**
 * The driver refused a command. Without it the results of that command are missing.
 *
 * @example
 * new WebGpuError('the driver refused a command') instanceof PolygradError; // true
 */
export class WebGpuError extends PolygradError {
  override readonly name: string = 'WebGpuError';

  constructor(message: string) {
    super('DEVICE_ERROR', 'webgpu', message);
  }
}
