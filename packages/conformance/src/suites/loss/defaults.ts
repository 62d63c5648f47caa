/** The losses of every day without options, written out as formulas on rows. */
import * as pg from '@polygrad/core';
import type { DType, Tensor } from '@polygrad/core';
import { at, type NDArray, nd, zip } from '../../oracle/ndarray.ts';
import { integer, type Random, sample, uniform } from '../../oracle/random.ts';
import type { OpSpec } from '../../spec.ts';

const floats: readonly DType[] = ['float32', 'float64'];
const any = uniform(-2, 2);
const mean = (a: NDArray): NDArray => nd([], [a.data.reduce((s, x) => s + x, 0) / a.data.length]);

function logSoftmaxRow(x: NDArray, row: number): number[] {
  const values = Array.from({ length: x.shape[1] as number }, (_, j) => at(x, [row, j]));
  const high = Math.max(...values);
  const log = high + Math.log(values.reduce((s, v) => s + Math.exp(v - high), 0));
  return values.map((v) => v - log);
}

export function defaultLossSpecs(): OpSpec[] {
  const pair = (shape: readonly number[]) => (r: Random) => [sample(r, shape, any), sample(r, shape, any)];
  const regression = (
    name: string,
    run: (a: Tensor, b: Tensor) => Tensor,
    f: (a: number, b: number) => number,
  ): OpSpec => ({
    name,
    dtypes: floats,
    instances: [[3], [2, 5], [67]].map((shape) => ({
      label: `[${shape}]`,
      small: shape.length < 3 && (shape[0] as number) < 20,
      draw: pair(shape),
    })),
    run: ([a, b]) => run(a as Tensor, b as Tensor),
    oracle: ([a, b]) => mean(zip(f as (...xs: number[]) => number, a as NDArray, b as NDArray)),
    gradient: { of: [0, 1], order: 2 },
  });
  return [
    regression(
      'mseLoss',
      (a, b) => pg.mseLoss(a, b),
      (a, b) => (a - b) ** 2,
    ),
    regression(
      'l1Loss',
      (a, b) => pg.l1Loss(a, b),
      (a, b) => Math.abs(a - b),
    ),
    {
      name: 'crossEntropy',
      dtypes: floats,
      inputDTypes: { 1: 'int32' },
      instances: [0, 0.1].flatMap((labelSmoothing) =>
        [
          [1, 2],
          [4, 5],
          [33, 10],
        ].map((shape) => ({
          label: `[${shape}] smoothing ${labelSmoothing}`,
          small: (shape[0] as number) < 10,
          options: { labelSmoothing },
          draw: (r: Random) => [
            sample(r, shape, any),
            sample(r, [shape[0] as number], integer(0, (shape[1] as number) - 1)),
          ],
        })),
      ),
      run: ([x, t], o) => pg.crossEntropy(x as Tensor, t as Tensor, o),
      oracle: ([x, t], o) => {
        const smoothing = o.labelSmoothing as number;
        const rows = (t as NDArray).data.map((target, row) => {
          const log = logSoftmaxRow(x as NDArray, row);
          const uniformPart = log.reduce((s, v) => s + v, 0) / log.length;
          return -((1 - smoothing) * (log[target] as number) + smoothing * uniformPart);
        });
        return mean(nd([rows.length], rows));
      },
      gradient: { of: [0], order: 2 },
    },
    {
      name: 'binaryCrossEntropyWithLogits',
      dtypes: floats,
      instances: [
        {
          label: '[2,5]',
          small: true,
          draw: (r: Random) => [sample(r, [2, 5], any), sample(r, [2, 5], integer(0, 1))],
        },
      ],
      run: ([x, t]) => pg.binaryCrossEntropyWithLogits(x as Tensor, t as Tensor),
      oracle: ([x, t]) =>
        mean(
          zip(
            (z, y) =>
              Math.max(z as number, 0) - (z as number) * (y as number) + Math.log1p(Math.exp(-Math.abs(z as number))),
            x as NDArray,
            t as NDArray,
          ),
        ),
      gradient: { of: [0], order: 2 },
    },
  ];
}
