/** Random choices: positions that follow from the bits of a key, worked out here in float64; what is never drawn; logits left out. */
import * as pg from '@polygrad/core';
import type { ConformanceCase } from '../case.ts';
import { arrayOf } from '../host.ts';
import { threefry } from '../oracle/random.ts';

const numbers = async (t: pg.Tensor): Promise<readonly number[]> => (await arrayOf(t)).data;

const key: [number, number] = [5, 77];
const lines = 60;
const width = 9;
const range = (n: number): number[] => Array.from({ length: n }, (_, i) => i);

/** Noise of an element: -log of an exponential number. */
const noise = (at: number): number =>
  -Math.log(-Math.log1p(-Math.min((threefry(key, [at, 0])[0] + 0.5) * 2 ** -32, 1 - 2 ** -24)));

/** Weights of a line; every third is 0. */
const weights = range(lines * width).map((i) => (i % 3 === 1 ? 0 : 1 + ((i * 7) % 11)));

/** Positions of a line by falling score, where no neighbours are so close that rounding may decide. */
function ranked(score: (at: number) => number, line: number): { order: number[]; sure: boolean } {
  const scores = range(width).map((i) => score(line * width + i));
  const order = range(width).sort((a, b) => scores[b]! - scores[a]!);
  const sure = order.every((at, i) => i === 0 || !(scores[order[i - 1]!]! - scores[at]! < 1e-3));
  return { order, sure };
}

function compare(found: readonly number[], count: number, score: (at: number) => number): void {
  let compared = 0;
  for (let line = 0; line < lines; line++) {
    const { order, sure } = ranked(score, line);
    if (!sure) continue;
    compared++;
    const wanted = order.slice(0, count).map((at) => (score(line * width + at) === -Infinity ? -1 : at));
    const got = found.slice(line * count, line * count + count);
    if (got.join() !== wanted.join())
      throw new Error(`line ${line} has ${got.join()} where ${wanted.join()} is expected`);
  }
  if (compared < lines / 2) throw new Error(`only ${compared} lines could be compared`);
}

function equal(what: string, found: readonly number[], wanted: readonly number[]): void {
  const bad = wanted.findIndex((x, i) => !Object.is(found[i], x));
  if (bad >= 0 || found.length !== wanted.length)
    throw new Error(`${what}: element ${bad} is ${found[bad]} where ${wanted[bad]} is expected`);
}

/** A case that makes its tensors in a scope and compares what it reads. */
const sampled = (name: string, make: () => pg.Tensor, check: (found: readonly number[]) => void): ConformanceCase => ({
  name: `sampling / ${name}`,
  run: async () => {
    check(await numbers(pg.scope(make)));
    return undefined;
  },
});

const weighed = (): pg.Tensor => pg.tensor(weights, { shape: [lines, width] });

export function samplingCases(): ConformanceCase[] {
  return [
    sampled(
      'gumbel follows from the bits of its key',
      () => pg.gumbel([200], { key }),
      (found) => {
        for (const [i, x] of found.entries())
          if (!(Math.abs(x - noise(i)) <= 1e-4)) throw new Error(`element ${i} is ${x} where ${noise(i)} is expected`);
      },
    ),
    ...[1, 0.5].map((temperature) =>
      sampled(
        `categorical takes the greatest sum of logit and noise, temperature ${temperature}`,
        () => pg.categorical(pg.where(weighed().greater(0), pg.log(weighed()), -Infinity), { key, temperature }),
        (found) =>
          compare(found, 1, (at) => (weights[at] === 0 ? -Infinity : Math.log(weights[at]!) / temperature + noise(at))),
      ),
    ),
    ...[1, 4, width].map((count) =>
      sampled(
        `multinomial of ${count} without replacement, and nothing of probability 0`,
        () => pg.multinomial(weighed(), count, { key }),
        (found) => compare(found, count, (at) => (weights[at] === 0 ? -Infinity : Math.log(weights[at]!) + noise(at))),
      ),
    ),
    sampled(
      'multinomial with replacement finds places in running sums',
      () => pg.multinomial(weighed(), 50, { key, replacement: true }),
      (found) => {
        for (const [i, got] of found.entries()) {
          const line = weights.slice(Math.floor(i / 50) * width, (Math.floor(i / 50) + 1) * width);
          // Sums of these whole numbers are exact; the product may be rounded.
          const total = line.reduce((a, b) => a + b, 0);
          const target = (threefry(key, [i, 0])[0] >>> 8) * 2 ** -24 * total;
          const before = line.slice(0, got).reduce((a, b) => a + b, 0);
          if (line[got] === 0 || target < before - 1e-4 || target > before + line[got]! + 1e-4)
            throw new Error(`draw ${i} is ${got}, where ${target} of ${total} falls elsewhere`);
        }
      },
    ),
    sampled(
      'lines without a distribution are -1',
      () => {
        const bad = [
          [0, 0, 0],
          [1, Number.NaN, 1],
          [1, -1, 3],
          [1, Infinity, 1],
          [0, 1, 0],
        ].flat();
        const p = pg.tensor(bad, { shape: [5, 3] });
        return pg.concat([pg.multinomial(p, 1, { key }), pg.multinomial(p, 2, { key, replacement: true })], 1);
      },
      (found) => equal('positions', found, [...new Array<number>(12).fill(-1), 1, 1, 1]),
    ),
    sampled(
      'topKLogits and topPLogits leave the same out everywhere',
      () => {
        const logits = pg.tensor([1, 4, 2, 3, 2, 0]);
        return pg
          .concat([pg.topKLogits(logits, 3), pg.topPLogits(logits, 0.75), pg.topPLogits(logits, 0)])
          .greater(-1e30)
          .cast('int32');
      },
      (found) => equal('kept', found, [0, 1, 1, 1, 1, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0]),
    ),
  ];
}
