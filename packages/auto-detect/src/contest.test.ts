/** Processors by another way than the CPU engine: when they are measured, what is kept, what the report says; then one for real. */
import {
  type BackendProvider,
  type EngineComparison,
  type IEngine,
  memoryStore,
  type Probe,
  registerBackend,
  type TuningStore,
} from '@polygrad/core/engine';
import { createReferenceEngine } from '@polygrad/testing';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Compare } from './contest.ts';
import { detect } from './detect.ts';
import type { AutoDetectOptions } from './search.ts';
import { ownRegistry } from './fixtures/registry.ts';
import { autoDetectAndConfigureGpu, type BackendReport } from './index.ts';
import type { BackendPackage } from './packages.ts';

const registry = ownRegistry();
afterEach(() => {
  vi.useRealTimers();
});

let made: { name: string; disposed: boolean }[] = [];
function backend(name: string, probe: Partial<Probe>, create?: () => Promise<IEngine>): BackendPackage {
  const provider: BackendProvider = {
    name,
    probe: async () => ({ score: 0, reason: `${name} as it is`, device: `the ${name} device`, ...probe }),
    create:
      create ??
      (() => {
        const engine = createReferenceEngine({ name });
        const entry = { name, disposed: false };
        made.push(entry);
        return { ...engine, dispose: () => void (entry.disposed = true) };
      }),
  };
  return { name, specifier: `@polygrad/backend-${name}`, load: async () => registerBackend(provider) };
}
beforeEach(() => {
  made = [];
});

const cpu = backend('cpu', { score: 10, reason: 'two threads' });
const pocl = backend('opencl', { score: 5, reason: 'a processor', processor: 'driver 3, two threads' });
const measured = (products: number, elementwise: number, small: number): EngineComparison => ({
  ratio: Math.cbrt(products * elementwise * small),
  works: { products, elementwise, small },
});
const comparing = (found: EngineComparison): ReturnType<typeof vi.fn<Compare>> =>
  vi.fn<Compare>(async (engine, other) => {
    expect([engine.name, other.name]).toEqual(['opencl', 'cpu']);
    return found;
  });

interface Found {
  readonly chosen: string;
  readonly opencl: BackendReport;
  readonly order: string[];
}
async function find(compare: Compare, options: AutoDetectOptions = {}, known = [cpu, pocl]): Promise<Found> {
  // What an earlier call registered is not here.
  registry.clear();
  const { engine, report } = await detect({ measureStore: memoryStore(), selfTest: false, ...options }, known, compare);
  const opencl = report.find(({ name }) => name === 'opencl') as BackendReport;
  return { chosen: engine.name, opencl, order: report.map(({ name }) => name) };
}

describe('a processor by another way', () => {
  it('comes before the CPU engine where it was measured faster', async () => {
    const { chosen, opencl, order } = await find(comparing(measured(2, 1.6, 1.28)));
    expect([chosen, opencl.verdict, opencl.score]).toEqual(['opencl', 'chosen', 16]);
    expect(order).toEqual(['opencl', 'cpu']);
    expect(opencl.reason).toBe(
      'a processor, measured 1.6 times the CPU engine (products 2.0, element by element 1.6, small kernels 1.3)',
    );
    // The two that were measured are gone, and the one that is left is new.
    expect(made.map(({ name, disposed }) => `${name} ${disposed}`)).toEqual([
      'opencl true',
      'cpu true',
      'opencl false',
    ]);
  });

  it.each([
    [measured(0.9, 0.7, 0.54), 'measured 0.69 of the CPU engine', 6.98, 'slower'],
    [measured(1, 1, 0.98), 'measured 0.99 of the CPU engine', 9.93, 'slower'],
    // No clear margin, and a clear one with something that it does badly.
    [measured(1.2, 1.2, 1.2), 'measured 1.2 times the CPU engine', 12, 'not preferred'],
    [measured(4, 4, 0.7), 'measured 2.2 times the CPU engine', 22.37, 'not preferred'],
  ])('stays behind it otherwise: %o', async (found, words, score, verdict) => {
    const { chosen, opencl, order } = await find(comparing(found));
    expect([chosen, opencl.verdict, opencl.score]).toEqual(['cpu', verdict, score]);
    expect(order).toEqual(['cpu', 'opencl']);
    expect(opencl.reason).toContain(words);
    expect(made.filter(({ disposed }) => !disposed).map(({ name }) => name)).toEqual(['cpu']);
  });

  it.each([
    [1.2, 'native', 'measured 1.2 times opencl ('],
    [0.9, 'opencl', 'measured 0.9 of opencl ('],
  ])('is measured against another one that is faster, too: %f', async (ratio, chosen, words) => {
    const native = backend('native', { score: 5, reason: 'native', processor: 'AVX2' });
    const compare = vi.fn<Compare>(async (engine, other) =>
      other.name === 'opencl'
        ? measured(ratio, ratio, ratio)
        : engine.name === 'opencl'
          ? measured(2, 2, 2)
          : measured(1.5, 1.5, 1.5),
    );
    registry.clear();
    const { engine, report } = await detect(
      { measureStore: memoryStore(), selfTest: false },
      [cpu, pocl, native],
      compare,
    );
    expect(engine.name).toBe(chosen);
    expect(report.find(({ name }) => name === 'native')?.reason).toContain(words);
    expect(compare.mock.calls.map(([a, b]) => `${a.name} ${b.name}`)).toEqual([
      'opencl cpu',
      'native cpu',
      'native opencl',
    ]);
  });

  it('never comes first by its own score', async () => {
    const boastful = backend('opencl', { score: 99, processor: 'x' });
    expect((await find(comparing(measured(0.5, 0.5, 0.5)), {}, [cpu, boastful])).chosen).toBe('cpu');
  });

  it('is not measured where that decides nothing', async () => {
    const compare = vi.fn<Compare>();
    const reason = async (options: AutoDetectOptions, known = [cpu, pocl]): Promise<string> =>
      (await find(compare, options, known)).opencl.reason;
    expect(await reason({ prefer: 'cpu' })).toContain('not measured: cpu is preferred');
    expect(await reason({ prefer: 'opencl' })).toContain('not measured: it is preferred');
    expect(await reason({ require: 'opencl' })).toContain('not measured: it is preferred');
    expect(await reason({ only: ['opencl'] })).toBe('a processor');
    expect(await reason({ measure: false })).toContain('not measured: the option measure is false');
    expect(await reason({ measure: 'load' })).toContain('not measured: no earlier run has');
    expect(compare).not.toHaveBeenCalled();
  });

  it('a card is measured too, and needs no margin', async () => {
    const gpu = backend('opencl', { score: 50 });
    expect((await find(comparing(measured(1.2, 1.2, 0.8)), {}, [cpu, gpu])).chosen).toBe('opencl');
    const slow = await find(comparing(measured(1, 0.8, 0.2)), {}, [cpu, gpu]);
    expect([slow.chosen, slow.opencl.verdict, slow.opencl.score]).toEqual(['cpu', 'slower', 5.43]);
    expect(slow.opencl.measured).toEqual(measured(1, 0.8, 0.2));
    // What cannot be measured is taken by what it says of itself.
    expect((await find(() => Promise.reject(new Error('no')), {}, [cpu, gpu])).chosen).toBe('opencl');
  });

  it('is measured where a better one does not start', async () => {
    const broken = backend('webgpu', { score: 50 }, () => Promise.reject(new Error('no')));
    expect((await find(comparing(measured(2, 2, 2)), {}, [cpu, pocl, broken])).chosen).toBe('opencl');
  });

  it('is measured once more where one kind of work alone speaks against it, as other programs may have slowed that down', async () => {
    const measureStore = memoryStore();
    const busy = comparing(measured(2, 2, 2));
    busy.mockResolvedValueOnce(measured(3.5, 0.69, 1.2));
    expect((await find(busy, { measureStore })).chosen).toBe('opencl');
    expect(busy).toHaveBeenCalledTimes(2);
    // The better one is kept.
    expect((await find(busy, { measureStore })).chosen).toBe('opencl');
    expect(busy).toHaveBeenCalledTimes(2);
    const slower = comparing(measured(4, 4, 0.7));
    expect((await find(slower)).chosen).toBe('cpu');
    expect(slower).toHaveBeenCalledTimes(2);
    // Whose speed overall speaks against it, needs no second one.
    const slow = comparing(measured(1, 1, 0.7));
    await find(slow);
    expect(slow).toHaveBeenCalledTimes(1);
  });

  it('is measured once for a device, its driver, options and threads', async () => {
    const measureStore = memoryStore();
    const compare = comparing(measured(2, 2, 2));
    const again = (options: AutoDetectOptions = {}, known = [cpu, pocl]): Promise<Found> =>
      find(compare, { measureStore, ...options }, known);
    const first = await again();
    expect(await again()).toEqual(first);
    expect((await again({ measure: 'load' })).chosen).toBe('opencl');
    expect(compare).toHaveBeenCalledTimes(1);
    await again({ measure: 'anew' });
    expect(compare).toHaveBeenCalledTimes(2);
    await again({ engineOptions: { cpu: { threads: 1 } } });
    expect(compare).toHaveBeenCalledTimes(3);
    await again({}, [cpu, backend('opencl', { score: 5, processor: 'driver 4, two threads' })]);
    expect(compare).toHaveBeenCalledTimes(4);
    await again({}, [backend('cpu', { score: 10, reason: 'one thread' }), pocl]);
    expect(compare).toHaveBeenCalledTimes(5);
  });

  it('is measured anew where the store holds something else, or fails', async () => {
    let kept = '';
    const store = (text: string | null): TuningStore => ({
      load: async () => text,
      save: async (_, value) => {
        kept = value;
      },
    });
    const compare = comparing(measured(2, 2, 2));
    await find(compare, { measureStore: store(null) });
    const good = JSON.parse(kept);
    expect((await find(compare, { measureStore: store(kept) })).chosen).toBe('opencl');
    expect(compare).toHaveBeenCalledTimes(1);
    const damaged = [
      kept.slice(0, -3),
      '7',
      JSON.stringify({ ...good, key: 'of another device' }),
      JSON.stringify({ ...good, ratio: -2 }),
      JSON.stringify({ ...good, ratio: '2' }),
      JSON.stringify({ ...good, works: { products: 2 } }),
      JSON.stringify({ ...good, works: null }),
    ];
    for (const text of damaged) await find(compare, { measureStore: store(text) });
    expect(compare).toHaveBeenCalledTimes(1 + damaged.length);
    const failing: TuningStore = {
      load: () => Promise.reject(new Error('no')),
      save: () => Promise.reject(new Error('no')),
    };
    expect((await find(compare, { measureStore: failing })).chosen).toBe('opencl');
  });

  it('is left alone where measuring fails or takes too long', async () => {
    const failing = await find(() => Promise.reject(new Error('the device\nis gone')));
    expect([failing.chosen, failing.opencl.reason]).toEqual([
      'cpu',
      expect.stringContaining('not measured: the device is gone'),
    ]);
    vi.useFakeTimers();
    made = [];
    let signal: AbortSignal | undefined;
    const hanging: Compare = (_, __, options) =>
      new Promise((_resolve, reject) => {
        signal = options?.signal;
        signal?.addEventListener('abort', () => reject(signal?.reason));
      });
    const found = find(hanging, { timeout: 30 });
    await vi.advanceTimersByTimeAsync(30);
    const { chosen, opencl } = await found;
    expect([chosen, opencl.verdict, opencl.reason]).toEqual([
      'cpu',
      'timed out',
      expect.stringContaining('not measured: it took longer than 30 ms'),
    ]);
    expect(signal?.aborted).toBe(true);
    expect(made.map(({ name, disposed }) => `${name} ${disposed}`)).toEqual(['opencl true', 'cpu true', 'cpu false']);
  });

  it('is left as it was measured first where the second measurement takes too long, which is ended', async () => {
    vi.useFakeTimers();
    let calls = 0;
    const found = find(
      (_, __, options) =>
        ++calls === 1
          ? Promise.resolve(measured(4, 4, 0.7))
          : new Promise((_resolve, reject) => {
              options?.signal?.addEventListener('abort', () => reject(options.signal?.reason));
            }),
      { timeout: 30 },
    );
    await vi.advanceTimersByTimeAsync(30);
    const { chosen, opencl } = await found;
    expect([calls, chosen, opencl.verdict]).toEqual([2, 'cpu', 'not preferred']);
    expect(opencl.reason).toContain('measured 2.2 times');
    // Both engines of the measurement that was ended are gone too.
    expect(made.map(({ disposed }) => disposed)).toEqual([true, true, true, true, false]);
  });

  it('is given back where it starts after the time was up', async () => {
    vi.useFakeTimers();
    const late = { ...createReferenceEngine({ name: 'opencl' }), dispose: vi.fn() };
    const slow = backend('opencl', { score: 5, processor: 'slow' }, async () => {
      await new Promise((resolve) => setTimeout(resolve, 50));
      return late;
    });
    const found = find(comparing(measured(2, 2, 2)), { timeout: 30 }, [cpu, slow]);
    await vi.advanceTimersByTimeAsync(30);
    expect((await found).chosen).toBe('cpu');
    await vi.advanceTimersByTimeAsync(20);
    expect(late.dispose).toHaveBeenCalledTimes(1);
  });
});

describe('what is really here', () => {
  it('the report has a ratio for a processor under OpenCL, and the order follows it', async ({ skip }) => {
    registry.restore();
    const { engine, report } = await autoDetectAndConfigureGpu({
      only: ['cpu', 'opencl'],
      measure: 'anew',
      measureStore: memoryStore(),
      timeout: 600_000,
    });
    engine.dispose();
    const opencl = report.find(({ name }) => name === 'opencl') as BackendReport;
    if (!opencl.reason.includes('a processor (')) skip(`no processor under OpenCL: ${opencl.reason}`);
    expect(opencl.reason).toMatch(/, measured \d+(\.\d+)? (times|of) the CPU engine \(products \d/);
    const { ratio, works } = opencl.measured as EngineComparison;
    expect(opencl.score).toBe(Math.round(1000 * ratio) / 100);
    expect(report[0]?.name).toBe(ratio >= 1.25 && Math.min(...Object.values(works)) >= 0.8 ? 'opencl' : 'cpu');
    expect(engine.name).toBe(report[0]?.name);
  });
});
