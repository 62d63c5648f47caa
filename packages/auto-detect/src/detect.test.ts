/** Which backend is chosen and what the report says, with backends that score, hang, throw and are not there; then with real ones. */
import type { BackendProvider, IEngine, Probe } from '@polygrad/core/engine';
import {
  ArgumentError,
  EngineMissingError,
  getEngine,
  listBackends,
  memoryStore,
  registerBackend,
} from '@polygrad/core/engine';
import { createReferenceEngine } from '@polygrad/core/testing';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type AutoDetectOptions, detect } from './detect.ts';
import { ownRegistry } from './fixtures/registry.ts';
import { AutoDetectAndConfigureGpu, autoDetectAndConfigureGpu, type DetectionReport, formatReport } from './index.ts';
import type { BackendPackage } from './packages.ts';

const registry = ownRegistry();
afterEach(() => {
  vi.useRealTimers();
});

/** What comes of a promise within milliseconds of a clock that stands still otherwise (`vi.useFakeTimers` before it was made). */
async function during<T>(milliseconds: number, promise: Promise<T>): Promise<T> {
  const outcome = promise.then((value) => ({ value }));
  await vi.advanceTimersByTimeAsync(milliseconds);
  const settled = await Promise.race([outcome, Promise.resolve(null)]);
  if (settled === null) throw new Error(`nothing came of it within ${milliseconds} ms`);
  return settled.value;
}

const never = <T>(): Promise<T> => new Promise<T>(() => undefined);

function fake(name: string, probe: Partial<Probe>, more: Partial<BackendProvider> = {}): BackendProvider {
  return {
    name,
    probe: async () => ({ score: 0, reason: `${name} as it is`, device: `the ${name} device`, ...probe }),
    create: () => createReferenceEngine({ name }),
    ...more,
  };
}

function packaged(provider: BackendProvider): BackendPackage {
  return {
    name: provider.name,
    specifier: `@polygrad/backend-${provider.name}`,
    load: async () => registerBackend(provider),
  };
}

const cpu = packaged(fake('cpu', { score: 10 }));
const verdicts = (report: DetectionReport): string[] => report.map(({ name, verdict }) => `${name}: ${verdict}`);

describe('detection', () => {
  it('takes the highest score, and says of the others why not', async () => {
    const gpu = packaged(fake('webgpu', { score: 50 }));
    const faster = packaged(fake('cuda', { score: 90 }));
    const none = packaged(fake('opencl', { score: 0, reason: 'no platform is installed' }));
    const { engine, device, report } = await detect({}, [gpu, none, faster, cpu]);
    expect(getEngine()).toBe(engine);
    expect([engine.name, device]).toEqual(['cuda', 'IR interpreter']);
    expect(verdicts(report)).toEqual(['cuda: chosen', 'webgpu: slower', 'cpu: slower', 'opencl: no device']);
    expect(report[3]).toEqual({
      name: 'opencl',
      device: null,
      score: 0,
      chosen: false,
      verdict: 'no device',
      reason: 'no platform is installed',
    });
    expect(report[1]?.reason).toBe('scored lower than cuda; webgpu as it is');
  });

  it('never takes a software adapter for a GPU, whatever it scores', async () => {
    const software = packaged(fake('webgpu', { score: 99, software: true, reason: 'llvmpipe' }));
    const weak = packaged(fake('opencl', { score: 3, reason: 'a processor' }));
    const { engine, report } = await detect({}, [software, weak, cpu]);
    expect(engine.name).toBe('cpu');
    expect(verdicts(report)).toEqual(['cpu: chosen', 'webgpu: software adapter', 'opencl: slower']);
  });

  it('goes on with the next where one does not start', async () => {
    vi.useFakeTimers();
    const broken = packaged(
      fake(
        'cuda',
        { score: 90 },
        {
          create: () => {
            throw new Error('the driver\nis too old');
          },
        },
      ),
    );
    const slow = packaged(fake('webgpu', { score: 50 }, { create: () => never<IEngine>() }));
    const { engine, report } = await during(20, detect({ timeout: 20 }, [broken, slow, cpu]));
    expect(engine.name).toBe('cpu');
    expect(verdicts(report)).toEqual(['cpu: chosen', 'cuda: failed to start', 'webgpu: timed out']);
    expect(report[1]?.reason).toBe('the driver is too old');
    expect(report[2]?.reason).toBe('it did not start within 20 ms');
  });

  it('an engine that starts too late is disposed', async () => {
    vi.useFakeTimers();
    const late = createReferenceEngine({ name: 'webgpu' });
    const dispose = vi.spyOn(late, 'dispose');
    const create = async (): Promise<IEngine> => {
      await new Promise((resolve) => setTimeout(resolve, 40));
      return late;
    };
    const found = detect({ timeout: 10 }, [packaged(fake('webgpu', { score: 50 }, { create })), cpu]);
    expect((await during(10, found)).engine.name).toBe('cpu');
    expect(dispose).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(30);
    expect(dispose).toHaveBeenCalledTimes(1);
  });

  it('probes side by side, each with the time limit', async () => {
    vi.useFakeTimers();
    const hanging = ['a', 'b', 'c', 'd'].map((name) => packaged(fake(name, {}, { probe: () => never<Probe>() })));
    const stuck: BackendPackage = { name: 'e', specifier: '@polygrad/backend-e', load: () => never<unknown>() };
    const { engine, report } = await during(100, detect({ timeout: 100 }, [...hanging, stuck, cpu]));
    expect(engine.name).toBe('cpu');
    expect(report.filter(({ verdict }) => verdict === 'timed out').length).toBe(5);
  });

  it('reports packages that are missing, broken, or register nothing', async () => {
    const load = (message: string) => async (): Promise<never> => {
      throw new Error(message);
    };
    const known: BackendPackage[] = [
      { name: 'a', specifier: '@x/a', load: load("Cannot find package '@x/a' imported from here") },
      { name: 'p', specifier: '@x/p', planned: true, load: load('Failed to load url @x/p (resolved id: @x/p).') },
      { name: 'q', specifier: '@x/q', load: load("Cannot find package 'w' imported from /n/@x/q/dist/index.js") },
      { name: 'r', specifier: '@x/r', load: load("Cannot find module '/n/@x/r/dist/index.js' imported from /m.js") },
      { name: 's', specifier: '@x/s', load: load("Can't resolve '@x/s' in '/app'") },
      { name: 'b', specifier: '@x/b', load: load("Cannot find package 'other' imported from there") },
      { name: 'c', specifier: '@x/c', load: async () => ({}) },
      packaged(fake('d', {}, { probe: () => Promise.reject(new Error('the probe broke')) })),
      cpu,
    ];
    const { report } = await detect({}, known);
    expect(report.slice(1).map(({ verdict, reason }) => [verdict, reason])).toEqual([
      ['not installed', 'add the package @x/a'],
      ['not installed', 'not available yet'],
      ['failed to start', "@x/q cannot be loaded: Cannot find package 'w' imported from /n/@x/q/dist/index.js"],
      ['failed to start', "@x/r cannot be loaded: Cannot find module '/n/@x/r/dist/index.js' imported from /m.js"],
      ['not installed', 'add the package @x/s'],
      ['failed to start', "@x/b cannot be loaded: Cannot find package 'other' imported from there"],
      ['failed to start', "@x/c registers no backend 'c'"],
      ['failed to start', 'the probe broke'],
    ]);
  });

  it('loads no CPU engine where the program registered one, late or not', async () => {
    const gpu = packaged(fake('webgpu', { score: 50 }));
    const load = vi.fn();
    for (const options of [{}, { only: 'webgpu' }]) {
      const create = vi.fn();
      registerBackend(fake('cpu', { score: 10 }, { create }));
      expect((await detect(options, [gpu, { ...cpu, load }])).engine.name).toBe('webgpu');
      expect(create).not.toHaveBeenCalled();
    }
    expect(load).not.toHaveBeenCalled();
  });

  it('takes part with what is registered already, and honours prefer, only and exclude', async () => {
    registerBackend(fake('mine', { score: 20 }));
    const gpu = packaged(fake('webgpu', { score: 50 }));
    const load = vi.spyOn(gpu, 'load');
    expect((await detect({ exclude: ['webgpu'] }, [gpu, cpu])).engine.name).toBe('mine');
    expect(load).not.toHaveBeenCalled();
    expect((await detect({}, [gpu, cpu])).engine.name).toBe('webgpu');
    expect((await detect({ prefer: 'cpu' }, [gpu, cpu])).engine.name).toBe('cpu');
    expect((await detect({ prefer: ['opencl', 'mine', 'cpu'] }, [gpu, cpu])).engine.name).toBe('mine');
    const { engine, report } = await detect({ only: ['cpu'] }, [gpu, cpu]);
    expect(engine.name).toBe('cpu');
    expect(verdicts(report)).toEqual(['cpu: chosen', 'mine: left out', 'webgpu: left out']);
  });

  it('passes options on, and tells the report even where nothing starts', async () => {
    const create = vi.fn(() => createReferenceEngine());
    await detect({ engineOptions: { cpu: { threads: 2 } } }, [packaged(fake('cpu', { score: 1 }, { create }))]);
    expect(create).toHaveBeenCalledWith({ threads: 2 });
    const onReport = vi.fn();
    const failing = detect({ only: ['webgpu'], onReport }, [packaged(fake('webgpu', { reason: 'no adapter' })), cpu]);
    await expect(failing).rejects.toThrow(EngineMissingError);
    await expect(failing).rejects.toThrow(/webgpu +score 0 +no device, no adapter/);
    expect(verdicts(onReport.mock.calls[0]?.[0] as DetectionReport)).toEqual(['cpu: left out', 'webgpu: no device']);
  });
});

describe('options', () => {
  const gpu = packaged(fake('webgpu', { score: 50 }));

  it('of the wrong kind, of no name and of no backend are refused', async () => {
    const wrong: [unknown, string][] = [
      [{ timeout: -5 }, 'bad timeout: -5; must be a number of milliseconds above 0'],
      [{ timeout: 'x' }, "bad timeout: 'x'"],
      [{ timeout: Number.NaN }, 'bad timeout: NaN'],
      [{ only: 5 }, 'bad only: 5'],
      [{ only: 'cp' }, "no backend 'cp' in only; known are cpu, cuda, opencl, webgpu"],
      [{ prefer: ['gpu'] }, "no backend 'gpu' in prefer"],
      [{ exclude: ['web'] }, "no backend 'web' in exclude"],
      [{ engineOptions: { cpus: {} } }, "no backend 'cpus' in engineOptions"],
      [{ engineOptions: { cpu: 2 } }, 'bad engineOptions: an object'],
      [{ exlude: ['cpu'] }, "no option 'exlude'"],
      [{ measure: 'never' }, "bad measure: 'never'"],
      [null, 'bad options: null'],
    ];
    for (const [options, text] of wrong) {
      const found = detect(options as AutoDetectOptions, [gpu, cpu]);
      await expect(found, text).rejects.toThrow(ArgumentError);
      await expect(found).rejects.toThrow(`[autoDetectAndConfigureGpu] ${text}`);
    }
    registerBackend(fake('mine', { score: 1 }));
    expect((await detect({ only: 'mine', exclude: 'opencl' }, [gpu, cpu])).engine.name).toBe('mine');
  });

  it('that an engine refuses are an error: no other engine takes its place', async () => {
    const create = (): never => {
      throw new ArgumentError('cpu', 'bad threads: 100');
    };
    const processor = packaged(fake('opencl', { score: 5, processor: 'this one' }));
    const refusing = packaged(fake('cpu', { score: 10 }, { create }));
    await expect(detect({ measure: false }, [processor, refusing])).rejects.toThrow('[cpu] bad threads: 100');
    await expect(detect({ measure: 'anew', measureStore: memoryStore() }, [processor, refusing])).rejects.toThrow(
      '[cpu] bad threads: 100',
    );
  });

  it('the CPU engine has any time', async () => {
    vi.useFakeTimers();
    const later = <T>(value: T) => new Promise<T>((resolve) => setTimeout(() => resolve(value), 1000));
    const slow: BackendPackage = {
      name: 'cpu',
      specifier: '@polygrad/backend-cpu',
      load: async () => {
        await later(null);
        registerBackend(
          fake(
            'cpu',
            {},
            { probe: () => later({ score: 10, reason: '', device: '' }), create: () => later(createReferenceEngine()) },
          ),
        );
      },
    };
    expect((await during(3000, detect({ timeout: 1 }, [slow]))).report[0]?.verdict).toBe('chosen');
  });
});

describe('the report as text', () => {
  it('is one line for each backend', () => {
    const report: DetectionReport = [
      { name: 'cpu', device: 'two cores', score: 10, chosen: true, verdict: 'chosen', reason: 'threads' },
      { name: 'webgpu', device: 'llvmpipe', score: 2, chosen: false, verdict: 'software adapter', reason: 'slow' },
      { name: 'cuda', device: null, score: 0, chosen: false, verdict: 'not installed', reason: 'add it' },
    ];
    expect(formatReport(report).split('\n')).toEqual([
      '* cpu     score 10  two cores: chosen, threads',
      '  webgpu  score  2  llvmpipe: software adapter, slow',
      '  cuda    score  0  not installed, add it',
    ]);
    expect(formatReport([])).toBe('');
  });
});

describe('what is really here', () => {
  it('always has the CPU engine', async () => {
    registry.restore();
    const seen: DetectionReport[] = [];
    const { engine, device, report } = await autoDetectAndConfigureGpu({
      timeout: 60_000,
      measure: false,
      engineOptions: { cpu: { threads: 1 } },
      onReport: (r) => seen.push(r),
    });
    try {
      expect(getEngine()).toBe(engine);
      expect(engine.device).toBe(device);
      expect(seen).toEqual([report]);
      expect(report.filter((r) => r.chosen).map((r) => r.name)).toEqual([engine.name]);
      expect(report.map((r) => r.name).sort()).toEqual(['cpu', 'cuda', 'opencl', 'webgpu']);
      expect(report.find((r) => r.name === 'cpu')?.score).toBeGreaterThan(0);
      expect(listBackends()).toContain('cpu');
    } finally {
      engine.dispose();
    }
    expect(AutoDetectAndConfigureGpu).toBe(autoDetectAndConfigureGpu);
  }, 90_000);
});
