/**
 * `node apps/bench/dist/commands/shared-plans.js [--engine NAME] [--suite NAMES] [--filter TEXT] [--rounds N] [--quick]`: kernels of plans that are made for
 * a class of sizes beside those made for one size, over the rows of other suites.
 *
 * Each row is prepared twice in one process, on engines of their own. Both have met the same work with one row less, as the last batch of an epoch is, so that
 * buffers lie alike. One plans each size for itself; with the other the row's size shares the plan of its class. They take turns, and the least time of each inside of `submit` is compared:
 * recording and planning are the same for both, or done before. Where another process had the processor, processor time counts. Rows that had a plan of their own nevertheless are counted apart.
 */
import { getEngine, setDynamicSizes, setEngine, stats } from '@polygrad/core';
import type { IEngine } from '@polygrad/core/engine';
import { geometricMean } from '../harness/stats.ts';
import { load } from '../reports/machine.ts';
import { createRunner } from '../runners/polygrad.ts';
import { prepareNetwork } from '../runners/polygrad-network.ts';
import type { Prepared } from '../runners/runner.ts';
import { elementwise } from '../suites/elementwise.ts';
import { gemm } from '../suites/gemm.ts';
import { networks } from '../suites/networks.ts';
import type { Work } from '../work/cases.ts';
import { tools } from '../work/tools.ts';
import { optionsOf } from './usage.ts';

/** Nanoseconds that a sample takes at least. */
const sampleNs = 2e6;

interface Side {
  readonly prepared: Prepared;
  readonly engine: IEngine;
  /** Plans that were bound to the sizes. */
  binds: number;
  /** Nanoseconds inside of `submit` since they were last set to zero, by the clock and of the processor. */
  clock: number;
  processor: number;
  best: number;
  count: number;
}

/** The same work with one row less; null where it has no rows that may change. */
function oneLess(work: Work): Work | null {
  switch (work.kind) {
    case 'add':
    case 'chain':
    case 'sum':
      return { ...work, n: work.n - 1 };
    case 'gemm':
      return work.m > 2 ? { ...work, m: work.m - 1 } : null;
    case 'conv':
    case 'network':
      return work.batch > 2 ? { ...work, batch: work.batch - 1 } : null;
    default:
      return null;
  }
}

/** Work on an engine of its own, which has met `before`; `shares`: sizes share plans there. */
async function sideOf(engineName: string, work: Work, before: Work, shares: boolean): Promise<Side> {
  const runner = await createRunner({ engine: engineName, threads: 1, folder: '', tools });
  const engine = getEngine();
  // A runner makes an engine for each network, which would know nothing of the one before.
  const prepare = (one: Work): Promise<Prepared> | Prepared =>
    one.kind === 'network' ? prepareNetwork(tools, one) : runner.prepare(one);
  setDynamicSizes(shares ? 'automatic' : 'never');
  const earlier = await prepare(before);
  await earlier.run(1);
  earlier.dispose();
  const prepared = await prepare(work);
  const side: Side = { prepared, engine, binds: 0, clock: 0, processor: 0, best: Number.POSITIVE_INFINITY, count: 1 };
  const submit = engine.submit.bind(engine);
  engine.submit = (commands) => {
    const before = process.cpuUsage();
    const start = process.hrtime.bigint();
    submit(commands);
    side.clock += Number(process.hrtime.bigint() - start);
    const { user, system } = process.cpuUsage(before);
    side.processor += (user + system) * 1e3;
  };
  await prepared.run(2);
  side.binds = stats().binds;
  return side;
}

/** Nanoseconds of one repetition inside of `submit`. */
async function sample(side: Side): Promise<number> {
  await setEngine(side.engine);
  side.clock = side.processor = 0;
  await side.prepared.run(side.count);
  return Math.min(side.clock, side.processor || side.clock) / side.count;
}

const values = optionsOf(import.meta.url, {
  engine: { type: 'string', default: 'native' },
  suite: { type: 'string', default: 'elementwise,gemm,networks' },
  filter: { type: 'string' },
  rounds: { type: 'string', default: '12' },
  quick: { type: 'boolean', default: false },
});
const rounds = Number(values.rounds);
const wanted = values.suite.split(',');
const ratios: { readonly name: string; readonly ratio: number }[] = [];
let own = 0;
process.stdout.write(`${values.engine}, one thread, least of ${rounds} turns, load ${load().toFixed(0)}\n`);
for (const suite of [elementwise, gemm, networks]) {
  if (!wanted.includes(suite.name)) continue;
  for (const { id, work } of suite.cases(values.quick)) {
    const name = `${suite.name} ${id}`;
    const before = oneLess(work);
    if (before === null || (values.filter !== undefined && !name.includes(values.filter))) continue;
    const sides = [
      await sideOf(values.engine, work, before, false),
      await sideOf(values.engine, work, before, true),
    ] as const;
    for (const side of sides) {
      const once = await sample(side);
      side.count = Math.max(1, Math.ceil(sampleNs / once));
    }
    for (let round = 0; round < rounds; round++)
      for (const side of sides) side.best = Math.min(side.best, await sample(side));
    const [one, shared] = sides;
    for (const { prepared, engine } of sides) {
      await setEngine(engine);
      prepared.dispose();
    }
    for (const { engine } of sides) engine.dispose();
    const ratio = one.best / shared.best;
    if (shared.binds === 0) own++;
    else ratios.push({ name, ratio });
    const times = `${(one.best / 1e3).toFixed(1).padStart(10)} us  ${(shared.best / 1e3).toFixed(1).padStart(10)} us`;
    process.stdout.write(`${name.padEnd(26)} ${times}  ${shared.binds === 0 ? 'own plans' : ratio.toFixed(3)}\n`);
  }
}
const sorted = [...ratios].sort((a, b) => a.ratio - b.ratio);
if (sorted.length > 0) {
  const middle = sorted[sorted.length >> 1]!.ratio;
  const mean = geometricMean(sorted.map(({ ratio }) => ratio));
  const below = sorted.filter(({ ratio }) => ratio < 0.9).map(({ name, ratio }) => `${name} ${ratio.toFixed(2)}`);
  process.stdout.write(
    `${sorted.length} rows with shared plans: median ${middle.toFixed(3)}, geometric mean ${mean.toFixed(3)}, least ${sorted[0]!.ratio.toFixed(3)}; ${own} with plans of their own\n`,
  );
  process.stdout.write(`below 0.90: ${below.length === 0 ? 'none' : below.join(', ')}\n`);
}
process.exit(0);
