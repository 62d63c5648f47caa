/**
 * Functions and their slopes where squares, exponentials and differences leave the range of the dtype, against values that mpmath 1.3
 * computed with 50 digits.
 */
import { beforeAll, expect, it } from 'vitest';
import * as pg from '../../index.ts';
import { createReferenceEngine } from '@polygrad/testing';

beforeAll(() => pg.setEngine(createReferenceEngine()));

const functions = {
  acos: pg.acos,
  acosh: pg.acosh,
  asin: pg.asin,
  asinh: pg.asinh,
  atan2: pg.atan2,
  atanh: pg.atanh,
  erfinv: pg.erfinv,
  hypot: pg.hypot,
  lgamma: pg.lgamma,
  logAddExp: pg.logAddExp,
  softplus: pg.softplus,
  softsign: pg.softsign,
} as const;

/** Function, dtype, arguments, value, slope by each argument. */
const rows: readonly [keyof typeof functions, 'float32' | 'float64', number[], number, number[]][] = [
  ['atan2', 'float64', [1e200, 1e200], 0.7853981633974483, [5e-201, -5e-201]],
  ['atan2', 'float64', [1e-200, 1e-200], 0.7853981633974483, [5e199, -5e199]],
  ['atan2', 'float64', [-1e-200, 3e-200], -0.3217505543966422, [3e199, 1e199]],
  ['atan2', 'float64', [1e300, 1e-8], 1.5707963267948966, [0.0, -1e-300]],
  ['atan2', 'float64', [1e160, -2e160], 2.677945044588987, [-4e-161, -2e-161]],
  ['hypot', 'float64', [1e200, 1e200], 1.414213562373095e200, [Math.SQRT1_2, Math.SQRT1_2]],
  ['hypot', 'float64', [1e-200, 1e-200], 1.414213562373095e-200, [Math.SQRT1_2, Math.SQRT1_2]],
  ['hypot', 'float64', [-1e-200, 3e-200], 3.1622776601683794e-200, [-0.31622776601683794, 0.9486832980505138]],
  ['hypot', 'float64', [1e300, 1e-8], 1e300, [1.0, 1e-308]],
  ['hypot', 'float64', [1e160, -2e160], 2.2360679774997898e160, [0.4472135954999579, -0.8944271909999159]],
  ['logAddExp', 'float64', [1e200, 1e200], 1e200, [0.5, 0.5]],
  ['logAddExp', 'float64', [1e-200, 1e-200], Math.LN2, [0.5, 0.5]],
  ['logAddExp', 'float64', [-1e-200, 3e-200], Math.LN2, [0.5, 0.5]],
  [
    'atan2',
    'float32',
    [9.999999562023526e24, 9.999999562023526e24],
    0.7853981633974483,
    [5.000000218988247e-26, -5.000000218988247e-26],
  ],
  [
    'atan2',
    'float32',
    [1.0000000195414814e-25, -3.000000058624444e-25],
    2.819842099193151,
    [-2.999999941375557e24, -9.99999980458519e23],
  ],
  [
    'atan2',
    'float32',
    [1.0000000031710769e-30, 1.0000000031710769e-30],
    0.7853981633974483,
    [4.999999984144616e29, -4.999999984144616e29],
  ],
  [
    'hypot',
    'float32',
    [9.999999562023526e24, 9.999999562023526e24],
    1.4142135004338681e25,
    [Math.SQRT1_2, Math.SQRT1_2],
  ],
  [
    'hypot',
    'float32',
    [1.0000000195414814e-25, -3.000000058624444e-25],
    3.1622777219639693e-25,
    [0.31622776601683794, -0.9486832980505138],
  ],
  [
    'hypot',
    'float32',
    [1.0000000031710769e-30, 1.0000000031710769e-30],
    1.4142135668576749e-30,
    [Math.SQRT1_2, Math.SQRT1_2],
  ],
  // The smallest numbers there are.
  ['hypot', 'float32', [2 ** -149, 0], 2 ** -149, [1, 0]],
  ['hypot', 'float32', [0, -(2 ** -126)], 2 ** -126, [0, -1]],
  ['hypot', 'float32', [3 * 2 ** -149, -4 * 2 ** -149], 5 * 2 ** -149, [0.6, -0.8]],
  ['hypot', 'float64', [2 ** -1074, 0], 2 ** -1074, [1, 0]],
  ['hypot', 'float64', [3 * 2 ** -1074, -4 * 2 ** -1074], 5 * 2 ** -1074, [0.6, -0.8]],
  ['logAddExp', 'float32', [9.999999562023526e24, 9.999999562023526e24], 9.999999562023526e24, [0.5, 0.5]],
  ['logAddExp', 'float32', [1.0000000195414814e-25, -3.000000058624444e-25], Math.LN2, [0.5, 0.5]],
  ['logAddExp', 'float32', [1.0000000031710769e-30, 1.0000000031710769e-30], Math.LN2, [0.5, 0.5]],
  ['asinh', 'float64', [1e160], 369.10676205960726, [1e-160]],
  ['asinh', 'float64', [-1e300], -691.4686750787737, [1e-300]],
  ['asinh', 'float64', [1e-200], 1e-200, [1.0]],
  ['acosh', 'float64', [1e160], 369.10676205960726, [1e-160]],
  ['softsign', 'float64', [10000.0], 0.9999000099990001, [9.998000299960006e-9]],
  ['softsign', 'float64', [-10000000000.0], -0.9999999999, [9.999999998e-21]],
  ['softsign', 'float64', [1e18], 1.0, [1e-36]],
  ['softplus', 'float64', [-80.0], 1.8048513878454153e-35, [1.8048513878454153e-35]],
  ['softplus', 'float64', [1e30], 1e30, [1.0]],
  ['softplus', 'float64', [-10000.0], 0.0, [0.0]],
  ['lgamma', 'float64', [10000000000.0], 220258509288.81058, [23.025850929890456]],
  ['lgamma', 'float64', [1e30], 6.807755278982137e31, [69.07755278982137]],
  ['asinh', 'float32', [1.0000000200408773e20], 46.744849060481734, [9.99999979959123e-21]],
  ['asinh', 'float32', [-1.0000000150474662e30], -69.77069998542878, [9.99999984952534e-31]],
  ['asinh', 'float32', [1.0000000031710769e-30], 1.0000000031710769e-30, [1.0]],
  ['acosh', 'float32', [1.0000000200408773e20], 46.744849060481734, [9.99999979959123e-21]],
  ['softsign', 'float32', [10000.0], 0.9999000099990001, [9.998000299960006e-9]],
  ['softsign', 'float32', [-10000000000.0], -0.9999999999, [9.999999998e-21]],
  ['softsign', 'float32', [9.999999843067494e17], 1.0, [1.0000000313865018e-36]],
  ['softplus', 'float32', [-80.0], 1.8048513878454153e-35, [1.8048513878454153e-35]],
  ['softplus', 'float32', [1.0000000150474662e30], 1.0000000150474662e30, [1.0]],
  ['softplus', 'float32', [-10000.0], 0.0, [0.0]],
  ['lgamma', 'float32', [10000000000.0], 220258509288.81058, [23.025850929890456]],
  ['lgamma', 'float32', [1.0000000150474662e30], 6.807755382926351e31, [69.07755280486883]],
  ['erfinv', 'float64', [0.998046875], 2.190099968353768, [107.31362626028088]],
  ['erfinv', 'float64', [0.9999990463256836], 3.465505025803331, [145647.2448881287]],
  ['erfinv', 'float64', [0.9999999990686774], 4.328028275800946, [120969199.12817393]],
  ['erfinv', 'float64', [0.9999999999990905], 5.05125408524939, [106817285124.65913]],
  ['erfinv', 'float64', [0.9999999999999999], 5.8635847487551676, [757347920544974.0]],
  ['erfinv', 'float32', [0.998046875], 2.190099968353768, [107.31362626028088]],
  ['erfinv', 'float32', [0.9999847412109375], 3.058179581850916, [10215.690659118238]],
  ['erfinv', 'float32', [0.9999999403953552], 3.832506856900711, [2120848.008242037]],
  ['asin', 'float64', [0.9999999990686774], 1.5707531684220182, [23170.475011315586]],
  ['acos', 'float64', [-0.9999999990686774], 3.1415494952169145, [-23170.475011315586]],
  ['atanh', 'float64', [0.9999999990686774], 10.743781298446322, [536870912.25]],
  ['asin', 'float64', [0.9999999999999991], 1.570796284648048, [23726566.406062894]],
  ['acos', 'float64', [-0.9999999999999991], 3.141592611442945, [-23726566.406062894]],
  ['atanh', 'float64', [0.9999999999999991], 17.675253104278607, [562949953421312.2]],
  ['acosh', 'float64', [1.0000000000009095], 1.3486991523485068e-6, [741455.2001892966]],
];

it.each(rows)('%s of %s %j', async (name, dtype, args, value, slopes) => {
  const f = functions[name] as (...numbers: pg.Tensor[]) => pg.Tensor;
  const inputs = args.map((x) => pg.tensor(x, { dtype }));
  const digits = dtype === 'float32' ? 2 ** -23 : 2 ** -52;
  // Denormal results have fewer digits.
  const least = dtype === 'float32' ? 2 ** -149 : 2 ** -1074;
  const near = (got: number, wanted: number, units: number): void =>
    expect(Math.abs(got - wanted), `${got} for ${wanted}`).toBeLessThanOrEqual(
      units * digits * Math.abs(wanted) + least,
    );
  near(await f(...inputs).item(), value, 8);
  const gradients = pg.grad(f, { argnums: args.map((_, i) => i) })(...inputs) as pg.Tensor[];
  // The slope of erfinv is exp(y^2), which makes half a unit of y into y^2 <= 35 of its own.
  for (const [i, slope] of slopes.entries()) near(await (gradients[i] as pg.Tensor).item(), slope, 64);
});

it.each(['float32', 'float64'] as const)(
  'acosh of %s is NaN everywhere below 1, and so is its slope',
  async (dtype) => {
    const large = dtype === 'float32' ? 3e38 : 1.7e308;
    const data = [0.999, 0, -0, -1, -7, -1e3, -4097, -1e5, -2e7, -1e9, -1e16, -1e30, -large, Number.NEGATIVE_INFINITY];
    const nothing = data.map(() => Number.NaN);
    const x = pg.tensor(data, { dtype });
    expect([...(await pg.acosh(x).data())]).toEqual(nothing);
    const slope = pg.grad((t: pg.Tensor) => pg.sum(pg.acosh(t)))(x) as pg.Tensor;
    expect([...(await slope.data())]).toEqual(nothing);
  },
);
