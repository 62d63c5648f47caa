/**
 * `node apps/bench/dist/commands/neighbours.js [--filter TEXT] [--threads N] [--turns N]`: sizes around powers of two, primes among them, in
 * alternation in one process. Lists those more than 25 % below their neighbours.
 *
 * Sizes of a group differ by less than one part in five, and each takes its turn in every round. So a processor that changes its speed does so for
 * all of them. A size is compared by time for an element, best of all turns, with the median of its group.
 */
import { createCpuEngine } from '@polygrad/backend-cpu';
import { cast, setEngine, type Tensor, tensor } from '@polygrad/core';
import { type Family, families } from './neighbour-families.ts';
import { uses } from './neighbour-uses.ts';
import { numbers, repetitions, timed } from './turns.ts';
import { optionsOf } from './usage.ts';

/** Sizes about a power of two: neighbours, a prime among them. */
function sizesAround(centre: number): number[] {
  const step = Math.max(1, Math.floor(centre / 16));
  return [...new Set([centre - step, centre - 1, centre, centre + 1, centre + 3, centre + step])];
}

/** Milliseconds a sample takes at least. */
const sampleMs = 0.4;

function operand({ dtype }: Family, shape: readonly number[], seed: number): Tensor {
  const x = numbers(shape, seed);
  return dtype === undefined ? x : cast(x, dtype);
}

/** Every place below `n` once: steps of a number that shares no factor with most others. */
function placesIn(n: number): Tensor {
  return tensor(Int32Array.from({ length: n }, (_, i) => (i * 7919) % n));
}

/** Nanoseconds for an element, best of all turns, by size. */
async function measure(family: Family, centre: number, turns: number): Promise<Map<number, number>> {
  const entries = [];
  for (const n of sizesAround(centre)) {
    const a = operand(family, family.shape(n), 1);
    const places = family.places === true ? placesIn(family.shape(n)[0]!) : undefined;
    const b = places ?? (family.second === undefined ? a : operand(family, family.second(n), 2));
    const run = (): Tensor => family.run(a, b);
    const times = await repetitions(run, 12, sampleMs);
    entries.push({ n, work: family.work?.(n) ?? a.size, operands: [a, b], run, times, best: Number.POSITIVE_INFINITY });
  }
  for (let turn = 0; turn < turns; turn++) {
    for (let k = 0; k < entries.length; k++) {
      const entry = entries[(k + turn) % entries.length] as (typeof entries)[number];
      entry.best = Math.min(entry.best, await timed(entry.run, entry.times));
    }
  }
  for (const { operands } of entries) for (const t of new Set(operands)) t.dispose();
  return new Map(entries.map(({ n, work, best }) => [n, (best * 1e6) / work]));
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((x, y) => x - y);
  return sorted[sorted.length >> 1]!;
}

const values = optionsOf(import.meta.url, {
  filter: { type: 'string' },
  threads: { type: 'string' },
  turns: { type: 'string' },
});
const turns = Number(values.turns ?? 30);
await setEngine(createCpuEngine({ threads: Number(values.threads ?? 1) }));
let cliffs = 0;
for (const family of [...families, ...uses]) {
  if (values.filter !== undefined && !family.name.includes(values.filter)) continue;
  for (const centre of family.centres) {
    const found = await measure(family, centre, turns);
    const middle = median([...found.values()]);
    const cells = [...found].map(([n, ns]) => {
      const ratio = middle / ns;
      if (ratio < 0.75) cliffs++;
      return `${n}: ${ratio.toFixed(2)}${ratio < 0.75 ? ' CLIFF' : ''}`;
    });
    process.stdout.write(`${family.name.padEnd(18)} ${middle.toFixed(3).padStart(8)} ns  ${cells.join('  ')}\n`);
  }
}
process.stdout.write(`${cliffs} of these sizes are more than 25 % below their neighbours\n`);
process.exit(0);
