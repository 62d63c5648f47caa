/** Plans of another process: found where all that decides them is the same, and as good as none where anything is wrong with them. */
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { createReferenceEngine } from '@polygrad/testing';
import { describe, expect, it } from 'vitest';
import type { IEngine } from '../engine/engine.ts';
import { type Node, release, retain } from '../graph/node.ts';
import * as pg from '../index.ts';
import { flushNodes } from '../runtime/fixtures/flush-nodes.ts';
import { growGraph } from '../runtime/fixtures/random-graph.ts';
import { readNode } from '../runtime/reading.ts';
import { uploadNode } from '../runtime/upload.ts';
import { choicesOf } from '../tuning/choices.ts';
import { unseal } from './entries.ts';
import { version } from './context.ts';
import { asProcess, type Inside, MemoryPlans } from './fixtures/processes.ts';

const numbers = (n: number): number[] => Array.from({ length: n }, (_, i) => ((i * 7) % 11) - 5);

/** A step with several plans: products, a softmax, gradients, an update in place, loops, a number of the user. */
async function work(): Promise<number[]> {
  const x = pg.tensor(Float32Array.from(numbers(12 * 5)), { shape: [12, 5] });
  const w = pg.keep(pg.tensor(Float32Array.from(numbers(5 * 4)), { shape: [5, 4] }));
  const results: number[] = [];
  for (let step = 0; step < 3; step++) {
    const loss = pg.scope(() => {
      const [value, gradient] = pg.valueAndGrad((t: pg.Tensor) => pg.softmax(x.matmul(t)).pow(2).sum())(w);
      w.assign(w.sub(gradient.mul(0.1 * (step + 1))));
      return value;
    });
    results.push(...((await loss.data()) as Float32Array));
    loss.dispose();
  }
  results.push(...((await w.data()) as Float32Array));
  for (const t of [x, w]) t.dispose();
  return results;
}

const reference = (): IEngine => createReferenceEngine();

/** The event loop turns until all plans made so far are written. */
async function written(store: MemoryPlans): Promise<void> {
  while (store.files.size < pg.stats().plansMade) await new Promise((resolve) => setTimeout(resolve, 1));
}

/** A process that works, and what it says of its plans. */
const visit = (store: MemoryPlans, engine: IEngine = reference(), version = 'test') =>
  asProcess(engine, { store, version }, async ({ told }: Inside) => {
    const values = await work();
    const { plansLoaded, plansMade, planMisses } = pg.stats();
    // What is told is told behind the program's back.
    await new Promise((resolve) => setTimeout(resolve));
    return { values, plansLoaded, plansMade, planMisses, told: [...told] };
  });

describe('plans of another process', () => {
  it('are all that a second process needs, and give the same bits', async () => {
    const store = new MemoryPlans();
    const first = await visit(store);
    expect(first).toMatchObject({ plansLoaded: 0, told: [] });
    expect(first.plansMade).toBe(store.files.size);
    const files = new Map(store.files);
    const second = await visit(store);
    expect(second).toEqual({ ...first, plansLoaded: first.plansMade, plansMade: 0 });
    // Nothing was written again.
    for (const [name, bytes] of store.files) expect(bytes).toBe(files.get(name));
  });

  it('are found for classes of sizes too, once the same sizes have come, with the same bits', async () => {
    const store = new MemoryPlans();
    const visitSizes = (rows: readonly number[], simt: boolean) =>
      asProcess(createReferenceEngine({ simt }), { store, version: 'sizes' }, async ({ told }: Inside) => {
        const values: number[] = [];
        for (const n of rows) {
          const x = pg.tensor(Float32Array.from(numbers(n * 5)), { shape: [n, 5] });
          const y = pg.tensor(
            Int32Array.from({ length: n }, (_, i) => i % 3),
            { shape: [n] },
          );
          const w = pg.tensor(Float32Array.from(numbers(5 * 3)), { shape: [5, 3] });
          const loss = pg.scope(() => pg.grad((t: pg.Tensor) => pg.crossEntropy(x.matmul(t), y))(w));
          values.push(...((await loss.data()) as Float32Array));
          for (const t of [x, y, w, loss]) t.dispose();
        }
        const { plansLoaded, plansMade, families, binds } = pg.stats();
        return { values, plansLoaded, plansMade, families, binds, told: [...told] };
      });
    for (const simt of [false, true]) {
      const first = await visitSizes([9, 12, 30, 5], simt);
      expect(first).toMatchObject({ plansLoaded: 0, plansMade: 3, families: 2, binds: 3, told: [] });
      expect(await visitSizes([9, 12, 30, 5], simt)).toEqual({ ...first, plansLoaded: 3, plansMade: 0 });
      // Others of the same classes: the first of them has a plan of its own, and none that was kept is bound to it.
      const other = await visitSizes([11, 10, 9], simt);
      expect(other).toMatchObject({ plansLoaded: 1, plansMade: 1, families: 1, binds: 2, told: [] });
    }
  });

  it('are not used by another version, engine, device, number of threads, or after other tiles were measured', async () => {
    const store = new MemoryPlans();
    const { values, plansMade } = await visit(store);
    const other = (change: Partial<IEngine['caps']>, more: Partial<IEngine> = {}): IEngine => {
      const engine = reference();
      return { ...engine, ...more, caps: { ...engine.caps, ...change } };
    };
    const anew = { plansLoaded: 0, plansMade, told: [], values };
    expect(await visit(store, reference(), 'another')).toMatchObject(anew);
    expect(await visit(store, other({}, { name: 'another' }))).toMatchObject(anew);
    expect(await visit(store, other({}, { device: 'another' }))).toMatchObject(anew);
    expect(await visit(store, other({}, { codeKey: 'another' }))).toMatchObject(anew);
    expect(await visit(store, other({ parallelism: 64 }))).toMatchObject(anew);
    expect(await visit(store, other({ atomics: new Set(['add']) }))).toMatchObject({ plansLoaded: 0 });
    const tuned = createReferenceEngine({ simt: true });
    await visit(store, tuned);
    expect(await visit(store, createReferenceEngine({ simt: true }))).toMatchObject({ plansMade: 0 });
    choicesOf(tuned).set('a class', 'a tile');
    expect(await visit(store, tuned)).toMatchObject({ plansLoaded: 0 });
    expect(await visit(store)).toMatchObject({ plansLoaded: plansMade, plansMade: 0, values });
  });

  it('are made anew where any byte is another, or bytes are missing, and written again', async () => {
    const store = new MemoryPlans();
    const { values, plansMade } = await visit(store);
    const whole = new Map(store.files);
    const damaged: ((bytes: Uint8Array<ArrayBuffer>) => Uint8Array<ArrayBuffer>)[] = [];
    for (const part of [0, 0.01, 0.5, 0.9999]) {
      damaged.push((bytes) => bytes.slice(0, Math.floor(part * bytes.length)));
      damaged.push((bytes) => bytes.map((byte, i) => (i === Math.floor(part * bytes.length) ? byte ^ 4 : byte)));
    }
    damaged.push((bytes) => new Uint8Array([...bytes, 0]));
    for (const damage of damaged) {
      store.files.clear();
      for (const [name, bytes] of whole) store.files.set(name, damage(bytes));
      const { told, ...rest } = await visit(store);
      expect(rest).toMatchObject({ plansLoaded: 0, plansMade, values });
      expect(told).toEqual(['[polygrad] a kept plan is not used, and is made anew: it is damaged']);
      expect([...store.files.keys()].sort()).toEqual([...whole.keys()].sort());
      for (const [name, bytes] of store.files) expect(bytes).toEqual(whole.get(name));
    }
  });

  it('are whole only with every one of their bytes', async () => {
    const store = new MemoryPlans();
    await visit(store);
    const [bytes] = [...store.files.values()].sort((a, b) => a.length - b.length);
    expect(await unseal(bytes!)).not.toBeNull();
    for (let at = 0; at < bytes!.length; at++) {
      const changed = bytes!.slice();
      changed[at]! ^= 1 << (at % 8);
      expect(await unseal(changed), `byte ${at}`).toBeNull();
      expect(await unseal(bytes!.slice(0, at)), `${at} bytes`).toBeNull();
    }
  });

  it('are the same with sizes that share plans, and after clearPlans', async () => {
    const sizes = async (): Promise<number[][]> => {
      const found: number[][] = [];
      for (const n of [9, 13, 9, 40, 33]) {
        const y = pg.scope(() => pg.softmax(pg.tensor(Float32Array.from(numbers(3 * n)), { shape: [n, 3] })));
        found.push([...((await y.data()) as Float32Array)]);
        y.dispose();
        if (n === 40) pg.clearPlans();
      }
      return found;
    };
    const store = new MemoryPlans();
    const counts = () => {
      const { binds, families, plansMade, plansLoaded } = pg.stats();
      return { binds, families, made: plansMade + plansLoaded };
    };
    const run = () => asProcess(reference(), { store }, async () => ({ values: await sizes(), counts: counts() }));
    const alone = await run();
    expect(alone.counts.binds).toBeGreaterThan(0);
    expect(await run()).toEqual(alone);
  });

  it('are made anew where the driver refuses a kernel only when it runs, and nothing is lost', async () => {
    const store = new MemoryPlans();
    const { values, plansMade } = await visit(store);
    /** An engine whose driver compiles late: it refuses the first kernels it was given. */
    const late = (refusals: number): IEngine => {
      const inner = reference();
      const bad = new Set<unknown>();
      return new Proxy(inner, {
        get(target, name) {
          if (name === 'compile')
            return (programs: Parameters<IEngine['compile']>[0]) => {
              const kernels = target.compile(programs);
              for (const kernel of kernels) if (bad.size < refusals) bad.add(kernel);
              return kernels;
            };
          if (name === 'submit')
            return (commands: Parameters<IEngine['submit']>[0]) => {
              for (const c of commands)
                if (c.kind === 'dispatch' && bad.has(c.kernel))
                  throw new pg.CompileError('reference', c.kernel.program.name, 'the driver does not like it', '');
              target.submit(commands);
            };
          const member: unknown = Reflect.get(target, name);
          return typeof member === 'function' ? member.bind(target) : member;
        },
      });
    };
    const refused = await visit(store, late(1));
    expect(refused.values).toEqual(values);
    expect(refused.told).toEqual([expect.stringMatching(/kept plan is not used.*the driver does not like it/)]);
    expect(refused.plansLoaded).toBeLessThan(plansMade + 1);
    // Written again, for the next process.
    expect(await visit(store)).toMatchObject({ plansLoaded: plansMade, plansMade: 0, values });
    // A driver that refuses what is made anew too is told of.
    await expect(visit(store, late(1000))).rejects.toThrow(/the driver does not like it/);
  });

  it('can be left: a cache that is stopped is asked for nothing', async () => {
    const store = new MemoryPlans();
    await asProcess(reference(), { store }, async ({ plans }) => {
      plans.stop();
      await work();
      expect(pg.stats().plansLoaded).toBe(0);
    });
    expect(store.files.size).toBe(0);
  });

  it('keep nothing in memory that plans do not', async () => {
    const store = new MemoryPlans();
    await visit(store);
    await asProcess(reference(), { store }, async () => {
      await work();
      pg.clearPlans();
      await work();
      expect(pg.memory().numBuffers).toBe(0);
    });
  });
});

it('plans know the version of the packages', () => {
  const { version: packaged } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  expect(version).toBe(packaged);
});

describe('stores that fail', () => {
  const failing = (what: 'load' | 'save' | 'remove'): MemoryPlans => {
    const store = new MemoryPlans();
    Object.assign(store, { [what]: () => Promise.reject(new Error('no space left on device')) });
    return store;
  };

  it.each(['load', 'save'] as const)('are as none, and told of once: %s', async (what) => {
    const store = failing(what);
    const { told, plansLoaded } = await asProcess(reference(), { store }, async ({ plans, told }) => {
      await work();
      await plans.saved();
      return { told, plansLoaded: pg.stats().plansLoaded };
    });
    expect(plansLoaded).toBe(0);
    expect(told.length).toBe(1);
    expect(told[0]).toMatch(/^\[polygrad\] plans cannot be (read|kept): no space left on device$/);
  });

  it('without hashes are none', async () => {
    const { subtle } = globalThis.crypto;
    Object.defineProperty(globalThis.crypto, 'subtle', { value: undefined, configurable: true });
    try {
      const store = new MemoryPlans();
      const { plansLoaded, told } = await visit(store);
      expect(plansLoaded).toBe(0);
      expect(told).toEqual([expect.stringMatching(/crypto.subtle is missing/)]);
    } finally {
      Object.defineProperty(globalThis.crypto, 'subtle', { value: subtle, configurable: true });
    }
  });

  it('are written to by all plans, whenever they are made', async () => {
    const store = new MemoryPlans();
    await asProcess(reference(), { store }, async () => {
      for (let n = 1; n < 6; n++) {
        const y = pg.scope(() => Array.from({ length: n }).reduce((t: pg.Tensor) => t.exp(), pg.zeros([2])));
        await y.data();
        y.dispose();
        // Writing goes on by itself: it is waited for after every second plan, so that it has just ended, or has not.
        if (n % 2 === 0) await written(store);
      }
      await written(store);
      expect(store.files.size).toBe(pg.stats().plansMade);
    });
  });

  it('that cannot remove what is damaged do no harm', async () => {
    const store = failing('remove');
    const { values } = await visit(store);
    for (const [name, bytes] of store.files) store.files.set(name, bytes.slice(1));
    expect((await visit(store)).values).toEqual(values);
  });
});

/** What outputs of a random graph are, as bits. */
async function bitsOf(choices: readonly number[]): Promise<Uint8Array[]> {
  const leaves: Node[] = [];
  const { outputs } = growGraph(choices, (values, shape, dtype) => {
    const array = dtype === 'float32' ? Float32Array.from(values) : Int32Array.from(values);
    const node = uploadNode(array, shape, dtype);
    leaves.push(node);
    return node;
  });
  for (const node of [...leaves, ...outputs]) retain(node);
  flushNodes(outputs);
  const found: Uint8Array[] = [];
  for (const node of outputs) {
    const data = (await readNode(node)) as Float32Array;
    found.push(new Uint8Array(data.buffer, data.byteOffset, data.byteLength).slice());
  }
  for (const node of [...outputs, ...leaves]) release(node);
  return found;
}

const engines: readonly [string, () => IEngine][] = [
  ['vectors', () => createReferenceEngine({ nativeFunctions: true })],
  ['groups', () => createReferenceEngine({ nativeFunctions: true, simt: true })],
  [
    '6 bindings and no arenas',
    () => {
      const engine = createReferenceEngine({ nativeFunctions: true });
      return { ...engine, caps: { ...engine.caps, maxBindings: 6, arena: false, bindAlign: 256 } };
    },
  ],
];

describe.each(engines)('random graphs, %s', (_, make) => {
  it('are the same bits with plans of another process, which are written alike when they are made again', async () => {
    const choices = fc.array(fc.nat({ max: 9999 }), { minLength: 20, maxLength: 120 });
    await fc.assert(
      fc.asyncProperty(choices, async (list) => {
        const [store, again] = [new MemoryPlans(), new MemoryPlans()];
        const fresh = await asProcess(make(), { store }, () => bitsOf(list));
        const kept = await asProcess(make(), { store }, async () => {
          const bits = await bitsOf(list);
          expect(pg.stats()).toMatchObject({ plansMade: 0 });
          return bits;
        });
        expect(kept).toEqual(fresh);
        await asProcess(make(), { store: again }, () => bitsOf(list));
        expect(again.files).toEqual(store.files);
      }),
      { numRuns: Number(process.env.FUZZ_RUNS ?? 12), seed: 7 },
    );
  });
});
