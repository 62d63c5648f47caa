/** Casts between all pairs of dtypes. */
import * as pg from '@polygrad/core';
import type { DType } from '@polygrad/core';
import type { Target } from '../../target.ts';
import { integerFormat, isSmallFloat, nearest, wrap } from '../../oracle/formats.ts';
import { draw, expectValues, floats, type Integer, integers } from './values.ts';

/** What a value of one dtype becomes in another: floats are rounded once, integers wrap, floats to integers saturate. */
function converted(x: number | bigint, to: DType): number | bigint {
  if (to === 'bool') return Number(Number(x) !== 0);
  const format = integerFormat(to);
  if (format !== null) {
    if (typeof x === 'bigint') return wrap(to, x);
    const [lo, hi] = format.signed
      ? [-(1n << BigInt(format.bits - 1)), (1n << BigInt(format.bits - 1)) - 1n]
      : [0n, (1n << BigInt(format.bits)) - 1n];
    if (Number.isNaN(x)) return 0n;
    if (!Number.isFinite(x)) return x > 0 ? hi : lo;
    const whole = BigInt(Math.trunc(x));
    return whole > hi ? hi : whole < lo ? lo : whole;
  }
  // Large integers: their low bits gathered into one, so that a number holds them and rounding once is rounding right.
  let value = Number(x);
  if (typeof x === 'bigint' && to !== 'float64' && (x > 2n ** 53n || x < -(2n ** 53n))) {
    const low = x & 0xfffn;
    value = Number(low === 0n ? x : x - low + 0x800n);
  }
  if (isSmallFloat(to)) return nearest(to, value);
  return to === 'float32' ? Math.fround(value) : value;
}

export async function checkCasts(from: DType, target: Target): Promise<void> {
  let x: (number | bigint)[];
  if (integerFormat(from) !== null) x = draw(from as Integer, 61, 'cast');
  else if (from === 'bool') x = [0, 1, 1];
  else {
    const numbers = [
      0,
      -0,
      1,
      -1.5,
      2.5,
      127.5,
      -128.9,
      255.9,
      256,
      -1e5,
      65519,
      65520,
      65535.5,
      1e10,
      -3e9,
      9.3e18,
      2e19,
      1e300,
      2 ** -24,
      2 ** -25,
      1e-40,
      1 + 2 ** -8 + 2 ** -30,
      1 + 2 ** -11 + 2 ** -40,
      Number.POSITIVE_INFINITY,
      Number.NEGATIVE_INFINITY,
      Number.NaN,
    ];
    x = numbers.map((v) => converted(v, from));
  }
  const t = pg.tensor(from === 'bool' ? x.map(Boolean) : x, { dtype: from });
  for (const to of [...integers, ...floats, 'bool'] as const) {
    if (!target.holds(to) || to === from) continue;
    await expectValues(
      `${from} to ${to}`,
      pg.scope(() => t.cast(to)),
      x.map((v) => converted(v, to)),
      to,
    );
  }
  t.dispose();
}
