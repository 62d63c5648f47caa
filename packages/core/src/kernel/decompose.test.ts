import { describe, expect, it } from 'vitest';
import type { EngineCaps } from '../engine/engine.ts';
import type { DType } from '../shape/dtype.ts';
import { createReferenceEngine } from '../testing/reference-engine.ts';
import { decompose } from './decompose.ts';
import { erf } from './erf.ts';
import { fma32 } from './exact-fma.ts';
import { Exprs } from './expr.ts';
import { BASE_OPS, type BinaryOp, type KNode, type UnaryOp } from './ir.ts';
import { toJsFunction } from './js-function.ts';

const caps: EngineCaps = { ...createReferenceEngine().caps, nativeOps: new Set() };

function unary(op: UnaryOp, dtype: DType, with64 = true): (x: number) => number {
  const e = new Exprs();
  const x = e.scalar(0, dtype);
  const limited: EngineCaps = with64
    ? caps
    : { ...caps, dtypes: new Set<DType>(['float32', 'int32', 'uint32', 'bool']) };
  const [root] = decompose([e.unary(op, x)], e, limited) as [KNode];
  return toJsFunction(root, [x]);
}

function binary(op: BinaryOp, dtype: DType): (x: number, y: number) => number {
  const e = new Exprs();
  const [x, y] = [e.scalar(0, dtype), e.scalar(1, dtype)];
  const [root] = decompose([e.binary(op, x, y)], e, caps) as [KNode];
  return toJsFunction(root, [x, y]);
}

const f = new Float32Array(1);
const i = new Int32Array(f.buffer);

/** float32 numbers spread over all exponents and both signs, with random mantissas. */
function* floats(count: number): Generator<number> {
  let state = 12345;
  for (let k = 0; k < count; k++) {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    i[0] = state;
    const x = f[0] as number;
    if (Number.isFinite(x)) yield x;
  }
}

/** Distance in units in the last place of float32 at the exact value. */
function ulps(actual: number, exact: number): number {
  const near = Math.fround(exact);
  if (Object.is(actual, near) || actual === near || (Number.isNaN(actual) && Number.isNaN(near))) return 0;
  if (!Number.isFinite(actual) || !Number.isFinite(near)) {
    // One step past the largest number is one unit.
    const largest = 3.4028234663852886e38;
    const clip = (x: number): number => Math.max(-largest, Math.min(largest, x));
    return Number.isNaN(actual) || Number.isNaN(near)
      ? Number.POSITIVE_INFINITY
      : Math.abs(clip(actual) - clip(near)) / 2 ** 104 + 1;
  }
  const exponent = Math.max(Math.floor(Math.log2(Math.abs(exact) || 2 ** -149)), -126);
  return Math.abs(actual - exact) / 2 ** (exponent - 23);
}

function worst(
  g: (x: number) => number,
  exact: (x: number) => number,
  inputs: Iterable<number>,
): { ulp: number; at: number } {
  let ulp = 0;
  let at = Number.NaN;
  for (const x of inputs) {
    const d = ulps(g(x), exact(x));
    if (!(d <= ulp)) {
      ulp = d;
      at = x;
    }
  }
  return { ulp, at };
}

function* around(low: number, high: number, count: number): Generator<number> {
  for (let k = 0; k <= count; k++) yield Math.fround(low + ((high - low) * k) / count);
}

const table: readonly [UnaryOp, (x: number) => number, number][] = [
  ['EXP', Math.exp, 1],
  ['EXP2', (x) => 2 ** x, 1],
  ['EXPM1', Math.expm1, 1],
  ['LOG', Math.log, 1],
  ['LOG2', Math.log2, 1],
  ['LOG1P', Math.log1p, 1],
  ['SIN', Math.sin, 1],
  ['COS', Math.cos, 1],
  ['TAN', Math.tan, 1],
  ['ASIN', Math.asin, 1],
  ['ACOS', Math.acos, 1],
  ['ATAN', Math.atan, 1],
  ['SINH', Math.sinh, 1],
  ['COSH', Math.cosh, 1],
  ['TANH', Math.tanh, 1],
  ['ERF', erf, 2],
  ['RSQRT', (x) => 1 / Math.sqrt(x), 1.5],
  ['RECIP', (x) => 1 / x, 0.5000001],
];

describe('accuracy of decompositions in float32', () => {
  it.each(table)('%s over the whole range', (op, exact, bound) => {
    const g = unary(op, 'float32');
    const all = worst(g, exact, floats(40_000));
    const near = worst(g, exact, around(-8, 8, 20_000));
    const wide = worst(g, exact, around(-105, 95, 20_000));
    expect(all.ulp, `at ${all.at}`).toBeLessThanOrEqual(bound);
    expect(near.ulp, `at ${near.at}`).toBeLessThanOrEqual(bound);
    expect(wide.ulp, `at ${wide.at}`).toBeLessThanOrEqual(bound);
  });

  it.each(table)('%s uses base operations only', (op) => {
    const e = new Exprs();
    const [root] = decompose([e.unary(op, e.scalar(0, 'float32'))], e, caps) as [KNode];
    const seen = new Set<KNode>([root]);
    for (const n of seen) for (const s of n.src) seen.add(s);
    const others = [...seen].filter(
      (n) => !BASE_OPS.has(n.op) && !['SCALAR', 'CONST', 'CAST', 'BITCAST'].includes(n.op),
    );
    expect(others.map((n) => n.op)).toEqual([]);
  });

  it('POW within 2 units, special cases by C99', () => {
    const g = binary('POW', 'float32');
    let ulp = 0;
    const xs = [...floats(300)].map(Math.abs);
    for (const x of xs)
      for (const y of [-3.7, -1, -0.5, 0.3, 1, 2, 7.25, 30.5])
        ulp = Math.max(ulp, ulps(g(x, Math.fround(y)), x ** Math.fround(y)));
    expect(ulp).toBeLessThanOrEqual(2);
    const { NaN: nan, POSITIVE_INFINITY: inf } = Number;
    const cases: [number, number, number][] = [
      [0, 0, 1],
      [1, inf, 1],
      [1, nan, 1],
      [nan, 0, 1],
      [-2, 3, -8],
      [-2, 2, 4],
      [-2, 0.5, nan],
      [0, -1, inf],
      [-0, -3, -inf],
      [-0, 3, -0],
      [0, 2, 0],
      [inf, -1, 0],
      [-inf, 3, -inf],
      [-inf, 2, inf],
      [-1, inf, 1],
      [0.5, inf, 0],
      [0.5, -inf, inf],
      [2, inf, inf],
      [nan, 1, nan],
    ];
    for (const [a, b, want] of cases) expect(g(a, b), `pow(${a}, ${b})`).toBe(want);
  });

  it('ATAN2 in every quadrant and on the axes', () => {
    const g = binary('ATAN2', 'float32');
    const points = [0, -0, 1, -1, 0.3, -7, 1e-30, 1e30, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (const y of points)
      for (const x of points) expect(ulps(g(y, x), Math.atan2(y, x)), `atan2(${y}, ${x})`).toBeLessThanOrEqual(1);
    expect(g(Number.NaN, 1)).toBeNaN();
  });

  it('FREM is exact', () => {
    const g = binary('FREM', 'float32');
    const xs = [...floats(400)];
    for (const x of xs) {
      for (const y of [3, 0.7, -2.5, 1e10]) {
        if (Math.abs(x / y) < 2 ** 80) expect(g(x, Math.fround(y)), `${x} % ${y}`).toBe(x % Math.fround(y));
      }
    }
    expect(g(1, 0)).toBeNaN();
    expect(g(5, Number.POSITIVE_INFINITY)).toBe(5);
  });

  it('FMA rounds once', () => {
    const e = new Exprs();
    const [a, b, c] = [e.scalar(0, 'float32'), e.scalar(1, 'float32'), e.scalar(2, 'float32')];
    const [root] = decompose([e.ternary('FMA', a, b, c)], e, caps) as [KNode];
    const g = toJsFunction(root, [a, b, c]);
    const xs = [...floats(3000)].filter((x) => Math.abs(x) < 1e15 && Math.abs(x) > 1e-15);
    for (let k = 2; k < xs.length; k++) {
      const [x, y, z] = [xs[k - 2], xs[k - 1], xs[k]] as [number, number, number];
      expect(g(x, y, z)).toBe(fma32(x, y, z));
    }
    // A tie in float32 that only the error of the sum can decide.
    const one = 1 + 2 ** -23;
    expect(g(one, one, 2 ** -60)).toBe(fma32(one, one, 2 ** -60));
  });

  it('special values', () => {
    const { NaN: nan, POSITIVE_INFINITY: inf } = Number;
    for (const [op, exact] of table) {
      const g = unary(op, 'float32');
      for (const x of [nan, inf, -inf, 0, -0, 1e-40, -1e-40, 1000, -1000, 3e38].map(Math.fround)) {
        const want = Math.fround(exact(x));
        const got = g(x);
        const close = Object.is(got, want) || ulps(got, exact(x)) <= 1;
        expect(
          close && Object.is(Math.sign(got), Math.sign(want)),
          `${op}(${x}) is ${got} where ${want} is expected`,
        ).toBe(true);
      }
    }
  });

  it('ROUND is half to even', () => {
    const g = unary('ROUND', 'float32');
    for (const [x, want] of [
      [0.5, 0],
      [1.5, 2],
      [2.5, 2],
      [-0.5, -0],
      [-1.5, -2],
      [0.49999997, 0],
      [8388609, 8388609],
    ] as const)
      expect(g(x)).toBe(want);
  });
});

describe('accuracy of decompositions in float64', () => {
  it.each(table)('%s', (op, exact) => {
    const g = unary(op, 'float64');
    for (const x of [...around(-3, 3, 2000), ...around(-40, 40, 2000)]) {
      const want = exact(x);
      const got = g(x);
      if (Number.isNaN(want)) expect(got, `${op}(${x})`).toBeNaN();
      else if (!Number.isFinite(want)) expect(got).toBe(want);
      else
        expect(Math.abs(got - want), `${op}(${x})`).toBeLessThanOrEqual(
          1e-14 * Math.abs(want) + 1e-300 + (op === 'SIN' || op === 'COS' || op === 'TAN' ? 1e-15 : 0),
        );
    }
  });
});

describe('accuracy without float64', () => {
  it.each(['EXP', 'EXP2', 'LOG', 'TANH', 'ATAN'] as const)('%s near one', (op) => {
    const exact = (table.find((row) => row[0] === op) as (typeof table)[number])[1];
    expect(worst(unary(op, 'float32', false), exact, around(0.1, 8, 5000)).ulp).toBeLessThanOrEqual(5);
  });
});
