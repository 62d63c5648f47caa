/** Elementwise functions that are composed of others: activations, hyperbolic inverses, fused and limiting forms. */
import * as pg from '@polygrad/core';
import type { DType, Tensor } from '@polygrad/core';
import { at, build, count, map, type NDArray, zip } from '../oracle/ndarray.ts';
import { awayFromZero, type Random, sample, uniform } from '../oracle/random.ts';
import type { OpSpec } from '../spec.ts';
import { clamp, logistic, softplus } from '../oracle/special.ts';

type Draw = (r: Random) => number;
const floats: readonly DType[] = ['float32', 'float64'];
const any = uniform(-3, 3);

/** Numbers at least 0.05 away from every one of the given kinks. */
function off(...kinks: readonly number[]): Draw {
  return (r) => {
    for (;;) {
      const x = any(r);
      if (kinks.every((kink) => Math.abs(x - kink) > 0.05)) return x;
    }
  };
}

const unary: readonly {
  readonly name: string;
  readonly run: (x: Tensor) => Tensor;
  readonly f: (x: number) => number;
  readonly draw?: Draw;
}[] = [
  { name: 'cbrt', run: pg.cbrt, f: Math.cbrt, draw: awayFromZero(0.1, 9) },
  { name: 'log10', run: pg.log10, f: Math.log10, draw: uniform(0.1, 200) },
  { name: 'asinh', run: pg.asinh, f: Math.asinh },
  { name: 'asinh around zero', run: pg.asinh, f: Math.asinh, draw: uniform(-1e-3, 1e-3) },
  { name: 'acosh', run: pg.acosh, f: Math.acosh, draw: uniform(1.05, 9) },
  { name: 'atanh', run: pg.atanh, f: Math.atanh, draw: uniform(-0.95, 0.95) },
  { name: 'sinc', run: pg.sinc, f: (x) => (x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x)) },
  { name: 'frac', run: pg.frac, f: (x) => x - Math.trunc(x), draw: off(-2, -1, 0, 1, 2) },
  {
    name: 'celu',
    run: (x) => pg.celu(x, { alpha: 0.7 }),
    f: (x) => (x > 0 ? x : 0.7 * Math.expm1(x / 0.7)),
    draw: off(0),
  },
  {
    name: 'selu',
    run: pg.selu,
    f: (x) => 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * Math.expm1(x)),
    draw: off(0),
  },
  {
    name: 'elu with alpha',
    run: (x) => pg.elu(x, { alpha: 0.5 }),
    f: (x) => (x > 0 ? x : 0.5 * Math.expm1(x)),
    draw: off(0),
  },
  { name: 'mish', run: pg.mish, f: (x) => x * Math.tanh(softplus(x)) },
  { name: 'logSigmoid', run: pg.logSigmoid, f: (x) => -softplus(-x) },
  { name: 'softplus with beta', run: (x) => pg.softplus(x, { beta: 2.5 }), f: (x) => softplus(2.5 * x) / 2.5 },
  { name: 'softsign', run: pg.softsign, f: (x) => x / (1 + Math.abs(x)), draw: off(0) },
  { name: 'tanhShrink', run: pg.tanhShrink, f: (x) => x - Math.tanh(x) },
  {
    name: 'softShrink',
    run: (x) => pg.softShrink(x, { lambda: 1 }),
    f: (x) => Math.sign(x) * Math.max(Math.abs(x) - 1, 0),
    draw: off(-1, 1),
  },
  { name: 'hardShrink', run: (x) => pg.hardShrink(x), f: (x) => (Math.abs(x) > 0.5 ? x : 0), draw: off(-0.5, 0.5) },
  { name: 'hardSigmoid', run: pg.hardSigmoid, f: (x) => clamp(x / 6 + 0.5, 0, 1), draw: off(-3, 3) },
  { name: 'hardSwish', run: pg.hardSwish, f: (x) => x * clamp(x / 6 + 0.5, 0, 1), draw: off(-3, 3) },
  { name: 'hardTanh', run: (x) => pg.hardTanh(x, { low: -2 }), f: (x) => clamp(x, -2, 1), draw: off(-2, 1) },
  { name: 'relu6', run: (x) => pg.relu6(pg.mul(x, 3)), f: (x) => clamp(3 * x, 0, 6), draw: off(0, 2) },
  {
    name: 'threshold',
    run: (x) => pg.threshold(x, { threshold: 0.5, value: -7 }),
    f: (x) => (x > 0.5 ? x : -7),
    draw: off(0.5),
  },
  { name: 'prelu with one weight', run: (x) => pg.prelu(x, 0.3), f: (x) => (x > 0 ? x : 0.3 * x), draw: off(0) },
  {
    name: 'heaviside',
    run: (x) => pg.heaviside(pg.round(x) as Tensor, 0.25),
    f: (x) => (Math.round(x) === 0 ? 0.25 : Number(x > 0)),
    draw: off(-2.5, -1.5, -0.5, 0.5, 1.5, 2.5),
  },
];

/** Draws pairs whose quotient is no integer, or nearly one. */
const dividend: Draw = (r) => Math.round(any(r) * 8) / 8 + 1 / 16;
const divisor: Draw = (r) => (r() < 0.5 ? -1 : 1) * (r() < 0.5 ? 0.75 : 1.25);

const several: readonly {
  readonly name: string;
  readonly run: (xs: Tensor[]) => Tensor;
  readonly f: (...xs: number[]) => number;
  readonly draw: readonly Draw[];
}[] = [
  { name: 'hypot', run: ([a, b]) => pg.hypot(a as Tensor, b as Tensor), f: Math.hypot, draw: [off(0), off(0)] },
  {
    name: 'copysign',
    run: ([a, b]) => pg.copysign(a as Tensor, b as Tensor),
    f: (a = 0, b = 0) => Math.abs(a) * Math.sign(b),
    draw: [off(0), off(0)],
  },
  {
    name: 'logAddExp',
    run: ([a, b]) => pg.logAddExp(a as Tensor, b as Tensor),
    f: (a = 0, b = 0) => Math.max(a, b) + Math.log1p(Math.exp(-Math.abs(a - b))),
    draw: [any, any],
  },
  {
    name: 'xlogy',
    run: ([a, b]) => pg.xlogy(a as Tensor, b as Tensor),
    f: (a = 0, b = 0) => (a === 0 ? 0 : a * Math.log(b)),
    draw: [any, uniform(0.2, 3)],
  },
  {
    name: 'fmod',
    run: ([a, b]) => pg.fmod(a as Tensor, b as Tensor),
    f: (a = 0, b = 0) => a % b,
    draw: [dividend, divisor],
  },
  {
    name: 'remainder of fractions',
    run: ([a, b]) => pg.remainder(a as Tensor, b as Tensor),
    f: (a = 0, b = 0) => a - b * Math.floor(a / b),
    draw: [dividend, divisor],
  },
  {
    name: 'floorDivide of fractions',
    run: ([a, b]) => pg.floorDivide(a as Tensor, b as Tensor),
    f: (a = 0, b = 0) => Math.floor(a / b),
    draw: [dividend, divisor],
  },
  {
    name: 'lerp',
    run: ([a, b, w]) => pg.lerp(a as Tensor, b as Tensor, w as Tensor),
    f: (a = 0, b = 0, w = 0) => a + w * (b - a),
    draw: [any, any, uniform(-0.5, 1.5)],
  },
  {
    name: 'addcmul',
    run: ([a, b, c]) => pg.addcmul(a as Tensor, b as Tensor, c as Tensor, { value: 0.5 }),
    f: (a = 0, b = 0, c = 0) => a + 0.5 * b * c,
    draw: [any, any, any],
  },
  {
    name: 'addcdiv',
    run: ([a, b, c]) => pg.addcdiv(a as Tensor, b as Tensor, c as Tensor, { value: 0.5 }),
    f: (a = 0, b = 0, c = 0) => a + (0.5 * b) / c,
    draw: [any, any, off(0, 0.1, -0.1, 0.2, -0.2)],
  },
];

export function composedSpecs(): OpSpec[] {
  const shapes = [[], [7], [2, 3], [67]];
  const specs: OpSpec[] = unary.map(({ name, run, f, draw }) => ({
    name,
    dtypes: floats,
    instances: shapes.map((shape) => ({
      label: `[${shape}]`,
      small: count(shape) < 10,
      draw: (r: Random) => [sample(r, shape, draw ?? any)],
    })),
    run: ([x]) => run(x as Tensor),
    oracle: ([x]) => map(x as NDArray, f),
    gradient: { of: [0], order: 2 },
  }));
  for (const { name, run, f, draw } of several) {
    specs.push({
      name,
      dtypes: floats,
      instances: [
        [[7], [7], [7]],
        [[2, 1], [3], [2, 3]],
        [[67], [], [1]],
      ].map((each) => ({
        label: each
          .slice(0, draw.length)
          .map((shape) => `[${shape}]`)
          .join(' '),
        small: each[0]?.[0] !== 67,
        draw: (r: Random) => draw.map((d, i) => sample(r, each[i] as number[], d)),
      })),
      run,
      oracle: (xs) => zip(f, ...xs),
      gradient: { of: draw.map((_, i) => i), order: 2 },
    });
  }
  return [...specs, ...axisSpecs()];
}

function axisSpecs(): OpSpec[] {
  return [
    {
      name: 'prelu with a weight per channel',
      dtypes: floats,
      instances: [
        [2, 3],
        [2, 3, 4],
        [1, 3, 2, 3],
      ].map((shape) => ({
        label: `[${shape}]`,
        small: true,
        draw: (r: Random) => [sample(r, shape, off(0)), sample(r, [3], uniform(0.1, 0.9))],
      })),
      run: ([x, w]) => pg.prelu(x as Tensor, w as Tensor),
      oracle: ([x, w]) =>
        build((x as NDArray).shape, (index) => {
          const v = at(x as NDArray, index);
          return v > 0 ? v : v * at(w as NDArray, [index[1] as number]);
        }),
      gradient: { of: [0, 1], order: 2 },
    },
    {
      name: 'glu',
      dtypes: floats,
      instances: [0, 1].map((axis) => ({
        label: `[4,6] along ${axis}`,
        small: true,
        options: { axis },
        draw: (r: Random) => [sample(r, [4, 6], any)],
      })),
      run: ([x], o) => pg.glu(x as Tensor, { axis: o.axis as number }),
      oracle: ([x], o) => {
        const axis = o.axis as number;
        const half = ((x as NDArray).shape[axis] as number) / 2;
        return build(
          (x as NDArray).shape.map((n, i) => (i === axis ? half : n)),
          (index) =>
            at(x as NDArray, index) *
            logistic(
              at(
                x as NDArray,
                index.map((v, i) => (i === axis ? v + half : v)),
              ),
            ),
        );
      },
      gradient: { of: [0], order: 2 },
    },
    {
      name: 'softmin',
      dtypes: floats,
      instances: [{ label: '[3,4]', small: true, draw: (r: Random) => [sample(r, [3, 4], any)] }],
      run: ([x]) => pg.softmin(x as Tensor, 1),
      oracle: ([x]) =>
        build([3, 4], ([i, j]) => {
          const e = [0, 1, 2, 3].map((k) => Math.exp(-at(x as NDArray, [i as number, k])));
          return (e[j as number] as number) / e.reduce((a, b) => a + b, 0);
        }),
      gradient: { of: [0], order: 2 },
    },
  ];
}
