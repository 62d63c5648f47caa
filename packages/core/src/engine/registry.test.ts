import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { threadLowering } from '../targets/threads.ts';
import { createNullEngine } from '@polygrad/testing';
import { PolygradError } from '@polygrad/compiler/shape/errors';
import { EngineMissingError, OutOfMemoryError } from './errors.ts';
import {
  type BackendProvider,
  cpuEngine,
  getBackend,
  getEngine,
  listBackends,
  registerBackend,
  setEngine,
} from './registry.ts';

const key = Symbol.for('polygrad.registry');
const globals = globalThis as { [key]?: unknown };
let before: unknown;

beforeEach(() => {
  before = globals[key];
  globals[key] = undefined;
});
afterEach(() => {
  globals[key] = before;
});

function provider(name: string, create: BackendProvider['create'] = () => createNullEngine()): BackendProvider {
  return { name, probe: async () => ({ score: 1, reason: 'for tests', device: 'none' }), create };
}

describe('registry', () => {
  it('keeps backends by name, the first of a name', () => {
    const first = provider('one');
    registerBackend(first);
    registerBackend(provider('two'));
    registerBackend(provider('one'));
    expect(listBackends()).toEqual(['one', 'two']);
    expect(getBackend('one')).toBe(first);
    expect(getBackend('three')).toBeUndefined();
  });

  it('makes an engine by name, with its options', async () => {
    const create = vi.fn(() => createNullEngine());
    registerBackend(provider('one', create));
    const engine = await setEngine('one', { threads: 3 });
    expect(create).toHaveBeenCalledWith({ threads: 3 });
    expect(getEngine()).toBe(engine);
  });

  it('takes an engine as it is, and waits for one that starts slowly', async () => {
    const engine = createNullEngine();
    expect(await setEngine(engine)).toBe(engine);
    expect(getEngine()).toBe(engine);
    registerBackend(provider('slow', async () => createNullEngine()));
    const slow = await setEngine('slow');
    expect(getEngine()).toBe(slow);
  });

  it('starts the cpu backend by itself, once', () => {
    const create = vi.fn(() => createNullEngine());
    registerBackend(provider('cpu', create));
    expect(getEngine()).toBe(getEngine());
    expect(create).toHaveBeenCalledTimes(1);
  });

  it('says what to do where there is no engine', async () => {
    expect(() => getEngine()).toThrow(
      /no engine is set.*import a backend package first, for example '@polygrad\/backend-cpu'/,
    );
    registerBackend(provider('one'));
    expect(() => getEngine()).toThrow(/no engine is set: registered are one; call await setEngine\('one'\) first$/);
    await expect(setEngine('two')).rejects.toThrow(EngineMissingError);
    await expect(setEngine('native')).rejects.toThrow(/for example '@polygrad\/backend-native'$/);
    await expect(setEngine(undefined as never)).rejects.toThrow(
      /not an engine: undefined; give one, or .* registered are one/,
    );
    await expect(setEngine({ device: 'gpu' } as never)).rejects.toThrow(
      /not an engine: an object without name, caps, alloc, .*, submit, .*dispose; give one/,
    );
    await expect(setEngine(Promise.resolve() as never)).rejects.toThrow(/not an engine: a promise \(await it\); give/);
    const { caps, ...rest } = createNullEngine();
    const plain = { ...rest, caps: { ...caps, lowering: undefined } };
    await expect(setEngine(plain as never)).rejects.toThrow(/caps\.lowering is undefined; engines name vectorLowering/);
    await expect(setEngine('two')).rejects.toThrow(/no backend named 'two' is registered: registered are one/);
  });

  it('refuses dtypes that neither the engine computes in nor its lowering avoids', async () => {
    const { caps, ...rest } = createNullEngine();
    const of = (extra: object) => ({ ...rest, caps: { ...caps, simt: true, lowering: threadLowering, ...extra } });
    const fine = of({});
    expect(await setEngine(fine as never)).toBe(fine);
    const half = new Set(['float32', 'float16']);
    await expect(setEngine(of({ dtypes: half }) as never)).rejects.toThrow(
      /compute in every dtype they hold, and this one does not in float16; name anyLowering/,
    );
    const computing = of({ dtypes: half, computes: half });
    expect(await setEngine(computing as never)).toBe(computing);
    const any = of({ dtypes: half, lowering: caps.lowering });
    expect(await setEngine(any as never)).toBe(any);
  });

  it('does not lose an engine that cannot be had at once', async () => {
    const engine = createNullEngine();
    const dispose = vi.spyOn(engine, 'dispose');
    registerBackend(provider('cpu', () => Promise.resolve(engine)));
    expect(() => getEngine()).toThrow(/await setEngine\('cpu'\)/);
    await Promise.resolve();
    expect(dispose).toHaveBeenCalledTimes(1);
  });

  it('finds the engine of the cpu backend, whatever name that has', async () => {
    registerBackend(provider('cpu', async () => createNullEngine()));
    expect(cpuEngine()).toBeInstanceOf(Promise);
    const engine = await cpuEngine();
    expect(engine?.name).toBe('null');
    expect(cpuEngine()).toBe(engine);
  });

  it('is one for two copies of this package', async () => {
    const engine = await setEngine(createNullEngine());
    vi.resetModules();
    const copy = await import('./registry.ts');
    expect(copy.getEngine).not.toBe(getEngine);
    expect(copy.getEngine()).toBe(engine);
  });
});

describe('errors', () => {
  it('carry their values and a code', () => {
    const error = new OutOfMemoryError('cpu', { requested: 100, live: 60, reserved: 80, limit: 128 });
    expect(error).toBeInstanceOf(PolygradError);
    expect(error).toMatchObject({
      name: 'OutOfMemoryError',
      code: 'OUT_OF_MEMORY',
      requested: 100,
      live: 60,
      reserved: 80,
      limit: 128,
    });
    expect(error.message).toMatch(
      /^\[cpu\] out of memory: 100 bytes requested with 60 bytes live and 80 reserved of at most 128; dispose/,
    );
  });
});
