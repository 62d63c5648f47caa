/** The suite with plans of an earlier engine: all that is read is the same bits. */
import { createCpuEngine } from '@polygrad/backend-cpu';
import { createNativeEngine } from '@polygrad/backend-native';
import { getEngine, setDynamicSizes, setEngine, setLogger, stats } from '@polygrad/core';
import { type Binding, getBackend, type IEngine } from '@polygrad/core/engine';
import { type PlanStore, type StoredEntry, usePlanCache } from '@polygrad/core/plans';
import { createReferenceEngine } from '@polygrad/testing';
import { afterEach, expect, it } from 'vitest';
import { runConformance } from './run.ts';

/** Entries in memory. */
class MemoryPlans implements PlanStore {
  readonly files = new Map<string, Uint8Array<ArrayBuffer>>();
  removed = 0;
  async load(prefix: string): Promise<readonly StoredEntry[]> {
    return [...this.files].flatMap(([name, bytes]) => (name.startsWith(prefix) ? [{ name, bytes }] : []));
  }
  async save(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    this.files.set(name, bytes);
  }
  async remove(name: string): Promise<void> {
    this.files.delete(name);
    this.removed++;
  }
}

/** The suite on an engine with these plans: what each case read, and how many plans were made and found. */
async function pass(engine: IEngine, store: PlanStore, sample: number) {
  const reads: Buffer[] = [];
  const cases = new Map<string, { outcome: string; reads: Buffer[] }>();
  const listening = new Proxy(engine, {
    get(target, key) {
      if (key === 'download')
        return async (from: Binding, into: Uint8Array): Promise<Uint8Array> => {
          const bytes = await target.download(from, into);
          reads.push(Buffer.from(bytes.slice(0, from.bytes)));
          return bytes;
        };
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  await setEngine(listening);
  const told: string[] = [];
  setLogger((text) => void told.push(text));
  const plans = await usePlanCache({ store, version: 'suite', mostBytes: 2 ** 32, mostPlans: 1_000_000 });
  const onResult = ({ name, outcome }: { name: string; outcome: string }): void => {
    cases.set(name, { outcome, reads: reads.splice(0) });
  };
  const report = await runConformance({ engine: listening, sample, goldens: null, onResult });
  const { plansMade, plansLoaded } = stats(getEngine());
  await plans.saved();
  plans.stop();
  engine.dispose();
  expect(report.failed).toBe(0);
  return { cases, plansMade, plansLoaded, told: told.filter((text) => text.includes('kept plan')) };
}

const engines: [string, number, () => IEngine | Promise<IEngine>][] = [
  ['CPU engine', 31, () => createCpuEngine({ threads: 1 })],
  ['CPU engine, threads', 47, () => createCpuEngine({ threads: 2 })],
  ['reference engine', 61, () => createReferenceEngine()],
  ['reference engine with groups', 61, () => createReferenceEngine({ simt: true })],
];
const { score, reason } = await getBackend('native')!.probe();
const isRequired = (process.env.POLYGRAD_REQUIRE ?? '').split(',').includes('native');
if (score > 0 || isRequired) engines.push(['native engine', 53, () => createNativeEngine({ threads: 1 })]);
else console.warn(`plans of the native engine are not tested: ${reason}`);

const rows = engines.flatMap(([name, sample, make]) => [
  [name, 'automatic', sample, make] as const,
  [name, 'always', sample + 8, make] as const,
]);

afterEach(() => setDynamicSizes('automatic'));

it.each(rows)('%s, sizes: %s', async (_, sizes, sample, make) => {
  setDynamicSizes(sizes);
  const store = new MemoryPlans();
  const fresh = await pass(await make(), store, sample);
  expect(fresh.plansLoaded).toBe(0);
  // Plans that wait to be written are let go while there are too many: a second pass writes the others.
  expect((await pass(await make(), store, sample)).told).toEqual([]);
  const kept = await pass(await make(), store, sample);
  expect(kept.plansLoaded).toBeGreaterThan(0.5 * fresh.plansMade);
  expect(kept.told).toEqual([]);
  expect(store.removed).toBe(0);
  expect([...kept.cases.keys()]).toEqual([...fresh.cases.keys()]);
  for (const [name, one] of fresh.cases) expect(kept.cases.get(name), name).toEqual(one);
});
