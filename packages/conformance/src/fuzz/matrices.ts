/**
 * Factors of random matrices and equations with them: of each matrix alone what its equations on the host say, and the same in batches, under `vmap`, in
 * `scan` and compiled, for matrices that lie in memory in any way. Derivatives against differences.
 */
import * as pg from '@polygrad/core';
import type { DType, Tensor } from '@polygrad/core';
import * as la from '@polygrad/core/linear-algebra';
import { arraysOf } from '../host.ts';
import { matmul } from '../oracle/linear.ts';
import { at, build, count, type NDArray, permute } from '../oracle/ndarray.ts';
import { Choices } from '../programs/choices.ts';
import { leavingNothing } from './check.ts';
import { inputTensor } from './execute.ts';
import type { Rows } from './sizes.ts';

/** Which matrices a function takes. */
type Kind = 'square' | 'symmetric' | 'any' | 'tall';
type Run = (a: Tensor, b: Tensor) => Tensor[];

interface Entry {
  readonly kind: Kind;
  readonly run: Run;
  /** Products that are equal, for results of one matrix: [what it is, what it should be]. */
  readonly equations: (a: NDArray, b: NDArray, found: readonly NDArray[]) => readonly (readonly [NDArray, NDArray])[];
  /** How many of the results have derivatives. */
  readonly smooth: number;
}

const turn = (a: NDArray): NDArray => permute(a, [1, 0]);
const unit = (n: number): NDArray => build([n, n], ([i, j]) => Number(i === j));
const diagonal = (s: NDArray): NDArray => build([s.data.length, s.data.length], ([i, j]) => (i === j ? s.data[i]! : 0));
const part = (a: NDArray, keep: (i: number, j: number) => boolean): NDArray =>
  build(a.shape, (index) => (keep(index[0]!, index[1]!) ? at(a, index) : 0));
const lower = (a: NDArray): NDArray => part(a, (i, j) => i >= j);
const upper = (a: NDArray): NDArray => part(a, (i, j) => i <= j);
const orthonormal = (q: NDArray): readonly [NDArray, NDArray] => [matmul(turn(q), q), unit(q.shape[1]!)];
const one = (x: number): NDArray => ({ shape: [], data: [x] });

/** The determinant, by elimination with the best of each column. */
function determinant(a: NDArray): number {
  const n = a.shape[0]!;
  const rows = Array.from({ length: n }, (_, i) => a.data.slice(i * n, (i + 1) * n));
  let product = 1;
  for (let k = 0; k < n; k++) {
    let best = k;
    for (let i = k + 1; i < n; i++) if (Math.abs(rows[i]![k]!) > Math.abs(rows[best]![k]!)) best = i;
    if (best !== k) {
      [rows[k], rows[best]] = [rows[best]!, rows[k]!];
      product = -product;
    }
    product *= rows[k]![k]!;
    for (let i = k + 1; i < n; i++) {
      const by = rows[i]![k]! / rows[k]![k]!;
      for (let j = k; j < n; j++) rows[i]![j]! -= by * rows[k]![j]!;
    }
  }
  return product;
}

const entries: Readonly<Record<string, Entry>> = {
  solve: { kind: 'square', smooth: 1, run: (a, b) => [la.solve(a, b)], equations: (a, b, [x]) => [[matmul(a, x!), b]] },
  inv: {
    kind: 'square',
    smooth: 1,
    run: (a) => [la.inv(a)],
    equations: (a, _, [x]) => [[matmul(a, x!), unit(a.shape[0]!)]],
  },
  det: { kind: 'square', smooth: 1, run: (a) => [la.det(a)], equations: (a, _, [x]) => [[x!, one(determinant(a))]] },
  slogDet: {
    kind: 'square',
    smooth: 1,
    run: (a) => {
      const { sign, logAbsDet } = la.slogDet(a);
      return [logAbsDet, sign];
    },
    equations: (a, _, [log, sign]) => [
      [log!, one(Math.log(Math.abs(determinant(a))))],
      [sign!, one(Math.sign(determinant(a)))],
    ],
  },
  cholesky: {
    kind: 'symmetric',
    smooth: 1,
    run: (a) => [la.cholesky(a)],
    equations: (a, _, [l]) => [
      [matmul(l!, turn(l!)), a],
      [l!, lower(l!)],
    ],
  },
  'cholesky, upper': {
    kind: 'symmetric',
    smooth: 1,
    run: (a) => [la.cholesky(a, { upper: true })],
    equations: (a, _, [u]) => [
      [matmul(turn(u!), u!), a],
      [u!, upper(u!)],
    ],
  },
  triangularSolve: {
    kind: 'square',
    smooth: 1,
    run: (a, b) => [la.triangularSolve(a, b)],
    equations: (a, b, [x]) => [[matmul(lower(a), x!), b]],
  },
  'triangularSolve, upper': {
    kind: 'square',
    smooth: 1,
    run: (a, b) => [la.triangularSolve(a, b, { upper: true })],
    equations: (a, b, [x]) => [[matmul(upper(a), x!), b]],
  },
  qr: {
    kind: 'tall',
    smooth: 2,
    run: (a) => {
      const { q, r } = la.qr(a);
      return [q, r];
    },
    equations: (a, _, [q, r]) => [[matmul(q!, r!), a], orthonormal(q!), [r!, upper(r!)]],
  },
  'qr, complete': {
    kind: 'any',
    smooth: 0,
    run: (a) => {
      const { q, r } = la.qr(a, { mode: 'complete' });
      return [q, r];
    },
    equations: (a, _, [q, r]) => [[matmul(q!, r!), a], orthonormal(q!), [r!, upper(r!)]],
  },
  lstsq: {
    kind: 'tall',
    smooth: 1,
    run: (a, b) => [la.lstsq(a, b)],
    equations: (a, b, [x]) => [[matmul(turn(a), matmul(a, x!)), matmul(turn(a), b)]],
  },
  pinv: {
    kind: 'any',
    smooth: 1,
    run: (a) => [la.pinv(a)],
    equations: (a, _, [p]) => [
      [matmul(matmul(a, p!), a), a],
      [matmul(matmul(p!, a), p!), p!],
      [matmul(a, p!), turn(matmul(a, p!))],
      [matmul(p!, a), turn(matmul(p!, a))],
    ],
  },
  eigh: {
    kind: 'symmetric',
    smooth: 1,
    run: (a) => {
      const { values, vectors } = la.eigh(a);
      return [values, vectors];
    },
    equations: (a, _, [values, v]) => [
      [matmul(a, v!), matmul(v!, diagonal(values!))],
      orthonormal(v!),
      [values!, { shape: values!.shape, data: [...values!.data].sort((x, y) => x - y) }],
    ],
  },
  svd: {
    kind: 'any',
    smooth: 1,
    run: (a) => {
      const { u, s, vt } = la.svd(a);
      return [s, u, vt];
    },
    equations: (a, _, [s, u, vt]) => [
      [matmul(matmul(u!, diagonal(s!)), vt!), a],
      orthonormal(u!),
      orthonormal(turn(vt!)),
      [s!, { shape: s!.shape, data: [...s!.data].sort((x, y) => y - x) }],
    ],
  },
  matrixRank: {
    kind: 'any',
    smooth: 0,
    run: (a) => [la.matrixRank(a)],
    equations: (a, _, [k]) => [[k!, one(Math.min(...a.shape))]],
  },
};

const names = Object.keys(entries);
const layouts = ['plain', 'turned', 'flipped', 'part', 'steps', 'pending'] as const;
type Layout = (typeof layouts)[number];
const ways = ['batch', 'vmap', 'scan', 'compile', 'compiled vmap'] as const;

/** A call. */
export interface MatrixCall {
  readonly name: string;
  readonly dtype: DType;
  readonly n: number;
  readonly m: number;
  readonly columns: number;
  readonly batch: number;
  readonly layouts: readonly [Layout, Layout];
  readonly way: (typeof ways)[number];
  readonly derivatives: boolean;
  readonly salt: number;
}

/** What the rows mean. */
export function matrixCallOf(rows: Rows, dtypes: readonly DType[]): MatrixCall {
  const c = new Choices(rows.flat());
  const name = c.pick(names);
  const derivatives = c.nat(2) === 1;
  const n = c.pick(derivatives ? [2, 1, 3, 5, 8, 33] : [2, 1, 3, 5, 8, 16, 17, 31, 32, 33, 40, 64, 65, 97]);
  const other = c.pick([n, n, 1, 2, 7, 33]);
  const { kind } = entries[name]!;
  const m = kind === 'square' || kind === 'symmetric' ? n : kind === 'tall' ? Math.min(n, other) : other;
  return {
    name,
    derivatives,
    n,
    m,
    dtype: c.pick(dtypes.filter((dtype) => dtype === 'float32' || dtype === 'float64')),
    columns: c.pick([1, 2, 5]),
    batch: c.pick([2, 1, 3]),
    layouts: [c.pick(layouts), c.pick(layouts)],
    way: c.pick(ways),
    salt: c.nat(1 << 16),
  };
}

/** Numbers of -1 .. 1. */
function noise(shape: readonly number[], salt: number): NDArray {
  let state = (salt * 2654435761 + 12345) >>> 0;
  const data = Array.from({ length: count(shape) }, () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) >>> 0;
    return Math.fround(((state >>> 8) / (1 << 23) - 1) * 0.999);
  });
  return { shape, data };
}

/** A matrix of small condition, whose singular values are apart. */
function matrix({ n, m, name }: MatrixCall, salt: number): NDArray {
  const x = noise([n, m], salt);
  const made = build([n, m], ([i, j]) => (0.3 * at(x, [i, j])) / Math.sqrt(Math.max(n, m)) + (i === j ? 1 + i / n : 0));
  const sum = build([n, m], ([i, j]) =>
    entries[name]!.kind === 'symmetric' ? at(made, [i, j]) + at(made, [j, i]) : at(made, [i, j]),
  );
  return { shape: sum.shape, data: sum.data.map(Math.fround) };
}

/** Stacked matrices that lie in memory as they may. */
function tensorOf(parts: readonly NDArray[], dtype: DType, layout: Layout): Tensor {
  const [rows, columns] = parts[0]!.shape as [number, number];
  const shape = [parts.length, rows, columns];
  const data = parts.flatMap((p) => p.data);
  return pg.scope(() => {
    if (layout === 'turned') {
      const turned = parts.flatMap((p) => turn(p).data);
      return pg.permute(inputTensor(turned, dtype, [parts.length, columns, rows]), [0, 2, 1]);
    }
    if (layout === 'flipped') return pg.flip(inputTensor([...data].reverse(), dtype, shape), [0, 1, 2]);
    if (layout === 'part') {
      const around = build([parts.length, rows + 2, columns + 1], ([p, i, j]) =>
        i < rows && j > 0 ? at(parts[p]!, [i, j - 1]) : 7,
      );
      return pg.slice(inputTensor(around.data, dtype, around.shape), [{}, { start: 0, stop: rows }, { start: 1 }]);
    }
    if (layout === 'steps') {
      const apart = build([parts.length, rows, 2 * columns], ([p, i, j]) =>
        j % 2 === 0 ? at(parts[p]!, [i, j / 2]) : 7,
      );
      return pg.slice(inputTensor(apart.data, dtype, apart.shape), [{}, {}, { step: 2 }]);
    }
    const t = inputTensor(data, dtype, shape);
    return layout === 'pending' ? pg.mul(pg.mul(t, 2), 0.5) : t;
  });
}

/** Runs calls, and counts. */
export class MatrixFuzz {
  compared: number = 0;
  readonly #dtypes: readonly DType[];

  constructor(dtypes: readonly DType[]) {
    this.#dtypes = dtypes;
  }

  async check(rows: Rows, told: (call: MatrixCall) => void = () => {}): Promise<void> {
    const call = matrixCallOf(rows, this.#dtypes);
    told(call);
    await leavingNothing(() => this.#compare(call));
  }

  async #compare(call: MatrixCall): Promise<void> {
    const { name, dtype, batch, n, columns, salt } = call;
    const { run, equations, smooth } = entries[name]!;
    const as = Array.from({ length: batch }, (_, i) => matrix(call, salt + 1000 * i));
    const bs = Array.from({ length: batch }, (_, i) => noise([n, columns], salt + 1000 * i + 7));
    const close = (dtype === 'float32' ? 2 ** -23 : 2 ** -52) * 100 * Math.max(4, n);
    const alone: NDArray[][] = [];
    for (let i = 0; i < batch; i++) {
      const found = await this.#single(as[i]!, bs[i]!, dtype, run);
      for (const [k, [x, y]] of equations(as[i]!, bs[i]!, found).entries()) near(`${name}, equation ${k}`, x, y, close);
      alone.push(found);
    }
    await this.#stacked(call, as, bs, run, alone, name === 'eigh' || name === 'svd' ? 4 * n * close : close);
    if (!call.derivatives || smooth === 0) return;
    const loss = (a: Tensor, b: Tensor): Tensor =>
      run(a, b)
        .slice(0, smooth)
        .map((t, i) => {
          const weights = noise(t.shape, i + 3);
          return pg.sum(pg.mul(pg.mul(t, t), inputTensor(weights.data, dtype, weights.shape)));
        })
        .reduce((x, y) => pg.add(x, y));
    const slopes: Run = (a, b) => pg.grads(loss)(a, b);
    const gradients: NDArray[][] = [];
    for (let i = 0; i < batch; i++) {
      const found = await this.#single(as[i]!, bs[i]!, dtype, slopes);
      if (dtype === 'float64') await this.#differences(call, as[i]!, bs[i]!, loss, found);
      gradients.push(found);
    }
    await this.#stacked(call, as, bs, slopes, gradients, 10 * n * close);
  }

  async #single(a: NDArray, b: NDArray, dtype: DType, run: Run): Promise<NDArray[]> {
    const given = [a, b].map(({ data, shape }) => inputTensor(data, dtype, shape)) as [Tensor, Tensor];
    const found = await arraysOf(pg.scope(() => run(...given)));
    pg.dispose(given);
    return found;
  }

  /** All matrices at once, by some way. */
  async #stacked(
    { name, dtype, layouts: [first, second], way, derivatives }: MatrixCall,
    as: readonly NDArray[],
    bs: readonly NDArray[],
    run: Run,
    alone: readonly (readonly NDArray[])[],
    close: number,
  ): Promise<void> {
    // A loss is one number: of a batch it is a sum over all.
    const batched: Run = (a, b) => (derivatives ? pg.vmap(run)(a, b) : run(a, b));
    const body: Run =
      way === 'vmap' || way === 'compiled vmap'
        ? (a, b) => pg.vmap(run)(a, b)
        : way === 'scan'
          ? (a, b) =>
              pg.scan(
                (step: Tensor, [x, y]: readonly [Tensor, Tensor]): [Tensor, Tensor[]] => [pg.add(step, 1), run(x, y)],
                pg.tensor(0),
                [a, b] as const,
              )[1]
          : batched;
    const compiled = way.startsWith('compile') ? pg.compile(body) : null;
    for (const many of compiled === null ? [as.length] : [as.length, as.length, as.length, 1]) {
      const [a, b] = [tensorOf(as.slice(0, many), dtype, first), tensorOf(bs.slice(0, many), dtype, second)];
      const found = await arraysOf(compiled === null ? pg.scope(() => body(a, b)) : compiled(a, b));
      pg.dispose([a, b]);
      for (const [k, { shape, data }] of found.entries())
        for (let i = 0; i < many; i++) {
          const size = data.length / many;
          const own = { shape: shape.slice(1), data: data.slice(i * size, (i + 1) * size) };
          near(`${name}, ${way} of ${many}, matrix ${i}, result ${k}`, own, alone[i]![k]!, close);
          this.compared++;
        }
    }
    compiled?.dispose();
  }

  /** The gradient along a direction, against a difference. */
  async #differences(
    call: MatrixCall,
    a: NDArray,
    b: NDArray,
    loss: (a: Tensor, b: Tensor) => Tensor,
    gradients: readonly NDArray[],
  ): Promise<void> {
    const raw = noise(a.shape, call.salt + 11);
    const along = [
      entries[call.name]!.kind === 'symmetric'
        ? build(a.shape, (index) => at(raw, index) + at(raw, [index[1]!, index[0]!]))
        : raw,
      noise(b.shape, call.salt + 12),
    ];
    const moved = async (by: number): Promise<number> => {
      const [x, y] = [a, b].map(({ shape, data }, k) => ({
        shape,
        data: data.map((v, i) => v + by * along[k]!.data[i]!),
      }));
      return (await this.#single(x!, y!, 'float64', (p, q) => [loss(p, q)]))[0]!.data[0]!;
    };
    const step = 1e-5;
    const slope = ((await moved(step)) - (await moved(-step))) / (2 * step);
    let [sum, size] = [0, 0];
    for (const [k, { data }] of gradients.entries())
      for (const [i, g] of data.entries()) {
        sum += g * along[k]!.data[i]!;
        size += Math.abs(g * along[k]!.data[i]!);
      }
    if (!(Math.abs(sum - slope) <= 1e-6 * (1 + size)))
      throw new Error(`${call.name}: the gradient along a direction is ${sum} where ${slope} is expected`);
    this.compared++;
  }
}

function near(what: string, { shape, data }: NDArray, expected: NDArray, close: number): void {
  if (shape.join() !== expected.shape.join())
    throw new Error(`${what}: shape [${shape}] where [${expected.shape}] is expected`);
  const scale = expected.data.reduce((most, x) => Math.max(most, Math.abs(x)), 1);
  for (const [k, x] of expected.data.entries())
    if (!(Math.abs(x - data[k]!) <= close * scale))
      throw new Error(`${what}: element ${k} is ${data[k]} where ${x} is expected`);
}
