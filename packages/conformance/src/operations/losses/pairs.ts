/** Losses of predictions and targets, element by element, from the formulas of PyTorch 1.13's documentation. */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import { nd, type NDArray, zip } from '../../oracle/ndarray.ts';
import { awayFromZero, integer, type Random, sample, uniform } from '../../oracle/random.ts';
import { softplus } from '../../oracle/special.ts';
import { average } from '../../oracle/sums.ts';
import { parts, sums, vectors } from '../../programs/operands.ts';
import { isFloat, type Made, type Pool, ref } from '../../programs/pool.ts';
import type { Arg } from '../../programs/program.ts';
import type { OpSpec, Options } from '../../spec.ts';
import { functionOf, type OperationRow, smooth } from '../row.ts';
import { any, chance, drawnReduction, lossSpec, mate, pairOf } from './row.ts';

type Formula = (x: number, y: number, o: Options, ...more: number[]) => number;

interface PairCase {
  /** The operation's name if left out. */
  readonly name?: string;
  readonly options: readonly Options[];
  readonly draw: (r: Random) => NDArray[];
  /** Options of every call. */
  readonly always?: Options;
  /** Options whose values are among the inputs. */
  readonly tensors?: (xs: Tensor[], o: Options) => Options;
  /** Inputs that have a gradient; both if left out. */
  readonly of?: readonly number[];
}

interface PairDraw {
  readonly options?: { readonly [key: string]: Arg };
  /** Targets are probabilities. */
  readonly chances?: boolean;
  readonly domain?: (x: number) => boolean;
}

interface PairRow {
  readonly name: string;
  readonly f: Formula;
  readonly cases: readonly PairCase[];
  readonly drawn: readonly PairDraw[];
  /** What the suite checks beside the cases. */
  readonly specs?: readonly OpSpec[];
  readonly notes?: OperationRow['notes'];
}

const signs = (r: Random): number => (r() < 0.5 ? -1 : 1);
const logs = uniform(-3, -0.1);
const weights = (r: Random): NDArray => sample(r, [3], uniform(0.5, 2));
const chances = (r: Random): NDArray => sample(r, [2, 3], uniform(0, 1));

/** Without options at several sizes. */
const plain = (name: 'mseLoss' | 'l1Loss', f: Formula): OpSpec<2> => ({
  name,
  dtypes: ['float32', 'float64'],
  instances: [[3], [2, 5], [67]].map((shape) => ({
    label: `[${shape}]`,
    small: shape[0]! < 20,
    draw: (r: Random) => [sample(r, shape, any), sample(r, shape, any)],
  })),
  run: (xs) => functionOf(name)(...xs),
  oracle: ([a, b]) => meanOf(zip((x, y) => f(x, y, {}), a, b)),
  gradient: { of: [0, 1], order: 2 },
});

const meanOf = (a: NDArray): NDArray => nd([], [average(a.data)]);

const square: Formula = (x, y) => (x - y) ** 2;
const absolute: Formula = (x, y) => Math.abs(x - y);
const logits: Formula = (x, y, o, weight = 1, positive = 1) =>
  (o.weighted ? weight : 1) * ((o.positive ? positive : 1) * y * softplus(-x) + (1 - y) * softplus(x));
const option = (o: Options, name: string, usual: number): number => (o[name] as number | undefined) ?? usual;

const logitsOfTruths: OpSpec<2> = {
  name: 'binaryCrossEntropyWithLogits',
  dtypes: ['float32', 'float64'],
  instances: [
    {
      label: '[2,5]',
      small: true,
      draw: (r: Random) => [sample(r, [2, 5], any), sample(r, [2, 5], integer(0, 1))],
    },
  ],
  run: ([x, t]) => pg.binaryCrossEntropyWithLogits(x, t),
  oracle: ([x, t]) => meanOf(zip((z, y) => logits(z, y, {}), x, t)),
  gradient: { of: [0], order: 2 },
};

const rows: readonly PairRow[] = [
  {
    name: 'mseLoss',
    f: square,
    cases: [{ options: [{}], draw: pairOf([2, 3]) }],
    drawn: [{}],
    specs: [plain('mseLoss', square)],
  },
  {
    name: 'l1Loss',
    f: absolute,
    cases: [{ options: [{}], draw: pairOf([2, 3]) }],
    drawn: [{}],
    specs: [plain('l1Loss', absolute)],
  },
  {
    name: 'huberLoss',
    f: (x, y, o) => {
      const [d, delta] = [Math.abs(x - y), option(o, 'delta', 1)];
      return d < delta ? 0.5 * d * d : delta * (d - 0.5 * delta);
    },
    cases: [{ options: [{}, { delta: 0.3 }, { delta: 2 }], draw: pairOf([3, 4]) }],
    drawn: [{ options: { delta: 0.7 } }],
  },
  {
    name: 'smoothL1Loss',
    f: (x, y, o) => {
      const [d, beta] = [Math.abs(x - y), option(o, 'beta', 1)];
      return d < beta ? (0.5 * d * d) / beta : d - 0.5 * beta;
    },
    cases: [{ options: [{}, { beta: 0.3 }, { beta: 0 }], draw: pairOf([3, 4]) }],
    drawn: [{ options: { beta: 0.7 } }],
  },
  {
    name: 'hingeLoss',
    f: (x, y, o) => Math.max(0, option(o, 'margin', 1) - x * y),
    cases: [{ options: [{}, { margin: 0.4 }], draw: pairOf([3, 4], any, signs), of: [0] }],
    drawn: [{ options: { margin: 0.5 } }],
  },
  {
    name: 'softMarginLoss',
    f: (x, y) => softplus(-x * y),
    cases: [{ options: [{}], draw: pairOf([3, 4], any, signs), of: [0] }],
    drawn: [{}],
  },
  {
    name: 'hingeEmbeddingLoss',
    f: (x, y, o) => (y === 1 ? 0 : Math.max(0, option(o, 'margin', 1) - x)) + (y === -1 ? 0 : x),
    cases: [{ options: [{}, { margin: 0.4 }], draw: pairOf([3, 4], any, signs), of: [0] }],
    drawn: [{ options: { margin: 0.3 }, chances: true }],
  },
  {
    name: 'poissonNllLoss',
    f: (x, y, o) => {
      const losses = (o.logInput ?? true) ? Math.exp(x) - y * x : x - y * Math.log(x + option(o, 'eps', 1e-8));
      return losses + (o.full && y > 1 ? y * Math.log(y) - y + 0.5 * Math.log(2 * Math.PI * y) : 0);
    },
    cases: [
      { options: [{}, { full: true }], draw: pairOf([3, 4], any, integer(0, 5)), of: [0] },
      {
        name: 'poissonNllLoss of rates',
        options: [{}, { eps: 0.01 }],
        draw: pairOf([3, 4], uniform(0.2, 4), uniform(0, 5)),
        always: { logInput: false },
      },
    ],
    drawn: [{ domain: (x) => Math.abs(x) < 4 }, { options: { logInput: false }, domain: (x) => x > 0.05 }],
  },
  {
    name: 'focalLoss',
    f: (x, y, o) => {
      const wrong = ((1 - y) * Math.exp(x) + y) / (1 + Math.exp(x));
      const alpha = o.alpha === undefined ? 0.25 : (o.alpha as number | null);
      const weight = alpha === null ? 1 : alpha * y + (1 - alpha) * (1 - y);
      return weight * wrong ** option(o, 'gamma', 2) * (y * softplus(-x) + (1 - y) * softplus(x));
    },
    cases: [
      {
        options: [{}, { alpha: null }, { gamma: 0 }, { alpha: 0.6, gamma: 1.5 }],
        draw: pairOf([3, 4], any, chance),
      },
    ],
    drawn: [{ chances: true, domain: (x) => Math.abs(x) < 20 }],
    notes: { goldens: 'PyTorch 1.13 has none' },
  },
  {
    name: 'binaryCrossEntropy',
    f: (x, y, o, weight = 1) => -(o.weighted ? weight : 1) * (y * Math.log(x) + (1 - y) * Math.log(1 - x)),
    cases: [
      {
        options: [{}, { weighted: true }],
        draw: (r) => [sample(r, [2, 3], chance), chances(r), weights(r)],
        tensors: ([, , weight], o) => (o.weighted ? { weight } : {}),
      },
    ],
    drawn: [{ chances: true, domain: (x) => x > 0.01 && x < 0.99 }],
  },
  {
    name: 'binaryCrossEntropyWithLogits',
    f: logits,
    cases: [
      {
        options: [{}, { weighted: true }, { positive: true }, { weighted: true, positive: true }],
        draw: (r) => [sample(r, [2, 3], awayFromZero(0.1, 3)), chances(r), weights(r), sample(r, [3], uniform(0.5, 3))],
        tensors: ([, , weight, posWeight], o) => ({
          ...(o.weighted ? { weight } : {}),
          ...(o.positive ? { posWeight } : {}),
        }),
      },
    ],
    drawn: [{ chances: true }],
    specs: [logitsOfTruths],
  },
  {
    name: 'klDiv',
    f: (x, y, o) => (o.logTarget ? Math.exp(y) * (y - x) : y * (Math.log(y) - x)),
    cases: [
      { options: [{}, { reduction: 'batchMean' }], draw: pairOf([2, 3], logs, chance) },
      {
        name: 'klDiv of rows against one target',
        options: [{}, { reduction: 'batchMean' }],
        draw: (r) => [sample(r, [2, 3], logs), sample(r, [1, 3], chance)],
      },
      {
        name: 'klDiv of log targets',
        options: [{}],
        draw: pairOf([2, 3], logs, logs),
        always: { logTarget: true },
      },
    ],
    drawn: [{ chances: true }, { options: { logTarget: true } }],
  },
];

function specOf(
  row: PairRow,
  { name = row.name, options, draw, always = {}, tensors = () => ({}), of = [0, 1] }: PairCase,
): OpSpec {
  return lossSpec({
    name,
    options,
    draw,
    run: (xs, { weighted, positive, ...o }) =>
      functionOf(row.name)(xs[0], xs[1], { ...o, ...always, ...tensors(xs, { weighted, positive }) }),
    losses: (xs, o) => zip((x, y, ...more) => row.f(x, y, { ...o, ...always }, ...more), ...xs),
    of,
  });
}

function pairCall({ f }: PairRow, { options = {}, chances = false, domain }: PairDraw, pool: Pool): Made | null {
  const found = vectors(pool, 0, 4, (v) => domain === undefined || v.data.every(domain));
  if (found === null && domain === undefined) return null;
  const dtype = pool.pick((v) => isFloat(v.dtype))?.dtype;
  if (dtype === undefined) return null;
  const x = found ?? parts(pool, dtype, pool.c.pick([[5], [3, 4], []]));
  const y = chances ? parts(pool, x.dtype, x.shape) : mate(pool, x);
  const way = drawnReduction(pool);
  return {
    args: [ref(x), ref(y), { ...options, ...way.written }],
    dtype: x.dtype,
    formula: (a, b) => way.f(zip((p, q) => f(p, q, options), a, b)),
    ...sums(x.dtype),
  };
}

export const pairLossRows: readonly OperationRow[] = rows.map((row) => ({
  name: row.name,
  specs: [...row.cases.map((given) => specOf(row, given)), ...(row.specs ?? [])],
  calls: smooth(...row.drawn.map((how) => (pool: Pool) => pairCall(row, how, pool))),
  ...(row.notes ? { notes: row.notes } : {}),
}));
