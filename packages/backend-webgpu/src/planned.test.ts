/** Plans that a page brings along for WebGPU: recorded on an adapter taken for one of a profile, used without the compiler, and as good as none where anything is wrong. */
import { createHash } from 'node:crypto';
import {
  clearPlans,
  crossEntropy,
  grad,
  profile,
  scope,
  setDynamicSizes,
  setEngine,
  setLogger,
  stats,
  type Tensor,
  tensor,
  tune,
} from '@polygrad/core';
import type { IEngine } from '@polygrad/core/engine';
import { selfTest } from '@polygrad/core/engine/self-test';
import { type PlanFile, type PlanStore, recordPlans, usePlanCache, usePlanFile } from '@polygrad/core/plans';
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Found } from './device/naming.ts';
import { profileCaps, profiles } from './device/profile.ts';
import { testAdapter, testEngine } from './fixtures/device.ts';
import { kernelCode } from './kernel-code.ts';
import { createPlannedWebGpuEngine, type PlannedWebGpuOptions, type WebGpuProfile } from './planned.ts';

const first = await testEngine();
first?.dispose();

const network = { up: true, loads: 0 };
const engines: IEngine[] = [];
const files: PlanFile[] = [];
const told: string[] = [];

/** Uses a file until the end of the test. */
async function used(bytes: Uint8Array<ArrayBuffer>): Promise<PlanFile> {
  const file = await usePlanFile(bytes);
  files.unshift(file);
  return file;
}

vi.doMock('./kernel-code.ts', () => ({
  get kernelCode() {
    network.loads++;
    if (!network.up) throw new Error('no network');
    return kernelCode;
  },
}));

/** The engine of a page that has loaded no compiler, and whose loads of it are counted. */
async function plannedEngine(options?: PlannedWebGpuOptions): Promise<IEngine> {
  network.loads = 0;
  const engine = await createPlannedWebGpuEngine(options);
  engines.push(engine);
  await setEngine(engine);
  return engine;
}

/** An adapter that was found, with some of what it has. */
async function adapterWith(features: (all: ReadonlySet<string>) => Iterable<string>): Promise<PlannedWebGpuOptions> {
  const { adapter } = await testAdapter();
  const fewer = new Set(features(new Set(adapter.features)));
  return {
    adapter: new Proxy(adapter, {
      get(_, name) {
        if (name === 'features') return fewer;
        const value: unknown = Reflect.get(adapter, name, adapter);
        return typeof value === 'function' ? value.bind(adapter) : value;
      },
    }),
  };
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

async function recorded(
  some: readonly WebGpuProfile[],
  body: () => Promise<unknown>,
): Promise<Uint8Array<ArrayBuffer>> {
  const recording = recordPlans();
  for (const name of some) {
    await plannedEngine({ profile: name });
    await body();
  }
  const bytes = await recording.file();
  recording.stop();
  return bytes;
}

/** The file with other contents, and a hash that is right. */
function sealedAgain(file: Uint8Array<ArrayBuffer>, change: (body: Uint8Array) => void): Uint8Array<ArrayBuffer> {
  const hash = (bytes: Uint8Array): Buffer => createHash('sha256').update(bytes).digest();
  let at = 0;
  while (!hash(file.subarray(at + 32)).equals(file.subarray(at, at + 32))) at++;
  const again = file.slice();
  change(again.subarray(at + 32));
  again.set(hash(again.subarray(at + 32)), at);
  return again;
}

describe.skipIf(first === null)('plans of a file for WebGPU', () => {
  let values: number[];
  let made: number;
  let bytes: Uint8Array<ArrayBuffer>;
  let found: Found;
  beforeAll(async () => {
    setLogger((text) => told.push(text));
    found = await testAdapter();
    bytes = await recorded(['common'], async () => {
      values = await work();
      made = stats().plansMade;
    });
  });
  beforeEach(() => {
    told.length = 0;
    network.up = true;
  });
  afterEach(() => {
    for (const file of files.splice(0)) file.stop();
    for (const engine of engines.splice(0)) engine.dispose();
  });

  it('are all that a program needs, without the compiler, with the same bits', async () => {
    const file = await used(bytes);
    expect(file.plans).toBe(made);
    const engine = await plannedEngine();
    expect(engine.device).toMatch(/, profile common$/);
    expect(await work()).toEqual(values);
    expect(stats()).toMatchObject({ plansMade: 0, plansLoaded: made });
    expect([network.loads, told]).toEqual([0, []]);
  });

  it('compute what plans of the device itself compute', async () => {
    engines.push(await setEngine((await testEngine())!));
    for (const [i, value] of (await work()).entries()) expect(value).toBeCloseTo(values[i]!, 5);
  });

  it('are those that a program asks for first, though it waits for nothing', async () => {
    const y = (): Tensor => scope(() => tensor([1, 2]).mul(2).add(3));
    await used(await recorded(['common'], () => y().data()));
    await plannedEngine();
    expect(await y().array()).toEqual([5, 7]);
    expect([stats().plansLoaded, network.loads]).toEqual([1, 0]);
  });

  it('of classes of sizes are found when a second size has come', async () => {
    const rows = [9, 12, 30, 5];
    let expected: number[] = [];
    let families = 0;
    const sized = await recorded(['common'], async () => {
      expected = await work(rows);
      families = stats().families;
    });
    expect(families).toBeGreaterThan(0);
    await used(sized);
    await plannedEngine();
    expect(await work(rows)).toEqual(expected);
    expect(stats()).toMatchObject({ plansMade: 0, families });
    expect(network.loads).toBe(0);
  });

  it('are shown in a profile, with their WGSL', async () => {
    await used(bytes);
    await plannedEngine();
    const { kernels, newPlans } = await profile(() => work(), { sources: true });
    expect([newPlans, network.loads]).toEqual([0, 0]);
    expect(kernels.length).toBeGreaterThan(3);
    for (const { source } of kernels) expect(source?.text).toContain('@compute');
  });

  it('missing, the compiler is loaded once, also after a load that failed', async () => {
    await used(bytes);
    await plannedEngine();
    network.up = false;
    const y = (): Tensor => scope(() => tensor([1, 2, 3]).mul(7).sub(1));
    await expect(y().data()).rejects.toThrow(
      /^\[webgpu\] the compiler, .* cannot be loaded .*; read again when the page's server answers, or await loadWebGpuCompiler\(\) of '@polygrad\/backend-webgpu\/planned'/,
    );
    network.up = true;
    expect(await y().array()).toEqual([6, 13, 20]);
    expect(await work()).toEqual(values);
    expect(await tensor([1, 2, 3]).div(2).array()).toEqual([0.5, 1, 1.5]);
    expect(stats().plansLoaded).toBe(made);
    await vi.waitFor(() => expect(told).toEqual([expect.stringContaining('this computation was not recorded')]));
  });

  it('are for the best profile that the file has and the adapter', async () => {
    const has = profiles.filter((name) => !name.startsWith('f16') || found.adapter.features.has('shader-f16'));
    if (found.subgroups?.numbered !== true)
      has.splice(0, has.length, ...has.filter((name) => !name.endsWith('subgroups')));
    const results = new Map<WebGpuProfile, number[]>();
    const all = await recorded(has, async () => {
      const name = has[results.size]!;
      results.set(name, await work());
    });
    await used(all);
    const device = (await plannedEngine()).device;
    expect(device.endsWith(`, profile ${has[0]}`)).toBe(true);
    expect(await work()).toEqual(results.get(has[0]!));
    const less = await plannedEngine(
      await adapterWith((features) => [...features].filter((name) => name !== 'shader-f16')),
    );
    const best = has.find((name) => !name.startsWith('f16'))!;
    expect(less.device.endsWith(`, profile ${best}`)).toBe(true);
    expect(await work()).toEqual(results.get(best));
    const least = await plannedEngine(await adapterWith(() => []));
    expect(least.device).toMatch(/, profile common$/);
    expect(await work()).toEqual(values);
    expect(network.loads).toBe(0);
  });

  it('that the adapter lacks leave it its compiler, and all that it has', async (context) => {
    context.skip(!found.adapter.features.has('shader-f16'), 'no 16-bit floats here');
    await used(await recorded(['f16'], work));
    const engine = await plannedEngine(await adapterWith(() => []));
    expect(network.loads).toBe(1);
    expect(engine.device).not.toContain('profile');
    expect(engine.caps.maxGroup).toBe((await testAdapter()).adapter.limits.maxComputeInvocationsPerWorkgroup);
    for (const [i, value] of (await work()).entries()) expect(value).toBeCloseTo(values[i]!, 5);
    expect(stats().plansLoaded).toBe(0);
    await vi.waitFor(() => expect(told).toEqual([expect.stringContaining('it has none for webgpu with these')]));
  });

  it('need the compiler where the engine tests itself, and no more after it', async () => {
    await used(bytes);
    const engine = await plannedEngine();
    expect((await selfTest(engine)).wrong).toBeNull();
    expect(network.loads).toBe(1);
    expect(await work()).toEqual(values);
    expect(stats()).toMatchObject({ plansMade: 0, plansLoaded: made });
  });

  it('are kept for later visits too, with their WGSL, where the page has no file', async () => {
    const kept = new Map<string, Uint8Array<ArrayBuffer>>();
    const store: PlanStore = {
      load: async (prefix) =>
        [...kept].flatMap(([name, entry]) => (name.startsWith(prefix) ? [{ name, bytes: entry }] : [])),
      save: async (name, entry) => void kept.set(name, entry),
      remove: async (name) => void kept.delete(name),
    };
    for (const found of [0, made]) {
      await plannedEngine({ profile: 'common' });
      const plans = await usePlanCache({ store, version: 'of a test' });
      expect(await work()).toEqual(values);
      expect(stats().plansLoaded).toBe(found);
      await plans.saved();
      plans.stop();
    }
  });

  it('missing, and the compiler too: no engine', async () => {
    network.up = false;
    await expect(createPlannedWebGpuEngine()).rejects.toThrow(/^\[webgpu\] the compiler, .* cannot be loaded/);
  });

  it('are looked for while a file is in use', async () => {
    (await used(bytes)).stop();
    expect((await plannedEngine()).device).not.toContain('profile');
    await used(bytes);
    expect((await plannedEngine({ reassociates: true })).device).not.toContain('profile');
  });

  it('hold no tiles that were measured on one device', async () => {
    const recording = recordPlans();
    const engine = await plannedEngine({ profile: 'common' });
    expect(engine.tuning).toBeUndefined();
    await work();
    await tune(engine, { products: [{ m: 64, n: 64, k: 64 }] });
    await expect(recording.file()).rejects.toThrow(
      /^\[recordPlans\] tiles were measured on .*, profile common, and plans with/,
    );
    recording.stop();
  });

  it('count as none where any byte of the file is another', async () => {
    for (let at = 0; at < bytes.length; at += 97) {
      const file = await usePlanFile(
        bytes.map((byte, i) => (i === at ? byte ^ (1 << (at % 8)) : byte)),
        { log: null },
      );
      expect(file.plans).toBe(0);
      file.stop();
    }
    await used(bytes.slice(0, -1));
    await plannedEngine();
    for (const [i, value] of (await work()).entries()) expect(value).toBeCloseTo(values[i]!, 5);
    expect(stats().plansLoaded).toBe(0);
  });

  it('of a file whose hash is right are refused by the numbers, or by the device, whatever byte is another', async () => {
    // A plan for each size, the same each time.
    setDynamicSizes('never');
    const y = (): Tensor => scope(() => tensor([1, 2]).mul(2).add(3));
    const small = await recorded(['common'], () => y().data());
    const engine = await plannedEngine({ profile: 'common' });
    const text = Buffer.from(small).indexOf('@group');
    const seen = { loaded: 0, made: 0, refused: 0 };
    for (let at = 40; at < small.length; at += 13) {
      const file = await usePlanFile(
        sealedAgain(small, (body) => {
          if (at < body.length) body[at] = body[at]! ^ (1 << (at % 8));
        }),
        { log: null },
      );

      clearPlans();
      const before = stats();
      try {
        const value = await y().array();
        const { plansMade, plansLoaded } = stats();
        // A text that is WGSL may say something else: the page's scripts may, too. What stands before it is checked.
        if (plansMade > before.plansMade || at < text - 60) expect(value).toEqual([5, 7]);
        seen[plansLoaded > before.plansLoaded ? 'loaded' : 'made']++;
      } catch (error) {
        expect((error as Error).name).toBe('CompileError');
        seen.refused++;
        // The next computation does not try that plan again.
        expect(await y().array()).toEqual([5, 7]);
      }
      file.stop();
    }
    expect(seen.made).toBeGreaterThan(5);
    expect(seen.refused).toBeGreaterThan(5);
    expect(await engine.idle()).toBeUndefined();
  });
});

describe.skipIf(first === null)('a profile', () => {
  it('asks for no more than every adapter grants', () => {
    for (const name of profiles) {
      // Defaults of the limits of WebGPU's specification, section 3.6.2.
      expect(profileCaps(name)).toMatchObject({ sharedBytes: 16384, maxGroup: 256, maxBindings: 8, bindAlign: 256 });
      expect(profileCaps(name).dtypes?.has('float16')).toBe(name.startsWith('f16'));
    }
  });

  it('is refused where the adapter lacks it, where it is none, and beside options that it decides', async () => {
    const bare = await adapterWith(() => []);
    await expect(createPlannedWebGpuEngine({ ...bare, profile: 'f16' })).rejects.toThrow(
      /^\[webgpu\] the adapter .* lacks what the profile 'f16' asks for; name another, 'common' is for all/,
    );
    await expect(createPlannedWebGpuEngine({ profile: 'best' as WebGpuProfile })).rejects.toThrow(
      "[createPlannedWebGpuEngine] bad profile: 'best'; must be",
    );
    await expect(createPlannedWebGpuEngine({ profile: 'common', tuning: true })).rejects.toThrow(
      "[createPlannedWebGpuEngine] profile 'common' decides tuning, and the options say true: leave one of them out",
    );
    await expect(createPlannedWebGpuEngine(7 as PlannedWebGpuOptions)).rejects.toThrow(
      'bad options: 7; must be an object',
    );
  });
});
