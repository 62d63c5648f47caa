/**
 * Special values and sizes of the operations that depend on order or on data: NaN, infinities, signed zeros, ties and who gets the gradient
 * of them, lines long enough to be cut, results whose size depends on data, and what is refused.
 */
import * as pg from '@polygrad/core';
import type { DType, Tensor } from '@polygrad/core';
import type { ConformanceCase } from '../case.ts';
import { assertClose, gamma } from '../compare.ts';
import type { Target } from '../expand.ts';
import { nd } from '../oracle/ndarray.ts';
import { makeRandom, seedOf } from '../oracle/random.ts';

const { NaN: nan, POSITIVE_INFINITY: inf } = Number;
const exact = { rtol: 0, atol: 0 };

const t = (...data: number[]): Tensor => pg.tensor(data);
const gradientOf = (f: (x: Tensor) => Tensor, x: Tensor): Tensor => pg.grad((v: Tensor) => pg.sum(f(v)))(x) as Tensor;

interface Value {
  readonly name: string;
  readonly run: () => Tensor;
  readonly expected: readonly number[];
  readonly shape?: readonly number[];
  readonly tolerance?: { readonly rtol: number; readonly atol: number };
}

const values: readonly Value[] = [
  { name: 'cumMax keeps NaN', run: () => pg.cumMax(t(1, nan, 3, -inf)), expected: [1, nan, nan, nan] },
  { name: 'cumMin keeps NaN', run: () => pg.cumMin(t(1, nan, 3, -inf)), expected: [1, nan, nan, nan] },
  { name: 'cumMax of infinities', run: () => pg.cumMax(t(-inf, -inf, 1, inf)), expected: [-inf, -inf, 1, inf] },
  { name: 'cumSum of infinities', run: () => pg.cumSum(t(1, inf, -inf, 1)), expected: [1, inf, nan, nan] },
  {
    name: 'logCumSumExp of infinities and huge numbers',
    run: () => pg.logCumSumExp(t(-inf, -inf, 1000, -1000, inf)),
    expected: [-inf, -inf, 1000, 1000, inf],
  },
  { name: 'logCumSumExp keeps NaN', run: () => pg.logCumSumExp(t(0, nan, 0)), expected: [0, nan, nan] },
  {
    name: 'gradient of logCumSumExp behind minus infinity',
    run: () => gradientOf((x) => pg.slice(pg.logCumSumExp(x), [{ start: 1 }]), t(-inf, 3, -inf)),
    expected: [0, 2, 0],
  },
  {
    name: 'gradient of cumMax goes to the latest of equals',
    run: () => gradientOf(pg.cumMax, t(1, 3, 3, 2, 3)),
    expected: [1, 1, 2, 0, 1],
  },
  {
    name: 'gradient of cumMin from the end goes to the one met last',
    run: () => gradientOf((x) => pg.cumMin(x, { reverse: true }), t(2, 1, 1, 4)),
    expected: [0, 2, 1, 1],
  },
  {
    name: 'gradient of cumProd with two zeros',
    run: () => gradientOf(pg.cumProd, t(2, 0, 3, 0, 4)),
    expected: [1, 8, 0, 0, 0],
  },
  {
    name: 'gradient of gradient of cumProd with zeros',
    run: () => gradientOf((x) => gradientOf(pg.cumProd, x).slice([{ start: 0, stop: 1 }]), t(2, 0, 3)),
    expected: [0, 4, 0],
  },

  { name: 'sort puts NaN last', run: () => pg.sort(t(nan, 1, -inf, inf, nan)), expected: [-inf, 1, inf, nan, nan] },
  {
    name: 'sort descending puts NaN first',
    run: () => pg.sort(t(nan, 1, -inf, inf), { descending: true }),
    expected: [nan, inf, 1, -inf],
  },
  {
    name: 'argSort: zeros of both signs are equal',
    run: () => pg.argSort(t(0, -0, 1, -0, 0)),
    expected: [0, 1, 3, 4, 2],
  },
  {
    name: 'argSort: every NaN is equal to every other',
    run: () => pg.argSort(pg.concat([t(nan), pg.neg(t(nan)), t(1, nan)], { axis: 0 })),
    expected: [2, 0, 1, 3],
  },
  {
    name: 'argSort of float64, NaN and zeros',
    run: () => pg.argSort(pg.tensor([nan, 0, -0, -1e300, 1e300, inf, -inf, 1, 1 + 2 ** -50], { dtype: 'float64' })),
    expected: [6, 3, 1, 2, 7, 8, 4, 5, 0],
  },
  { name: 'topK has NaN first', run: () => pg.topK(t(1, nan, 3), 2)[0], expected: [nan, 3] },
  { name: 'topK takes the first of equals', run: () => pg.topK(t(7, 1, 7, 7), 2)[1], expected: [0, 2] },
  { name: 'topK of nothing asked for', run: () => pg.topK(t(7, 1), 0)[0], expected: [] },
  { name: 'median with NaN', run: () => pg.median(t(1, nan, 3)), expected: [nan], shape: [] },
  { name: 'median of infinities', run: () => pg.median(t(inf, inf, 1, -inf)), expected: [inf], shape: [] },
  {
    name: 'quantile to the nearest',
    run: () => pg.quantile(t(0, 1, 2, 3, 4, 5), [0.1, 0.31], { interpolation: 'nearest' }),
    expected: [0, 2],
  },
  {
    name: 'gradient of median is shared by the two in the middle',
    run: () => gradientOf(pg.median, t(4, 1, 3, 2)),
    expected: [0, 0, 0.5, 0.5],
  },
  {
    name: 'searchSorted takes NaN as the greatest',
    run: () => pg.searchSorted(t(1, 2, nan), t(nan, inf, 0)),
    expected: [2, 2, 0],
  },
  {
    name: 'histogram leaves NaN and what is outside out',
    run: () => pg.histogram(t(nan, 0, 5, 1, 2, -1), { bins: 2, range: [0, 2] }),
    expected: [1, 2],
  },
  {
    name: 'histogram of equal elements',
    run: () => pg.histogram(t(3, 3), { bins: 2, returnEdges: true })[1],
    expected: [2.5, 3, 3.5],
  },

  { name: 'scatter: the last update wins', run: () => pg.scatter(t(0, 0), [1, 0, 1], t(5, 6, 7)), expected: [6, 7] },
  {
    name: 'scatter: negative indices count from the end',
    run: () => pg.scatter(t(0, 0, 0), pg.tensor([-1, -3], { dtype: 'int32' }), 4),
    expected: [4, 0, 4],
  },
  {
    name: 'scatter: indices of tensors outside go to the nearest end',
    run: () => pg.scatter(t(0, 0, 0), pg.tensor([9, -9], { dtype: 'int32' }), t(1, 2)),
    expected: [2, 0, 1],
  },
  {
    name: 'scatterReduce amax keeps NaN',
    run: () => pg.scatterReduce(t(nan, 0), [0, 1], t(1, nan), 'amax'),
    expected: [nan, nan],
  },
  {
    name: 'gradient of scatterReduce amax is shared by equals',
    run: () => gradientOf((u) => pg.scatterReduce(t(2, 2), [0, 0, 1], u, 'amax'), t(2, 2, 5)),
    expected: [1 / 3, 1 / 3, 1],
    tolerance: { rtol: 1e-6, atol: 0 },
  },
  {
    name: 'gradient of gradient of scatterReduce prod with zeros',
    run: () =>
      gradientOf(
        (u) => gradientOf((v) => pg.scatterReduce(t(1), [0, 0, 0], v, 'prod'), u).slice([{ start: 0, stop: 1 }]),
        t(2, 0, 3),
      ),
    expected: [0, 3, 0],
  },
  {
    name: 'repeatInterleave with a count each',
    run: () => pg.repeatInterleave(t(1, 2, 3), [2, 0, 1]),
    expected: [1, 1, 3],
  },
  {
    name: 'gradient of repeatInterleave with a count each',
    run: () => gradientOf((x) => pg.repeatInterleave(x, [2, 0, 1]), t(1, 2, 3)),
    expected: [2, 0, 1],
  },
  {
    name: 'take at host indices, negative ones from the end',
    run: () => pg.take(t(1, 2, 3), [0, -1]),
    expected: [1, 3],
  },
  {
    name: 'maskedFill with a tensor',
    run: () => pg.maskedFill(t(1, 2), pg.tensor([true, false]), pg.tensor(9)),
    expected: [9, 2],
  },
  {
    name: 'maskedFill of bool',
    run: () => pg.maskedFill(pg.tensor([true, true]), pg.tensor([true, false]), false),
    expected: [0, 1],
  },
];

interface LateValue {
  readonly name: string;
  readonly inputs: () => Tensor[];
  readonly run: (...inputs: [Tensor, Tensor]) => Promise<Tensor>;
  readonly expected: readonly number[];
  readonly shape?: readonly number[];
}

const nonZero = (x: Tensor): Promise<Tensor> => pg.nonZero(x);
const unique = (x: Tensor): Promise<Tensor> => pg.unique(x);
const part =
  (which: 'indices' | 'inverse' | 'counts', options: pg.UniqueOptions) =>
  async (x: Tensor): Promise<Tensor> => {
    const found = await pg.unique(x, options);
    found.values.dispose();
    return found[which] as Tensor;
  };

const lateValues: readonly LateValue[] = [
  {
    name: 'nonZero',
    inputs: () => [
      pg.tensor([
        [0, nan, -0],
        [2, 0, 1],
      ]),
    ],
    run: nonZero,
    expected: [0, 1, 1, 0, 1, 2],
    shape: [3, 2],
  },
  { name: 'nonZero of zeros', inputs: () => [pg.zeros([2, 3])], run: nonZero, expected: [], shape: [0, 2] },
  { name: 'nonZero of nothing', inputs: () => [pg.zeros([0])], run: nonZero, expected: [], shape: [0, 1] },
  { name: 'nonZero of a scalar', inputs: () => [pg.tensor(3)], run: nonZero, expected: [], shape: [1, 0] },
  {
    name: 'nonZero of a view',
    inputs: () => [
      pg.scope(() =>
        pg.transpose(
          pg.tensor([
            [0, 1, 0],
            [1, 0, 2],
          ]),
        ),
      ),
    ],
    run: nonZero,
    expected: [0, 1, 1, 0, 2, 1],
    shape: [3, 2],
  },
  {
    name: 'maskedSelect broadcasts',
    inputs: () => [
      pg.tensor([
        [1, 2],
        [3, 4],
      ]),
      pg.tensor([true, false]),
    ],
    run: pg.maskedSelect,
    expected: [1, 3],
  },
  {
    name: 'maskedSelect of none',
    inputs: () => [t(1, 2), pg.tensor([false, false])],
    run: pg.maskedSelect,
    expected: [],
  },
  {
    name: 'unique: zeros are one value, every NaN is one',
    inputs: () => [t(2, nan, -0, 2, 0, nan)],
    run: unique,
    expected: [0, 2, nan, nan],
  },
  { name: 'unique of nothing', inputs: () => [pg.zeros([0])], run: unique, expected: [] },
  { name: 'unique of bool', inputs: () => [pg.tensor([true, true, false])], run: unique, expected: [0, 1] },
  {
    name: 'unique: first positions',
    inputs: () => [t(2, 1, 2)],
    run: part('indices', { returnIndices: true }),
    expected: [1, 0],
  },
  {
    name: 'unique: inverse',
    inputs: () => [
      pg.tensor([
        [2, 1],
        [2, 7],
      ]),
    ],
    run: part('inverse', { returnInverse: true }),
    expected: [1, 0, 1, 2],
    shape: [2, 2],
  },
  { name: 'unique: counts', inputs: () => [t(2, 1, 2)], run: part('counts', { returnCounts: true }), expected: [1, 2] },
];

async function compared(result: Tensor, wanted: Pick<Value, 'expected' | 'shape' | 'tolerance'>): Promise<void> {
  const { expected, shape, tolerance } = wanted;
  const data = Array.from((await result.data()) as ArrayLike<number>, Number);
  assertClose('value', data, result.shape, nd(shape ?? [expected.length], [...expected]), tolerance ?? exact);
  result.dispose();
}

function valueCases(): ConformanceCase[] {
  const at = values.map(
    (value): ConformanceCase => ({
      name: `order / ${value.name}`,
      run: async () => {
        await compared(pg.scope(value.run), value);
        return undefined;
      },
    }),
  );
  const later = lateValues.map(
    (value): ConformanceCase => ({
      name: `order / ${value.name}`,
      run: async () => {
        const inputs = value.inputs();
        await compared(await value.run(...(inputs as [Tensor, Tensor])), value);
        for (const x of inputs) x.dispose();
        return undefined;
      },
    }),
  );
  const gradient: ConformanceCase = {
    name: 'order / gradient of maskedSelect',
    run: async () => {
      const x = t(1, 2, 3);
      const mask = pg.tensor([true, false, true]);
      const tape = new pg.GradientTape();
      tape.watch(x);
      const picked = await pg.maskedSelect(x, mask);
      const y = pg.scope(() => pg.sum(pg.square(picked)));
      const g = tape.gradient(y, x) as Tensor;
      await compared(g, { expected: [2, 0, 6] });
      for (const tensor of [x, mask, picked, y]) tensor.dispose();
      return undefined;
    },
  };
  return [...at, ...later, gradient];
}

function randomData(name: string, n: number): Float32Array {
  const random = makeRandom(seedOf(name));
  return Float32Array.from({ length: n }, () => Math.floor(random() * 4000) / 16 - 100);
}

/** Lines that programs cut into blocks: lengths that are no multiple of anything. */
function longCases(): ConformanceCase[] {
  const order = (data: Float32Array, from: number, n: number): number[] =>
    Array.from({ length: n }, (_, i) => i).sort(
      (i, j) => (data[from + i] as number) - (data[from + j] as number) || i - j,
    );
  const sorted = [600, 9001, 17001].map((n) => ({
    name: `order / argSort of 2 lines of ${n}`,
    run: async () => {
      const data = randomData(`sort ${n}`, 2 * n);
      const [x, y] = pg.scope(() => {
        const all = pg.tensor(data, { shape: [2, n] });
        return [all, pg.argSort(all)];
      }) as [Tensor, Tensor];
      const expected = [...order(data, 0, n), ...order(data, n, n)];
      assertClose('order', (await y.data()) as Int32Array, y.shape, nd([2, n], expected), exact);
      x.dispose();
      y.dispose();
      return undefined;
    },
  }));
  const wide = [50, 9001].map((n) => ({
    name: `order / argSort of ${n} float64`,
    run: async () => {
      const random = makeRandom(seedOf(`wide ${n}`));
      // Differences in both halves of the bits.
      const data = Float64Array.from({ length: n }, () => (Math.floor(random() * 7) - 3) * (1 + random() * 2 ** -30));
      const x = pg.tensor(data);
      const y = pg.argSort(x);
      const expected = Array.from(data.keys()).sort((i, j) => (data[i] as number) - (data[j] as number) || i - j);
      assertClose('order', (await y.data()) as Int32Array, y.shape, nd([n], expected), exact);
      x.dispose();
      y.dispose();
      return undefined;
    },
  }));
  const scans = [33333, 40000].map((n) => ({
    name: `order / cumSum and its gradient, one line of ${n}`,
    run: async () => {
      const data = randomData(`scan ${n}`, n);
      const [x, y, g] = pg.scope(() => {
        const line = pg.tensor(data);
        return [line, pg.cumSum(line), gradientOf((v) => pg.cumProd(pg.add(pg.mul(v, 0), 1)), line)];
      }) as [Tensor, Tensor, Tensor];
      let sum = 0;
      let size = 0;
      const slack: number[] = [];
      const expected = Array.from(data, (v) => {
        sum += v;
        size += Math.abs(v);
        slack.push(gamma(n) * size);
        return sum;
      });
      const close = { rtol: 1.3e-6, atol: 1e-5 };
      assertClose('sum', (await y.data()) as Float32Array, y.shape, nd([n], expected), close, nd([n], slack));
      const none = nd([n], new Array<number>(n).fill(0));
      assertClose('gradient', (await g.data()) as Float32Array, g.shape, none, exact);
      for (const tensor of [x, y, g]) tensor.dispose();
      return undefined;
    },
  }));
  const top = [70000, 66001].map((n) => ({
    name: `order / topK of ${n}`,
    run: async () => {
      const data = randomData(`top ${n}`, n);
      const [x, v, i] = pg.scope(() => {
        const line = pg.tensor(data);
        return [line, ...pg.topK(line, 20, { largest: false })];
      }) as [Tensor, Tensor, Tensor];
      const expected = order(data, 0, n).slice(0, 20);
      assertClose('places', (await i.data()) as Int32Array, i.shape, nd([20], expected), exact);
      for (const tensor of [x, v, i]) tensor.dispose();
      return undefined;
    },
  }));
  return [...sorted, ...wide, ...scans, ...top];
}

const i32 = (...data: number[]): Tensor => pg.tensor(data, { dtype: 'int32' });

const refused: readonly { readonly name: string; readonly run: () => unknown; readonly says: readonly RegExp[] }[] = [
  { name: 'cumSum along a missing axis', run: () => pg.cumSum(pg.zeros([2, 3]), 2), says: [/\[cumSum\]/, /2/] },
  { name: 'cumProd along a missing axis', run: () => pg.cumProd(pg.zeros([2]), -2), says: [/\[cumProd\]/, /-2/] },
  { name: 'cumMax along a missing axis', run: () => pg.cumMax(pg.zeros([2]), 1), says: [/\[cumMax\]/, /1/] },
  { name: 'cumMin along half an axis', run: () => pg.cumMin(pg.zeros([2]), 0.5), says: [/\[cumMin\]/, /0\.5/] },
  {
    name: 'logCumSumExp along a missing axis',
    run: () => pg.logCumSumExp(pg.zeros([2]), 3),
    says: [/\[logCumSumExp\]/, /3/],
  },
  { name: 'diff of a scalar', run: () => pg.diff(pg.tensor(1)), says: [/\[diff\]/, /axis/] },
  { name: 'diff taken -1 times', run: () => pg.diff(t(1, 2), { n: -1 }), says: [/\[diff\]/, /-1/] },
  { name: 'sort along a missing axis', run: () => pg.sort(pg.zeros([2]), { axis: 1 }), says: [/\[sort\]/, /1/] },
  { name: 'argSort along a missing axis', run: () => pg.argSort(pg.zeros([2]), -3), says: [/\[argSort\]/, /-3/] },
  { name: 'topK of more than there are', run: () => pg.topK(pg.zeros([2, 3]), 4), says: [/\[topK\]/, /4/, /3/] },
  { name: 'topK of 1.5', run: () => pg.topK(pg.zeros([3]), 1.5), says: [/\[topK\]/, /1\.5/] },
  { name: 'topK of a scalar', run: () => pg.topK(pg.tensor(1), 1), says: [/\[topK\]/, /axis/] },
  { name: 'median of nothing', run: () => pg.median(pg.zeros([0])), says: [/\[median\]/, /empty/] },
  { name: 'quantile above 1', run: () => pg.quantile(t(1, 2), 1.5), says: [/\[quantile\]/, /1\.5/] },
  { name: 'no quantiles', run: () => pg.quantile(t(1, 2), []), says: [/\[quantile\]/, /none|no /] },
  {
    name: 'quantile of unknown interpolation',
    run: () => pg.quantile(t(1, 2), 0.5, { interpolation: 'cubic' as 'linear' }),
    says: [/\[quantile\]/, /cubic/],
  },
  {
    name: 'searchSorted line by line of other lines',
    run: () => pg.searchSorted(pg.zeros([2, 3]), pg.zeros([3, 3])),
    says: [/\[searchSorted\]/, /2, 3/, /3, 3/],
  },
  {
    name: 'searchSorted in a scalar',
    run: () => pg.searchSorted(pg.tensor(1), t(1)),
    says: [/\[searchSorted\]/, /axis/],
  },
  { name: 'bucketize by a matrix', run: () => pg.bucketize(t(1), pg.zeros([2, 2])), says: [/\[bucketize\]/, /2, 2/] },
  { name: 'histogram of no bins', run: () => pg.histogram(t(1), { bins: 0 }), says: [/\[histogram\]/, /0/] },
  {
    name: 'histogram of a range backwards',
    run: () => pg.histogram(t(1), { range: [2, 1] }),
    says: [/\[histogram\]/, /2 to 1/],
  },
  { name: 'histogram of nothing', run: () => pg.histogram(pg.zeros([0])), says: [/\[histogram\]/, /empty/] },
  { name: 'histogram with one edge', run: () => pg.histogram(t(1), { bins: t(1) }), says: [/\[histogram\]/, /two/] },
  {
    name: 'histogram with weights of another shape',
    run: () => pg.histogram(t(1, 2), { weights: t(1, 2, 3) }),
    says: [/\[histogram\]/, /3/],
  },
  {
    name: 'scatter at host indices out of range',
    run: () => pg.scatter(t(1, 2), [2], 1),
    says: [/\[scatter\]/, /2/, /-2 to 1/],
  },
  { name: 'scatter at 0.5', run: () => pg.scatter(t(1, 2), [0.5], 1), says: [/\[scatter\]/, /0\.5/] },
  {
    name: 'scatter at float indices',
    run: () => pg.scatter(t(1, 2), t(1), 1),
    says: [/\[scatter\]/, /float32/, /integers/],
  },
  {
    name: 'scatter of another rank',
    run: () => pg.scatter(pg.zeros([2, 2]), i32(1), 1),
    says: [/\[scatter\]/, /2, 2/],
  },
  {
    name: 'scatter of updates of another dtype',
    run: () => pg.scatter(t(1, 2), i32(1), i32(1)),
    says: [/\[scatter\]/, /int32/, /float32/],
  },
  {
    name: 'scatter of updates of another shape',
    run: () => pg.scatter(t(1, 2), i32(1), t(1, 2, 3)),
    says: [/\[scatter\]/, /3/],
  },
  {
    name: 'scatterReduce by an unknown reduction',
    run: () => pg.scatterReduce(t(1), i32(0), t(1), 'median' as 'max'),
    says: [/\[scatterReduce\]/, /median/, /max/],
  },
  {
    name: 'scatterReduce mean of integers',
    run: () => pg.scatterReduce(i32(1), i32(0), i32(1), 'mean'),
    says: [/\[scatterReduce\]/, /int32/],
  },
  {
    name: 'indexCopy at a matrix of indices',
    run: () => pg.indexCopy(t(1, 2), [[0]], t(1)),
    says: [/\[indexCopy\]/, /1, 1/],
  },
  {
    name: 'indexCopy into an empty axis',
    run: () => pg.indexCopy(pg.zeros([0]), i32(0), t(1)),
    says: [/\[indexCopy\]/, /empty/],
  },
  {
    name: 'indexFill with several values',
    run: () => pg.indexFill(t(1, 2), [0], t(1, 2)),
    says: [/\[indexFill\]/, /2/],
  },
  {
    name: 'indexFill at host indices out of range',
    run: () => pg.indexFill(t(1, 2), [-3], 0),
    says: [/\[indexFill\]/, /-3/],
  },
  {
    name: 'gatherNd by too many coordinates',
    run: () => pg.gatherNd(t(1, 2), [[0, 0]]),
    says: [/\[gatherNd\]/, /1, 2/],
  },
  {
    name: 'scatterNd of updates of another shape',
    run: () => pg.scatterNd([[0]], t(1, 2, 3), [4]),
    says: [/\[scatterNd\]/, /3/],
  },
  { name: 'scatterNd into a bad shape', run: () => pg.scatterNd([[0]], t(1), [-4]), says: [/\[scatterNd\]/, /-4/] },
  { name: 'take at host indices out of range', run: () => pg.take(t(1, 2), [5]), says: [/\[take\]/, /5/] },
  { name: 'take at a number out of range', run: () => pg.take(t(1, 2), -3), says: [/\[take\]/, /-3/] },
  {
    name: 'maskedFill of integers with a fraction',
    run: () => pg.maskedFill(i32(1), pg.tensor([true]), 0.5),
    says: [/\[maskedFill\]/, /0\.5/, /int32/],
  },
  {
    name: 'maskedFill with several values',
    run: () => pg.maskedFill(t(1, 2), pg.tensor([true, false]), t(1, 2)),
    says: [/\[maskedFill\]/, /2/],
  },
  {
    name: 'repeatInterleave with too few counts',
    run: () => pg.repeatInterleave(t(1, 2), [1]),
    says: [/\[repeatInterleave\]/, /1/, /2/],
  },
  {
    name: 'repeatInterleave with half a count',
    run: () => pg.repeatInterleave(t(1), [0.5]),
    says: [/\[repeatInterleave\]/, /0\.5/],
  },
  {
    name: 'maskedSelect by numbers',
    run: () => pg.maskedSelect(t(1), t(1)),
    says: [/\[maskedSelect\]/, /float32/, /bool/],
  },
  {
    name: 'maskedSelect of shapes that do not broadcast',
    run: () => pg.maskedSelect(t(1, 2), pg.tensor([true, true, true])),
    says: [/\[maskedSelect\]/, /2/, /3/],
  },
];

function refusedCases(): ConformanceCase[] {
  return refused.map(({ name, run, says }) => ({
    name: `errors / ${name}`,
    run: async () => {
      let message: string | null = null;
      try {
        const made = pg.scope(() => {
          const result = run();
          // Asynchronous operations refuse their arguments with a rejected promise.
          return result instanceof Promise ? { result } : null;
        });
        await made?.result;
      } catch (error) {
        message = error instanceof Error ? error.message : String(error);
      }
      if (message === null) throw new Error('nothing was thrown');
      for (const pattern of says)
        if (!pattern.test(message)) throw new Error(`message '${message}' does not match ${pattern}`);
      return undefined;
    },
  }));
}

const whole: readonly DType[] = ['int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64'];
const halves: readonly DType[] = ['float16', 'bfloat16'];

/** Every dtype, small and large: by what numbers of a few bits must give. */
function dtypeCases(target: Target): ConformanceCase[] {
  const data = [3, 1, 9, 3, 5, 100];
  const places = (): Tensor => i32(0, 4, 0);
  const checks: readonly { readonly name: string; readonly of: (x: Tensor) => Tensor; readonly expected: number[] }[] =
    [
      { name: 'sort', of: (x) => pg.sort(x), expected: [1, 3, 3, 5, 9, 100] },
      { name: 'argSort', of: (x) => pg.argSort(x, { descending: true }), expected: [5, 2, 4, 0, 3, 1] },
      { name: 'topK', of: (x) => pg.topK(x, 2)[0], expected: [100, 9] },
      { name: 'cumSum', of: (x) => pg.cumSum(x), expected: [3, 4, 13, 16, 21, 121] },
      { name: 'cumMax', of: (x) => pg.cumMax(x), expected: [3, 3, 9, 9, 9, 100] },
      { name: 'cumMin from the end', of: (x) => pg.cumMin(x, { reverse: true }), expected: [1, 1, 3, 3, 5, 100] },
      { name: 'diff', of: (x) => pg.diff(pg.cumMax(x)), expected: [0, 6, 0, 0, 91] },
      { name: 'scatter', of: (x) => pg.scatter(x, places(), pg.narrow(x, 0, 1, 3)), expected: [3, 1, 9, 3, 9, 100] },
      {
        name: 'scatterReduce max',
        of: (x) => pg.scatterReduce(x, places(), pg.narrow(x, 0, 1, 3), 'max', { includeSelf: false }),
        expected: [3, 1, 9, 3, 9, 100],
      },
      {
        name: 'scatterReduce sum',
        of: (x) => pg.scatterReduce(x, places(), pg.narrow(x, 0, 1, 3), 'sum'),
        expected: [7, 1, 9, 3, 14, 100],
      },
      { name: 'indexFill', of: (x) => pg.indexFill(x, [1, -1], 2), expected: [3, 2, 9, 3, 5, 2] },
      { name: 'searchSorted', of: (x) => pg.searchSorted(pg.sort(x), x), expected: [1, 0, 4, 1, 3, 5] },
    ];
  return [...whole, ...halves]
    .filter((dtype) => target.holds(dtype))
    .flatMap((dtype) =>
      checks.map(({ name, of, expected }) => ({
        name: `order / ${name} of ${dtype}`,
        run: async () => {
          const result = pg.scope(() => pg.cast(of(pg.cast(t(...data), dtype)), 'float64'));
          await compared(result, { expected });
          return undefined;
        },
      })),
    );
}

/** All of them, but those of dtypes the engine does not hold. */
export function orderCases(target: Target): ConformanceCase[] {
  const all = [...valueCases(), ...longCases(), ...dtypeCases(target), ...refusedCases()];
  return target.holds('float64') ? all : all.filter(({ name }) => !name.includes('float64'));
}
