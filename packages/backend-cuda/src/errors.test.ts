/** What becomes of an engine whose driver fails: out of memory, lost, or an error with the driver's words. */
import { type Binding, type Command, DeviceLostError, OutOfMemoryError } from '@polygrad/core/engine';
import { afterEach, describe, expect, it } from 'vitest';
import type { Driver } from './addon.ts';
import { CudaEngine } from './engine.ts';
import { setUp } from './setup.ts';
import { floats, part, put } from './testing/bindings.ts';
import { hasDevice } from './testing/device.ts';

const engines: CudaEngine[] = [];
afterEach(() => {
  for (const e of engines.splice(0)) e.dispose();
});

describe.skipIf(!hasDevice())('errors of the driver', () => {
  /** An engine whose driver answers `submit` and `read` with an CUDA error. */
  function failing(code: number, command = 0): CudaEngine {
    const setup = setUp({});
    const fail = (): never => {
      throw Object.assign(new Error('native'), { code, call: 'cuLaunchKernel', command, log: '' });
    };
    const driver = new Proxy(setup.driver, {
      get: (target, name) =>
        name === 'submit' ? fail : name === 'read' ? async () => fail() : target[name as keyof Driver].bind(target),
    });
    const engine = new CudaEngine({ ...setup, driver });
    engines.push(engine);
    return engine;
  }

  it.each([2])('%i is out of memory, and the engine goes on', async (code) => {
    const engine = failing(code);
    const x = put(engine, Float32Array.of(1));
    expect(() => engine.submit([{ kind: 'fill', to: x, pattern: 0 }])).toThrow(OutOfMemoryError);
    await expect(engine.download(x, new Uint8Array(4))).rejects.toThrow(OutOfMemoryError);
    expect(floats(engine, x)).toEqual([1]);
  });

  it.each([46, 201, 214, 999])('%i is a lost device', async (code) => {
    const engine = failing(code);
    const x = put(engine, Float32Array.of(1));
    await expect(engine.download(x, new Uint8Array(4))).rejects.toThrow(DeviceLostError);
    expect((await engine.lost).reason).toBe('lost');
    expect(() => engine.alloc(4)).toThrow(DeviceLostError);
    engine.free(x.buffer);
    engine.dispose();
  });

  it('loses the device where a batch stopped after it had changed its inputs, and only there', async () => {
    const stopped = (kind: 'in place' | 'apart'): { engine: CudaEngine; submit: () => void } => {
      const engine = failing(2, 1);
      const [x, y] = [put(engine, Float32Array.of(1, 2)), put(engine, new Float32Array(2))];
      const copy = (from: Binding, to: Binding): Command => ({ kind: 'copy', from, to });
      const first = copy(part(x, 0, 4), kind === 'apart' ? part(y, 0, 4) : part(x, 0, 4));
      const submit = (): void => engine.submit([first, copy(part(x, 4, 4), part(x, 0, 4))]);
      return { engine, submit };
    };
    expect(stopped('apart').submit).toThrow(OutOfMemoryError);
    const { engine, submit } = stopped('in place');
    expect(submit).toThrow(/no room for command 1 of a batch/);
    expect((await engine.lost).reason).toBe('lost');
  });

  it('anything else names the call and the code', () => {
    const engine = failing(304);
    const x = put(engine, Float32Array.of(1));
    expect(() => engine.submit([{ kind: 'fill', to: x, pattern: 0 }])).toThrow(
      /cuLaunchKernel says CUDA_ERROR_OPERATING_SYSTEM \(304\)/,
    );
  });
});
