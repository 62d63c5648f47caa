/** Small dtypes as 32-bit arithmetic: every bit pattern and every pair of small integers, against formulas written plainly. */
import { beforeAll, describe, expect, it } from 'vitest';
import type { EngineCaps } from '../engine/engine.ts';
import { createReferenceEngine } from '../testing/reference-engine.ts';
import { type DType, dtypeInfo, type TypedArray } from '../shape/dtype.ts';
import { hostArrays } from '../shape/host.ts';
import { ProgramBuilder } from './builder.ts';
import type { Exprs } from './expr.ts';
import { interpret } from './interpret.ts';
import type { BinaryOp, KNode, Program } from './ir.ts';
import { legalize } from './legalize.ts';
import { assumeBounds } from './node.ts';
import { verifyProgram } from './verify.ts';

const { computes: _, ...ieee } = createReferenceEngine().caps;
/** Another engine promises little of float32: its 16-bit floats are computed by other formulas. */
const lax = { ...ieee, dtypes: new Set([...ieee.dtypes].filter((d) => d !== 'float64')) };
let caps: EngineCaps = ieee;

/** out[i] = f(inputs[i] ...), in vectors of `lanes`, for an engine that computes in 32 bits and more only. */
function run(
  f: (e: Exprs, ...x: KNode[]) => KNode,
  dtypes: readonly DType[],
  inputs: readonly TypedArray[],
  lanes = 1,
): TypedArray {
  const length = inputs[0]!.length;
  const b = new ProgramBuilder();
  const { e } = b;
  const params = dtypes.map((dtype, i) => e.param(i, dtype, 'read', length));
  let out: KNode | null = null;
  b.loop(length / lanes, (i) => {
    const at = e.mul(i, e.i32(lanes));
    const value = f(e, ...params.map((p) => b.load(p, at, lanes)));
    out ??= e.param(dtypes.length, value.dtype as DType, 'write', length);
    b.store(out, at, value);
  });
  const program = legalize(b.build({ name: 'f', params: [...params, out!] as Program['params'] }), caps);
  verifyProgram(program);
  for (const n of program.body) {
    if (n.dtype === 'void' || dtypeInfo[n.dtype].bytes >= 4 || n.dtype === 'bool') continue;
    expect(['PARAM', 'LOAD', 'CAST', 'VEC', 'LANE', 'CONST', 'WHERE']).toContain(n.op);
  }
  const result = new hostArrays[(out! as KNode).dtype as DType](length);
  interpret(program, [...inputs, result]);
  return result;
}

const patterns = Uint16Array.from({ length: 65536 }, (_, i) => i);

/** What 16 bits mean, by the definition of the formats. */
function meaning(dtype: 'float16' | 'bfloat16', bits: number): number {
  const [fraction, bias] = dtype === 'float16' ? [10, 15] : [7, 127];
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits & 0x7fff) >> fraction;
  const rest = bits & (2 ** fraction - 1);
  if (exponent === 2 * bias + 1) return rest === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  if (exponent === 0) return sign * rest * 2 ** (1 - bias - fraction);
  return sign * (2 ** fraction + rest) * 2 ** (exponent - bias - fraction);
}

const same = (a: number, b: number): boolean => Object.is(a, b);
function expectAll(got: ArrayLike<number | bigint>, want: (i: number) => number | bigint): void {
  for (let i = 0; i < got.length; i++) {
    const [g, w] = [got[i]!, want(i)];
    if (g !== w && !same(g as number, w as number)) throw new Error(`element ${i} is ${g}, expected ${w}`);
  }
}

describe.each([
  ['float16', 'IEEE', ieee],
  ['float16', 'lax', lax],
  ['bfloat16', 'IEEE', ieee],
] as const)('%s on engines with %s float32', (dtype, _, used) => {
  beforeAll(() => {
    caps = used;
  });
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
        if (!same(g, w)) throw new Error(`${op} of ${a![i]} and ${b![i]}: ${g}, expected ${w}`);
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

describe('small integers', () => {
  const bytes = Array.from({ length: 65536 }, (_, i) => [i & 0xff, i >> 8] as const);
  const signed = (x: number, bits: number): number => (x << (32 - bits)) >> (32 - bits);

  it.each(['int8', 'uint8'] as const)('every pair of %s', (dtype) => {
    const wrap = (x: number): number => (dtype === 'int8' ? signed(x, 8) : x & 0xff);
    const [a, b] = [0, 1].map((k) => new hostArrays[dtype](Array.from(bytes, (p) => wrap(p[k]!)) as never)) as [
      Int8Array,
      Int8Array,
    ];
    const pair = (op: BinaryOp, want: (x: number, y: number) => number, skip = (_: number): boolean => false): void => {
      const used = Array.from(a, (_, i) => i).filter((i) => !skip(b[i]!));
      const [x, y] = [a, b].map((s) => new hostArrays[dtype](used.map((i) => s[i]!) as never)) as [
        Int8Array,
        Int8Array,
      ];
      const result = run((e, p, q) => e.cast(e.binary(op, p, q), 'int32'), [dtype, dtype], [x, y]) as Int32Array;
      const stored = run((e, p, q) => e.binary(op, p, q), [dtype, dtype], [x, y], 1);
      expectAll(result, (i) => want(x[i]!, y[i]!));
      expectAll(stored, (i) => want(x[i]!, y[i]!));
    };
    pair('ADD', (x, y) => wrap(x + y));
    pair('SUB', (x, y) => wrap(x - y));
    pair('MUL', (x, y) => wrap(x * y));
    pair(
      'IDIV',
      (x, y) => wrap(Math.trunc(x / y)),
      (y) => y === 0,
    );
    pair(
      'IREM',
      (x, y) => wrap((x % y) + 0),
      (y) => y === 0,
    );
    pair('MAX', (x, y) => Math.max(x, y));
    pair('MIN', (x, y) => Math.min(x, y));
    pair('AND', (x, y) => wrap(x & y));
    pair('OR', (x, y) => wrap(x | y));
    pair('XOR', (x, y) => wrap(x ^ y));
    const far = (y: number): boolean => y < 0 || y > 7;
    pair('SHL', (x, y) => wrap(x * 2 ** y), far);
    pair('SHR', (x, y) => Math.floor(x / 2 ** y), far);
    pair('LT', (x, y) => Number(x < y));
    pair('LE', (x, y) => Number(x <= y));
    pair('EQ', (x, y) => Number(x === y));
  });

  it('results wrap before they are compared, divided or cast, and only then', () => {
    const x = Int8Array.of(100, -128, 127, 5);
    const twice = (e: Exprs, v: KNode): KNode => e.add(v, v);
    const check = (f: (e: Exprs, v: KNode) => KNode, want: readonly number[]): void => {
      expect(Array.from(run(f, ['int8'], [x], 4) as Int32Array)).toEqual(want);
    };
    check((e, v) => e.cast(e.idiv(twice(e, v), e.constant('int8', 2)), 'int32'), [-28, 0, -1, 5]);
    check((e, v) => e.lt(twice(e, v), e.constant('int8', 0)), [1, 0, 1, 0]);
    check((e, v) => e.cast(twice(e, v), 'float32'), [-56, 0, -2, 10]);
    check((e, v) => e.cast(twice(e, v), 'int16'), [-56, 0, -2, 10]);
    check((e, v) => e.cast(twice(e, v), 'uint8'), [200, 0, 254, 10]);
    check((e, v) => e.cast(e.unary('ABS', v), 'int32'), [100, -128, 127, 5]);
    check((e, v) => e.shr(e.neg(e.neg(twice(e, v))), e.constant('int8', 1)), [-28, 0, -1, 5]);
  });

  it.each(['int16', 'uint16'] as const)('%s at its edges', (dtype) => {
    const wrap = (x: number): number => (dtype === 'int16' ? signed(x, 16) : x & 0xffff);
    const edges = [0, 1, 2, 127, 255, 256, 32767, 32768, 65534, 65535].map(wrap);
    const all = edges.flatMap((x) => edges.map((y) => [x, y] as const));
    const [a, b] = [0, 1].map((k) => new hostArrays[dtype](all.map((p) => p[k]!) as never)) as [Int16Array, Int16Array];
    for (const [op, f] of [
      ['ADD', (x: number, y: number) => x + y],
      ['SUB', (x: number, y: number) => x - y],
      ['MUL', (x: number, y: number) => Math.imul(x, y)],
    ] as const) {
      const got = run((e, p, q) => e.cast(e.binary(op, p, q), 'float32'), [dtype, dtype], [a, b]) as Float32Array;
      expectAll(got, (i) => wrap(f(a[i]!, b[i]!)));
    }
  });
});

it('scalars, registers, shared memory and gated loads of small dtypes', () => {
  const b = new ProgramBuilder();
  const { e } = b;
  const x = e.param(0, 'float16', 'read', 4);
  const y = e.param(1, 'int8', 'readwrite', 4);
  const out = e.param(2, 'float16', 'write', 4);
  const sum = b.reg('sum', 'float16');
  const shared = b.shared('s', 'int8', 4);
  b.store(sum, 0, e.constant('float16', 0));
  b.loop(4, (i) => {
    b.store(shared, i, e.add(b.load(y, i), e.scalar(1, 'int8')));
    const gate = e.lt(i, e.i32(3));
    const value = e.load(x, i, gate, e.constant('float16', 2));
    b.store(sum, 0, e.add(b.load(sum, 0), e.mul(value, e.scalar(0, 'float16'))));
    b.store(out, i, b.load(sum, 0));
    b.store(y, i, b.load(shared, i));
  });
  const program = b.build({ name: 'mixed' });
  const buffers = (): [Uint16Array, Int8Array, Uint16Array] => [
    Uint16Array.of(0x3c00, 0x4000, 0x0001, 0x7e01),
    Int8Array.of(1, 127, -128, 0),
    new Uint16Array(4),
  ];
  const native = buffers();
  const legal = buffers();
  interpret(program, native, [3, 5]);
  interpret(legalize(program, caps), legal, [3, 5]);
  expect(legal).toEqual(native);
  expect(Array.from(legal[1])).toEqual([6, -124, -123, 5]);
  expect(Array.from(legal[2], (v) => meaning('float16', v))).toEqual([3, 9, 9, 15]);
});

it('a guard stays where the index it limits is known to be inside of it', () => {
  for (const dtype of ['float16', 'int8', 'float32'] as const) {
    const b = new ProgramBuilder();
    const { e } = b;
    const [from, to] = [e.param(0, dtype, 'read', 56), e.param(1, dtype, 'write', 56)];
    const unit = e.add(e.mul(e.special('group', 0, 1), e.i32(64)), e.special('local', 0, 64));
    const inside = e.lt(unit, e.i32(56));
    assumeBounds(unit, 0, 55);
    b.ifThen(inside, () => b.store(to, unit, b.load(from, unit)));
    const program = legalize(b.build({ name: 'copy', params: [from, to], group: [64, 1, 1] }), caps);
    const data = Array.from({ length: 56 }, (_, i) => i);
    const [source, result] = [new hostArrays[dtype](56), new hostArrays[dtype](56)];
    (source as Float32Array).set(data);
    // The interpreter throws where memory ends.
    interpret(program, [source, result], []);
    expect(Array.from(result as ArrayLike<number>)).toEqual(data);
  }
});

it('engines without small words keep small dtypes in 32-bit ones', () => {
  const words = { ...ieee, storageBytes: { int8: 4, float16: 4 } } as const;
  const b = new ProgramBuilder();
  const { e } = b;
  const x = e.param(0, 'int8', 'readwrite', 3);
  const y = e.param(1, 'float16', 'readwrite', 3);
  b.loop(3, (i) => {
    b.store(x, i, e.mul(b.load(x, i), e.constant('int8', 2)));
    b.store(y, i, e.add(b.load(y, i), e.cast(b.load(x, i), 'float16')));
  });
  const program = legalize(b.build({ name: 'words' }), words);
  // Uploaded words may carry the sign or not.
  const data = [Uint32Array.of(0xffffffff, 0xff, 100), Uint32Array.of(0x3c00, 0, 0x7c00)];
  interpret(program, data);
  expect(Array.from(data[0]!, (v) => (v << 24) >> 24)).toEqual([-2, -2, -56]);
  expect(Array.from(data[1]!, (v) => meaning('float16', v))).toEqual([-1, -2, Number.POSITIVE_INFINITY]);
});

it('shared memory that would not fit in 32 bits keeps the bits of 16-bit floats', () => {
  const b = new ProgramBuilder();
  const { e } = b;
  const x = e.param(0, 'float16', 'read', 100);
  const out = e.param(1, 'float16', 'write', 100);
  const shared = b.shared('s', 'float16', 100);
  b.loop(100, (i) => b.store(shared, i, e.mul(b.load(x, i), e.constant('float16', 0.5))));
  b.loop(100, (i) => b.store(out, i, e.add(b.load(shared, e.sub(e.i32(99), i)), b.load(x, i))));
  const program = b.build({ name: 'staged' });
  const results = [{ ...ieee, sharedBytes: 300 }, ieee].map((c) => {
    const data = [Uint16Array.from({ length: 100 }, (_, i) => i * 317), new Uint16Array(100)];
    const legal = legalize(program, c);
    expect(legal.body.find((n) => n.op === 'SHARED')?.dtype).toBe(c === ieee ? 'float32' : 'uint16');
    interpret(legal, data);
    return data[1];
  });
  expect(results[0]).toEqual(results[1]);
});
