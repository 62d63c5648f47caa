/** Special values of docs/numerics.md: NaN, infinities, signed zeros, ties, zeros in products, branches not taken. */
import * as pg from '@polygrad/core';
import type { DType, Tensor } from '@polygrad/core';
import type { ConformanceCase } from '../case.ts';
import type { Target } from '../target.ts';
import { compared, exact, type Expected } from './order/values.ts';

const { NaN: nan, POSITIVE_INFINITY: inf } = Number;

interface Value extends Expected {
  readonly name: string;
  readonly run: () => Tensor;
}

function f32(...data: number[]): Tensor {
  return pg.tensor(data, { dtype: 'float32' });
}

function of(dtype: DType, ...data: number[]): Tensor {
  return pg.tensor(data, { dtype });
}

const values: readonly Value[] = [
  {
    name: 'maximum propagates NaN',
    run: () => pg.maximum(f32(nan, 1, nan), f32(1, nan, nan)),
    expected: [nan, nan, nan],
  },
  { name: 'minimum propagates NaN', run: () => pg.minimum(f32(nan, 1), f32(1, nan)), expected: [nan, nan] },
  { name: 'max reduction propagates NaN', run: () => pg.max(f32(1, nan, 3)), expected: [nan], shape: [] },
  { name: 'max of -inf', run: () => pg.max(f32(-inf, -inf)), expected: [-inf], shape: [] },
  { name: 'relu propagates NaN', run: () => pg.relu(f32(nan, -1, 2)), expected: [nan, 0, 2] },
  { name: 'clip propagates NaN', run: () => pg.clip(f32(nan, -5, 5), -1, 1), expected: [nan, -1, 1] },
  { name: 'argMax takes the first NaN', run: () => pg.argMax(f32(5, nan, 9, nan)), expected: [1], shape: [] },
  { name: 'argMax takes the first of equals', run: () => pg.argMax(f32(1, 7, 7, 3)), expected: [1], shape: [] },
  {
    name: 'exp of large and small arguments',
    run: () => pg.exp(f32(1000, -1000, inf, -inf, nan)),
    expected: [inf, 0, inf, 0, nan],
  },
  { name: 'tanh of large arguments', run: () => pg.tanh(f32(100, -100, inf, -inf)), expected: [1, -1, 1, -1] },
  {
    name: 'sigmoid of large arguments',
    run: () => pg.sigmoid(f32(200, -200)),
    expected: [1, 0],
    tolerance: { rtol: 0, atol: 1e-30 },
  },
  {
    name: 'softplus of large arguments',
    run: () => pg.softplus(f32(200, -200)),
    expected: [200, 0],
    tolerance: { rtol: 0, atol: 1e-30 },
  },
  { name: 'log at and below zero', run: () => pg.log(f32(0, -1, inf)), expected: [-inf, nan, inf] },
  { name: 'sqrt at and below zero', run: () => pg.sqrt(f32(0, -1, inf)), expected: [0, nan, inf] },
  { name: 'division by zero', run: () => pg.div(f32(1, -1, 0), f32(0, 0, 0)), expected: [inf, -inf, nan] },
  ...[pg.floorDivide, pg.remainder, pg.fmod].flatMap((op) => [
    {
      name: `${op.name} of integers by the number 0`,
      run: () => op(of('int32', 7, -7, 0), 0),
      expected: [0, 0, 0],
    },
    {
      name: `${op.name} of integers by zeros`,
      run: () => op(of('int32', 7, -7, 9), of('int32', 0, 0, 4)),
      expected: [0, 0, op === pg.floorDivide ? 2 : 1],
    },
  ]),
  {
    name: 'variance corrected by as many as there are',
    run: () => pg.variance(pg.reshape(f32(1, 3, 2, 2), [2, 2]), { axis: 1, correction: 2 }),
    expected: [inf, nan],
  },
  {
    name: 'variance of single elements, corrected by 1',
    run: () => pg.variance(f32(5, -2), { axis: [], correction: 1 }),
    expected: [nan, nan],
  },
  {
    name: 'pow at its corners',
    run: () => pg.pow(f32(0, 1, 1, -2, -2, inf), f32(0, inf, nan, 3, 0.5, -1)),
    expected: [1, 1, 1, -8, nan, 0],
  },
  {
    name: 'softmax of a huge row',
    run: () => pg.softmax(f32(1e30, 1e30, -inf)),
    expected: [0.5, 0.5, 0],
    tolerance: { rtol: 1e-6, atol: 0 },
  },
  { name: 'isNaN is a bit test', run: () => pg.isNaN(f32(nan, inf, 0, -0)), expected: [1, 0, 0, 0] },
  {
    name: 'x minus x keeps NaN and infinity',
    run: () => pipe(f32(inf, nan, 1), (x) => pg.sub(x, x)),
    expected: [nan, nan, 0],
  },
  { name: 'x times zero keeps NaN and infinity', run: () => pg.mul(f32(inf, nan, 1), 0), expected: [nan, nan, 0] },
  {
    name: 'where drops NaN of the side not taken',
    run: () => pg.where(of('bool', 1, 0), f32(1, nan), f32(nan, 2)),
    expected: [1, 2],
  },
  {
    name: 'float to int saturates',
    run: () => pg.cast(f32(1e20, -1e20, nan, -1.9), 'int32'),
    expected: [2147483647, -2147483648, 0, -1],
  },
  { name: 'int overflow wraps', run: () => pg.add(of('int32', 2147483647), of('int32', 1)), expected: [-2147483648] },
  {
    name: 'int product wraps',
    run: () => pg.mul(of('int32', 123456789), of('int32', 987654321)),
    expected: [Math.imul(123456789, 987654321)],
  },
  { name: 'uint32 wraps', run: () => pg.sub(of('uint32', 0), of('uint32', 1)), expected: [4294967295] },
  { name: 'round is half to even', run: () => pg.round(f32(0.5, 1.5, 2.5, -0.5)), expected: [0, 2, 2, 0] },
  {
    name: 'fma rounds once',
    run: () => pg.fma(f32(1 + 2 ** -12, 3), f32(1 + 2 ** -12, 4), f32(-(1 + 2 ** -11), inf)),
    expected: [2 ** -24, inf],
  },
  {
    name: 'fma of integers wraps',
    run: () => pg.fma(of('int32', 65536), of('int32', 65536), of('int32', 7)),
    expected: [7],
  },
  { name: 'sum over nothing is zero', run: () => pg.sum(pg.zeros([0, 3]), { axis: 0 }), expected: [0, 0, 0] },
  { name: 'prod over nothing is one', run: () => pg.prod(pg.zeros([0])), expected: [1], shape: [] },
];

function pipe(x: Tensor, f: (x: Tensor) => Tensor): Tensor {
  return f(x);
}

interface Slope {
  readonly name: string;
  readonly f: (x: Tensor) => Tensor;
  readonly x: readonly number[];
  readonly expected: readonly number[];
}

const slopes: readonly Slope[] = [
  { name: 'max shares its gradient among equals', f: (x) => pg.max(x), x: [3, 1, 3], expected: [0.5, 0, 0.5] },
  {
    name: 'maximum shares its gradient at a tie',
    f: (x) => pg.sum(pg.maximum(x, f32(2, 2))),
    x: [2, 3],
    expected: [0.5, 1],
  },
  {
    name: 'max pooling gives the first of equals everything',
    f: (x) => pg.sum(pg.maxPool2d(pg.reshape(x, [1, 1, 2, 2]), 2)),
    x: [5, 5, 1, 5],
    expected: [1, 0, 0, 0],
  },
  { name: 'relu at zero', f: (x) => pg.sum(pg.relu(x)), x: [0, 1, -1], expected: [0, 1, 0] },
  { name: 'abs at zero', f: (x) => pg.sum(pg.abs(x)), x: [0, -2], expected: [0, -1] },
  { name: 'sign has slope zero', f: (x) => pg.sum(pg.sign(x)), x: [2, -1], expected: [0, 0] },
  { name: 'floor has slope zero', f: (x) => pg.sum(pg.floor(x)), x: [2.5], expected: [0] },
  { name: 'prod with one zero', f: (x) => pg.prod(x), x: [2, 0, 3], expected: [0, 6, 0] },
  { name: 'prod with two zeros', f: (x) => pg.prod(x), x: [0, 0, 3], expected: [0, 0, 0] },
  { name: 'norm at zero', f: (x) => pg.norm(x), x: [0, 0], expected: [0, 0] },
  { name: 'sqrt at zero', f: (x) => pg.sum(pg.sqrt(x)), x: [0], expected: [inf] },
  { name: 'pow(0, 0) by its base', f: (x) => pg.sum(pg.pow(x, 0)), x: [0], expected: [0] },
  {
    name: 'where stops NaN of the side not taken',
    f: (x) => pg.sum(pg.where(pg.greater(x, 0), pg.log(x), 0)),
    x: [1, 0, -1],
    expected: [1, 0, 0],
  },
];

const wide: readonly Value[] = [
  {
    name: 'fma rounds once in float64',
    run: () => pg.fma(of('float64', 1 + 2 ** -27), of('float64', 1 + 2 ** -27), of('float64', -(1 + 2 ** -26))),
    expected: [2 ** -54],
  },
];

export function specialCases(target: Target): ConformanceCase[] {
  const held = target.holds('float64') ? [...values, ...wide] : values;
  const cases: ConformanceCase[] = held.map((value) => ({
    name: `special / ${value.name}`,
    run: async () => {
      await compared(pg.scope(value.run), value);
      return undefined;
    },
  }));
  const tolerance = target.tolerances.forward.float32 ?? exact;
  for (const { name, f, x, expected } of slopes) {
    cases.push({
      name: `special gradient / ${name}`,
      run: async () => {
        await compared(
          pg.scope(() => pg.grad(f)(f32(...x))),
          { expected, tolerance },
        );
        return undefined;
      },
    });
  }
  return cases;
}
