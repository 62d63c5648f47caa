/** Which backend is chosen and what the report says, with backends that score, hang, throw and are not there; then with real ones. */
import { inspect } from 'node:util';
import {
  EngineMissingError,
  getEngine,
  type IEngine,
  listBackends,
  type Probe,
  registerBackend,
} from '@polygrad/core/engine';
import { createReferenceEngine } from '@polygrad/testing';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type Found, detect as search } from './detect.ts';
import type { AutoDetectOptions } from './search.ts';
import { fake, packaged, verdicts } from './fixtures/backends.ts';
import { ownRegistry } from './fixtures/registry.ts';
import { during } from './fixtures/clock.ts';
import { AutoDetectAndConfigureGpu, autoDetectAndConfigureGpu, type DetectionReport, formatReport } from './index.ts';
import type { BackendPackage } from './packages.ts';

const registry = ownRegistry();
afterEach(() => {
  vi.useRealTimers();
});

/** A search that measures and tests nothing: the interpreter under these names would take its time. */
const detect = (options: AutoDetectOptions, known: readonly BackendPackage[]): Promise<Found> =>
  search({ measure: false, selfTest: false, ...options }, known);
const never = <T>(): Promise<T> => new Promise<T>(() => undefined);

const cpu = packaged(fake('cpu', { score: 10 }));

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
      driver: null,
      memoryBytes: null,
      dtypes: null,
      measured: null,
      install: null,
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

  it('goes on with the next where one does not start, and tells of one that was too slow', async () => {
    vi.useFakeTimers();
    const warn = vi.spyOn(console, 'warn').mockReturnValue(undefined);
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
    expect(warn.mock.calls).toEqual([
      [
        "[autoDetectAndConfigureGpu] the engine 'webgpu' is not used: it did not start within 20 ms; raise 'timeout', or 'exclude' it",
      ],
    ]);
    const again = detect({ timeout: 20, log: () => undefined }, [broken, slow, cpu]);
    await during(20, again);
    expect(warn).toHaveBeenCalledTimes(1);
    warn.mockRestore();
  });

  it('goes on with the next where a backend makes no engine', async () => {
    for (const made of [undefined, null, {}, { name: 'webgpu', device: 'none' }, 'engine']) {
      const strange = packaged(fake('webgpu', { score: 50 }, { create: () => made as unknown as IEngine }));
      const { engine, report } = await detect({}, [strange, cpu]);
      expect(engine.name).toBe('cpu');
      expect(report[1]).toMatchObject({ verdict: 'failed to start', reason: "the backend 'webgpu' made no engine" });
    }
  });

  it('does not say that a higher score was lower', async () => {
    const gpu = packaged(fake('webgpu', { score: 50 }));
    const other = packaged(fake('opencl', { score: 50 }));
    const preferred = await detect({ prefer: 'cpu' }, [gpu, cpu]);
    expect(verdicts(preferred.report)).toEqual(['cpu: chosen', 'webgpu: not preferred']);
    expect(preferred.report[1]?.reason).toBe('cpu is; webgpu as it is');
    const equal = await detect({ prefer: 'opencl' }, [gpu, other, cpu]);
    expect(equal.report.slice(1).map(({ verdict, reason }) => `${verdict}, ${reason}`)).toEqual([
      'slower, scored as opencl; webgpu as it is',
      'slower, scored lower than opencl; cpu as it is',
    ]);
  });

  it('says nothing of the score of a processor that boasts: what was measured counts', async () => {
    const boastful = packaged(fake('opencl', { score: 99, processor: 'this one' }));
    const { report } = await detect({ measure: false }, [boastful, cpu]);
    expect(report[1]).toMatchObject({
      verdict: 'slower',
      reason: 'opencl as it is, not measured: the option measure is false',
    });
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
      { name: 'p', specifier: '@x/p', load: load('Failed to load url @x/p (resolved id: @x/p).') },
      { name: 'q', specifier: '@x/q', load: load("Cannot find package 'w' imported from /n/@x/q/dist/index.js") },
      { name: 'r', specifier: '@x/r', load: load("Cannot find module '/n/@x/r/dist/index.js' imported from /m.js") },
      { name: 's', specifier: '@x/s', load: load("Can't resolve '@x/s' in '/app'") },
      { name: 'b', specifier: '@x/b', load: load("Cannot find package 'other' imported from there") },
      { name: 'c', specifier: '@x/c', load: async () => ({}) },
      packaged(fake('d', {}, { probe: () => Promise.reject(new Error('the probe broke')) })),
      packaged(fake('e', {}, { probe: async () => null as unknown as Probe })),
      packaged(fake('f', { score: '9' as unknown as number })),
      {
        name: 'g',
        specifier: '@x/g',
        load: load("The requested module '@polygrad/core/engine' does not provide an export named 'soon'"),
      },
      cpu,
    ];
    const { report } = await detect({}, known);
    expect(report.slice(1).map(({ verdict, reason }) => [verdict, reason])).toEqual([
      ['not installed', 'add the package @x/a'],
      ['not installed', 'add the package @x/p'],
      ['failed to start', "@x/q cannot be loaded: Cannot find package 'w' imported from /n/@x/q/dist/index.js"],
      ['failed to start', "@x/r cannot be loaded: Cannot find module '/n/@x/r/dist/index.js' imported from /m.js"],
      ['not installed', 'add the package @x/s'],
      ['failed to start', "@x/b cannot be loaded: Cannot find package 'other' imported from there"],
      ['failed to start', "@x/c registers no backend 'c'"],
      ['failed to start', 'the probe broke'],
      ['failed to start', 'its probe answered without a score and a reason'],
      ['failed to start', 'its probe answered without a score and a reason'],
      [
        'failed to start',
        "@x/g cannot be loaded: The requested module '@polygrad/core/engine' does not provide an export named 'soon'; install versions that belong together",
      ],
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
    // These searches ask for no self-test.
    expect(create).toHaveBeenCalledWith({ threads: 2 }, { isProven: true });
    const onReport = vi.fn();
    const failing = detect({ only: ['webgpu'], onReport }, [packaged(fake('webgpu', { reason: 'no adapter' })), cpu]);
    await expect(failing).rejects.toThrow(EngineMissingError);
    await expect(failing).rejects.toThrow(/webgpu +- +no device: no adapter/);
    expect(verdicts(onReport.mock.calls[0]![0])).toEqual(['cpu: left out', 'webgpu: no device']);
    await expect(failing).rejects.toThrow("the CPU engine would, but 'only' does not:");
    const excluded = detect({ exclude: ['cpu'] }, [packaged(fake('webgpu', { reason: 'no adapter' })), cpu]);
    await expect(excluded).rejects.toThrow("the CPU engine would, but 'exclude' names it:");
  });
});

describe('what is really here', () => {
  it('gives a report that consoles show as its table', async () => {
    const { report } = await detect({}, [packaged(fake('cpu', { score: 10 }))]);
    expect(inspect(report)).toBe(formatReport(report));
    expect(String(report)).toBe(formatReport(report));
    expect(JSON.parse(JSON.stringify(report))).toEqual([...report]);
  });

  it('always has the CPU engine', async () => {
    registry.restore();
    const seen: DetectionReport[] = [];
    const { engine, device, report } = await autoDetectAndConfigureGpu({
      timeout: 600_000,
      measure: false,
      engineOptions: { cpu: { threads: 1 } },
      onReport: (r) => seen.push(r),
    });
    try {
      expect(getEngine()).toBe(engine);
      expect(engine.device).toBe(device);
      expect(seen).toEqual([report]);
      expect(report.filter((r) => r.chosen).map((r) => r.name)).toEqual([engine.name]);
      expect(report.map((r) => r.name).sort()).toEqual(['cpu', 'cuda', 'native', 'opencl', 'webgpu']);
      expect(report.find((r) => r.name === 'cpu')?.score).toBeGreaterThan(0);
      expect(listBackends()).toContain('cpu');
    } finally {
      engine.dispose();
    }
    expect(AutoDetectAndConfigureGpu).toBe(autoDetectAndConfigureGpu);
  });
});
