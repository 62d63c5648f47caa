import { describe, expect, it } from 'vitest';
import { ProgramBuilder } from './builder.ts';
import { erf } from './erf.ts';
import { fma32, fma64 } from './exact-fma.ts';
import { interpret } from './interpret.ts';
import { evalBinary, evalCast, evalTernary, evalUnary } from './interpret-values.ts';

describe('values', () => {
  const { NaN: nan, POSITIVE_INFINITY: inf } = Number;

  it.each([
    ['MAX', 'float32', nan, 1, nan],
    ['MIN', 'float64', 1, nan, nan],
    ['ADD', 'int32', 2147483647, 1, -2147483648],
    ['MUL', 'int32', 65536, 65536, 0],
    ['SUB', 'uint32', 0, 1, 4294967295],
    ['MUL', 'uint32', 4294967295, 4294967295, 1],
    ['IDIV', 'int32', -7, 2, -3],
    ['IREM', 'int32', -7, 2, -1],
    ['IDIV', 'int32', -2147483648, -1, -2147483648],
    ['SHR', 'int32', -8, 1, -4],
    ['SHR', 'uint32', 4294967288, 1, 2147483644],
    ['MULHI', 'uint32', 4294967295, 4294967295, 4294967294],
    ['POW', 'float32', 1, inf, 1],
    ['EQ', 'float32', nan, nan, 0],
    ['FREM', 'float32', -5, 3, -2],
    ['ADD', 'float32', 16777216, 1, 16777216],
  ] as const)('%s on %s', (op, dtype, a, b, want) => {
    expect(evalBinary(op, dtype, a, b)).toBe(want);
  });

  it('integer division by zero is an error', () => {
    expect(() => evalBinary('IDIV', 'int32', 5, 0)).toThrow(/IDIV by zero: 5 \/ 0/);
    expect(() => evalBinary('IREM', 'uint32', 5, 0)).toThrow(/IREM by zero/);
  });

  it.each([
    ['float32', 'int32', 1e20, 2147483647],
    ['float32', 'int32', -1e20, -2147483648],
    ['float32', 'int32', nan, 0],
    ['float64', 'uint32', -1, 0],
    ['float32', 'int32', -1.9, -1],
    ['float32', 'bool', nan, 1],
    ['int32', 'uint32', -1, 4294967295],
    ['float64', 'float32', 0.1, Math.fround(0.1)],
    ['float64', 'int8', 300, 127],
    ['int32', 'int8', 300, 44],
    ['float64', 'float16', 65519, 65504],
    ['float64', 'bfloat16', 1.00390625, 1],
  ] as const)('cast %s to %s of %d', (from, to, x, want) => {
    expect(evalCast(from, to, x)).toBe(want);
  });

  it('rounds half to even and keeps the sign of zero', () => {
    expect(evalUnary('ROUND', 'float32', 2.5)).toBe(2);
    expect(evalUnary('ROUND', 'float32', -0.5)).toBe(-0);
    expect(evalUnary('NEG', 'float32', 0)).toBe(-0);
  });

  it('WHERE takes one side only', () => {
    expect(evalTernary('WHERE', 'float32', 1, 3, nan)).toBe(3);
  });

  it('FMA rounds once', () => {
    // 1 + 2^-12 squared is 1 + 2^-11 + 2^-24: half way between two float32 numbers; 2^-60 decides.
    const x = 1 + 2 ** -12;
    expect(fma32(x, x, 0)).toBe(1 + 2 ** -11);
    expect(fma32(x, x, 2 ** -60)).toBe(1 + 2 ** -11 + 2 ** -23);
    expect(fma32(x, x, -(2 ** -60))).toBe(1 + 2 ** -11);
    const y = 1 + 2 ** -30;
    expect(fma64(y, y, -(1 + 2 ** -29))).toBe(2 ** -60);
    expect(fma64(0.1, 10, -1)).toBe(2 ** -54);
  });

  it('erf agrees with published values (Abramowitz and Stegun, table 7.1)', () => {
    for (const [x, y] of [
      [0.5, 0.5204998778],
      [1, 0.8427007929],
      [1.5, 0.9661051465],
      [2, 0.995322265],
    ] as const) {
      expect(erf(x)).toBeCloseTo(y, 9);
      expect(erf(-x)).toBeCloseTo(-y, 9);
    }
  });
});

describe('programs', () => {
  function scale(length: number, reach: number) {
    const b = new ProgramBuilder();
    const { e } = b;
    const x = e.param(0, 'float32', 'read', length);
    const y = e.param(1, 'float32', 'write', length);
    const by = e.scalar(0, 'float32');
    b.loop(reach, (i) => b.store(y, i, e.mul(b.load(x, i), by)));
    return b.build({ name: 'scale' });
  }

  it('loops, loads, stores, scalars', () => {
    const out = new Float32Array(3);
    interpret(scale(3, 3), [new Float32Array([1, 2, 3]), out], [2]);
    expect([...out]).toEqual([2, 4, 6]);
  });

  it('checks bounds, naming index and size', () => {
    expect(() => interpret(scale(3, 4), [new Float32Array(4), new Float32Array(4)], [1])).toThrow(
      /out of bounds: index 3, size 3/,
    );
    expect(() => interpret(scale(3, 3), [new Float32Array(2), new Float32Array(3)], [1])).toThrow(
      /has 2 elements, the kernel needs 3/,
    );
  });

  it('gates keep loads away from memory', () => {
    const b = new ProgramBuilder();
    const { e } = b;
    const x = e.param(0, 'int32', 'read', 2);
    const y = e.param(1, 'int32', 'write', 4);
    b.loop(4, (i) => b.store(y, i, b.load(x, i, 1, e.lt(i, e.i32(2)), e.i32(-1))));
    const out = new Int32Array(4);
    interpret(b.build({ name: 'gated' }), [new Int32Array([5, 6]), out]);
    expect([...out]).toEqual([5, 6, -1, -1]);
  });

  it('vectors load and store consecutive elements', () => {
    const b = new ProgramBuilder();
    const { e } = b;
    const x = e.param(0, 'float32', 'read', 5);
    const y = e.param(1, 'float32', 'write', 4);
    b.store(y, 0, e.add(b.load(x, 1, 4), e.splat(e.f32(10), 4)));
    const out = new Float32Array(4);
    interpret(b.build({ name: 'vector' }), [new Float32Array([1, 2, 3, 4, 5]), out]);
    expect([...out]).toEqual([12, 13, 14, 15]);
  });

  /** Each of four threads writes its cell and reads its neighbour's. */
  function neighbours(barrier: boolean) {
    const b = new ProgramBuilder();
    const { e } = b;
    const y = e.param(0, 'int32', 'write', 4);
    const s = b.shared('s', 'int32', 4);
    const t = e.special('local', 0, 4);
    b.store(s, t, e.mul(t, e.i32(10)));
    if (barrier) b.barrier();
    b.store(y, t, b.load(s, e.irem(e.add(t, e.i32(1)), e.i32(4))));
    return b.build({ name: 'neighbours', group: [4, 1, 1] });
  }

  it('threads of a group meet at barriers', () => {
    const out = new Int32Array(4);
    interpret(neighbours(true), [out]);
    expect([...out]).toEqual([10, 20, 30, 0]);
  });

  it('finds races and reads of memory nobody wrote', () => {
    expect(() => interpret(neighbours(false), [new Int32Array(4)])).toThrow(/read before it is written|race/);
    const b = new ProgramBuilder();
    const s = b.shared('s', 'int32', 1);
    b.store(s, 0, b.e.special('local', 0, 2));
    expect(() => interpret(b.build({ name: 'race', group: [2, 1, 1] }), [])).toThrow(
      /race: threads 0 and 1 touch s\[0\]/,
    );
  });

  it('finds barriers that not all threads reach', () => {
    const b = new ProgramBuilder();
    b.ifThen(b.e.lt(b.e.special('local', 0, 2), b.e.i32(1)), () => b.barrier());
    expect(() => interpret(b.build({ name: 'diverge', group: [2, 1, 1] }), [])).toThrow(/different barriers/);
  });

  it('finds two groups that write one element, and allows atomics', () => {
    const b = new ProgramBuilder();
    const y = b.e.param(0, 'int32', 'readwrite', 1);
    b.store(y, 0, b.e.special('group', 0, 2));
    expect(() => interpret(b.build({ name: 'clash', grid: [2, 1, 1] }), [new Int32Array(1)])).toThrow(
      /groups 0 and 1 both write element 0/,
    );
    const c = new ProgramBuilder();
    c.atomic('add', c.e.param(0, 'int32', 'readwrite', 1), 0, c.e.i32(1));
    const out = new Int32Array(1);
    interpret(c.build({ name: 'count', grid: [5, 1, 1] }), [out]);
    expect(out[0]).toBe(5);
  });
});
