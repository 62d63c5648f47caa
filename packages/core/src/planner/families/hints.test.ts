import { afterEach, beforeEach, expect, it } from 'vitest';
import { createNullEngine } from '@polygrad/testing';
import { concat, setEngine, tensor, type Tensor } from '../../index.ts';
import { profile } from '../../runtime/profile.ts';
import { vectorLowering } from '../../targets/vectors.ts';
import {
  createRuntime,
  flush,
  type Runtime,
  setDynamicSizes,
  setLogger,
  stats,
  useRuntime,
} from '../../runtime/runtime.ts';

let before: Runtime;
let said: string[];

beforeEach(async () => {
  before = useRuntime(createRuntime());
  const engine = createNullEngine();
  await setEngine({ ...engine, caps: { ...engine.caps, lowering: vectorLowering } });
  said = [];
  setLogger((text) => said.push(text));
});
afterEach(() => {
  useRuntime(before);
});

const rows = (n: number): Tensor => tensor(new Float32Array(3 * n), { shape: [n, 3] });

function run(n: number, f: (x: Tensor) => Tensor): void {
  using x = rows(n);
  using y = f(x);
  flush();
  expect(y.shape.length).toBe(2);
}

const flipped = (x: Tensor): Tensor => x.flip(0).add(1);
const plain = (x: Tensor): Tensor => x.mul(2).add(1);

it('says once which shapes change, after twenty plans of one form in a row', async () => {
  for (let n = 2; n < 21; n++) run(n, flipped);
  await null;
  expect(said).toEqual([]);
  run(21, flipped);
  await null;
  expect(said).toHaveLength(1);
  expect(said[0]).toMatch(
    /^\[polygrad\] 20 new plans in a row for one computation, because shapes of its data change: \[2, 3\] became \[21, 3\]\. /,
  );
  for (let n = 22; n < 80; n++) run(n, flipped);
  await null;
  expect(said).toHaveLength(1);
});

it('says it where one of many sizes is 1 now and then', async () => {
  for (let turn = 0; turn < 24; turn++) {
    const tables = Array.from({ length: 12 }, (_, k) => rows(k === turn % 12 ? 1 : 2 + ((turn * 7 + k * 5) % 11)));
    using y = concat(tables.map(flipped));
    flush();
    expect(y.shape[1]).toBe(3);
    for (const table of tables) table.dispose();
  }
  await null;
  expect(said).toHaveLength(1);
  expect(said[0]).toContain('20 new plans in a row for one computation, because shapes of its data change');
});

it('says nothing where sizes share plans, or never shall', async () => {
  for (let n = 2; n < 80; n++) run(n, plain);
  setDynamicSizes('never');
  for (let n = 2; n < 80; n++) run(n, flipped);
  await null;
  expect(said).toEqual([]);
});

it('says nothing where plans are met again in between', async () => {
  for (let n = 2; n < 40; n++) {
    run(n, flipped);
    for (let again = 0; again < 101; again++) run(n, flipped);
  }
  await null;
  expect(said).toEqual([]);
});

it('says it of engines on which no sizes share plans, too', async () => {
  const engine = createNullEngine();
  const { lowering } = engine.caps;
  Object.defineProperty(engine, 'caps', { value: { ...engine.caps, lowering: { ...lowering, sizes: false } } });
  await setEngine(engine);
  expect(stats().families).toBe(0);
  for (let n = 2; n < 40; n++) run(n, plain);
  await null;
  expect(said).toHaveLength(1);
  expect(stats()).toMatchObject({ families: 0, binds: 0, planMisses: 38, plansMade: 38 });
});

it('says it to nobody where there is no logger', async () => {
  setLogger(null);
  for (let n = 2; n < 40; n++) run(n, flipped);
  await null;
  expect(said).toEqual([]);
  expect(() => setLogger(3 as never)).toThrow('[setLogger]');
});

it('leaves data that is read backwards plans of its own', () => {
  for (let n = 9; n < 15; n++) run(n, (x) => x.flip(0).mul(2));
  expect(stats()).toMatchObject({ families: 0, binds: 0, plansMade: 6 });
});

it('profiles tell plans made from sizes bound', async () => {
  const report = await profile(() => {
    for (const n of [40, 41, 42, 43, 42]) run(n, plain);
  });
  // One of its own, one for the class.
  expect(report).toMatchObject({ newPlans: 2, binds: 3, submits: 5 });
  expect(report.planning).toBeGreaterThan(0);
  expect(report.planning).toBeLessThanOrEqual(report.milliseconds);
  expect(JSON.parse(JSON.stringify(report))).toMatchObject({ newPlans: 2, binds: 3, planning: report.planning });
  expect(stats()).toMatchObject({ planMisses: 4, planHits: 1, plansMade: 2, families: 1, binds: 3 });
});
