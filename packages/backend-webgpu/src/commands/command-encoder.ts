/**
 * Commands as WebGPU wants them: one encoder and as few passes as possible for a whole batch.
 *
 * Dispatches of one pass see each other's results, so a pass ends only where a copy or a clearing must come between. The
 * batch goes out in several submissions only if its numbers do not fit the uniform ring, or if it would run too long. Then
 * the system might take the device for hung.
 */
import type { Command } from '@polygrad/core/engine';
import type { BindGroups } from '../kernels/bindings.ts';
import { type Overwrite, Overwriter } from './builtins.ts';
import type { WebGpuKernel } from '../kernels/kernel.ts';
import type { WebGpuBuffer } from '../memory.ts';
import type { Traffic } from '../public.ts';
import { type Uniforms, writeScalar } from './uniforms.ts';
import type { Stopwatch } from './stopwatch.ts';

/** Estimated seconds of work in one submission after which the next one is begun. */
const longestSubmission = 0.5;

/** What a dispatch gives its kernel. */
type Arguments = Pick<Extract<Command, { kind: 'dispatch' }>, 'bindings' | 'scalars' | 'groups'>;

export class CommandEncoder {
  readonly traffic: Traffic = { submissions: 0, dispatches: 0, passes: 0 };
  readonly #device: GPUDevice;
  readonly #groups: BindGroups;
  readonly #uniforms: Uniforms;
  #overwriter: Overwriter | null = null;
  #encoder: GPUCommandEncoder | null = null;
  #pass: GPUComputePassEncoder | null = null;
  #pipeline: GPUComputePipeline | null = null;
  #seconds = 0;
  #stopwatch: Stopwatch | null = null;
  #command = 0;

  constructor(device: GPUDevice, groups: BindGroups, uniforms: Uniforms) {
    this.#device = device;
    this.#groups = groups;
    this.#uniforms = uniforms;
  }

  /**
   * All pieces of a kernel whose pipeline is there, but those beyond the groups that are said: no dispatch is of none. Bindings by slot.
   * Where groups are said, the grid is not folded (codegen/linearize/).
   */
  dispatch(kernel: WebGpuKernel, { bindings, scalars, groups }: Arguments): void {
    const { code } = kernel;
    const { shader, signature } = code;
    const bound = shader.bindings.map(({ slot }) => bindings[slot]!);
    const group = this.#groups.find(signature, bound);
    for (const { first, count } of shader.pieces) {
      const counts = groups == null ? count : count.map((n, axis) => Math.min(n, groups[axis]! - first[axis]!));
      if (counts.some((n) => n < 1)) continue;
      if (this.#seconds > longestSubmission) this.submit();
      const offset = shader.uniformBytes === 0 ? -1 : this.#number(kernel, scalars, first);
      const pass = this.#open();
      if (this.#pipeline !== code.pipeline) pass.setPipeline((this.#pipeline = code.pipeline as GPUComputePipeline));
      pass.setBindGroup(0, group);
      if (offset >= 0) pass.setBindGroup(1, this.#uniforms.group(shader.uniformBytes), [offset]);
      pass.dispatchWorkgroups(...(counts as typeof count));
      this.traffic.dispatches++;
      this.#seconds += kernel.seconds / shader.pieces.length;
      if (this.#stopwatch !== null) this.#close();
    }
  }

  /** Measures what follows, until null is given; the commands are numbered with `command`. */
  measure(stopwatch: Stopwatch | null): void {
    this.#close();
    if (stopwatch === null && this.#stopwatch !== null) this.#stopwatch.finish(this.#begin());
    this.#stopwatch = stopwatch;
  }

  /** The number of the command that comes next; for measuring. */
  command(index: number): void {
    this.#command = index;
  }

  copy(from: GPUBuffer, fromAt: number, to: GPUBuffer, toAt: number, bytes: number): void {
    this.#close();
    this.#begin().copyBufferToBuffer(from, fromAt, to, toAt, bytes);
  }

  clear(buffer: WebGpuBuffer, at: number, bytes: number): void {
    this.#close();
    this.#begin().clearBuffer(buffer.gpu, at, bytes);
  }

  /** Changes whole words of a buffer. */
  overwrite(buffer: WebGpuBuffer, { first, count, keep, set }: Overwrite): void {
    const overwriter = (this.#overwriter ??= new Overwriter(this.#device, this.#uniforms.layout));
    const at = this.#piece(16);
    const { view } = this.#uniforms;
    for (const [i, word] of [first, count, keep, set].entries()) view.setUint32(at + 4 * i, word, true);
    const entries = [{ binding: 0, resource: { buffer: buffer.gpu } }];
    const pass = this.#open();
    pass.setPipeline((this.#pipeline = overwriter.pipeline));
    pass.setBindGroup(0, this.#device.createBindGroup({ layout: overwriter.layout, entries }));
    pass.setBindGroup(1, this.#uniforms.group(16), [at]);
    const [x, y] = overwriter.grid(count);
    pass.dispatchWorkgroups(x, y);
    if (this.#stopwatch !== null) this.#close();
  }

  /** Sends what was encoded. */
  submit(): void {
    const encoder = this.#encoder;
    if (encoder === null) return;
    this.#close();
    this.#uniforms.write();
    this.#device.queue.submit([encoder.finish()]);
    this.traffic.submissions++;
    this.#encoder = null;
    this.#seconds = 0;
  }

  /** Forgets what was encoded and not sent; after an error on the way. */
  abandon(): void {
    this.#encoder = this.#pass = this.#pipeline = this.#stopwatch = null;
    this.#seconds = 0;
  }

  /** Writes a dispatch's numbers to the ring; gives their offset. */
  #number(
    { code: { shader } }: WebGpuKernel,
    scalars: readonly (number | bigint)[],
    first: readonly [number, number, number],
  ): number {
    const { uniformBytes, groupAt } = shader;
    const at = this.#piece(uniformBytes);
    const { view } = this.#uniforms;
    let zero = true;
    for (const scalar of shader.scalars)
      if (!writeScalar(view, at, scalar, scalars[scalar.slot] as number | bigint)) zero = false;
    if (groupAt >= 0 && (first[0] > 0 || first[1] > 0 || first[2] > 0)) {
      for (let axis = 0; axis < 3; axis++) view.setUint32(at + groupAt + 4 * axis, first[axis] as number, true);
      zero = false;
    }
    return zero ? this.#uniforms.giveBack(at, uniformBytes) : at;
  }

  #piece(bytes: number): number {
    const at = this.#uniforms.take(bytes);
    if (at >= 0) return at;
    this.submit();
    return this.#uniforms.take(bytes);
  }

  #begin(): GPUCommandEncoder {
    return (this.#encoder ??= this.#device.createCommandEncoder());
  }

  #open(): GPUComputePassEncoder {
    if (this.#pass === null) {
      const encoder = this.#begin();
      const timestampWrites = this.#stopwatch?.writes(this.#command);
      this.#pass = encoder.beginComputePass(timestampWrites === undefined ? {} : { timestampWrites });
      this.#pipeline = null;
      this.traffic.passes++;
    }
    return this.#pass;
  }

  #close(): void {
    this.#pass?.end();
    this.#pass = null;
  }
}
