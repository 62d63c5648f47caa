/** What is asked of the engine is checked before anything is sent: buffers, ranges, arguments. The driver would say it later, and worse. */
import { type Binding, CompileError, type EngineBuffer, type EngineCaps } from '@polygrad/core/engine';
import type { Program } from '@polygrad/core/engine/planned';
import type { WebGpuKernel } from '../kernels/kernel.ts';
import { type Memory, WebGpuBuffer } from '../memory.ts';

/** The buffer, if it is one of this memory's and not freed. */
export function ownBuffer(memory: Memory, buffer: EngineBuffer): WebGpuBuffer {
  if (!(buffer instanceof WebGpuBuffer) || buffer.owner !== memory)
    throw new Error('[webgpu] the buffer belongs to another engine: allocate it from this one');
  if (buffer.freed) throw new Error('[webgpu] the buffer was freed: its memory may hold something else by now');
  return buffer;
}

/** The buffer of a binding, if `bytes` bytes from its offset lie inside. */
export function insideBuffer(memory: Memory, { buffer, offset }: Binding, bytes: number): WebGpuBuffer {
  const own = ownBuffer(memory, buffer);
  if (offset >= 0 && offset + bytes <= own.bytes) return own;
  throw new Error(`[webgpu] a binding lies outside its buffer: offset ${offset} and ${bytes} bytes of ${own.bytes}`);
}

/** Refuses dispatches with missing arguments, or bindings the device cannot bind. */
export function checkArguments(
  { program }: WebGpuKernel,
  bindings: readonly Binding[],
  scalars: readonly unknown[],
  memory: Memory,
  { bindAlign }: EngineCaps,
): void {
  const { params, name } = program;
  if (bindings.length < params.length || scalars.length !== program.scalars.length)
    throw new Error(
      `[webgpu.submit] kernel '${name}' takes ${params.length} tensors and ${program.scalars.length} scalars: ` +
        `got ${bindings.length} and ${scalars.length}`,
    );
  for (const b of bindings) {
    insideBuffer(memory, b, b.bytes);
    if (b.offset % bindAlign !== 0)
      throw new Error(
        `[webgpu.submit] kernel '${name}' gets a tensor at byte ${b.offset}, which is no multiple of ${bindAlign}`,
      );
  }
}

/** Throws CompileError, with the text that `print` gives, unless the device can bind all that a program needs. */
export function checkBindings(
  program: Program,
  { maxBindings }: EngineCaps,
  print: (program: Program) => string,
): void {
  const { params, name } = program;
  if (params.length <= maxBindings) return;
  const why = `${params.length} tensors are more than the ${maxBindings} that one kernel may bind on this device`;
  throw new CompileError('webgpu', name, why, print(program));
}
