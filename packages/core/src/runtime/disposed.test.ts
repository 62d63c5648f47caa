/** What becomes of pending work when its engine is disposed. */
import { expect, it } from 'vitest';
import { createReferenceEngine } from '@polygrad/testing';
import * as pg from '../index.ts';

const gone =
  /engine that is disposed: values that only it had are gone; call setEngine\('reference'\) and compute them again/;

it('is told by a flush once and by every reader, and is computed after setEngine unless it needs lost values', async () => {
  const engine = createReferenceEngine();
  await pg.setEngine(engine);
  const own = pg.tensor([1, 2]);
  await own.data();
  const free = pg.add(pg.full([2], 3), 1);
  const bound = pg.add(own, 1);
  engine.dispose();
  expect(() => pg.flush()).toThrow(pg.EngineDisposedError);
  // Told once: the work is left to its readers.
  pg.flush();
  for (const t of [own, free, bound, free]) await expect(t.data()).rejects.toThrow(gone);
  // Later work is told of, too.
  const later = pg.mul(pg.full([2], 3), 2);
  expect(() => pg.flush()).toThrow(gone);
  await pg.setEngine(createReferenceEngine());
  pg.flush();
  expect([...(await free.data())]).toEqual([4, 4]);
  expect([...(await later.data())]).toEqual([6, 6]);
  await expect(bound.data()).rejects.toThrow(gone);
});

it('leaves assigned tensors as they were, and says so', async () => {
  const engine = createReferenceEngine();
  await pg.setEngine(engine);
  const x = pg.tensor([1, 2]);
  await x.data();
  x.assign(pg.add(x, 1));
  engine.dispose();
  expect(() => pg.flush()).toThrow(/disposed.*tensors assigned since the last flush have the values they had before/);
  await pg.setEngine(createReferenceEngine());
  await expect(x.data()).rejects.toThrow(gone);
  x.assign(pg.tensor([7, 8]));
  expect([...(await x.data())]).toEqual([7, 8]);
});
