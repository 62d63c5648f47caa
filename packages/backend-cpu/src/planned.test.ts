/** Plans that a program brings along: used without the compiler, which is loaded where one is missing, and as good as none where anything is wrong. */
import {
  crossEntropy,
  flush,
  grad,
  idle,
  profile,
  scope,
  setEngine,
  setLogger,
  stats,
  type Tensor,
  tensor,
} from '@polygrad/core';
import type { IEngine } from '@polygrad/core/engine';
import {
  type PlanFile,
  type PlanFileOptions,
  type PlanFileSource,
  recordPlans,
  usePlanFile,
} from '@polygrad/core/plans';
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { createCpuEngine } from './engine.ts';
import type { CpuEngineOptions } from './options.ts';

const network = { up: true, loads: 0 };

const one: CpuEngineOptions = { threads: 1 };
const engines: IEngine[] = [];
const files: PlanFile[] = [];
const told: string[] = [];

/** Uses a file until the end of the test. */
async function used(source: PlanFileSource | Promise<PlanFileSource>, options?: PlanFileOptions): Promise<PlanFile> {
  const file = await usePlanFile(source, options);
  files.unshift(file);
  return file;
}

/** The entry of a page that has loaded no compiler, and whose loads of it are counted. */
function plannedEntry(): Promise<typeof import('./planned.ts')> {
  vi.resetModules();
  network.loads = 0;
  vi.doMock('./kernel-code.ts', async (original) => {
    network.loads++;
    if (!network.up) throw new Error('no network');
    return original();
  });
  return import('./planned.ts');
}

/** The engine of such a page. */
async function plannedEngine(options: CpuEngineOptions = one): Promise<IEngine> {
  const planned = await plannedEntry();
  const engine = planned.createPlannedEngine(options);
  engines.push(engine);
  await setEngine(engine);
  return engine;
}

async function wholeEngine(options: CpuEngineOptions = one): Promise<IEngine> {
  const engine = createCpuEngine(options);
  engines.push(engine);
  await setEngine(engine);
  return engine;
}

/** Steps of a training, with rows as given: products, a loss, gradients, an update in place, a number of the user. */
async function work(rows: readonly number[] = [6, 6, 6]): Promise<number[]> {
  const w = tensor(
    Array.from({ length: 15 }, (_, i) => Math.sin(i)),
    { shape: [5, 3] },
  );
  const found: number[] = [];
  for (const [step, n] of rows.entries()) {
    const x = tensor(
      Array.from({ length: 5 * n }, (_, i) => Math.cos(i)),
      { shape: [n, 5] },
    );
    const y = tensor(
      Int32Array.from({ length: n }, (_, i) => i % 3),
      { shape: [n] },
    );
    scope(() => {
      const gradient = grad((t: Tensor) => crossEntropy(x.matmul(t), y))(w);
      w.assign(w.sub(gradient.mul(0.1 * (step + 1))));
    });
    found.push(...((await w.data()) as Float32Array));
    for (const t of [x, y]) t.dispose();
  }
  w.dispose();
  return found;
}

async function recorded(body: () => Promise<unknown>, version?: string): Promise<Uint8Array<ArrayBuffer>> {
  const recording = recordPlans(version === undefined ? {} : { version });
  await wholeEngine();
  await body();
  const bytes = await recording.file();
  recording.stop();
  return bytes;
}

let values: number[];
let made: number;
let bytes: Uint8Array<ArrayBuffer>;
beforeAll(async () => {
  setLogger((text) => told.push(text));
  await wholeEngine();
  values = await work();
  made = stats().plansMade;
  bytes = await recorded(work);
});
beforeEach(() => {
  told.length = 0;
  network.up = true;
});
afterEach(() => {
  for (const file of files.splice(0)) file.stop();
  for (const engine of engines.splice(0)) engine.dispose();
});

describe('plans of a file', () => {
  it('are all that a program needs, without the compiler, with the same bits', async () => {
    await plannedEngine();
    const file = await used(bytes);
    expect(file.plans).toBe(made);
    expect(await work()).toEqual(values);
    expect(stats()).toMatchObject({ plansMade: 0, plansLoaded: made });
    expect([network.loads, told]).toEqual([0, []]);
  });

  it('come as bytes, as a buffer, as an answer, or as a promise', async () => {
    for (const source of [bytes.buffer, new Response(bytes), Promise.resolve(new Response(bytes)), new Blob([bytes])]) {
      const file = await used(source);
      expect(file.plans).toBe(made);
    }
  });

  it('serve engines with the compiler too, and computations that were not recorded are planned', async () => {
    await wholeEngine();
    await used(bytes);
    expect(await work()).toEqual(values);
    expect(stats()).toMatchObject({ plansMade: 0, plansLoaded: made });
    expect(tensor([1, 2]).add(1).arraySync()).toEqual([2, 3]);
  });

  it('of classes of sizes are found when a second size has come', async () => {
    const rows = [9, 12, 30, 5];
    await wholeEngine();
    const expected = await work(rows);
    const { plansMade, families } = stats();
    expect(families).toBeGreaterThan(0);
    const sized = await recorded(() => work(rows));
    await plannedEngine();
    await used(sized);
    expect(await work(rows)).toEqual(expected);
    expect(stats()).toMatchObject({ plansMade: 0, plansLoaded: plansMade, families });
    expect(network.loads).toBe(0);
  });

  it('with kernels that bind alike are told apart', async () => {
    const both = async () =>
      [await tensor([1, 2]).add(3).data(), await tensor([1, 2]).mul(3).data()].map((x) => [...x]);
    const alike = await recorded(both);
    await plannedEngine();
    await used(alike);
    expect(await both()).toEqual([
      [4, 5],
      [3, 6],
    ]);
    expect([stats().plansLoaded, network.loads]).toEqual([2, 0]);
  });

  it('are shown in a profile, with the text of their code', async () => {
    await plannedEngine();
    await used(bytes);
    const { kernels, newPlans } = await profile(() => work(), { sources: true });
    expect(newPlans).toBe(0);
    expect(kernels.length).toBeGreaterThan(3);
    for (const { name, source, flops } of kernels) {
      expect([typeof name, flops >= 0]).toEqual(['string', true]);
      expect(source?.text).toContain('local.get');
    }
  });
});

describe('where a plan is missing', () => {
  it('the compiler is loaded once and the result is the same; who cannot wait is told', async () => {
    const expected = Float32Array.of(6, 13, 20);
    await plannedEngine();
    await used(bytes);
    using y = scope(() => tensor([1, 2, 3]).mul(7).sub(1));
    expect(() => y.dataSync()).toThrow(
      "[cpu] the compiler, which a plan that was not brought along needs, is still being loaded; read with await, as await t.data() does, or await loadCompiler() of '@polygrad/backend-cpu/planned' before",
    );
    expect(await y.data()).toEqual(expected);
    expect(await work()).toEqual(values);
    expect(tensor([1, 2, 3]).div(2).arraySync()).toEqual([0.5, 1, 1.5]);
    expect(network.loads).toBe(1);
    expect(stats()).toMatchObject({ plansMade: 2, plansLoaded: made });
    await vi.waitFor(() => expect(told).toEqual([expect.stringContaining('this computation was not recorded')]));
  });

  it('nothing is lost that was flushed or assigned meanwhile, and a failed load is tried again', async () => {
    await plannedEngine();
    network.up = false;
    using w = tensor([0, 0]);
    w.assign(w.add(1));
    flush();
    await idle();
    await expect(w.array()).rejects.toThrow(
      /the compiler, .* cannot be loaded .*; read again when the page's server answers/,
    );
    network.up = true;
    w.assign(w.add(1));
    expect(await w.array()).toEqual([2, 2]);
  });

  it('loadCompiler has it there', async () => {
    const planned = await plannedEntry();
    const engine = planned.createPlannedEngine(one);
    engines.push(engine);
    await setEngine(engine);
    await planned.loadCompiler();
    expect(network.loads).toBe(1);
    expect(tensor([1, 2]).add(1).arraySync()).toEqual([2, 3]);
    // Small dtypes have what they need as well.
    expect(tensor([1, 2], { dtype: 'int8' }).add(1).arraySync()).toEqual([2, 3]);
  });
});

describe('a file that cannot be used counts as empty', () => {
  const rejected = async () => {
    throw new Error('no network');
  };
  const cases: Readonly<Record<string, readonly [() => unknown, string]>> = {
    'another byte': [() => bytes.map((byte, i) => (i === 1000 ? byte ^ 1 : byte)), 'it is damaged'],
    'bytes missing': [() => bytes.slice(0, -1), 'it is damaged'],
    'an empty one': [() => new Uint8Array(0), 'it is no file of plans'],
    'a page of errors': [() => new Response('<!doctype html>'.repeat(9)), 'it is no file of plans'],
    'no answer': [rejected, 'no network'],
  };
  it.each(Object.keys(cases))('%s', async (name) => {
    const [source, why] = cases[name]!;
    await plannedEngine();
    const file = await used(source() as Uint8Array<ArrayBuffer>);
    expect(file.plans).toBe(0);
    expect(await work()).toEqual(values);
    expect(stats()).toMatchObject({ plansMade: made, plansLoaded: 0 });
    await vi.waitFor(() => expect(told).toEqual([`[polygrad] the file of plans is not used: ${why}`]));
  });

  it('one of another version', async () => {
    const other = await recorded(work, '2.0');
    expect((await used(other)).plans).toBe(0);
    const file = await used(other, { version: '2.0' });
    expect(file.plans).toBe(made);
  });

  it('one for other threads or instructions', async () => {
    for (const options of [{ threads: 2 }, { threads: 1, relaxedSimd: false }]) {
      await wholeEngine(options);
      const expected = await work();
      await plannedEngine(options);
      await used(bytes);
      expect(await work()).toEqual(expected);
      expect(stats()).toMatchObject({ plansMade: made, plansLoaded: 0 });
    }
    expect(told[0]).toContain('it has none for cpu with these threads');
  });
});

it('a recording without plans is no file', async () => {
  const recording = recordPlans();
  await expect(recording.file()).rejects.toThrow('[recordPlans] no plan was recorded');
  recording.stop();
});

it('a recording that is stopped records no more, though a file is used since', async () => {
  const recording = recordPlans();
  await used(bytes);
  recording.stop();
  await wholeEngine();
  const before = recording.plans;
  await tensor([1, 2, 3]).add(1).data();
  expect([before, recording.plans]).toEqual([0, 0]);
});
