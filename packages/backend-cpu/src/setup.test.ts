import { afterEach, expect, it, vi } from 'vitest';
import { createCpuEngine } from './engine.ts';
import { cpuProvider } from './provider.ts';
import { startThread } from './threads/thread.ts';

afterEach(() => {
  vi.unstubAllEnvs();
  vi.unstubAllGlobals();
});

/** A WebAssembly whose memories may not grow beyond so many pages, as on telephones. */
function refuseAbove(pages: number): number[] {
  const asked: number[] = [];
  class Memory extends WebAssembly.Memory {
    constructor(descriptor: WebAssembly.MemoryDescriptor) {
      const maximum = Number(descriptor.maximum ?? 0);
      asked.push(maximum);
      if (maximum > pages) throw new RangeError('could not allocate memory');
      super(descriptor);
    }
  }
  vi.stubGlobal('WebAssembly', Object.assign(Object.create(WebAssembly), { Memory }));
  return asked;
}

it('takes less memory where the most cannot be reserved', async () => {
  const asked = refuseAbove(10_000);
  const engine = createCpuEngine({ threads: 2 });
  expect(asked.at(-1)).toBeGreaterThan(5000);
  expect(asked.at(-1)).toBeLessThanOrEqual(10_000);
  expect(engine.caps.maxBufferBytes).toBeLessThan(10_000 * 65536);
  const buffer = engine.alloc(1 << 24);
  const data = new Uint8Array(1 << 24).fill(7);
  engine.upload({ buffer, offset: 0, bytes: data.length }, data);
  expect((await engine.download({ buffer, offset: data.length - 2, bytes: 2 }, new Uint8Array(2)))[1]).toBe(7);
  engine.dispose();
});

it('says so where there is not even the least', () => {
  refuseAbove(3);
  expect(() => createCpuEngine({ threads: 1 })).toThrow(
    '[cpu] no memory for WebAssembly (could not allocate memory): V8 reserves 10 GiB of addresses for each; raise the limit',
  );
});

it('says what a page must allow where WebAssembly is forbidden', async () => {
  class Module {
    constructor() {
      throw new WebAssembly.CompileError('not an allowed source of script');
    }
  }
  vi.stubGlobal('WebAssembly', Object.assign(Object.create(WebAssembly), { Module }));
  vi.resetModules();
  const message =
    "[cpu] WebAssembly cannot be compiled here; a page's content security policy must allow it: script-src 'wasm-unsafe-eval' " +
    '(not an allowed source of script)';
  const anew = (await import('./provider.ts')).cpuProvider;
  expect(() => anew.create()).toThrow(message);
  await expect(anew.probe()).rejects.toThrow(message);
});

it('computes alone where threads may not start, and says why where there can be none', async () => {
  class Worker {
    constructor() {
      throw new Error('access to this API has been restricted');
    }
  }
  const modules = vi.spyOn(process, 'getBuiltinModule');
  modules.mockReturnValue({ Worker } as never);
  startThread(() => {}, null).terminate();
  modules.mockReturnValue(undefined as never);
  expect((await cpuProvider.probe()).reason).toMatch(/, one thread: threads need Node 20\.16$/);
  modules.mockRestore();
});

it.each([
  ['renderer', 'the page is not cross-origin isolated'],
  ['browser', null],
])('takes Electron for what its process is: %s', async (type, alone) => {
  vi.stubGlobal('process', Object.assign(Object.create(process), { type }));
  vi.resetModules();
  expect((await import('./threads/host.ts')).whyAlone()).toBe(alone);
});

it('refuses a wrong number of threads in the environment, unless the option says it', () => {
  for (const text of ['100', 'abc', '1.5', '0']) {
    vi.stubEnv('POLYGRAD_THREADS', text);
    expect(() => createCpuEngine()).toThrow(
      `[cpu] bad POLYGRAD_THREADS: '${text}'; must be a whole number from 1 to 64, or left out`,
    );
  }
  createCpuEngine({ threads: 1 }).dispose();
});
