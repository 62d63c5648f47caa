/** NaN, infinities, signed zeros and ties in operations that depend on order or on indices, and who gets the gradient of them. */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import type { ConformanceCase } from '../../case.ts';
import { compared, gradientOf, t, type Expected } from './values.ts';

const { NaN: nan, POSITIVE_INFINITY: inf } = Number;

interface Value extends Expected {
  readonly name: string;
  readonly run: () => Tensor;
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
    name: 'scatter: computed indices outside go to the nearest end',
    run: () => pg.scatter(t(0, 0, 0), pg.tensor([3, -3], { dtype: 'int32' }).mul(3), t(1, 2)),
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

export function specialValueCases(): ConformanceCase[] {
  return values.map(
    (value): ConformanceCase => ({
      name: `order / ${value.name}`,
      run: async () => {
        await compared(pg.scope(value.run), value);
        return undefined;
      },
    }),
  );
}
