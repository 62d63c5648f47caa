import { beforeAll, expect, it } from 'vitest';
import { setEngine } from '../../engine/registry.ts';
import * as pg from '../../index.ts';
import { createReferenceEngine } from '@polygrad/testing';

beforeAll(() => setEngine(createReferenceEngine()));

const numbers = (shape: readonly [number, number], salt: number): pg.Tensor =>
  pg.tensor(
    Float64Array.from({ length: shape[0] * shape[1] }, (_, i) => 0.5 + ((i * 7 + salt * 5 + ((i * i) % 11)) % 13) / 13),
    { shape },
  );

/** The derivative of a weighted gradient of squared cosines between columns, some of which are taken from a larger matrix. */
function secondDerivatives(columns: number): pg.Tensor[] {
  const [rows, all] = [5, columns + 20];
  const which = pg.tensor(
    Array.from({ length: columns }, (_, i) => (i * 7) % all),
    { dtype: 'int32' },
  );
  const cosines = (a: pg.Tensor, b: pg.Tensor) =>
    pg.sum(pg.square(pg.cosineSimilarity(pg.take(a, which, 1), b, { axis: 0 })));
  const weights = numbers([rows, all], 3);
  const tilt = (a: pg.Tensor, b: pg.Tensor) => pg.sum(pg.mul(pg.grads(cosines)(a, b)[0] as pg.Tensor, weights));
  return pg.grads(tilt)(numbers([rows, all], 1), numbers([rows, columns], 2)) as pg.Tensor[];
}

it.each([8, 11, 12, 13, 20])('what is kept beside a loop is that of its part: %i columns in parts', async (columns) => {
  const together = secondDerivatives(columns);
  pg.flush();
  pg.setEager(true);
  const apart = secondDerivatives(columns);
  pg.setEager(false);
  for (const [i, t] of together.entries()) {
    const expected = await (apart[i] as pg.Tensor).data();
    for (const [k, x] of (await t.data()).entries()) expect(x).toBeCloseTo(Number(expected[k]), 10);
  }
});

it.each([40, 60, 65])('what is the greatest of sums is still equal to one of them: %i sums', async (n) => {
  // Groups of threads have no rows of sums: each loop would take them again, in its own order.
  await setEngine(createReferenceEngine({ simt: true }));
  const fractions = (salt: number): number[] => Array.from({ length: n }, (_, i) => Math.sin(13 * i + salt));
  const [xs, ws] = [fractions(1), fractions(2)];
  const greatest = (x: pg.Tensor, w: pg.Tensor) => pg.max(pg.mean(pg.mul(pg.unsqueeze(x, 1), pg.unsqueeze(w, 0)), 1));
  const slopes = pg.grads(greatest)(pg.tensor(xs, { dtype: 'float64' }), pg.tensor(ws, { dtype: 'float64' }));
  const mean = ws.reduce((a, b) => a + b, 0) / n;
  const best = xs.reduce((at, x, i) => (x * mean > xs[at]! * mean ? i : at), 0);
  for (const [i, slope] of (await slopes[0]!.data()).entries()) expect(slope).toBeCloseTo(i === best ? mean : 0, 12);
  for (const [i, slope] of (await slopes[1]!.data()).entries()) expect(slope, `${i}`).toBeCloseTo(xs[best]! / n, 12);

  const means = pg.mean(pg.mul(pg.tensor(xs).unsqueeze(1), pg.tensor(ws).unsqueeze(0)), 1);
  const found = [pg.greaterEqual(means, pg.max(means)), pg.lessEqual(means, pg.min(means))];
  for (const flags of found) expect(await pg.countNonZero(flags).item()).toBe(1);
});

it.each([60, 65])('what differs from the greatest of sums by nothing is one of them: %i sums', async (n) => {
  await setEngine(createReferenceEngine({ simt: true }));
  const fractions = (salt: number): pg.Tensor =>
    pg.tensor(Array.from({ length: n }, (_, i) => Math.sin(13 * i + salt)));
  const [x, w] = [fractions(1), fractions(2)];
  const means = pg.mean(pg.mul(pg.unsqueeze(x, 1), pg.unsqueeze(w, 0)), 1);
  const isGreatest = pg.greaterEqual(pg.sub(means, pg.max(means)), 0).cast('float32');
  const shares = pg.mul(pg.unsqueeze(pg.div(isGreatest, pg.sum(isGreatest)), 1), pg.unsqueeze(w, 0));
  expect(await pg.countNonZero(pg.sum(shares, 1)).item()).toBe(1);
});
