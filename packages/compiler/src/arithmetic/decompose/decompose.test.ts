import { describe, expect, it } from 'vitest';
import {
  around,
  binary,
  decomposed,
  floatOfBits,
  floats,
  functions,
  fusedCaps,
  plainCaps,
  singleCaps,
  ternary,
  ulps,
  unary,
  worst,
} from '../fixtures/accuracy.ts';
import { decompose } from '@polygrad/core/kernel';
import { fma32 } from '../../interpreter/values.ts';
import { Exprs } from '../../ir/expr.ts';
import type { KNode } from '../../ir/ir.ts';
import { toJsFunction } from '../../ir/fixtures/js-function.ts';
import { BASE_OPS } from '../../ir/operations.ts';
import { nodesOf } from '../../ir/node.ts';

const { NaN: nan, POSITIVE_INFINITY: inf } = Number;
const engines = [
  { name: 'float64', caps: plainCaps },
  { name: 'float64 and fused multiply-add', caps: fusedCaps },
  { name: 'float32 only', caps: singleCaps },
] as const;
const special = [
  nan,
  inf,
  -inf,
  0,
  -0,
  1,
  -1,
  0.5,
  -0.5,
  1e-40,
  -1e-40,
  1.5e-45,
  1000,
  -1000,
  3e38,
  -3e38,
  0.99999994,
  -0.99999994,
].map(Math.fround);

describe('accuracy in float32', () => {
  it.each(functions)('$op', ({ op, exact, ulp }) => {
    for (const [caps, bound] of [
      [plainCaps, ulp],
      [fusedCaps, ulp],
      [singleCaps, 5],
    ] as const) {
      const g = unary(op, 'float32', caps);
      for (const inputs of [floats(12_000), around(-8, 8, 8000), around(-105, 95, 5000), around(-1.01, 1.01, 5000)]) {
        const found = worst(g, exact, inputs);
        expect(found.ulp, `at ${found.at}`).toBeLessThanOrEqual(bound);
      }
    }
  });

  it.each(functions)('$op of special values, signs of zero included', ({ op, exact }) => {
    for (const { name, caps } of engines) {
      const g = unary(op, 'float32', caps);
      for (const x of special) {
        const [got, want] = [g(x), exact(x)];
        expect(ulps(got, want), `${op}(${x}) is ${got} on ${name}`).toBeLessThanOrEqual(5);
        if (want === 0) expect(got, `${op}(${x}) on ${name}`).toBe(want);
      }
    }
  });

  it('sin and cos of angles of all sizes near multiples of pi/2', () => {
    const [sin, cos] = [unary('SIN', 'float32'), unary('COS', 'float32')];
    // Float32 numbers closest to multiples of pi/2 (J.-M. Muller, *Elementary Functions*, chapter on range reduction).
    for (const x of [16367173 * 2 ** 72, 11 / 7, 355 / 113, 710 / 113, 3 * 2 ** 126, 2.5e6, 1e22].map(Math.fround)) {
      expect(ulps(sin(x), Math.sin(x)), `sin ${x}`).toBeLessThanOrEqual(1);
      expect(ulps(cos(x), Math.cos(x)), `cos ${x}`).toBeLessThanOrEqual(1);
    }
  });

  it.each(engines)('POW with $name', ({ caps }) => {
    const g = binary('POW', 'float32', caps);
    const exponents = [-37.7, -3, -0.5, 0.3, 1, 2, 7.25, 30, 1234.5].map(Math.fround);
    const found = { ulp: 0, at: '' };
    for (const x of [...floats(1000), ...around(0.5, 2, 1000), ...around(0.999, 1.001, 500)]) {
      for (const y of exponents) {
        const d = ulps(g(x, y), x ** y);
        if (!(d <= found.ulp)) Object.assign(found, { ulp: d, at: `pow(${x}, ${y})` });
      }
    }
    expect(found.ulp, found.at).toBeLessThanOrEqual(2);
  });

  it.each([
    ...engines.map(({ name, caps }) => ({ name, g: binary('POW', 'float32', caps) })),
    { name: 'float64', g: binary('POW', 'float64') },
  ])('POW keeps the special cases of C99 with $name', ({ g }) => {
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
      [-0, 2, 0],
      [-0, 0.5, 0],
      [0, 2, 0],
      [inf, -1, 0],
      [-inf, 3, -inf],
      [-inf, 2, inf],
      [-inf, -3, -0],
      [-inf, 0.5, inf],
      [-1, inf, 1],
      [-1, -inf, 1],
      [-1, nan, nan],
      [0.5, inf, 0],
      [0.5, -inf, inf],
      [-0.5, inf, 0],
      [2, inf, inf],
      [0, inf, 0],
      [0, -inf, inf],
      [inf, inf, inf],
      [nan, 1, nan],
      [2, 127, 2 ** 127],
      [2, -149, 2 ** -149],
      [10, 39, 1e39],
      [2, 1e30, inf],
    ];
    for (const [a, b, want] of cases) {
      const got = g(a, b);
      if (want === 1e39) expect(ulps(Math.fround(got), want)).toBe(0);
      else expect(got, `pow(${a}, ${b})`).toBe(want);
    }
  });

  it('ATAN2 in every quadrant and on the axes', () => {
    const g = binary('ATAN2', 'float32');
    const points = [0, -0, 1, -1, 0.3, -7, 1e-30, 1e30, -1e-40, 3e38, inf, -inf].map(Math.fround);
    for (const y of points) {
      for (const x of points) {
        const want = Math.atan2(y, x);
        expect(ulps(g(y, x), want), `atan2(${y}, ${x})`).toBeLessThanOrEqual(2);
        expect(Object.is(Math.sign(g(y, x)), Math.sign(Math.fround(want))), `sign of atan2(${y}, ${x})`).toBe(true);
      }
    }
    expect(g(nan, 1)).toBeNaN();
    expect(g(1, nan)).toBeNaN();
  });

  it.each(engines)('FREM is exact with $name', ({ caps }) => {
    const g = binary('FREM', 'float32', caps);
    const numbers = [...floats(150), 3, 0.7, -2.5, 1e10, 1e-40, -1e-45, 3e38].map(Math.fround);
    for (const x of numbers) for (const y of numbers) expect(g(x, y), `${x} % ${y}`).toBe(x % y);
    for (const [x, y, want] of [
      [1, 0, nan],
      [5, inf, 5],
      [inf, 2, nan],
      [nan, 1, nan],
      [1, nan, nan],
      [-6, 3, -0],
    ] as const) {
      expect(g(x, y), `${x} % ${y}`).toBe(want);
    }
  });

  it('FMA rounds once', () => {
    const g = ternary('FMA', 'float32');
    const xs = [...floats(3000)].filter((x) => Math.abs(x) < 1e15 && Math.abs(x) > 1e-15);
    for (let k = 2; k < xs.length; k++) {
      const [x, y, z] = [xs[k - 2], xs[k - 1], xs[k]] as [number, number, number];
      expect(g(x, y, z)).toBe(fma32(x, y, z));
    }
    // A tie in float32 that only the error of the sum can decide.
    const one = 1 + 2 ** -23;
    expect(g(one, one, 2 ** -60)).toBe(fma32(one, one, 2 ** -60));
    // Without float64: what a sum of two roundings gets wrong.
    expect(ternary('FMA', 'float32', singleCaps)(one, one, -1)).toBe(fma32(one, one, -1));
    expect(ternary('FMA', 'float64')(1 + 2 ** -52, 1 - 2 ** -52, -1)).toBe(-(2 ** -104));
  });

  it.each(['CEIL', 'TRUNC', 'ROUND', 'ABS'] as const)('%s is exact and keeps the sign of zero', (op) => {
    const halfEven = (x: number): number => {
      const nearest = Math.abs(x % 1) === 0.5 ? 2 * Math.round(x / 2) : Math.round(x);
      return nearest === 0 ? x * 0 : nearest;
    };
    const exact = { CEIL: Math.ceil, TRUNC: Math.trunc, ROUND: halfEven, ABS: Math.abs }[op];
    const numbers = [...floats(2000), ...special, 0.49999997, 1.5, 2.5, -2.5, 8388607.5, 8388609, -0.3].map(
      Math.fround,
    );
    for (const dtype of ['float32', 'float64'] as const) {
      const g = unary(op, dtype);
      for (const x of numbers) expect(g(x), `${op}(${x}) in ${dtype}`).toBe(exact(x));
    }
  });

  it('ISNAN looks at bits', () => {
    const g = unary('ISNAN', 'float32');
    for (const x of [...floats(1000), inf, -inf]) expect(g(x)).toBe(0);
    for (const pattern of [0x7fc00000, 0x7f800001, 0xffc00000]) expect(g(floatOfBits(pattern))).toBe(1);
  });

  it('MULHI', () => {
    const g = binary('MULHI', 'uint32');
    for (const [a, b] of [
      [0xffffffff, 0xffffffff],
      [0x12345678, 0x9abcdef0],
      [65535, 65537],
      [0x80000000, 2],
    ] as const) {
      expect(g(a, b)).toBe(Number((BigInt(a) * BigInt(b)) >> 32n));
    }
  });
});

describe('accuracy in float64', () => {
  // interpreter/values.ts itself is good to a few units only.
  it.each(functions)('$op to a few units', ({ op, exact }) => {
    const g = unary(op, 'float64');
    const wide = [1e-300, -1e-300, 5e-324, 1e22, -1e155, 1.7e308, 709.7, -745, 2 ** 900 + 2 ** 850];
    for (const x of [...around(-3, 3, 2000), ...around(-40, 40, 2000), ...around(-1, 1, 1000), ...special, ...wide]) {
      const [got, want] = [g(x), exact(x)];
      if (!Number.isFinite(want) || want === 0) expect(got, `${op}(${x})`).toBe(want);
      else
        expect(Math.abs(got - want), `${op}(${x})`).toBeLessThanOrEqual(
          (op === 'ERF' ? 3e-15 : 1e-15) * Math.abs(want) + 5e-324,
        );
    }
  });

  it.each([
    { dtype: 'float64', caps: plainCaps, tens: [-307, 308], twos: [-1074, 1023] },
    { dtype: 'float64', caps: fusedCaps, tens: [-307, 308], twos: [-1074, 1023] },
    { dtype: 'float32', caps: plainCaps, tens: [-37, 38], twos: [-149, 127] },
    { dtype: 'float32', caps: fusedCaps, tens: [-37, 38], twos: [-149, 127] },
  ] as const)('LOG10 of powers of ten and LOG2 of powers of two are whole in $dtype', ({ dtype, caps, tens, twos }) => {
    const [log10, log2] = [unary('LOG10', dtype, caps), unary('LOG2', dtype, caps)];
    const round = dtype === 'float32' ? Math.fround : Number;
    for (let k: number = tens[0]; k <= tens[1]; k++) expect(log10(round(Number(`1e${k}`))), `10^${k}`).toBe(k);
    for (let k: number = twos[0]; k <= twos[1]; k++) expect(log2(2 ** k), `2^${k}`).toBe(k);
  });

  it('POW, ATAN2, FREM', () => {
    const [pow, atan2, frem] = [binary('POW', 'float64'), binary('ATAN2', 'float64'), binary('FREM', 'float64')];
    for (const x of [...around(0.01, 20, 200), ...around(0.99, 1.01, 200), 1e-310, 1e300]) {
      for (const y of [-2.5, -1, 0.5, 3, 100.1, 300]) {
        const want = x ** y;
        if (want === 0 || !Number.isFinite(want)) expect(pow(x, y), `pow(${x}, ${y})`).toBe(want);
        // Math.pow itself is off by a few units for large exponents.
        else expect(Math.abs(pow(x, y) - want), `pow(${x}, ${y})`).toBeLessThanOrEqual(1e-15 * want + 5e-324);
        for (const s of [1, -1])
          expect(Math.abs(atan2(s * x, y) - Math.atan2(s * x, y))).toBeLessThanOrEqual(
            5e-16 * Math.abs(Math.atan2(x, y)),
          );
        if (Math.abs(x / y) < 2 ** 250) expect(frem(x, y), `${x} % ${y}`).toBe(x % y);
        if (x > 1e-50) expect(frem(-y * 1e10, x), `${-y * 1e10} % ${x}`).toBe((-y * 1e10) % x);
      }
    }
  });
});

describe('rewriting', () => {
  it.each(functions)('$op becomes base operations, without float64 where the engine has none', ({ op }) => {
    const { root } = decomposed(op, 'float32', 1, singleCaps);
    const nodes = [...nodesOf([root])];
    const others = nodes.filter((n) => !BASE_OPS.has(n.op) && !['SCALAR', 'CONST', 'CAST', 'BITCAST'].includes(n.op));
    expect(others.map((n) => n.op)).toEqual([]);
    expect(nodes.filter((n) => n.dtype === 'float64')).toEqual([]);
  });

  it('leaves out the reduction of large angles where an angle is a bounded integer times a constant, with the same bits', () => {
    const e = new Exprs();
    // As the engines that compute on the processor, which have that operation.
    const caps = { ...plainCaps, nativeOps: new Set(['ABS'] as const) };
    const word = e.scalar(0, 'uint32');
    const angle = (digits: number): KNode =>
      e.mul(e.cast(e.shr(word, e.constant('uint32', 32 - digits)), 'float32'), 2 * Math.PI * 2 ** -24);
    const sizeOf = (x: KNode): number => [...nodesOf(decompose([e.unary('COS', x)], e, caps))].length;
    const any = e.scalar(1, 'float32');
    expect(sizeOf(angle(24))).toBeLessThan(0.6 * sizeOf(any));
    // Up to 2^31 * 2 pi: beyond what few turns are for.
    expect(sizeOf(e.mul(angle(31), 2 ** 24))).toBeGreaterThan(sizeOf(any));
    const [drawn] = decompose([e.unary('COS', angle(24))], e, caps) as [KNode];
    const plain = unary('COS', 'float32');
    const of = toJsFunction(decompose([drawn], e, plainCaps)[0]!, [word]);
    const words = Array.from({ length: 20_000 }, (_, i) => Math.imul(i, 0x9e3779b1) >>> 0);
    const turn = Math.fround(2 * Math.PI * 2 ** -24);
    expect(words.map((w) => of(w))).toEqual(words.map((w) => plain(Math.fround((w >>> 8) * turn))));
  });

  it('leaves native operations and everything else alone', () => {
    const e = new Exprs();
    const x = e.scalar(0, 'float32');
    const root = e.add(e.unary('EXP', x), x);
    expect(decompose([root], e, { ...plainCaps, nativeOps: new Set(['EXP']) })).toEqual([root]);
  });

  it('makes casts of floats to bool comparisons, but where those take denormal numbers for 0', () => {
    const e = new Exprs();
    const x = e.scalar(0, 'float32');
    const cast = e.cast(x, 'bool');
    expect(cast.op).toBe('CAST');
    expect(decompose([cast, e.not(cast)], e, plainCaps)).toEqual([e.ne(x, 0), e.eq(x, 0)]);
    expect(decompose([cast], e, { ...plainCaps, flushesDenormals: true })).toEqual([cast]);
    expect(e.cast(e.scalar(0, 'int32'), 'bool')).toBe(e.ne(e.scalar(0, 'int32'), 0));
  });
  it('goes into reductions, stages, loads and vectors', () => {
    const e = new Exprs();
    const [i, j] = [e.range(4), e.range(3, 'reduce')];
    const x = e.load(e.param(0, 'float32', 'read', 12), e.add(e.mul(i, 3), j));
    const sum = e.reduce('sum', e.unary('EXP', x), [j]);
    const staged = e.load(e.stage('reg', e.unary('TANH', x), [j]), e.i32(1));
    const [root] = decompose([e.add(sum, staged)], e, plainCaps) as [KNode];
    const ops = [...nodesOf([root])].map((n) => n.op);
    expect(ops).toContain('REDUCE');
    expect(ops).toContain('STAGE');
    expect(ops).not.toContain('EXP');
    expect(ops).not.toContain('TANH');
    const v = e.splat(e.scalar(0, 'float32'), 4);
    expect(decompose([e.unary('LOG', v)], e, plainCaps)[0]!.lanes).toBe(4);
  });

  it('computes other float types in float32', () => {
    const e = new Exprs();
    const [root] = decompose([e.unary('EXP', e.scalar(0, 'float16'))], e, plainCaps) as [KNode];
    expect(root.op).toBe('CAST');
    expect(root.dtype).toBe('float16');
  });
});
