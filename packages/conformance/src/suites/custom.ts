/**
 * Kernels of users (`defineKernel`): every form against loops of JavaScript, indices of any value, derivatives, batches; and random bodies, which are
 * run by two arithmetics, that of kernels and that of JavaScript.
 */
import * as pg from '@polygrad/core';
import type { DType, Tensor } from '@polygrad/core';
import { defineKernel, type KernelContext, type KernelInput, type KernelValue } from '@polygrad/core/custom';
import type { ConformanceCase } from '../case.ts';
import type { Target } from '../expand.ts';
import { makeRandom, type Random, seedOf } from '../oracle/random.ts';
import { laneCases } from './custom-lanes.ts';
import { compared, exact } from './order/values.ts';

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
      const once = pg.grad((a: Tensor, b: Tensor) => f(a, b).square().sum(), { argnums: 1 }) as (
        a: Tensor,
        b: Tensor,
      ) => Tensor;
      return order === 1
        ? once
        : (pg.grad((a: Tensor, b: Tensor) => once(a, b).square().sum(), { argnums: 1 }) as typeof once);
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

// Derivatives and batches.

const rowScaled = defineKernel({
  name: 'rowScaled',
  form: 'groups',
  inputs: { x: { dtype: 'float32', rank: 2 }, w: { dtype: 'float32', rank: 1 } },
  outputs: { y: ({ x }) => ({ shape: x.shape.slice(0, 1), dtype: 'float32' }), z: 'x' },
  grid: ({ x }) => x.shape.slice(0, 1),
  body: (k, { x, w }, { y, z }) => {
    const [row] = k.index;
    const n = x.size(1);
    const { sum } = k.fold(n, {
      start: { sum: 0 },
      step: ({ sum }, i) => ({
        sum: sum.add(
          x
            .at([row, i])
            .mul(x.at([row, i]))
            .mul(w.at(i)),
        ),
      }),
      combine: (a, b) => ({ sum: a.sum.add(b.sum) }),
    });
    y.set(row, sum);
    k.each(n, (i) => z.set([row, i], x.at([row, i]).mul(w.at(i))));
  },
  gradient: ({ inputs: { x, w }, grads: { y, z } }) => {
    const g = y.unsqueeze(1);
    return {
      x: g.mul(x).mul(w).mul(2).add(z.mul(w)),
      w: g.mul(x).mul(x).add(z.mul(x)).sum(0),
    };
  },
});

type Two = (x: Tensor, w: Tensor) => Tensor;
const byKernel: Two = (x, w) => {
  const { y, z } = pg.scope(() => rowScaled({ x, w }));
  return y.square().sum().add(z.sin().sum());
};
const composed: Two = (x, w) => x.mul(x).mul(w).sum(1).square().sum().add(x.mul(w).sin().sum());

/** Both functions give the same. */
async function alike(of: (f: Two) => Tensor): Promise<void> {
  const expected = pg.scope(() => of(composed));
  const data = await expected.data();
  expected.dispose();
  const tolerance = { rtol: 2e-4, atol: 2e-4 };
  await compared(
    pg.scope(() => of(byKernel)),
    {
      expected: Array.from(data as Float32Array, Number),
      shape: expected.shape,
      tolerance,
    },
  );
}

async function derivatives(): Promise<void> {
  const [x, w] = [(): Tensor => f32([2, 3], wave(6)), (): Tensor => f32([3], [0.5, 0.2, -0.4])];
  const single = (f: Two, argnums: number): Two => pg.grad(f, { argnums }) as Two;
  for (const at of [0, 1]) {
    await alike((f) => single(f, at)(x(), w()));
    await alike((f) => single((a, b) => single(f, at)(a, b).square().sum(), 1 - at)(x(), w()));
  }
  await alike((f) => pg.jvp((a: Tensor) => f(a, w()), [x()], [f32([2, 3], [1, 0, 0.5, 0, -1, 2])])[1]);
}

async function batches(): Promise<void> {
  const many = (): Tensor => f32([4, 2, 3], wave(24));
  const w = (): Tensor => f32([3], [0.5, 0.2, -0.4]);
  const ws = (): Tensor => f32([4, 3], wave(12));
  await alike((f) => pg.vmap(f, { inAxes: [0, null] })(many(), w()));
  await alike((f) => pg.vmap(f, { inAxes: [null, 0] })(f32([2, 3], wave(6)), ws()));
  await alike((f) => pg.vmap(pg.grad(f) as Two, { inAxes: [0, 0] })(many(), ws()));
  await alike((f) =>
    (
      pg.grad(
        (a: Tensor, b: Tensor) =>
          pg
            .vmap(f, { inAxes: [0, null] })(a, b)
            .sum(),
        { argnums: 1 },
      ) as Two
    )(many(), w()),
  );
  await alike((f) =>
    (
      pg.grad((a: Tensor, b: Tensor) =>
        pg
          .vmap(f, { inAxes: [0, null] })(a, b)
          .sum(),
      ) as Two
    )(many(), w()),
  );
  const twice = (f: Two): Two => pg.vmap(pg.vmap(f, { inAxes: [0, null] }), { inAxes: [0, 0] });
  await alike((f) => twice(f)(f32([2, 2, 2, 3], wave(24)), f32([2, 3], wave(6))));
  await alike((f) =>
    (pg.grad((a: Tensor, b: Tensor) => twice(f)(a, b).sum(), { argnums: 1 }) as Two)(
      f32([2, 2, 2, 3], wave(24)),
      f32([2, 3], wave(6)),
    ),
  );
}

/** Sizes that come one after another, and none at all. */
async function sizes(): Promise<void> {
  for (const n of [1, 2, 3, 17, 64, 65, 300, 0]) {
    const x = wave(2 * n);
    const { y, z } = pg.scope(() => rowScaled({ x: f32([2, n], x), w: pg.ones([n]) }));
    const sums = [0, 1].map((r) => x.slice(r * n, r * n + n).reduce((sum, v) => sum + v * v, 0));
    await compared(y, { expected: sums, tolerance: { rtol: 1e-5, atol: 1e-5 } });
    await compared(z, { expected: x, shape: [2, n] });
  }
  await compared(
    pg.scope(() => rowScaled({ x: pg.zeros([0, 3]), w: pg.ones([3]) }).z),
    { expected: [], shape: [0, 3] },
  );
}

/** Views: inputs that lie in other orders, and results that others go on with. */
async function views(): Promise<void> {
  const x = wave(12);
  const moved = Array.from({ length: 3 }, (_, c) => [x[3 + c]!, x[6 + c]!]).flat();
  await compared(
    pg.scope(() =>
      rowScaled({
        x: f32([4, 3], x)
          .transpose()
          .slice([
            { start: 0, stop: 3 },
            { start: 1, stop: 3 },
          ]),
        w: pg.ones([2]),
      }).z.add(1),
    ),
    {
      expected: moved.map((v) => Math.fround(v + 1)),
      shape: [3, 2],
      tolerance: close,
    },
  );
  const lazy = pg.scope(() => f32([4, 3], x).transpose());
  await lazy.data();
  await compared(
    pg.scope(() => rowScaled({ x: lazy, w: pg.ones([4]) }).z),
    {
      expected: Array.from({ length: 12 }, (_, i) => x[(i % 4) * 3 + Math.floor(i / 4)]!),
      shape: [3, 4],
    },
  );
  lazy.dispose();
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

// Random bodies, in two arithmetics.

/** What a random body is written in. */
interface Algebra<V> {
  constant(n: number): V;
  binary(op: (typeof binaries)[number], a: V, b: V): V;
  choose(op: 'less' | 'equal', a: V, b: V, c: V, d: V): V;
  load(index: readonly V[], outside: number | null): V;
  variable(first: V): { get(): V; set(v: V): void };
  loop(count: V, most: number, body: (i: V) => void): void;
  when(a: V, b: V, body: () => void, otherwise: () => void): void;
}

const binaries = [
  'add',
  'sub',
  'mul',
  'floorDivide',
  'remainder',
  'minimum',
  'maximum',
  'bitwiseAnd',
  'bitwiseOr',
  'bitwiseXor',
  'leftShift',
  'rightShift',
] as const;

const onNumbers: Record<(typeof binaries)[number], (a: number, b: number) => number> = {
  add: (a, b) => (a + b) | 0,
  sub: (a, b) => (a - b) | 0,
  mul: Math.imul,
  floorDivide: (a, b) => (b === 0 ? 0 : Math.floor(a / b) | 0),
  remainder: (a, b) => (b === 0 ? 0 : (a - Math.floor(a / b) * b) | 0),
  minimum: Math.min,
  maximum: Math.max,
  bitwiseAnd: (a, b) => a & b,
  bitwiseOr: (a, b) => a | b,
  bitwiseXor: (a, b) => a ^ b,
  leftShift: (a, b) => a << b,
  rightShift: (a, b) => a >> b,
};

/** Values that a body has by number: the indices of its thread, then those of the loops around. */
type Term =
  | { readonly kind: 'constant'; readonly n: number }
  | { readonly kind: 'known'; readonly at: number }
  | { readonly kind: 'variable' }
  | { readonly kind: 'binary'; readonly op: (typeof binaries)[number]; readonly a: Term; readonly b: Term }
  | { readonly kind: 'choose'; readonly op: 'less' | 'equal'; readonly of: readonly [Term, Term, Term, Term] }
  | { readonly kind: 'load'; readonly index: readonly [Term, Term]; readonly outside: number | null };

type Step =
  | { readonly kind: 'set'; readonly to: Term }
  | { readonly kind: 'loop'; readonly count: Term; readonly most: number; readonly steps: readonly Step[] }
  | {
      readonly kind: 'when';
      readonly less: readonly [Term, Term];
      readonly steps: readonly Step[];
      readonly otherwise: readonly Step[];
    };

/** A random body: a variable, steps that change it, and what is written. */
interface Body {
  readonly first: Term;
  readonly steps: readonly Step[];
  readonly last: Term;
}

const extreme = [0, 1, -1, 2, 3, 7, 31, 32, 1000, -1000, 65536, 2 ** 31 - 1, -(2 ** 31)];

function randomBody(r: Random): Body {
  const pick = (n: number): number => Math.min(n - 1, Math.floor(r() * n));
  const term = (known: number, depth: number): Term => {
    const kind = depth <= 0 ? pick(3) : pick(7);
    const part = (): Term => term(known, depth - 1);
    if (kind === 0) return { kind: 'constant', n: extreme[pick(extreme.length)]! };
    if (kind === 1) return { kind: 'known', at: pick(known) };
    if (kind === 2) return { kind: 'variable' };
    if (kind === 3) return { kind: 'load', index: [part(), part()], outside: pick(2) === 0 ? null : pick(100) };
    if (kind === 4)
      return { kind: 'choose', op: pick(2) === 0 ? 'less' : 'equal', of: [part(), part(), part(), part()] };
    return { kind: 'binary', op: binaries[pick(binaries.length)]!, a: part(), b: part() };
  };
  const steps = (known: number, depth: number): Step[] =>
    Array.from({ length: pick(3) + 1 }, (): Step => {
      const kind = depth <= 0 ? 0 : pick(3);
      if (kind === 0) return { kind: 'set', to: term(known, 3) };
      if (kind === 1) return { kind: 'loop', count: term(known, 2), most: pick(6), steps: steps(known + 1, depth - 1) };
      return {
        kind: 'when',
        less: [term(known, 2), term(known, 1)],
        steps: steps(known, depth - 1),
        otherwise: steps(known, depth - 1),
      };
    });
  return { first: term(2, 0), steps: steps(2, 2), last: term(2, 3) };
}

/** Runs a body in an arithmetic. */
function play<V>(body: Body, algebra: Algebra<V>, index: readonly V[]): V {
  const variable = algebra.variable(index[0]!);
  const value = (term: Term, known: readonly V[]): V => {
    const of = (t: Term): V => value(t, known);
    switch (term.kind) {
      case 'constant':
        return algebra.constant(term.n);
      case 'known':
        return known[term.at]!;
      case 'variable':
        return variable.get();
      case 'load':
        return algebra.load(term.index.map(of), term.outside);
      case 'choose':
        return algebra.choose(term.op, of(term.of[0]), of(term.of[1]), of(term.of[2]), of(term.of[3]));
      case 'binary':
        return algebra.binary(term.op, of(term.a), of(term.b));
      default:
        return term satisfies never;
    }
  };
  const run = (steps: readonly Step[], known: readonly V[]): void => {
    for (const step of steps) {
      if (step.kind === 'set') variable.set(value(step.to, known));
      else if (step.kind === 'loop')
        algebra.loop(value(step.count, known), step.most, (i) => run(step.steps, [...known, i]));
      else
        algebra.when(
          value(step.less[0], known),
          value(step.less[1], known),
          () => run(step.steps, known),
          () => run(step.otherwise, known),
        );
    }
  };
  variable.set(value(body.first, index));
  run(body.steps, index);
  return value(body.last, index);
}

function ofKernel(k: KernelContext, x: KernelInput): Algebra<KernelValue> {
  return {
    constant: (n) => k.constant(n, 'int32'),
    binary: (op, a, b) => a[op](b),
    choose: (op, a, b, c, d) => k.where(a[op](b), c, d),
    load: (index, outside) => (outside === null ? x.at(index) : x.at(index, outside)),
    variable: (first) => {
      const v = k.variable(first);
      return { get: () => v.value, set: (n) => v.set(n) };
    },
    loop: (count, most, body) => k.loop(count.minimum(most), body),
    when: (a, b, body, otherwise) => k.ifThen(a.less(b), body, otherwise),
  };
}

function ofNumbers(x: readonly number[], [rows, columns]: readonly [number, number]): Algebra<number> {
  const near = (v: number, n: number): number => Math.max(0, Math.min(v, n - 1));
  return {
    constant: (n) => n,
    binary: (op, a, b) => onNumbers[op](a, b),
    choose: (op, a, b, c, d) => ((op === 'less' ? a < b : a === b) ? c : d),
    load: ([i, j], outside) => {
      const inside = i! >= 0 && i! < rows && j! >= 0 && j! < columns;
      return outside === null || inside ? x[near(i!, rows) * columns + near(j!, columns)]! : outside;
    },
    variable: (first) => {
      let v = first;
      return { get: () => v, set: (n) => void (v = n) };
    },
    loop: (count, most, body) => {
      for (let i = 0; i < Math.min(count, most); i++) body(i);
    },
    when: (a, b, body, otherwise) => (a < b ? body() : otherwise()),
  };
}

/** One random body on one random tensor. */
async function randomBodyCase(seed: number): Promise<void> {
  const r = makeRandom(seed);
  const [rows, columns] = [1 + Math.floor(r() * 4), 1 + Math.floor(r() * 5)];
  const x = Array.from({ length: rows * columns }, () => Math.floor((r() - 0.5) * 2 ** (1 + Math.floor(r() * 31))) | 0);
  const grid = [1 + Math.floor(r() * 9), 1 + Math.floor(r() * 9)] as const;
  const body = randomBody(r);
  const kernel = defineKernel({
    name: 'random',
    form: 'threads',
    inputs: { x: { dtype: 'int32', rank: 2 } },
    outputs: { y: () => ({ shape: [...grid], dtype: 'int32' }) },
    body: (k, inputs, { y }) => y.set(k.index, play(body, ofKernel(k, inputs.x), k.index)),
  });
  const expected: number[] = [];
  for (let i = 0; i < grid[0]; i++)
    for (let j = 0; j < grid[1]; j++) expected.push(play(body, ofNumbers(x, [rows, columns]), [i, j]));
  await compared(
    pg.scope(() => kernel({ x: i32([rows, columns], x) }).y),
    { expected, shape: grid, tolerance: exact },
  );
}

/** What bodies must not do, and the line that is told. */
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

/** Random bodies of a run of the suite; each is a tensor of another form, of another program. */
const bodies = 40;

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
  add('scans and reductions of groups', scans);
  add('derivatives', derivatives);
  add('batches', batches);
  add('sizes', sizes);
  add('views', views);
  for (const dtype of dtypes) if (target.holds(dtype)) add(`dtype ${dtype}`, () => inDType(dtype));
  for (const [name, run] of laneCases()) add(name, run);
  add('refusals', refused);
  for (let i = 0; i < bodies; i++) add(`random body ${i}`, () => randomBodyCase(seedOf(`custom kernels ${i}`)));
  return cases;
}
