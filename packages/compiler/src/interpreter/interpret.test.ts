/** Whole programs on the interpreter: what they compute, in every dtype, and the mistakes it finds in them. */
import { describe, expect, it } from 'vitest';
import type { DType, TypedArray } from '../shape/dtype.ts';
import { ProgramBuilder } from '../ir/builder/builder.ts';
import { interpret } from './interpret.ts';
import type { KNode } from '../ir/ir.ts';

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

  it('finds races between threads, and reads of memory nobody wrote', () => {
    expect(() => interpret(neighbours(false), [new Int32Array(4)])).toThrow(/s\[1\] is read before it is written/);
    const both = new ProgramBuilder();
    const s = both.shared('s', 'int32', 1);
    both.store(s, 0, both.e.special('local', 0, 2));
    expect(() => interpret(both.build({ name: 'race', group: [2, 1, 1] }), [])).toThrow(
      /race: threads 0 and 1 touch s\[0\] without a barrier between/,
    );
  });

  /** The first of three threads writes a cell, all read it, then one of them writes it again. */
  function rewritten(writer: number, barrier: boolean) {
    const b = new ProgramBuilder();
    const { e } = b;
    const y = e.param(0, 'int32', 'write', 3);
    const s = b.shared('s', 'int32', 1);
    const t = e.special('local', 0, 3);
    b.ifThen(e.eq(t, e.i32(0)), () => b.store(s, 0, e.i32(7)));
    b.barrier();
    b.store(y, t, b.load(s, 0));
    if (barrier) b.barrier();
    b.ifThen(e.eq(t, e.i32(writer)), () => b.store(s, 0, e.i32(8)));
    return b.build({ name: 'rewritten', group: [3, 1, 1] });
  }

  it('finds a write after reads by others, whoever read last', () => {
    const out = new Int32Array(3);
    interpret(rewritten(2, true), [out]);
    expect([...out]).toEqual([7, 7, 7]);
    for (const writer of [0, 1, 2]) {
      expect(() => interpret(rewritten(writer, false), [out]), `thread ${writer}`).toThrow(/race: .* touch s\[0\]/);
    }
  });

  it('finds atomics mixed with other accesses, and lets atomics be', () => {
    const program = (barrier: boolean) => {
      const b = new ProgramBuilder();
      const { e } = b;
      const s = b.shared('s', 'int32', 1);
      const y = e.param(0, 'int32', 'write', 4);
      const t = e.special('local', 0, 4);
      b.ifThen(e.eq(t, e.i32(0)), () => b.store(s, 0, e.i32(1)));
      b.barrier();
      b.atomic('add', s, 0, t);
      if (barrier) b.barrier();
      b.store(y, t, b.load(s, 0));
      return b.build({ name: 'mixed', group: [4, 1, 1] });
    };
    const out = new Int32Array(4);
    interpret(program(true), [out]);
    expect([...out]).toEqual([7, 7, 7, 7]);
    expect(() => interpret(program(false), [out])).toThrow(/race/);
  });

  it('SHARED and REG are uninitialised again in the next group', () => {
    for (const where of ['shared', 'reg'] as const) {
      const b = new ProgramBuilder();
      const { e } = b;
      const memory = where === 'shared' ? b.shared('m', 'float32', 1) : b.reg('m', 'float32');
      const y = e.param(0, 'float32', 'write', 2);
      const group = e.special('group', 0, 2);
      b.ifThen(e.eq(group, e.i32(0)), () => b.store(memory, 0, e.f32(1)));
      b.store(y, group, b.load(memory, 0));
      expect(() => interpret(b.build({ name: 'stale', grid: [2, 1, 1] }), [new Float32Array(2)])).toThrow(
        /m\[0\] is read before it is written/,
      );
    }
  });

  it('a REG holds a vector at each index', () => {
    const b = new ProgramBuilder();
    const { e } = b;
    const y = e.param(0, 'float32', 'write', 8);
    const r = b.reg('r', 'float32', 4, 2);
    b.store(r, 0, e.splat(e.f32(1), 4));
    b.store(r, 1, e.cast(e.iota(4), 'float32'));
    b.store(y, 0, b.load(r, 1));
    b.store(y, 4, e.add(b.load(r, 0), b.load(r, 1)));
    const out = new Float32Array(8);
    interpret(b.build({ name: 'registers' }), [out]);
    expect([...out]).toEqual([0, 1, 2, 3, 1, 2, 3, 4]);
  });

  it('nested loops with extents of their own, and conditions in them', () => {
    const b = new ProgramBuilder();
    const { e } = b;
    const y = e.param(0, 'int32', 'readwrite', 1);
    b.loop(5, (i) => {
      b.loop(i, (j) => {
        b.ifThen(e.eq(e.irem(e.add(i, j), e.i32(2)), e.i32(0)), () => b.store(y, 0, e.add(b.load(y, 0), e.i32(1))));
      });
    });
    const out = new Int32Array(1);
    interpret(b.build({ name: 'nested' }), [out]);
    expect(out[0]).toBe(4);
  });

  it('threads meet at a barrier inside a loop', () => {
    const b = new ProgramBuilder();
    const { e } = b;
    const y = e.param(0, 'int32', 'write', 4);
    const s = b.shared('s', 'int32', 8);
    const t = e.special('local', 0, 4);
    b.store(s, t, t);
    b.barrier();
    // Each round every thread takes its neighbour's number, from one half of the memory to the other.
    b.loop(3, (i) => {
      const from = e.mul(e.irem(i, e.i32(2)), e.i32(4));
      const next = b.load(s, e.add(from, e.irem(e.add(t, e.i32(1)), e.i32(4))));
      b.store(s, e.add(e.sub(e.i32(4), from), t), next);
      b.barrier();
    });
    b.store(y, t, b.load(s, e.add(e.i32(4), t)));
    const out = new Int32Array(4);
    interpret(b.build({ name: 'rounds', group: [4, 1, 1] }), [out]);
    expect([...out]).toEqual([3, 0, 1, 2]);
  });

  it('finds barriers that not all threads reach', () => {
    const b = new ProgramBuilder();
    b.loop(b.e.add(b.e.special('local', 0, 2), b.e.i32(1)), () => b.barrier());
    expect(() => interpret(b.build({ name: 'diverge', group: [2, 1, 1] }), [])).toThrow(
      /not all threads|different barriers/,
    );
  });

  it('finds two groups that write one element, and allows atomics', () => {
    const b = new ProgramBuilder();
    const y = b.e.param(0, 'int32', 'readwrite', 1);
    b.store(y, 0, b.e.special('group', 0, 2));
    expect(() => interpret(b.build({ name: 'clash', grid: [2, 1, 1] }), [new Int32Array(1)])).toThrow(
      /groups 0 and 1 both write element 0 of parameter 0/,
    );
    const c = new ProgramBuilder();
    c.atomic('add', c.e.param(0, 'int32', 'readwrite', 1), 0, c.e.i32(1));
    const out = new Int32Array(1);
    interpret(c.build({ name: 'count', grid: [5, 1, 1] }), [out]);
    expect(out[0]).toBe(5);
    c.store(c.e.param(0, 'int32', 'readwrite', 1), 0, c.e.i32(1));
    expect(() => interpret(c.build({ name: 'mixed', grid: [2, 1, 1] }), [out])).toThrow(/both write element 0/);
  });

  /** Adds one to every element, or takes its neighbour's plus one. */
  function increment(reach: 0 | 1) {
    const b = new ProgramBuilder();
    const { e } = b;
    const x = e.param(0, 'float32', 'read', 4);
    const y = e.param(1, 'float32', 'write', 4);
    const i = e.special('group', 0, 4);
    b.store(y, i, e.add(b.load(x, e.irem(e.add(i, e.i32(reach)), e.i32(4))), e.f32(1)));
    return b.build({ name: 'increment', grid: [4, 1, 1] });
  }

  it('allows an update in place of own elements, and finds one of others through overlapping parameters', () => {
    const memory = new Float32Array([1, 2, 3, 4, 5]);
    interpret(increment(0), [memory.subarray(0, 4), memory.subarray(0, 4)]);
    expect([...memory]).toEqual([2, 3, 4, 5, 5]);
    interpret(increment(1), [memory.slice(), memory]);
    expect(() => interpret(increment(1), [memory.subarray(0, 4), memory.subarray(0, 4)])).toThrow(
      /group 1 writes element 1 of parameter 1, which group 0 read/,
    );
    expect(() => interpret(increment(0), [memory.subarray(0, 4), memory.subarray(1, 5)])).toThrow(
      /group 1 reads element 1 of parameter 0, which group 0 wrote/,
    );
  });

  it('finds missing buffers and scalars', () => {
    expect(() => interpret(scale(3, 3), [new Float32Array(3)], [1])).toThrow(/no buffer for parameter 1/);
    expect(() => interpret(scale(3, 3), [new Float32Array(3), new Float32Array(3)])).toThrow(
      /0 scalars given, 1 needed/,
    );
  });

  it('runs every group and thread of three axes', () => {
    const b = new ProgramBuilder();
    const { e } = b;
    const y = e.param(0, 'int32', 'write', 2 * 3 * 2 * 2);
    const [g0, g1] = [e.special('group', 0, 2), e.special('group', 1, 3)];
    const [t1, t2] = [e.special('local', 1, 2), e.special('local', 2, 2)];
    const at = [g1, t1, t2].reduce((sum, x, i) => e.add(e.mul(sum, e.i32([3, 2, 2][i]!)), x), g0 as KNode);
    b.store(y, at, e.add(at, e.i32(1)));
    const out = new Int32Array(24);
    interpret(b.build({ name: 'axes', grid: [2, 3, 1], group: [1, 2, 2] }), [out]);
    expect([...out]).toEqual(Array.from({ length: 24 }, (_, i) => i + 1));
  });
});

describe('every dtype', () => {
  const arrays: readonly [DType, TypedArray, TypedArray][] = [
    ['float32', new Float32Array([0.1, -2, 3e38]), new Float32Array([0.2, -4, Number.POSITIVE_INFINITY])],
    ['float64', new Float64Array([0.1, -2, 1e308]), new Float64Array([0.2, -4, Number.POSITIVE_INFINITY])],
    ['float16', new Uint16Array([0x3c00, 0x7bff, 0xc000]), new Uint16Array([0x4000, 0x7c00, 0xc400])],
    ['bfloat16', new Uint16Array([0x3f80, 0x7f7f, 0xc000]), new Uint16Array([0x4000, 0x7f80, 0xc080])],
    ['int8', new Int8Array([1, 100, -128]), new Int8Array([2, -56, 0])],
    ['int16', new Int16Array([1, 20000, -32768]), new Int16Array([2, -25536, 0])],
    ['int32', new Int32Array([1, 2 ** 30, -(2 ** 31)]), new Int32Array([2, -(2 ** 31), 0])],
    ['int64', new BigInt64Array([1n, 2n ** 62n, -5n]), new BigInt64Array([2n, -(2n ** 63n), -10n])],
    ['uint8', new Uint8Array([1, 200, 255]), new Uint8Array([2, 144, 254])],
    ['uint16', new Uint16Array([1, 40000, 65535]), new Uint16Array([2, 14464, 65534])],
    ['uint32', new Uint32Array([1, 3e9, 2 ** 32 - 1]), new Uint32Array([2, 1705032704, 2 ** 32 - 2])],
    ['uint64', new BigUint64Array([1n, 2n ** 63n, 5n]), new BigUint64Array([2n, 0n, 10n])],
  ];

  it.each(arrays)('%s loads, adds, stores', (dtype, input, want) => {
    const b = new ProgramBuilder();
    const { e } = b;
    const [x, y] = [e.param(0, dtype, 'read', 3), e.param(1, dtype, 'write', 3)];
    b.loop(3, (i) => b.store(y, i, e.add(b.load(x, i), b.load(x, i))));
    const out = input.slice() as typeof input;
    interpret(b.build({ name: 'double' }), [input, out]);
    expect(out).toEqual(want);
  });

  it('bool stores 0 and 1', () => {
    const b = new ProgramBuilder();
    const { e } = b;
    const [x, y] = [e.param(0, 'float32', 'read', 3), e.param(1, 'bool', 'write', 3)];
    b.loop(3, (i) => b.store(y, i, e.not(e.lt(b.load(x, i), e.f32(1)))));
    const out = new Uint8Array(3);
    interpret(b.build({ name: 'flags' }), [new Float32Array([0, 2, Number.NaN]), out]);
    expect([...out]).toEqual([0, 1, 1]);
  });
});
