/**
 * Kernels of users (`defineKernel`): every form against loops of JavaScript, indices of any value, dtypes, and what is refused. Derivatives and
 * batches are in custom-calls.ts, random bodies in custom-random.ts, threads as lanes of vectors in custom-lanes.ts.
 */
import * as pg from '@polygrad/core';
import type { DType, Tensor } from '@polygrad/core';
import { defineKernel, type KernelValue } from '@polygrad/core/custom';
import type { ConformanceCase } from '../case.ts';
import type { Target } from '../target.ts';
import { callCases } from './custom-calls.ts';
import { laneCases } from './custom-lanes.ts';
import { randomCases } from './custom-random.ts';
import { compared } from './order/values.ts';

const close = { rtol: 1e-5, atol: 1e-6 };

const i32 = (shape: readonly number[], data: readonly number[]): Tensor =>
  pg.reshape(pg.tensor([...data], { dtype: 'int32' }), [...shape]);
const f32 = (shape: readonly number[], data: readonly number[]): Tensor =>
  pg.reshape(pg.tensor([...data], { dtype: 'float32' }), [...shape]);

/** Numbers that look alike nowhere. */
const wave = (count: number): number[] => Array.from({ length: count }, (_, i) => Math.fround(Math.sin(i * 1.7) * 2));

// Elements.

const gated = defineKernel({
  name: 'gated',
  form: 'elementwise',
  inputs: { x: 'float32', gate: 'float32' },
  outputs: { y: 'x', open: 'bool' },
  body: (k, { x, gate }) => ({
    y: k.where(gate.less(0), k.constant(0), x.mul(gate.sigmoid())),
    open: gate.greaterEqual(0),
  }),
  gradient: ({ inputs: { x, gate }, grads }) => {
    const s = gate.sigmoid();
    const on = gate.greaterEqual(0).cast('float32').mul(grads.y);
    return { x: on.mul(s), gate: on.mul(x).mul(s).mul(s.neg().add(1)) };
  },
});

async function elements(): Promise<void> {
  const [x, g] = [wave(6), wave(3).reverse()];
  const { y, open } = pg.scope(() => {
    const made = gated({ x: f32([2, 3], x), gate: f32([3], g) });
    return { y: made.y, open: made.open.cast('int32') };
  });
  const at = x.map((v, i) => (g[i % 3]! < 0 ? 0 : v / (1 + Math.exp(-g[i % 3]!))));
  await compared(y, { expected: at, shape: [2, 3], tolerance: close });
  await compared(open, { expected: x.map((_, i) => Number(g[i % 3]! >= 0)), shape: [2, 3] });
}

async function elementGradients(): Promise<void> {
  const [x, g] = [wave(6), [0.5, 1, 2]];
  const composed = (a: Tensor, b: Tensor): Tensor => a.mul(b.sigmoid());
  const kernel = (a: Tensor, b: Tensor): Tensor => gated({ x: a, gate: b }).y;
  for (const order of [1, 2]) {
    const derivative = (f: (a: Tensor, b: Tensor) => Tensor): ((a: Tensor, b: Tensor) => Tensor) => {
      const once = pg.grad((a: Tensor, b: Tensor) => f(a, b).square().sum(), { argnums: 1 });
      return order === 1 ? once : pg.grad((a: Tensor, b: Tensor) => once(a, b).square().sum(), { argnums: 1 });
    };
    const wanted = pg.scope(() => derivative(composed)(f32([2, 3], x), f32([3], g)));
    const expected = await wanted.data();
    wanted.dispose();
    await compared(
      pg.scope(() => derivative(kernel)(f32([2, 3], x), f32([3], g))),
      {
        expected: [...expected].map(Number),
        tolerance: { rtol: 1e-4, atol: 1e-4 },
      },
    );
  }
}

// Threads: indices of any value.

const picked = defineKernel({
  name: 'picked',
  form: 'threads',
  inputs: { x: { dtype: 'int32', rank: 2 }, row: 'int32', column: 'int32' },
  outputs: { near: 'row', inside: 'row' },
  body: (k, { x, row, column }, { near, inside }) => {
    const [i] = k.index;
    const at = [row.at(i), column.at(i)];
    near.set(i, x.at(at));
    inside.set(i, x.at(at, -7));
  },
});

const hostile = [0, 1, 2, 3, -1, -2, 100, -100, 2 ** 31 - 1, -(2 ** 31), 2 ** 30, -(2 ** 30), 65536, 46341, -46341];

async function anyIndex(): Promise<void> {
  const pairs = hostile.flatMap((r) => hostile.map((c) => [r, c] as const));
  const [rows, columns] = [2, 3];
  const x = Array.from({ length: 6 }, (_, i) => i + 10);
  const clamp = (v: number, n: number): number => Math.max(0, Math.min(v, n - 1));
  const row = pairs.map(([r]) => r);
  const column = pairs.map(([, c]) => c);
  const { near, inside } = pg.scope(() =>
    picked({
      x: i32([2, 3], x),
      row: i32([row.length], row),
      column: i32([row.length], column),
    }),
  );
  await compared(near, { expected: pairs.map(([r, c]) => x[clamp(r, rows) * columns + clamp(c, columns)]!) });
  const within = (r: number, c: number): boolean => r >= 0 && r < rows && c >= 0 && c < columns;
  await compared(inside, { expected: pairs.map(([r, c]) => (within(r, c) ? x[r * columns + c]! : -7)) });
}

const thrown = defineKernel({
  name: 'thrown',
  form: 'threads',
  inputs: { to: 'int32' },
  outputs: { y: () => ({ shape: [4, 2], dtype: 'int32' }), after: 'to' },
  grid: ({ to }) => to.shape,
  body: (k, { to }, { y, after }) => {
    const [i] = k.index;
    // Sums that wrap are indices like others.
    y.set(
      [
        to.at(i),
        to
          .at(i)
          .add(2 ** 31 - 1)
          .add(1),
      ],
      i.add(1),
    );
    y.set([to.at(i), 1], i.add(1));
    after.set(to.at(i).mul(65536).mul(65536).add(i), i);
  },
});

async function writesOutside(): Promise<void> {
  const to = hostile;
  const { y, after } = pg.scope(() => thrown({ to: i32([to.length], to) }));
  const expected = new Array<number>(8).fill(0);
  to.forEach((r, i) => {
    if (r >= 0 && r < 4) expected[r * 2 + 1] = i + 1;
  });
  const second = (r: number): number => (r + 2 ** 31) | 0;
  to.forEach((r, i) => {
    const c = second(r);
    if (r >= 0 && r < 4 && c >= 0 && c < 2) expected[r * 2 + c] = i + 1;
  });
  await compared(y, { expected, shape: [4, 2] });
  await compared(after, { expected: to.map((_, i) => i) });
}

/** Elements of an output that no thread writes are 0, on memory that was used before. */
async function unwritten(): Promise<void> {
  const even = defineKernel({
    name: 'even',
    form: 'threads',
    inputs: { x: 'float32' },
    outputs: { y: 'x' },
    body: (k, { x }, { y }) => {
      const [i] = k.index;
      k.ifThen(i.remainder(2).equal(0), () => y.set(i, x.at(i)));
    },
  });
  const n = 1000;
  for (let turn = 0; turn < 3; turn++) {
    const dirty = pg.scope(() => pg.full([n], 5 + turn).mul(2));
    await dirty.data();
    dirty.dispose();
    await compared(
      pg.scope(() => even({ x: pg.full([n], 3) }).y),
      {
        expected: Array.from({ length: n }, (_, i) => (i % 2 === 0 ? 3 : 0)),
      },
    );
  }
}

// Groups: memory that threads share, and barriers.

const reversedRows = defineKernel({
  name: 'reversedRows',
  form: 'groups',
  threads: 32,
  inputs: { x: { dtype: 'float32', rank: 2 } },
  outputs: {
    y: 'x',
    total: ({ x }) => ({ shape: x.shape.slice(0, 1), dtype: 'float32' }),
    most: ({ x }) => ({ shape: x.shape.slice(0, 1), dtype: 'int32' }),
  },
  body: (k, { x }, { y, total, most }) => {
    const [row] = k.index;
    const n = x.size(1);
    const line = k.shared('float32', n);
    k.each(n, (i) => line.set(i, x.at([row, i])));
    k.barrier();
    k.each(n, (i) => y.set([row, i], line.at(i.neg().add(n - 1))));
    const { sum, max } = k.fold(n, {
      start: { sum: 0, max: Number.NEGATIVE_INFINITY },
      step: ({ sum, max }, i) => ({ sum: sum.add(line.at(i)), max: max.maximum(line.at(i)) }),
      combine: (a, b) => ({ sum: a.sum.add(b.sum), max: a.max.maximum(b.max) }),
    });
    total.set(row, sum);
    most.set(row, max.mul(1000).cast('int32'));
  },
});

async function groupsOf(n: number): Promise<void> {
  const rows = 5;
  const x = wave(rows * n);
  const { y, total, most } = pg.scope(() => reversedRows({ x: f32([rows, n], x) }));
  const lines = Array.from({ length: rows }, (_, r) => x.slice(r * n, (r + 1) * n));
  await compared(y, { expected: lines.flatMap((line) => [...line].reverse()), shape: [rows, n] });
  await compared(total, {
    expected: lines.map((line) => line.reduce((a, b) => a + b, 0)),
    tolerance: { rtol: 1e-5, atol: 1e-4 },
  });
  await compared(most, {
    expected: lines.map((line) => Math.trunc(Math.fround(Math.max(...line) * 1000))),
    tolerance: { rtol: 0, atol: 1 },
  });
}

/** Eight neighbours tell each other their numbers, in a group of many such parts. */
const ofNeighbours = defineKernel({
  name: 'ofNeighbours',
  form: 'groups',
  threads: 128,
  inputs: { x: { dtype: 'int32', rank: 2 } },
  outputs: { y: 'x' },
  body: (k, { x }, { y }) => {
    const [row] = k.index;
    const n = x.size(1);
    const line = k.shared('int32', n);
    // Each thread has the same eight numbers of a row as its seven neighbours, whatever the size of a group.
    const parts = Math.max(1, k.threads / 8);
    const own = k.threads / parts;
    const [part, first] = [k.thread.floorDivide(own), k.thread.remainder(own)];
    k.loop(Math.ceil(n / 8 / parts), (turn) => {
      const start = turn.mul(parts).add(part).mul(8);
      const each = (body: (i: KernelValue) => void): void =>
        k.loop(8 / own, (step) => {
          const i = start.add(first).add(step.mul(own));
          k.ifThen(i.less(n), () => body(i));
        });
      each((i) => line.set(i, x.at([row, i])));
      k.barrier(8);
      each((i) => y.set([row, i], line.at(i.bitwiseXor(1).minimum(n - 1))));
      k.barrier(8);
    });
  },
});

async function partsOfGroups(n: number): Promise<void> {
  const rows = 3;
  const x = Int32Array.from({ length: rows * n }, (_, i) => (i * 37) % 101);
  const { y } = pg.scope(() => ofNeighbours({ x: pg.tensor(x, { shape: [rows, n] }) }));
  const expected = Array.from(x, (_, at) => {
    const [row, i] = [Math.floor(at / n), at % n];
    return x[row * n + Math.min(i ^ 1, n - 1)]!;
  });
  await compared(y, { expected, shape: [rows, n] });
}

const runningSums = defineKernel({
  name: 'runningSums',
  form: 'groups',
  threads: 64,
  inputs: { x: { dtype: 'int32', rank: 2 } },
  outputs: { y: 'x', sums: ({ x }) => ({ shape: [x.shape[0]!, 4], dtype: 'int32' }) },
  body: (k, { x }, { y, sums }) => {
    const [row] = k.index;
    const n = x.size(1);
    const carry = k.variable(0, 'int32');
    k.loop(Math.ceil(n / k.threads), (turn) => {
      const i = turn.mul(k.threads).add(k.thread);
      const value = x.at([row, i], 0);
      const { before, whole } = k.scan('sum', value);
      y.set([row, i], carry.value.add(before).add(value));
      carry.set(carry.value.add(whole));
    });
    const own = k.variable(0, 'int32');
    k.each(n, (i) => own.set(own.value.add(x.at([row, i]))));
    (['sum', 'max', 'min', 'prod'] as const).forEach((op, at) => {
      const all = k.reduce(op, op === 'prod' ? k.constant(1, 'int32') : op === 'sum' ? own.value : carry.value);
      k.ifThen(k.thread.equal(0), () => sums.set([row, at], all));
    });
  },
});

async function scans(): Promise<void> {
  const [rows, n] = [3, 150];
  const x = Array.from({ length: rows * n }, (_, i) => ((i * 37) % 19) - 9);
  const { y, sums } = pg.scope(() => runningSums({ x: i32([rows, n], x) }));
  const running: number[] = [];
  const last: number[] = [];
  for (let r = 0; r < rows; r++) {
    let sum = 0;
    for (let i = 0; i < n; i++) running.push((sum += x[r * n + i]!));
    last.push(sum, sum, sum, 1);
  }
  await compared(y, { expected: running, shape: [rows, n] });
  await compared(sums, { expected: last, shape: [rows, 4] });
}

/** Every dtype is read, computed with, shared and written. */
async function inDType(dtype: DType): Promise<void> {
  const kernel = defineKernel({
    name: `of_${dtype}`,
    form: 'groups',
    threads: 4,
    inputs: { x: { dtype, rank: 1 } },
    outputs: { y: 'x' },
    grid: () => [1],
    body: (k, { x }, { y }) => {
      const line = k.shared(dtype, 8);
      k.each(8, (i) => line.set(i, dtype === 'bool' ? x.at(i) : x.at(i).add(x.at(i)).sub(1)));
      k.barrier();
      k.each(8, (i) => y.set(i, line.at(i.bitwiseXor(1))));
    },
  });
  const x = [0, 1, 1, 0, 1, 1, 1, 0];
  const result = pg.scope(() => {
    const { y } = kernel({ x: pg.tensor(x, { dtype: 'int32' }).cast(dtype) });
    return dtype.startsWith('uint') ? y.add(1).cast('int32').sub(1) : y.cast('int32');
  });
  const value = (v: number): number =>
    dtype === 'bool' ? v : dtype.startsWith('uint') ? (v === 1 ? 1 : -1) : 2 * v - 1;
  await compared(result, { expected: x.map((_, i) => value(x[i ^ 1]!)) });
}

/** What bodies must not do, and the line in the error. */
async function refused(): Promise<void> {
  const one = { inputs: { x: 'float32' }, outputs: { y: 'x' }, name: 'wrong' } as const;
  const x = (): Tensor => pg.ones([4]);
  const cases: readonly (readonly [string, () => unknown])[] = [
    [
      'EXP does not take int32',
      () =>
        defineKernel({ ...one, inputs: { x: 'int32' }, form: 'elementwise', body: (_, { x }) => x.exp() })({
          x: x().cast('int32'),
        }),
    ],
    [
      'one dtype: got float32 and int32',
      () =>
        defineKernel({
          ...one,
          form: 'threads',
          body: (k, { x }, { y }) => y.set(k.index, x.at(k.index).add(k.index[0])),
        })({ x: x() }),
    ],
    [
      'not all threads may enter',
      () =>
        defineKernel({ ...one, form: 'groups', body: (k) => k.ifThen(k.thread.less(3), () => k.barrier()) })({
          x: x(),
        }),
    ],
    [
      'a barrier in each()',
      () => defineKernel({ ...one, form: 'groups', body: (k) => k.each(4, () => k.barrier()) })({ x: x() }),
    ],
    [
      'reads element 1 of group memory, which thread 1 writes, without a barrier between',
      () =>
        defineKernel({
          ...one,
          form: 'groups',
          body: (k, { x }, { y }) => {
            const row = k.shared('float32', k.threads);
            row.set(k.thread, x.at(0));
            y.set(0, row.at(k.thread.add(1)));
          },
        })({ x: x() }),
    ],
    [
      'bytes of group memory',
      () => defineKernel({ ...one, form: 'groups', body: (k) => k.shared('float32', 5000) })({ x: x() }),
    ],
    [
      '2 indices for x',
      () => defineKernel({ ...one, form: 'threads', body: (_, { x }, { y }) => y.set(0, x.at([0, 1])) })({ x: x() }),
    ],
    [
      'that has ended',
      () =>
        defineKernel({
          ...one,
          form: 'threads',
          body: (k, { x }, { y }) => {
            let last: KernelValue | null = null;
            k.loop(3, (i) => {
              last = x.at(i);
            });
            y.set(k.index, last!);
          },
        })({ x: x() }),
    ],
    [
      "the form 'threads'",
      () => defineKernel({ ...one, form: 'threads', body: (k) => k.shared('float32', 5) })({ x: x() }),
    ],
  ];
  for (const [wanted, call] of cases) {
    let message = 'nothing was thrown';
    try {
      pg.scope(call);
    } catch (error) {
      message = `${(error as Error).name} ${(error as Error).message}`;
    }
    if (!message.includes(wanted) || !message.startsWith('KernelError'))
      throw new Error(`expected a KernelError with '${wanted}': got ${message}`);
  }
  let message = '';
  try {
    pg.scope(() => pg.grad((a: Tensor) => reversedRows({ x: a }).y.sum())(pg.ones([2, 3])));
  } catch (error) {
    message = (error as Error).message;
  }
  if (!message.includes('has no gradient')) throw new Error(`expected a GradientError: got ${message}`);
}

const dtypes: readonly DType[] = [
  'float32',
  'float64',
  'float16',
  'bfloat16',
  'int8',
  'int16',
  'int32',
  'int64',
  'uint8',
  'uint16',
  'uint32',
  'uint64',
  'bool',
];

export function customCases(target: Target): ConformanceCase[] {
  const cases: ConformanceCase[] = [];
  const add = (name: string, run: () => Promise<void>): void => {
    cases.push({
      name: `custom kernels / ${name}`,
      run: async () => {
        await run();
        return undefined;
      },
    });
  };
  add('elements', elements);
  add('gradients of elements', elementGradients);
  add('indices of any value, read', anyIndex);
  add('indices of any value, written', writesOutside);
  add('elements nobody writes', unwritten);
  for (const n of [1, 7, 32, 100]) add(`groups over rows of ${n}`, () => groupsOf(n));
  for (const n of [1, 7, 300]) add(`parts of groups over rows of ${n}`, () => partsOfGroups(n));
  add('scans and reductions of groups', scans);
  for (const [name, run] of callCases) add(name, run);
  for (const dtype of dtypes) if (target.holds(dtype)) add(`dtype ${dtype}`, () => inDType(dtype));
  for (const [name, run] of laneCases()) add(name, run);
  add('refusals', refused);
  for (const [name, run] of randomCases()) add(name, run);
  return cases;
}
