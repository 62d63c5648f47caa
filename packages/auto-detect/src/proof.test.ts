/** Engines that compute wrongly, and what is required: what is used, what is kept, what is told. */
import { CompileError, EngineMissingError, memoryStore, type Probe, type TuningStore } from '@polygrad/core/engine';
import { createReferenceEngine, createWrongEngine } from '@polygrad/testing';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type Found, detect as search } from './detect.ts';
import type { AutoDetectOptions } from './search.ts';
import { fake, packaged, verdicts } from './fixtures/backends.ts';
import { ownRegistry } from './fixtures/registry.ts';
import type { BackendPackage } from './packages.ts';

const registry = ownRegistry();
afterEach(() => {
  vi.restoreAllMocks();
});

const detect = (options: AutoDetectOptions, known: readonly BackendPackage[]): Promise<Found> => {
  registry.clear();
  return search({ measure: false, measureStore: memoryStore(), ...options }, known, () =>
    Promise.reject(new Error('nothing is measured here')),
  );
};
const cpu = packaged(fake('cpu', { score: 10 }));
const lying = (at: number, probe: Partial<Probe> = {}) =>
  fake(
    'webgpu',
    { score: 50, driver: 'Mesa 1', ...probe },
    { create: () => createWrongEngine(createReferenceEngine({ name: 'webgpu', simt: true }), at) },
  );

describe('an engine that computes wrongly', () => {
  it.each([1, 2, 3, 4])('in kernel %i is not used, and the log hears of it', async (at) => {
    const said: string[] = [];
    const { engine, report } = await detect({ log: (text) => said.push(text) }, [packaged(lying(at)), cpu]);
    expect(engine.name).toBe('cpu');
    expect(verdicts(report)).toEqual(['cpu: chosen', 'webgpu: wrong answers']);
    expect(report[1]?.reason).toMatch(/^element \d+ of .* is .*, expected /);
    expect(said[0]).toMatch(
      /^\[autoDetectAndConfigureGpu\] the engine 'webgpu' computes wrongly and is not used \(the webgpu device, driver Mesa 1\): element .*; install another version of its driver$/,
    );
    expect(said.slice(1)).toHaveLength(2);
  });

  it('for it refuses a program is told in a line, without the program', async () => {
    const refusing = fake(
      'webgpu',
      { score: 50 },
      {
        create: () => {
          const engine = createReferenceEngine({ name: 'webgpu', simt: true });
          const compile: typeof engine.compile = () => {
            throw new CompileError('webgpu', 'product', 'no space left', 'KERNEL\n  LOOP\n  ENDLOOP');
          };
          return { ...engine, compile };
        },
      },
    );
    const said: string[] = [];
    const { report } = await detect({ log: (text) => said.push(text) }, [packaged(refusing), cpu]);
    expect(said[0]).toMatch(
      /the engine 'webgpu' failed its self-test and is not used \(.*\): \[webgpu\] kernel 'product' cannot be compiled: no space left \(and 3 more lines, in the report\); install another version of its driver$/,
    );
    expect(report[1]?.reason).toContain('ENDLOOP');
  });

  it('is told on the console unless nobody is to hear it', async () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
    await detect({ log: null }, [packaged(lying(1)), cpu]);
    expect(warn).not.toHaveBeenCalled();
    await detect({}, [packaged(lying(1)), cpu]);
    expect(warn).toHaveBeenCalledTimes(1);
  });

  it('is asked once for each device and driver', async () => {
    const measureStore = memoryStore();
    const log = null;
    let submitted = 0;
    const counted = (probe: Partial<Probe>) =>
      packaged(
        fake(
          'webgpu',
          { score: 50, ...probe },
          {
            create: () => {
              const engine = createReferenceEngine({ name: 'webgpu' });
              const submit: typeof engine.submit = (commands) => {
                submitted++;
                engine.submit(commands);
              };
              return { ...engine, submit };
            },
          },
        ),
      );
    const asked = async (probe: Partial<Probe>, options: AutoDetectOptions = {}): Promise<number> => {
      submitted = 0;
      expect((await detect({ measureStore, log, ...options }, [counted(probe), cpu])).engine.name).toBe('webgpu');
      return submitted;
    };
    expect(await asked({})).toBe(1);
    expect(await asked({})).toBe(0);
    expect(await asked({ driver: '2' })).toBe(1);
    expect(await asked({ device: 'another' })).toBe(1);
    expect(await asked({}, { engineOptions: { webgpu: { threads: 2 } } })).toBe(1);
    expect(await asked({}, { measure: 'anew' })).toBeGreaterThan(0);
    expect(await asked({ driver: '3' }, { selfTest: false })).toBe(0);
    // So is a wrong one, whose driver may be mended without a new name: for a day.
    const wrong = memoryStore();
    const options = { measureStore: wrong, log };
    expect(verdicts((await detect(options, [packaged(lying(1)), cpu])).report)[1]).toBe('webgpu: wrong answers');
    const create = () => createReferenceEngine({ name: 'webgpu', simt: true });
    const mended = packaged(fake('webgpu', { score: 50, driver: 'Mesa 1' }, { create }));
    expect(verdicts((await detect(options, [mended, cpu])).report)[1]).toBe('webgpu: wrong answers');
    vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 86_400_001);
    expect((await detect(options, [mended, cpu])).engine.name).toBe('webgpu');
  });

  it('is asked again where what is kept is damaged', async () => {
    const texts = ['', '7', '{}', '{"key":1}', 'null'];
    for (const text of texts) {
      const store: TuningStore = { load: async () => text, save: () => Promise.reject(new Error('no')) };
      const { report } = await detect({ measureStore: store, log: null }, [packaged(lying(1)), cpu]);
      expect(verdicts(report)[1]).toBe('webgpu: wrong answers');
    }
  });

  it('is disposed, and the next one starts', async () => {
    const dispose = vi.fn();
    const { engine } = await detect({ log: null }, [
      packaged(
        fake('cuda', { score: 80 }, { create: () => createWrongEngine({ ...createReferenceEngine(), dispose }, 2) }),
      ),
      packaged(fake('webgpu', { score: 50 })),
      cpu,
    ]);
    expect([engine.name, dispose.mock.calls.length]).toEqual(['webgpu', 1]);
  });
});

describe('what is required', () => {
  const gpu = packaged(fake('webgpu', { score: 50 }));
  const none = packaged(fake('cuda', { reason: 'no card is there' }));

  it('is taken, the first that can be had, and nothing else', async () => {
    expect((await detect({ require: 'cpu' }, [gpu, cpu])).engine.name).toBe('cpu');
    const { engine, report } = await detect({ require: ['cuda', 'webgpu'] }, [none, gpu, cpu]);
    expect(engine.name).toBe('webgpu');
    expect(verdicts(report)).toEqual(['webgpu: chosen', 'cuda: no device', 'cpu: left out']);
    expect(report[2]?.reason).toBe('not among what is required; cpu as it is');
  });

  it('is an error where it cannot be had, which says why and what there is', async () => {
    const onReport = vi.fn();
    const failing = detect({ require: 'cuda', onReport }, [none, gpu, cpu]);
    await expect(failing).rejects.toThrow(EngineMissingError);
    await expect(failing).rejects.toThrow(
      "[autoDetectAndConfigureGpu] what is required cannot be had: cuda (no device: no card is there); without 'require' there would be webgpu, cpu:",
    );
    expect(onReport).toHaveBeenCalledTimes(1);
    const wrong = detect({ require: 'webgpu', log: null }, [packaged(lying(3)), cpu]);
    await expect(wrong).rejects.toThrow('cannot be had: webgpu (wrong answers: element');
    await expect(detect({ require: 'native' }, [cpu])).rejects.toThrow('native (no device: not on this platform)');
  });
});
