/** Options that are refused, time that the CPU engine has, and the report as text. */
import { ArgumentError, memoryStore, registerBackend } from '@polygrad/core/engine';
import { createReferenceEngine } from '@polygrad/testing';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type Found, detect as search } from './detect.ts';
import type { AutoDetectOptions } from './search.ts';
import { fake, packaged } from './fixtures/backends.ts';
import { during } from './fixtures/clock.ts';
import { ownRegistry } from './fixtures/registry.ts';
import { type DetectionReport, formatReport } from './index.ts';
import type { BackendPackage } from './packages.ts';

ownRegistry();
afterEach(() => {
  vi.useRealTimers();
});

const detect = (options: AutoDetectOptions, known: readonly BackendPackage[]): Promise<Found> =>
  search(options === null ? options : { measure: false, selfTest: false, ...options }, known);
const cpu = packaged(fake('cpu', { score: 10 }));

describe('options', () => {
  const gpu = packaged(fake('webgpu', { score: 50 }));

  it('of the wrong kind, of no name and of no backend are refused', async () => {
    const wrong: [unknown, string][] = [
      [{ timeout: -5 }, 'bad timeout: -5; must be a number of milliseconds above 0'],
      [{ timeout: 'x' }, "bad timeout: 'x'"],
      [{ timeout: Number.NaN }, 'bad timeout: NaN'],
      [{ only: 5 }, 'bad only: 5'],
      [{ only: 'cp' }, "no backend 'cp' in only; known are cpu, cuda, native, opencl, webgpu"],
      [{ prefer: ['gpu'] }, "no backend 'gpu' in prefer"],
      [{ exclude: ['web'] }, "no backend 'web' in exclude"],
      [{ require: 'gpu' }, "no backend 'gpu' in require"],
      [{ require: 'cuda', exclude: 'cuda' }, "require names 'cuda', which exclude names too; change one of them"],
      [{ require: 'cuda', only: 'cpu' }, "require names 'cuda', which only does not; change one of them"],
      [{ log: 'x' }, "bad log: 'x'; must be a function, or null"],
      [{ selfTest: 1 }, 'bad selfTest: 1'],
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
  it('is a table, and what to install', () => {
    const nothing = { driver: null, memoryBytes: null, dtypes: null, measured: null, chosen: false, install: null };
    const report: DetectionReport = [
      {
        ...nothing,
        name: 'cpu',
        device: 'two cores',
        memoryBytes: 8 * 2 ** 30,
        dtypes: ['float32', 'int32'],
        score: 10,
        chosen: true,
        verdict: 'chosen',
        reason: 'threads',
      },
      { ...nothing, name: 'webgpu', device: 'l'.repeat(50), score: 2.04, verdict: 'software adapter', reason: 'slow' },
      {
        ...nothing,
        name: 'cuda',
        device: null,
        score: 0,
        verdict: 'not installed',
        reason: 'add it',
        install: 'npm i c',
      },
    ];
    expect(formatReport(report).split('\n')).toEqual([
      '  backend  device                                    memory   dtypes         score  why',
      '* cpu      two cores                                 8.0 GiB  float32 int32  10     chosen: threads',
      `  webgpu   ${'l'.repeat(39)}…                          2      software adapter: slow`,
      '  cuda                                                                       -      not installed: add it',
      'to get more:',
      '  npm i c',
    ]);
    expect(formatReport([])).toBe('');
    const every = 'float16 bfloat16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool'.split(' ');
    const holds = (dtypes: readonly string[]): string => formatReport([{ ...report[0]!, dtypes }]).split('\n')[1] ?? '';
    expect(holds(every)).toContain('  all  ');
    expect(holds(every.filter((name) => name !== 'float64'))).toContain('  all but float64  ');
  });
});
