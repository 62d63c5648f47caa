/** 16-bit floats as 32-bit arithmetic: every bit pattern, against formulas written plainly. */
import { describe, expect, it } from 'vitest';
import type { DType, TypedArray } from '../shape/dtype.ts';
import { expectAll, type Formula, ieee, meaning, patterns, runSmall } from './fixtures/small-dtypes.ts';

/** Another engine promises little of float32: its 16-bit floats are computed by other formulas. */
const lax = { ...ieee, dtypes: new Set([...ieee.dtypes].filter((d) => d !== 'float64')) };

describe.each([
  ['float16', 'IEEE', ieee],
  ['float16', 'lax', lax],
  ['float16', 'IEEE, which cast them', { ...ieee, castsFloat16: true }],
  ['bfloat16', 'IEEE', ieee],
] as const)('%s on engines with %s float32', (dtype, _, used) => {
  const run = (f: Formula, dtypes: readonly DType[], inputs: readonly TypedArray[], lanes = 1): TypedArray =>
    runSmall(used, f, dtypes, inputs, lanes);
  const values = Array.from(patterns, (bits) => meaning(dtype, bits));

  it.each([1, 4])('every pattern becomes its float32 and float64, %d lanes', (lanes) => {
    expectAll(run((e, x) => e.cast(x, 'float32'), [dtype], [patterns], lanes) as Float32Array, (i) => values[i]!);
    expectAll(run((e, x) => e.cast(x, 'float64'), [dtype], [patterns], lanes) as Float64Array, (i) => values[i]!);
  });

  it('every value comes back from float32 and float64 as its pattern; NaN stays NaN', () => {
    for (const [wide, Host] of [
      ['float32', Float32Array],
      ['float64', Float64Array],
    ] as const) {
      const got = run((e, x) => e.cast(x, dtype), [wide], [Host.from(values)]) as Uint16Array;
      for (let i = 0; i < 65536; i++) {
        if (Number.isNaN(values[i])) expect(meaning(dtype, got[i]!)).toBeNaN();
        else if (got[i] !== i) throw new Error(`${wide}: pattern ${i} came back as ${got[i]}`);
      }
    }
  });

  it('numbers between neighbours go to the nearer one, ties to the even one, from float32, float64 and rounded in place', () => {
    // Positive finite neighbours; the one after the largest is infinity at the place 2^n would have.
    const top = dtype === 'float16' ? 0x7c00 : 0x7f80;
    const upper = (i: number): number => (i + 1 === top ? 2 ** (dtype === 'float16' ? 16 : 128) : values[i + 1]!);
    // Every tie from float32; fewer of the others and of those from float64.
    for (const [wide, Host, nudge, step] of [
      ['float64', Float64Array, 2 ** -40, 7],
      ['float32', Float32Array, dtype === 'float16' ? 2 ** -6 : 2 ** -10, 1],
    ] as const) {
      for (const part of [-nudge, 0, nudge]) {
        const between = (i: number): number => (values[i]! + upper(i)) / 2 + part * (upper(i) - values[i]!);
        const apart = part === 0 ? step : 5 * step;
        const places = Array.from({ length: Math.ceil(top / apart) }, (_, k) => k * apart);
        const inputs = new Host(places.map(between));
        const want = (k: number): number => {
          const i = places[k]!;
          return part < 0 ? i : part > 0 ? i + 1 : i + (i & 1);
        };
        const up = run((e, x) => e.cast(x, dtype), [wide], [inputs], 1) as Uint16Array;
        expectAll(up, want);
        if (part === 0) {
          const down = run((e, x) => e.cast(e.neg(x), dtype), [wide], [inputs], 1) as Uint16Array;
          expectAll(down, (i) => want(i) + 0x8000);
        }
        if (wide === 'float32') {
          // The same rounding between two operations: no bits in between.
          const kept = run((e, x) => e.cast(e.cast(x, dtype), 'float32'), [wide], [inputs]) as Float32Array;
          expectAll(kept, (i) => meaning(dtype, want(i)));
        }
      }
    }
  });

  it('moving keeps every bit, of NaN too', () => {
    const moved = run((e, x, y) => e.where(e.lt(x, e.constant(dtype, 0)), y, x), [dtype, dtype], [patterns, patterns]);
    expect(Array.from(moved as Uint16Array)).toEqual(Array.from(patterns));
  });

  it('arithmetic is exact and rounded once', () => {
    const [a, b] = [0, 1].map((k) =>
      Uint16Array.from({ length: 20000 }, (_, i) => (i * 40503 + k * 977 + (i >> 3)) & 0xffff),
    );
    const check = (op: 'ADD' | 'SUB' | 'MUL' | 'DIV', f: (x: number, y: number) => number): void => {
      const got = run((e, x, y) => e.binary(op, x, y), [dtype, dtype], [a!, b!], 4) as Uint16Array;
      // float64 holds sums, differences and products but for huge distances of exponents, where rounding it is harmless.
      const want = run(
        (e, x) => e.cast(x, dtype),
        ['float64'],
        [Float64Array.from(a!, (x, i) => f(meaning(dtype, x), meaning(dtype, b![i]!)))],
      ) as Uint16Array;
      for (let i = 0; i < got.length; i++) {
        const [g, w] = [meaning(dtype, got[i]!), meaning(dtype, want[i]!)];
        if (!Object.is(g, w)) throw new Error(`${op} of ${a![i]} and ${b![i]}: ${g}, expected ${w}`);
      }
    };
    check('ADD', (x, y) => x + y);
    check('SUB', (x, y) => x - y);
    check('MUL', (x, y) => x * y);
    check('DIV', (x, y) => x / y);
  });

  it('casts to and from integers saturate and round once', () => {
    const toInt = (to: 'int8' | 'uint8' | 'uint16' | 'int32', lo: number, hi: number): void => {
      const got = run((e, x) => e.cast(x, to), [dtype], [patterns]) as Int32Array;
      expectAll(got, (i) => (Number.isNaN(values[i]) ? 0 : Math.min(hi, Math.max(lo, Math.trunc(values[i]!))) + 0));
    };
    toInt('int8', -128, 127);
    toInt('uint8', 0, 255);
    toInt('uint16', 0, 65535);
    toInt('int32', -(2 ** 31), 2 ** 31 - 1);
    // 2^62 + 2^54 + 1: just above a tie of bfloat16, which float32 and float64 would both lose.
    const big = BigInt64Array.of(
      2n ** 62n + 2n ** 54n + 1n,
      -(2n ** 62n) - 2n ** 54n - 1n,
      2n ** 62n + 2n ** 54n,
      65519n,
      65520n,
      2n ** 11n + 1n,
    );
    const bits = run((e, x) => e.cast(x, dtype), ['int64'], [big]) as Uint16Array;
    const inf = Number.POSITIVE_INFINITY;
    const want =
      dtype === 'float16'
        ? [inf, -inf, inf, 65504, inf, 2048]
        : [2 ** 62 + 2 ** 55, -(2 ** 62) - 2 ** 55, 2 ** 62, 65536, 65536, 2048];
    expect(Array.from(bits, (x) => meaning(dtype, x))).toEqual(want);
  });
});
