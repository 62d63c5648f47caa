import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Exprs } from '../expr.ts';
import type { Range } from '../free-ranges.ts';
import type { KNode } from '../ir.ts';
import { highOf, lowOf } from '../node.ts';
import { printNode } from '../print.ts';
import { draws } from '../../fixtures/draws.ts';

/** An expression as it was asked for: built node, and its value computed without the factory. */
type Tree = { op: 'var'; i: number } | { op: 'const'; v: number } | { op: string; a: Tree; b: Tree };

const extents = [1, 4, 7, 64];
const truth: Record<string, (a: number, b: number) => number> = {
  add: (a, b) => (a + b) | 0,
  sub: (a, b) => (a - b) | 0,
  mul: (a, b) => Math.imul(a, b),
  idiv: (a, b) => (b === 0 ? 0 : Math.trunc(a / b) | 0),
  irem: (a, b) => (b === 0 ? 0 : (a % b) | 0),
  min: (a, b) => Math.min(a, b),
  max: (a, b) => Math.max(a, b),
  and: (a, b) => a & b,
  or: (a, b) => a | b,
  xor: (a, b) => a ^ b,
  lt: (a, b) => (a < b ? 1 : 0),
  le: (a, b) => (a <= b ? 1 : 0),
  eq: (a, b) => (a === b ? 1 : 0),
  ne: (a, b) => (a !== b ? 1 : 0),
  neg: (a) => -a | 0,
  shl: (a, b) => a << (b & 7),
  shr: (a, b) => a >> (b & 7),
  where: (a, b) => (a > b ? a : (b + 1) | 0),
};
/** Index arithmetic proper: what views and reshapes are made of. */
const indexOps = ['add', 'add', 'mulConst', 'mulConst', 'idivConst', 'iremConst', 'iremConst', 'sub'];

function direct(t: Tree, env: readonly number[]): number {
  if (t.op === 'var') return env[(t as { i: number }).i]!;
  if (t.op === 'const') return (t as { v: number }).v;
  const { a, b } = t as { a: Tree; b: Tree };
  return (truth[t.op.replace('Const', '')] as (a: number, b: number) => number)(direct(a, env), direct(b, env));
}

function build(e: Exprs, t: Tree, vars: readonly Range[]): KNode {
  if (t.op === 'var') return vars[(t as { i: number }).i]!;
  if (t.op === 'const') return e.i32((t as { v: number }).v);
  const { a, b } = t as { a: Tree; b: Tree };
  const [x, y] = [build(e, a, vars), build(e, b, vars)];
  const small = e.and(y, e.i32(7));
  switch (t.op.replace('Const', '')) {
    case 'lt':
    case 'le':
    case 'eq':
    case 'ne':
      return e.where(e[t.op as 'lt'](x, y), e.i32(1), e.i32(0));
    case 'where':
      return e.where(e.lt(y, x), x, e.add(y, e.i32(1)));
    case 'neg':
      return e.neg(x);
    case 'shl':
      return e.shl(x, small);
    case 'shr':
      return e.shr(x, small);
    default:
      return e[t.op.replace('Const', '') as 'add'](x, y);
  }
}

/** Value of a simplified node. Division by zero gives 0. */
function evaluate(n: KNode, env: ReadonlyMap<KNode, number>): number {
  const at = (i: number): number => evaluate(n.src[i]!, env);
  switch (n.op) {
    case 'RANGE':
      return env.get(n) as number;
    case 'CONST':
      return n.arg.value as number;
    case 'WHERE':
      return at(0) !== 0 ? at(1) : at(2);
    case 'NEG':
      return -at(0) | 0;
    case 'NOT':
      return n.dtype === 'bool' ? 1 - at(0) : ~at(0);
    case 'SHL':
      return at(0) << at(1);
    case 'SHR':
      return at(0) >> at(1);
    default:
      return (truth[n.op.toLowerCase()] as (a: number, b: number) => number)(at(0), at(1));
  }
}

const leaf: fc.Arbitrary<Tree> = fc.oneof(
  fc.record({ op: fc.constant('var' as const), i: fc.integer({ min: 0, max: extents.length - 1 }) }),
  fc.record({
    op: fc.constant('const' as const),
    v: fc.oneof(fc.integer({ min: -9, max: 9 }), fc.constantFrom(2147483647, -2147483648, 1 << 20, 64, 100)),
  }),
);
const factor: fc.Arbitrary<Tree> = fc.record({
  op: fc.constant('const' as const),
  v: fc.constantFrom(1, 2, 3, 4, 6, 7, 8, 12, 28, 64),
});
const anyTree = fc.letrec<{ t: Tree }>((tie) => ({
  t: fc.oneof(
    { maxDepth: 5 },
    leaf,
    fc.record({ op: fc.constantFrom(...Object.keys(truth)), a: tie('t'), b: tie('t') }),
  ),
})).t;
const variable: fc.Arbitrary<Tree> = fc.record({
  op: fc.constant('var' as const),
  i: fc.integer({ min: 0, max: extents.length - 1 }),
});
const indexTree = fc.letrec<{ t: Tree }>((tie) => ({
  t: fc.oneof(
    { maxDepth: 8 },
    variable,
    fc.record({ op: fc.constantFrom(...indexOps), a: tie('t'), b: tie('t') }).map((t) => t as Tree),
  ),
})).t;

/** Replaces the second operand of `...Const` operations by a positive constant. */
function withConstants(t: Tree, constants: readonly Tree[], used = { n: 0 }): Tree {
  if (t.op === 'var' || t.op === 'const') return t;
  const { a, b } = t as { op: string; a: Tree; b: Tree };
  const second = t.op.endsWith('Const') ? constants[used.n++ % constants.length]! : withConstants(b, constants, used);
  return { op: t.op, a: withConstants(a, constants, used), b: second };
}

function check(t: Tree, envs: readonly (readonly number[])[]): void {
  const e = new Exprs();
  const vars = extents.map((n) => e.range(n));
  const n = build(e, t, vars);
  for (const raw of envs) {
    const env = raw.map((x, i) => x % extents[i]!);
    const want = direct(t, env);
    const got = evaluate(n, new Map(vars.map((v, i) => [v, env[i]!])));
    if (got !== want || want < lowOf(n) || want > highOf(n)) {
      throw new Error(`at ${env}: want ${want}, got ${got}, bounds ${lowOf(n)} .. ${highOf(n)}\n${printNode(n)}`);
    }
  }
}

const environments = fc.array(fc.tuple(fc.nat(1000), fc.nat(1000), fc.nat(1000), fc.nat(1000)), {
  minLength: 3,
  maxLength: 6,
});

describe('integer simplification keeps values and bounds', () => {
  test('random expressions with all operations and wrapping constants', () => {
    fc.assert(
      fc.property(anyTree, environments, (t, envs) => check(t, envs)),
      { numRuns: 1500, ...draws },
    );
  });
  test('index arithmetic of views: sums, factors, division and remainder by constants', () => {
    fc.assert(
      fc.property(indexTree, fc.array(factor, { minLength: 1, maxLength: 6 }), environments, (t, constants, envs) =>
        check(withConstants(t, constants), envs),
      ),
      { numRuns: 1500, ...draws },
    );
  });
});

describe('integer normal forms', () => {
  const e = new Exprs();
  const c = (v: number): KNode => e.i32(v);
  const i = e.range(6);
  const j = e.range(8);
  const k = e.range(100);

  test('equal sums are the same node whatever the order', () => {
    expect(e.add(e.mul(i, c(8)), e.add(j, c(3)))).toBe(e.add(e.add(c(1), j), e.add(c(2), e.shl(i, c(3)))));
    expect(e.sub(e.add(i, j), j)).toBe(i);
    expect(e.mul(e.add(i, c(1)), c(0))).toBe(c(0));
    expect(e.neg(e.neg(i))).toBe(i);
  });
  test('division and remainder of what divides', () => {
    const flat = e.add(e.mul(i, c(8)), j);
    expect(e.idiv(flat, c(8))).toBe(i);
    expect(e.irem(flat, c(8))).toBe(j);
    expect(e.idiv(e.add(flat, c(16)), c(8))).toBe(e.add(i, c(2)));
    expect(e.idiv(flat, c(4))).toBe(e.add(e.mul(i, c(2)), e.idiv(j, c(4))));
    expect(e.idiv(e.idiv(k, c(3)), c(4))).toBe(e.idiv(k, c(12)));
    expect(e.irem(e.irem(k, c(12)), c(4))).toBe(e.irem(k, c(4)));
    expect(e.idiv(k, c(100))).toBe(c(0));
    expect(e.irem(k, c(1))).toBe(c(0));
  });
  test('what is equal only because it wraps, and a remainder of nothing, stay as they are', () => {
    const least = c(-2147483648);
    expect(e.eq(least, e.or(e.range(1), least)).op).toBe('EQ');
    expect(e.irem(e.irem(k, c(0)), c(100))).not.toBe(k);
    expect(e.eq(e.add(i, c(2147483000)), c(-5))).toBe(e.bool(false));
  });
  test('a reshape and its inverse cancel', () => {
    const [a, b, d] = [e.idiv(k, c(20)), e.irem(e.idiv(k, c(5)), c(4)), e.irem(k, c(5))];
    expect(e.add(e.add(e.mul(a, c(20)), e.mul(b, c(5))), d)).toBe(k);
    // Of any sign: both cut off.
    const any = e.load(e.param(0, 'int32', 'read', 8), i);
    expect(e.add(e.mul(e.idiv(any, c(3)), c(3)), e.irem(any, c(3)))).toBe(any);
  });
  test('comparisons fold by bounds and meet in one form', () => {
    expect(e.lt(i, c(6))).toBe(e.bool(true));
    expect(e.lt(e.add(i, c(6)), c(6))).toBe(e.bool(false));
    expect(e.le(c(0), e.sub(e.add(i, c(1)), c(1)))).toBe(e.bool(true));
    expect(e.lt(e.add(i, c(2)), c(5))).toBe(e.lt(i, c(3)));
    expect(e.lt(e.mul(i, c(4)), c(9))).toBe(e.lt(i, c(3)));
    expect(e.not(e.lt(i, c(3)))).toBe(e.le(c(3), i));
    expect(e.eq(e.add(e.mul(i, c(2)), c(1)), e.mul(j, c(2)))).toBe(e.bool(false));
    expect(e.and(e.lt(i, j), e.not(e.lt(i, j)))).toBe(e.bool(false));
  });
  test('selection and gates', () => {
    const p = e.param(0, 'float32', 'read', 8);
    expect(e.where(e.lt(i, c(6)), i, j)).toBe(i);
    expect(e.where(e.lt(i, j), k, k)).toBe(k);
    expect(e.load(p, j, e.lt(j, c(8)))).toBe(e.load(p, j));
    expect(e.load(p, j, e.lt(j, c(0)), e.f32(2))).toBe(e.f32(2));
    expect(e.max(i, c(-1))).toBe(i);
    expect(e.min(i, c(9))).toBe(i);
  });
});

describe('floats', () => {
  const e = new Exprs();
  const x = e.load(e.param(0, 'float32', 'read', 1), e.i32(0));

  test('only what keeps every bit', () => {
    expect(e.mul(x, e.f32(1))).toBe(x);
    expect(e.div(x, e.f32(1))).toBe(x);
    expect(e.neg(e.neg(x))).toBe(x);
    for (const n of [
      e.mul(x, e.f32(0)),
      e.add(x, e.f32(0)),
      e.sub(x, x),
      e.eq(x, x),
      e.max(x, x),
      e.neg(e.sub(x, e.f32(1))),
    ]) {
      expect(n.op).not.toBe('CONST');
      expect(n).not.toBe(x);
    }
  });
  test('constants fold in their own precision; the sign of zero and NaN stay', () => {
    expect(e.add(e.f32(0.1), e.f32(0.2))).toBe(e.f32(Math.fround(0.1) + Math.fround(0.2)));
    expect(e.neg(e.f32(0))).toBe(e.f32(-0));
    expect(e.f32(-0)).not.toBe(e.f32(0));
    expect(e.eq(e.f32(Number.NaN), e.f32(Number.NaN))).toBe(e.bool(false));
    expect(e.constant('float16', 65520)).toBe(e.constant('float16', Number.POSITIVE_INFINITY));
    expect(e.constant('float16', 1 + 2 ** -11)).toBe(e.constant('float16', 1));
    expect(e.constant('bfloat16', 1 + 3 * 2 ** -8)).toBe(e.constant('bfloat16', 1 + 2 ** -6));
    expect(e.constant('float16', 2 ** -25)).toBe(e.constant('float16', 0));
    expect(e.cast(e.f32(3e9), 'int32')).toBe(e.i32(2147483647));
    expect(e.cast(e.f32(Number.NaN), 'uint8')).toBe(e.constant('uint8', 0));
    expect(e.cast(e.i32(-1), 'uint32')).toBe(e.constant('uint32', 4294967295));
    expect(e.bitcast(e.f32(1), 'uint32')).toBe(e.constant('uint32', 0x3f800000));
    const bytes = new DataView(new ArrayBuffer(8));
    for (const x of [0, -0, 1, -1.5, Math.PI, 2 ** -1074, Number.MAX_VALUE, Number.NEGATIVE_INFINITY]) {
      bytes.setFloat64(0, x);
      for (const [dtype, bits] of [
        ['int64', bytes.getBigInt64(0)],
        ['uint64', bytes.getBigUint64(0)],
      ] as const) {
        expect(e.bitcast(e.constant('float64', x), dtype)).toBe(e.constant(dtype, bits));
        expect(e.bitcast(e.constant(dtype, bits), 'float64')).toBe(e.constant('float64', x));
      }
    }
    // Numbers of JavaScript do not tell one NaN from another.
    expect(e.bitcast(e.constant('uint64', 0x7ff8000000000001n), 'float64').op).toBe('BITCAST');
    expect(e.mul(e.constant('int64', 2 ** 40), e.constant('int64', 2 ** 40))).toBe(e.constant('int64', 0));
  });
});
