/** Backends in separate processes: crashes, hangs and wrong answers stay there, and are asked for once. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import {
  ArgumentError,
  type BackendProvider,
  type EngineComparison,
  memoryStore,
  registerBackend,
} from '@polygrad/core/engine';
import { createReferenceEngine } from '@polygrad/testing';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Apart, Processes } from './apart.ts';
import { type Found, detect } from './detect.ts';
import type { AutoDetectOptions } from './search.ts';
import { fake, packaged, verdicts } from './fixtures/backends.ts';
import { ownRegistry } from './fixtures/registry.ts';
import { keyOf, loadKept, packageVersion, saveKept } from './kept.ts';
import type { BackendPackage } from './packages.ts';
import manifest from '../package.json' with { type: 'json' };
import { processesWith } from './processes.ts';

const registry = ownRegistry();
const folder = mkdtempSync(join(tmpdir(), 'polygrad-asked-'));
const names = ['fine', 'crashes', 'leaves', 'hangs', 'throws', 'crashesLater', 'hangsLater', 'lies', 'refuses'];
let processes: Processes;

beforeAll(async () => {
  const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
  // Together, so that both have one copy of core.
  await build({
    entryPoints: { asked: here('./asked.ts'), shared: here('./fixtures/misbehaving.ts') },
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    conditions: ['@polygrad/source'],
    logLevel: 'silent',
  });
  for (const name of names) {
    const at = join(folder, 'node_modules/@tests', name);
    mkdirSync(at, { recursive: true });
    writeFileSync(
      join(at, 'package.json'),
      JSON.stringify({
        name: `@tests/${name}`,
        version: '1.0.0',
        type: 'module',
        exports: { '.': './index.js', './package.json': './package.json' },
      }),
    );
    writeFileSync(
      join(at, 'index.js'),
      `import { register } from '${pathToFileURL(join(folder, 'shared.mjs')).href}'; register('${name}');`,
    );
  }
  processes = processesWith(join(folder, 'asked.mjs')) as Processes;
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const loads = vi.fn<(name: string) => void>();
const apart = (name: string): BackendPackage => ({
  name,
  specifier: `@tests/${name}`,
  apart: true,
  load: async () => {
    loads(name);
    registerBackend(fake(name, { score: 50 }));
  },
});
const cpu = packaged(fake('cpu', { score: 10 }));

async function find(options: AutoDetectOptions, wanted: readonly string[]): Promise<Found> {
  registry.clear();
  loads.mockClear();
  const known = [...wanted.map(apart), cpu];
  const given = { measure: false, measureStore: memoryStore(), timeout: 120_000, log: null, ...options } as const;
  return detect(given, known, undefined, processes);
}

describe('a backend in a process of its own', () => {
  it('is asked and tested there; only the winner is loaded here', async () => {
    const { engine, report } = await find({}, ['fine', 'throws']);
    expect(engine.name).toBe('fine');
    expect(report[0]).toMatchObject({ verdict: 'chosen', driver: '1.2', reason: 'fine as it is' });
    expect(report[0]?.dtypes).toContain('float64');
    expect(report[0]?.device).toMatch(/^process \d+$/);
    expect(report[0]?.device).not.toBe(`process ${process.pid}`);
    expect(loads.mock.calls).toEqual([['fine']]);
    expect(report[2]).toMatchObject({ verdict: 'failed to start', reason: 'the driver is strange' });
  });

  it('that passed its self-test there makes its engine here without one; one that was not asked there tests itself', async () => {
    const create = vi.fn<BackendProvider['create']>(() => createReferenceEngine({ name: 'fine' }));
    const load = async (): Promise<void> => registerBackend(fake('fine', { score: 50 }, { create }));
    const known = [{ ...apart('fine'), load }, cpu];
    const given = { measure: false, measureStore: memoryStore(), timeout: 120_000, log: null } as const;
    for (const [asked, isProven] of [
      [processes, true],
      [processes, true],
      [null, false],
    ] as const) {
      registry.clear();
      create.mockClear();
      expect((await detect(given, known, undefined, asked)).engine.name).toBe('fine');
      expect(create.mock.calls).toEqual([[undefined, { isProven }]]);
    }
  });

  it('that crashes, or ends its process, is a row, also in its self-test', async () => {
    const { engine, report } = await find({}, ['crashes', 'leaves', 'crashesLater']);
    expect(engine.name).toBe('cpu');
    expect(report.slice(1).map(({ name, verdict, reason }) => [name, verdict, reason])).toEqual([
      ['crashes', 'crashed', 'its process ended with SIGSEGV'],
      ['leaves', 'crashed', 'its process ended with code 7'],
      ['crashesLater', 'crashed', 'its process ended with SIGSEGV in its self-test'],
    ]);
    expect(loads).not.toHaveBeenCalled();
  });

  it('that hangs is a row, its process is ended, and the next search does not wait', async () => {
    const measureStore = memoryStore();
    for (const timeout of [4000, 120_000]) {
      const { engine, report } = await find({ timeout, measureStore }, ['hangs', 'hangsLater']);
      expect(engine.name).toBe('cpu');
      expect(verdicts(report).slice(1).sort()).toEqual(['hangs: timed out', 'hangsLater: timed out']);
    }
  });

  it('that computes wrongly is not used, and the log hears of it', async () => {
    const said: string[] = [];
    const { engine, report } = await find({ log: (text) => said.push(text) }, ['lies']);
    expect(engine.name).toBe('cpu');
    expect(report[1]).toMatchObject({
      verdict: 'wrong answers',
      reason: expect.stringContaining('element 0 of exp and log1p is 7'),
    });
    expect(said[0]).toContain("the engine 'lies' computes wrongly");
    expect(loads).not.toHaveBeenCalled();
  });

  it('is not asked again: what it said, and that it crashed, is kept', async () => {
    const measureStore = memoryStore();
    const open = vi.fn(processes.open);
    const again = async (): Promise<Found> => {
      registry.clear();
      const known = ['fine', 'crashes', 'crashesLater'].map(apart);
      return detect(
        { measure: false, measureStore, timeout: 120_000, log: null, prefer: ['crashesLater'] },
        [...known, cpu],
        undefined,
        {
          ...processes,
          open,
        },
      );
    };
    const first = await again();
    expect(open).toHaveBeenCalledTimes(3);
    const second = await again();
    expect(open).toHaveBeenCalledTimes(3);
    expect(second.engine.name).toBe('fine');
    expect(second.report.map(({ name, verdict }) => [name, verdict])).toEqual(
      expect.arrayContaining(first.report.map(({ name, verdict }) => [name, verdict])),
    );
    expect(second.report.find(({ name }) => name === 'crashes')?.reason).toBe(
      'its process ended with SIGSEGV (in an earlier run; it is asked again in 24 hours)',
    );
  });

  it('refuses options with an ArgumentError', async () => {
    const refused = find({ engineOptions: { refuses: { threads: 2 } } }, ['refuses']);
    await expect(refused).rejects.toThrow(ArgumentError);
    await expect(refused).rejects.toThrow("[refuses] no option 'threads'");
  });

  it('has its time from when its process has started, which waits on a busy machine', async () => {
    registry.clear();
    const waits = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds));
    const slow = (start: number, probe: number): Apart => ({
      started: () => waits(start),
      probe: () => waits(probe).then(() => ({ score: 50, reason: 'as it is', device: 'a device' })),
      prove: () => waits(probe).then(() => ({ wrong: null, dtypes: ['float32'], milliseconds: 1 })),
      compare: () => Promise.reject(new Error('nothing is measured')),
      close: () => undefined,
    });
    vi.useFakeTimers();
    const times: Readonly<Record<string, readonly [start: number, probe: number]>> = {
      fine: [30_000, 4000],
      hangs: [30_000, 6000],
      leaves: [90_000, 0],
    };
    const open: Processes['open'] = ({ name }) => slow(...times[name]!);
    const known = [...Object.keys(times).map(apart), cpu];
    const given = { measure: false, measureStore: memoryStore(), log: null } as const;
    const found = detect(given, known, undefined, { ...processes, open });
    await vi.advanceTimersByTimeAsync(200_000);
    const { engine, report } = await found;
    vi.useRealTimers();
    expect(engine.name).toBe('fine');
    expect(Object.fromEntries(report.map(({ name, reason }) => [name, reason]))).toMatchObject({
      hangs: 'its probe did not answer within 5000 ms',
      leaves: 'its process did not start within 60000 ms',
    });
  });

  it('that is not installed costs no process', async () => {
    const open = vi.fn(processes.open);
    registry.clear();
    const { report } = await detect({ measure: false, selfTest: false }, [apart('absent'), cpu], undefined, {
      ...processes,
      open,
    });
    expect(report[1]).toMatchObject({ verdict: 'not installed', install: 'npm install @tests/absent' });
    expect(open).not.toHaveBeenCalled();
  });

  it('is asked here where no process can be started', async () => {
    registry.clear();
    const none = { ...processes, open: () => null };
    const { engine } = await detect({ measure: false, selfTest: false }, [apart('fine'), cpu], undefined, none);
    expect(engine.name).toBe('fine');
    expect(processesWith(join(folder, 'not-there.mjs'))).toBeNull();
  });

  it('is asked here where the program registered another one under its name', async () => {
    registry.clear();
    registerBackend(fake('crashes', { score: 60 }));
    const known = [apart('crashes'), cpu];
    const { engine } = await detect({ measure: false, selfTest: false }, known, undefined, processes);
    expect(engine.name).toBe('crashes');
  });
});

describe('what is kept', () => {
  const probe = { score: 5, reason: 'r', device: 'd' };
  const proof = { wrong: null, dtypes: ['float32'], milliseconds: 1 };
  const hour = 3_600_000;

  it('counts for a month; without a device for a day; failures longer each time', async () => {
    const store = memoryStore();
    const key = keyOf('facts');
    const late = (times: number) => ({ verdict: 'timed out' as const, reason: 'r', times });
    const cases = [
      [{ probe, failed: null, proofs: { '': proof } }, 30 * 24],
      [{ probe, failed: null, proofs: { '': { ...proof, wrong: 'x' } } }, 24],
      [{ probe: { ...probe, score: 0 }, failed: null, proofs: {} }, 24],
      [{ probe: null, failed: late(1), proofs: {} }, 5 / 60],
      [{ probe: null, failed: late(2), proofs: {} }, 20 / 60],
      [{ probe: null, failed: late(9), proofs: {} }, 1],
      [{ probe: null, failed: { ...late(1), verdict: 'crashed' as const }, proofs: {} }, 24],
    ] as const;
    for (const [kept, hours] of cases) {
      await saveKept(store, key, kept);
      const now = Date.now();
      expect(await loadKept(store, key, now + hours * hour - 60_000)).toMatchObject({ kept, old: false });
      expect((await loadKept(store, key, now + hours * hour + 60_000))?.old).toBe(true);
      expect((await loadKept(store, key, now - hour))?.old).toBe(true);
    }
    expect(await loadKept(store, keyOf('other'))).toBeNull();
  });

  it('depends on the versions, the environment and the machine', async () => {
    const asked = { specifier: '@tests/fine', name: 'fine' };
    const before = await processes.fingerprint(asked);
    expect(before).toContain('@tests/fine 1.0.0');
    expect(before).toContain(`node ${process.versions.node}`);
    vi.stubEnv('VK_DRIVER_FILES', '/another.json');
    const anew = processesWith(join(folder, 'asked.mjs')) as Processes;
    expect(await anew.fingerprint(asked)).not.toBe(before);
  });

  it('is of one version of the packages', () => {
    expect(packageVersion).toBe(manifest.version);
  });
});

it('measures in the other process, with the engine to compare with', async () => {
  const asked = processes.open({ specifier: '@tests/fine', name: 'fine' });
  try {
    const probe = await asked?.probe();
    expect(probe?.score).toBe(50);
    const wrong = asked?.compare(undefined, { specifier: '@tests/throws', name: 'nobody', options: undefined });
    await expect(wrong as Promise<EngineComparison>).rejects.toThrow("@tests/throws registers no backend 'nobody'");
  } finally {
    asked?.close();
  }
  await expect(asked?.probe()).rejects.toThrow('its process was ended');
});
