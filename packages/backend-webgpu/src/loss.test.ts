/** Devices that go away, kernels that cannot be made, errors that the driver tells on the side. */
import {
  type Binding,
  type CompiledKernel,
  CompileError,
  DeviceLostError,
  OutOfMemoryError,
} from '@polygrad/core/engine';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { openDevice } from './device/device.ts';
import type { WebGpuEngine } from './gpu-engine.ts';
import { engineOn, testAdapter, testEngine } from './fixtures/device.ts';
import { appendProgram, bytesOf, floatsOf, put, scaleProgram } from './fixtures/programs.ts';
import { WebGpuError } from './public.ts';

const first = await testEngine();
first?.dispose();

const engines: WebGpuEngine[] = [];
afterEach(() => {
  for (const e of engines.splice(0)) e.dispose();
});

/** An engine and the device under it, which tests may break; `change` may put something else in its place. */
async function open(change: (gpu: GPUDevice) => void = () => {}): Promise<{ engine: WebGpuEngine; gpu: GPUDevice }> {
  const found = await testAdapter();
  const gpu = await openDevice(found);
  change(gpu);
  const engine = engineOn(gpu, found);
  engines.push(engine);
  return { engine, gpu };
}

const stamp = (): string => Math.random().toString(36).slice(2);

describe.skipIf(first === null)('a lost device', () => {
  /** Loses a device with reads pending before and behind a pipeline on its way; what became of them. */
  async function lose(): Promise<{
    engine: WebGpuEngine;
    data: Binding;
    kernel: CompiledKernel;
  }> {
    const { engine, gpu } = await open();
    const data = put(engine, new Uint32Array(1));
    const [kernel] = engine.compile([appendProgram()]);
    engine.submit([{ kind: 'dispatch', kernel: kernel!, bindings: [data], scalars: [1] }]);
    await bytesOf(engine, data);
    const [fresh] = engine.compile([appendProgram(`fresh_${stamp()}`)]);
    const pending: Promise<unknown>[] = [bytesOf(engine, data), engine.idle(), engine.ready()];
    const run = { kind: 'dispatch', kernel: fresh!, bindings: [data], scalars: [1] } as const;
    engine.submit([run]);
    pending.push(bytesOf(engine, data), engine.idle());
    if (engine.submitTimed !== undefined) pending.push(engine.submitTimed([run]));
    // What waits for memory asks again, and is told then.
    const large = engine.alloc(1 << 20);
    const word = engine.confirming();
    expect(word).not.toBeNull();
    gpu.destroy();
    const outcomes = await Promise.allSettled(pending);
    await word;
    engine.free(large);
    for (const outcome of outcomes) expect((outcome as PromiseRejectedResult).reason).toBeInstanceOf(DeviceLostError);
    return { engine, data, kernel: kernel! };
  }

  it('rejects everything that is pending, and says so from then on', async () => {
    const { engine, data, kernel } = await lose();
    const { reason } = await engine.lost;
    expect(reason).toBe('lost');
    expect(() => engine.submit([])).toThrow(DeviceLostError);
    expect(() => engine.alloc(4)).toThrow(/make them again/);
    expect(() => engine.upload(data, new Uint32Array(1))).toThrow(DeviceLostError);
    expect(() => engine.compile([appendProgram()])).toThrow(DeviceLostError);
    await expect(bytesOf(engine, data)).rejects.toThrow(DeviceLostError);
    await expect(engine.idle()).rejects.toThrow(DeviceLostError);
    engine.free(data.buffer);
    engine.release([kernel]);
    expect(engine.memory().bytes).toBe(0);
  });

  it('does so without a wait of a second', async () => {
    // By the clock it may take any time on a busy machine; what needs a timer of a second or more hangs here.
    const { setTimeout: wait } = globalThis;
    const short = vi
      .spyOn(globalThis, 'setTimeout')
      .mockImplementation(((run: () => void, delay = 0) =>
        wait(run, delay < 1000 ? delay : 2 ** 31 - 1)) as typeof setTimeout);
    await lose();
    short.mockRestore();
  });

  it('leaves the next engine, on an adapter of its own, alone', async () => {
    const { engine, gpu } = await open();
    const { engine: next } = await open();
    gpu.destroy();
    await engine.lost;
    const data = put(next, Uint32Array.of(7));
    expect([...(await bytesOf(next, data))]).toEqual([7, 0, 0, 0]);
  });

  it('ends pending reads at dispose as well', async () => {
    const { engine } = await open();
    const data = put(engine, new Uint32Array(1));
    const read = bytesOf(engine, data);
    engine.dispose();
    await expect(read).rejects.toThrow(/disposed/);
  });
});

describe.skipIf(first === null)('a kernel that cannot be made', () => {
  /** Breaks the text of kernels whose name contains `broken`. */
  const breaking = (gpu: GPUDevice): void => {
    const { createShaderModule } = gpu;
    gpu.createShaderModule = (descriptor) =>
      createShaderModule.call(gpu, {
        ...descriptor,
        code: descriptor.label?.includes('broken') ? descriptor.code.replace('u32', 'u31') : descriptor.code,
      });
  };

  it('fails the readers of its results, with the line of WGSL and the IR', async () => {
    const { engine } = await open(breaking);
    const [bad, good] = engine.compile([appendProgram('broken'), scaleProgram(4, 4)]);
    const data = put(engine, Uint32Array.of(1));
    const x = put(engine, Float32Array.of(1, 2, 3, 4));
    const [fromBad, fromGood] = [put(engine, new Float32Array(4)), put(engine, new Float32Array(4))];
    engine.submit([
      { kind: 'dispatch', kernel: good!, bindings: [x, fromGood], scalars: [2] },
      { kind: 'dispatch', kernel: bad!, bindings: [data], scalars: [1] },
      { kind: 'dispatch', kernel: good!, bindings: [{ ...data, bytes: 4 }, fromBad], scalars: [2] },
    ]);
    const error = await bytesOf(engine, data).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(CompileError);
    expect((error as CompileError).message).toMatch(/kernel 'broken' cannot be compiled: WGSL line 1:\d+: .*u31/);
    expect((error as CompileError).ir).toMatch(/^> 1 \| .*u32[\s\S]*program broken/);
    await expect(bytesOf(engine, fromBad)).rejects.toThrow(CompileError);
    expect([...(await floatsOf(engine, fromGood))]).toEqual([2, 5, 8, 11]);
    // What is written anew is well again.
    engine.upload(data, Uint32Array.of(3));
    expect([...(await bytesOf(engine, data))]).toEqual([3, 0, 0, 0]);
    engine.submit([{ kind: 'dispatch', kernel: good!, bindings: [x, fromBad], scalars: [1] }]);
    expect([...(await floatsOf(engine, fromBad))]).toEqual([1, 3, 5, 7]);
  });
});

describe.skipIf(first === null)('errors on the side', () => {
  it('reach the next read, once', async () => {
    const { engine, gpu } = await open();
    const data = put(engine, Uint32Array.of(3));
    gpu.createBuffer({ size: 16, usage: 0x1 | 0x2 }); // mapped for reading and for writing: not allowed
    await expect(bytesOf(engine, data)).rejects.toThrow(WebGpuError);
    expect([...(await bytesOf(engine, data))]).toEqual([3, 0, 0, 0]);
  });

  it('name the sizes when the driver has no memory', async () => {
    const { engine } = await open((gpu) => {
      const { popErrorScope } = gpu;
      gpu.popErrorScope = async () => {
        await popErrorScope.call(gpu);
        return { message: 'no memory' } as GPUError;
      };
    });
    const small = put(engine, Uint32Array.of(1));
    const large = { buffer: engine.alloc(1 << 21), offset: 0, bytes: 4 };
    const error = await bytesOf(engine, large).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(OutOfMemoryError);
    expect((error as OutOfMemoryError).requested).toBe(1 << 21);
    expect([...(await bytesOf(engine, small))]).toEqual([1, 0, 0, 0]);
  });
});
