/** Every operation and cast on every dtype, on special values, scalar and in vectors of several widths, against the reference engine. */
import {
  type BinaryOp,
  type DType,
  type KNode,
  ProgramBuilder,
  type Program,
  type UnaryOp,
} from '@polygrad/core/kernel';
import type { TypedArray } from '@polygrad/core/functions';
import { hostArrays } from '@polygrad/core/internals';
import { comparePrograms, type ProgramCase } from '@polygrad/testing';
import { describe, expect, it } from 'vitest';
import { createNativeEngine } from './create.ts';
import { targets } from './testing/targets.ts';

const floats = [
  0,
  -0,
  1,
  -1,
  0.5,
  -0.5,
  1.5,
  2.5,
  -2.5,
  3.7,
  -3.7,
  1e10,
  -1e10,
  1e-40,
  3e38,
  Infinity,
  -Infinity,
  NaN,
  2147483647,
  2147483648,
  4294967295,
  4294967296,
  -2147483648,
  -2147483649,
  9.3e18,
  1.9e19,
  -9.3e18,
  123456.789,
];
const integers = [
  0, 1, -1, 2, -2, 7, -7, 31, 32, 33, 63, 64, 100000, 2147483647, -2147483648, -2147483647, 65536, 255, -128,
];
const longs = [
  ...integers.map(BigInt),
  2n ** 63n - 1n,
  -(2n ** 63n),
  2n ** 53n + 1n,
  2n ** 32n,
  -(2n ** 32n) - 5n,
  2n ** 62n + 1n,
];
type Tested = 'float32' | 'float64' | 'int32' | 'uint32' | 'int64' | 'uint64' | 'bool';
const special: Readonly<Record<Tested, readonly (number | bigint)[]>> = {
  float32: floats,
  float64: [...floats, 1e300, 5e-324, 9007199254740992, 1.0000000596046448],
  int32: integers,
  uint32: integers.map((x) => x >>> 0),
  int64: longs,
  uint64: longs.map((x) => BigInt.asUintN(64, x)),
  bool: [0, 1],
};
const dtypes = Object.keys(special) as readonly Tested[];
const widths = [1, 2, 4, 8, 16] as const;
const count = 1024;

/** All pairs of values, over and over. */
function values(dtype: Tested, second: boolean): TypedArray {
  const all = special[dtype];
  const array = new hostArrays[dtype](count);
  for (let i = 0; i < count; i++)
    (array as unknown as unknown[])[i] = all[(second ? Math.floor(i / all.length) : i) % all.length];
  return array;
}

function caseOf(
  name: string,
  out: Tested,
  inputs: readonly Tested[],
  lanes: number,
  make: (b: ProgramBuilder, xs: readonly KNode[]) => KNode,
): ProgramCase {
  const b = new ProgramBuilder();
  const params = inputs.map((d, i) => b.e.param(i, d, 'read', count));
  const result = b.e.param(inputs.length, out, 'write', count);
  b.loop(count / lanes, (i) => {
    const at = b.e.mul(i, b.e.i32(lanes));
    b.store(
      result,
      at,
      make(
        b,
        params.map((p) => b.load(p, at, lanes)),
      ),
    );
  });
  const program: Program = b.build({ name, params: [...params, result] });
  return runnable(`${name} ${inputs.join(' ')} x ${lanes}`, program, inputs, out);
}

function runnable(name: string, program: Program, inputs: readonly Tested[], out: Tested): ProgramCase {
  return {
    name,
    program,
    data: [...inputs.map((d, i) => values(d, i === 1)), new hostArrays[out](count)],
    scalars: [],
  };
}

/** Loads behind a gate that is closed every other time: zeros, or what takes their place, behind constants that are no zeros. */
function gatedCase(dtype: Tested, lanes: number, other: boolean): ProgramCase {
  const b = new ProgramBuilder();
  const { e } = b;
  const params = [e.param(0, dtype, 'read', count), e.param(1, dtype, 'write', count)] as const;
  const one = e.constant(dtype, isLong(dtype) ? 1n : 1, lanes);
  b.loop(count / lanes, (i) => {
    const at = e.mul(i, lanes);
    const gate = e.eq(e.and(i, 1), 0);
    const loaded = b.load(params[0], at, lanes, gate, other ? one : undefined);
    b.store(params[1], at, e.where(e.eq(loaded, one), loaded, e.where(e.eq(loaded, loaded), loaded, one)));
  });
  const program = b.build({ name: 'gated', params });
  return runnable(`gated load of ${dtype} x ${lanes}${other ? ' with another value' : ''}`, program, [dtype], dtype);
}

const isLong = (d: Tested): boolean => d.endsWith('int64');
const isFloat = (d: Tested): boolean => d.startsWith('float');
const isInteger = (d: Tested): boolean => d.includes('int');

function* cases(): Generator<ProgramCase> {
  for (const lanes of widths) {
    for (const d of dtypes) {
      const unary: UnaryOp[] = [];
      if (isFloat(d)) unary.push('NEG', 'ABS', 'SQRT', 'FLOOR', 'CEIL', 'TRUNC', 'ROUND', 'RECIP', 'ISNAN');
      if (isInteger(d)) unary.push('NEG', 'NOT');
      if (d === 'int32' || d === 'int64') unary.push('ABS');
      if (d === 'bool') unary.push('NOT');
      for (const op of unary)
        yield caseOf(op, op === 'ISNAN' ? 'bool' : d, [d], lanes, (b, [x]) =>
          b.e.intern(op, op === 'ISNAN' ? 'bool' : d, lanes, [x!]),
        );
      const binary: BinaryOp[] = ['MAX', 'MIN', 'LT', 'LE', 'EQ'];
      if (d !== 'bool') binary.push('ADD', 'SUB', 'MUL');
      if (isFloat(d)) binary.push('DIV');
      if (isInteger(d)) binary.push('IDIV', 'IREM', 'SHL', 'SHR');
      if (!isFloat(d)) binary.push('AND', 'OR', 'XOR');
      if (d === 'uint32') binary.push('MULHI');
      for (const op of binary) {
        const out = op === 'LT' || op === 'LE' || op === 'EQ' ? 'bool' : d;
        yield caseOf(op, out, [d, d], lanes, (b, [x, y]) => b.e.intern(op, out, lanes, [x!, y!]));
      }
      if (isFloat(d)) yield caseOf('FMA', d, [d, d], lanes, (b, [x, y]) => b.e.intern('FMA', d, lanes, [x!, y!, x!]));
      yield caseOf('WHERE', d, [d, d], lanes, (b, [x, y]) =>
        b.e.where(b.e.lt(x!, y!), y!, b.e.where(b.e.eq(x!, y!), x!, y!)),
      );
      for (const to of dtypes) if (to !== d) yield caseOf(`CAST ${to}`, to, [d], lanes, (b, [x]) => b.e.cast(x!, to));
      // Against constants, which are shorter ways of their own.
      const constants = isFloat(d) ? [0, -0, 1.5, Infinity] : d === 'bool' ? [] : [1, 3, 8, 641];
      for (const c of constants) {
        const ops: BinaryOp[] = isFloat(d) ? ['MAX', 'MIN'] : ['IDIV', 'IREM', 'SHL', 'SHR', 'MAX', 'ADD', 'MUL'];
        for (const op of ops)
          yield caseOf(`${op} ${c}`, d, [d], lanes, (b, [x]) =>
            b.e.intern(op, d, lanes, [x!, b.e.constant(d, isInteger(d) ? BigInt(c) : c, lanes)]),
          );
      }
    }
    for (const d of dtypes) for (const other of [false, true]) yield gatedCase(d, lanes, other);
    for (const [from, to] of [
      ['float32', 'int32'],
      ['int32', 'float32'],
      ['float64', 'uint64'],
      ['int64', 'float64'],
    ] as const)
      yield caseOf(`BITCAST ${to}`, to, [from], lanes, (b, [x]) => b.e.bitcast(x!, to as DType));
    for (const by of [1, 2, 3, 7, 10, 641, 65536, 1_000_003, 2147483647])
      for (const op of ['IDIV', 'IREM'] as const)
        yield caseOf(`${op} of numbers not below zero by ${by}`, 'int32', ['int32'], lanes, (b, [x]) =>
          b.e.binary(op, b.e.and(x!, 0x7fffffff), by),
        );
  }
}

describe.each(targets())('%s, vectors of %i bytes', (isa, vectorBytes) => {
  it('gives what the reference engine gives', async () => {
    const engine = createNativeEngine({ threads: 1, isa, vectorBytes });
    const all = [...cases()];
    expect(all.length).toBeGreaterThan(1000);
    expect((await comparePrograms(engine, all)).slice(0, 40)).toEqual([]);
    engine.dispose();
  });
});
