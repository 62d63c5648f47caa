/** Plans whose bytes were changed and sealed again: what does not fit the captured graph that asks is refused before it runs. */
import { createReferenceEngine } from '@polygrad/testing';
import { describe, expect, it } from 'vitest';
import type { IEngine } from '../engine/engine.ts';
import * as pg from '../index.ts';
import { KernelCache } from '../planner/lowering/kernel-cache.ts';
import { type BindingPlan, makePlan, type Plan, type PlanOptions } from '../planner/plan.ts';
import { stateOf } from '../runtime/run.ts';
import { runs } from '../runtime/state.ts';
import { Damaged } from './bytes.ts';
import { type Entry, seal, unseal } from './entries.ts';
import { asProcess, MemoryPlans } from './fixtures/processes.ts';
import { wholeKernel, wholeKernels, writePlan } from './plans.ts';
import { readPlan } from './read-plan.ts';

/** Two kernels with something between them, a number of the user and two outputs, of which one is a view of the other. */
async function work(rows = 2): Promise<number[][]> {
  const x = pg.tensor(
    Array.from({ length: 3 * rows }, (_, i) => i + 1),
    { shape: [rows, 3] },
  );
  const y = pg.tensor([1, 2, 3], { shape: [3, 1] });
  const [sum, turned] = pg.scope(() => {
    const product = x.matmul(y).mul(2.5);
    return [pg.softmax(product, { axis: 0 }).add(product), product.transpose()] as const;
  });
  pg.flush();
  const values = [sum, turned].map(async (t) => [...((await t.data()) as Float32Array)]);
  const found = await Promise.all(values);
  for (const t of [x, y, sum, turned]) t.dispose();
  return found;
}

const noCode = (): null => null;
const noPause = (): null => null;

/** Calls a function with each plan that work of some sizes needs, and with a function that reads one with kernels of its own. Returns how many. */
async function withPlans(
  engine: IEngine,
  sizes: readonly number[],
  use: (plan: Plan, read: (bytes: Uint8Array) => Plan) => Promise<void>,
): Promise<number> {
  const before = runs.makePlan;
  await pg.setEngine(engine);
  pg.clearPlans();
  const waiting: Promise<void>[] = [];
  runs.makePlan = (captured, given, sized) => {
    const plan = makePlan(captured, given, sized);
    if ((sized === null) !== (sizes.length === 1)) return plan;
    // The captured graph is another one afterwards: what it is asked is asked now.
    const { elementBytes } = stateOf(engine);
    const own = Object.create(captured, {
      nodes: { value: [...captured.nodes] },
      leaves: {
        value: Object.create(captured.leaves, {
          data: { value: captured.leaves.data.slice() },
          length: { value: captured.leaves.length },
        }),
      },
      outputs: {
        value: Object.create(captured.outputs, {
          data: { value: captured.outputs.data.slice() },
          length: { value: captured.outputs.length },
        }),
      },
      donatable: {
        value: Object.create(captured.donatable, {
          data: { value: captured.donatable.data.slice() },
          length: { value: captured.donatable.length },
        }),
      },
      count: { value: captured.count },
      foreign: { value: null },
    }) as typeof captured;
    const storages = own.nodes.map((node) => node?.storage ?? null);
    const options: PlanOptions = { engine, kernels: new KernelCache(engine), elementBytes, makePlan };
    own.storageOf = (leaf) => storages[own.nodes.indexOf(leaf)]!;
    waiting.push(use(plan, (bytes) => readPlan(bytes, wholeKernel, own, options, sized)));
    return plan;
  };
  try {
    for (const rows of sizes) await work(rows);
    await Promise.all(waiting);
  } finally {
    runs.makePlan = before;
  }
  return waiting.length;
}

type Change = (plan: Plan) => Plan | null;

const binding =
  (which: BindingPlan['kind'], change: (b: BindingPlan) => Partial<BindingPlan>): Change =>
  (plan) => {
    const at = plan.dispatches.findIndex(({ bindings }) => bindings.some(({ kind }) => kind === which));
    if (at < 0) return null;
    const dispatches = plan.dispatches.map((d, i) => {
      if (i !== at) return d;
      const slot = d.bindings.findIndex(({ kind }) => kind === which);
      return { ...d, bindings: d.bindings.map((b, s) => (s === slot ? { ...b, ...change(b) } : b)) };
    });
    return { ...plan, dispatches };
  };
const output =
  (change: (o: Plan['outputs'][number]) => Partial<Plan['outputs'][number]>): Change =>
  (plan) => ({ ...plan, outputs: [{ ...plan.outputs[0]!, ...change(plan.outputs[0]!) }, ...plan.outputs.slice(1)] });

const changes: Readonly<Record<string, Change>> = {
  'a leaf that is none': binding('leaf', () => ({ at: 9999 })),
  'a leaf of another dtype': binding('leaf', ({ unit }) => ({ unit: 2 * unit })),
  'a part before a leaf': binding('leaf', ({ offset }) => ({ offset: offset + 4 })),
  'a part behind a leaf': binding('leaf', ({ offset }) => ({ offset: offset - 4 })),
  'more of a leaf than there is': binding('leaf', ({ bytes }) => ({ bytes: bytes + 4 })),
  'less of a leaf than is read': binding('leaf', ({ bytes }) => ({ bytes: bytes - 4 })),
  'a leaf that is written': binding('taken', () => ({ kind: 'leaf', at: 0 })),
  'a buffer that is none': binding('taken', () => ({ at: 9999 })),
  'a part behind a buffer': binding('taken', ({ offset }) => ({ offset: offset + 4096 })),
  'an offset that is not aligned': binding('taken', ({ offset }) => ({ offset: offset + 1 })),
  'more of a buffer than there is': binding('taken', ({ bytes }) => ({ bytes: bytes + 4096 })),
  'less of a buffer than is written': binding('taken', ({ bytes }) => ({ bytes: bytes - 4 })),
  'a slot less': (plan) => ({
    ...plan,
    dispatches: plan.dispatches.map((d) => ({ ...d, bindings: d.bindings.slice(1) })),
  }),
  'a scalar less': (plan) =>
    plan.dispatches.some(({ scalars }) => scalars.length > 0)
      ? { ...plan, dispatches: plan.dispatches.map((d) => ({ ...d, scalars: [] })) }
      : null,
  'a scalar that is none': (plan) =>
    plan.dispatches.some(({ scalars }) => scalars.length > 0)
      ? { ...plan, dispatches: plan.dispatches.map((d) => ({ ...d, scalars: d.scalars.map(() => 0) })) }
      : null,
  'a smaller buffer': (plan) => ({ ...plan, buffers: plan.buffers.map((b) => ({ ...b, bytes: b.bytes >> 1 })) }),
  'a buffer larger than any': (plan) => ({ ...plan, buffers: plan.buffers.map((b) => ({ ...b, bytes: 2 ** 50 })) }),
  'memory that nobody gives': (plan) => ({ ...plan, buffers: plan.buffers.map((b) => ({ ...b, donor: 0 })) }),
  'a temporary that is none': binding('taken', () => ({ temp: 77 })),
  'an output less': (plan) => ({ ...plan, outputs: plan.outputs.slice(1) }),
  'an output in no buffer': output(() => ({ at: 77 })),
  'an output in a leaf': output(() => ({ leaf: true, at: 88 })),
  'an output of another rank': output(({ view }) => ({ view: { ...view, strides: [...view.strides, 1] } })),
  'an output that begins behind': output(({ view }) => ({ view: { ...view, offset: view.offset + 1000 } })),
  'an output that begins before': output(({ view }) => ({ view: { ...view, offset: view.offset - 1 } })),
  'an output of longer steps': output(({ view }) => ({
    view: { ...view, strides: view.strides.map((x) => x * 100 + 100) },
  })),
};

const kinds = { 'for one size': [2], 'for a class of sizes': [2, 3] } as const;
const refused = Object.keys(changes).flatMap((name) =>
  (Object.keys(kinds) as (keyof typeof kinds)[]).map((kind) => [name, kind] as const),
);

describe('plans that do not fit', () => {
  it.each(refused)('are refused: %s, %s', async (name, kind) => {
    let seen = 0;
    const count = await withPlans(createReferenceEngine(), kinds[kind], async (plan, read) => {
      const whole = await writePlan(plan, wholeKernels(noCode), noPause);
      const found = read(whole!);
      const places = ({ buffers, outputs, blocks, temporaries, sizes }: Plan) => ({
        ...{ buffers, outputs, blocks, temporaries, sizes },
      });
      expect(places(found)).toEqual(places(plan));
      const bound = ({ dispatches }: Plan) => dispatches.map(({ bindings, scalars }) => ({ bindings, scalars }));
      expect(bound(found)).toEqual(bound(plan));
      const changed = changes[name]!(plan);
      if (changed === null) return;
      const bytes = await writePlan(changed, wholeKernels(noCode), noPause);
      expect(() => read(bytes!), name).toThrow(Damaged);
      seen++;
    });
    expect(count).toBeGreaterThan(0);
    expect(seen).toBeGreaterThan(0);
  });

  it('never fail the program that asks, whatever byte is another', async () => {
    const store = new MemoryPlans();
    const run = () =>
      asProcess(createReferenceEngine(), { store }, async () => ({
        values: await work(),
        loaded: pg.stats().plansLoaded,
      }));
    const { values } = await run();
    const [[name, file]] = [...store.files] as [[string, Uint8Array<ArrayBuffer>]];
    const entry = (await unseal(file)) as Entry;
    const whole = new Map(store.files);
    let refused = 0;
    let tried = 0;
    for (let at = 0; at < entry.plan.length; at += 17) {
      const plan = entry.plan.slice();
      plan[at]! ^= 1 << (at % 8);
      store.files.clear();
      for (const [other, bytes] of whole) store.files.set(other, bytes);
      store.files.set(name, await seal({ ...entry, plan }));
      const found = await run().catch((error: Error) => error.message);
      tried++;
      if (typeof found === 'string') {
        // The interpreter checks what it runs.
        expect(found).not.toMatch(/undefined|null|not a function/);
        continue;
      }
      // Another number in a program runs: whoever writes the hash again writes what he will.
      if (found.loaded < whole.size) {
        refused++;
        expect(found.values).toEqual(values);
      }
    }
    expect(tried).toBeGreaterThan(10);
    expect(refused).toBeGreaterThan(tried / 4);
  });
});
