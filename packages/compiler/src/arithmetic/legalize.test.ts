/** Small dtypes as 32-bit arithmetic: every pair of small integers against formulas written plainly, and programs that mix dtypes. */
import { describe, expect, it } from 'vitest';
import type { DType, TypedArray } from '../shape/dtype.ts';
import { hostArrays } from '../shape/host.ts';
import { ProgramBuilder } from '../ir/builder/builder.ts';
import type { Exprs } from '../ir/expr.ts';
import { expectAll, type Formula, ieee, meaning, runSmall } from './fixtures/small-dtypes.ts';
import { interpret } from '../interpreter/interpret.ts';
import type { KNode } from '../ir/ir.ts';
import type { BinaryOp } from '../ir/operations.ts';
import { legalize } from './legalize.ts';
import { assumeBounds } from '../ir/node.ts';

const run = (f: Formula, dtypes: readonly DType[], inputs: readonly TypedArray[], lanes = 1): TypedArray =>
  runSmall(ieee, f, dtypes, inputs, lanes);

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
  interpret(legalize(program, ieee), legal, [3, 5]);
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
    const program = legalize(b.build({ name: 'copy', params: [from, to], group: [64, 1, 1] }), ieee);
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
