/** Programs with loops, conditions, registers, shared memory, gates and grids, against plain loops. */
import { type KNode, ProgramBuilder } from '@polygrad/core/kernel';
import { describe, expect, it } from 'vitest';
import { plainTarget, runProgram } from '../testing/harness.ts';

const f32 = (n: number, make: (i: number) => number): Float32Array =>
  Float32Array.from({ length: n }, (_, i) => make(i));

describe('structure', () => {
  it('adds two vectors with lanes 4, 8 and 16 and a scalar tail', () => {
    for (const lanes of [4, 8, 16]) {
      const n = 77;
      const b = new ProgramBuilder();
      const { e } = b;
      const [x, y, z] = [
        e.param(0, 'float32', 'read', n),
        e.param(1, 'float32', 'read', n),
        e.param(2, 'float32', 'write', n),
      ];
      const whole = Math.floor(n / lanes);
      b.loop(whole, (i) => {
        const at = e.mul(i, e.i32(lanes));
        b.store(z, at, e.add(b.load(x, at, lanes), b.load(y, at, lanes)));
      });
      b.loop(n - whole * lanes, (i) => {
        const at = e.add(i, e.i32(whole * lanes));
        b.store(z, at, e.add(b.load(x, at), b.load(y, at)));
      });
      const a = f32(n, (i) => i);
      const c = f32(n, (i) => i * 100);
      const out = new Float32Array(n);
      runProgram(b.build({ name: 'add' }), [a, c, out]);
      expect(out).toEqual(f32(n, (i) => i * 101));
    }
  });

  it('reads every second element as vectors, up to the last one', () => {
    const n = 47;
    const b = new ProgramBuilder();
    const { e } = b;
    const [x, z] = [e.param(0, 'float32', 'read', 2 * n - 1), e.param(1, 'float32', 'write', n)];
    const whole = Math.floor(n / 4);
    b.loop(whole, (i) => {
      const at = e.mul(i, e.i32(8));
      const lanes = [0, 2, 4, 6].map((k) => b.load(x, e.add(at, e.i32(k))));
      b.store(z, e.mul(i, e.i32(4)), e.mul(e.vec(lanes), e.f32(3)));
    });
    b.loop(n - whole * 4, (i) =>
      b.store(z, e.add(i, e.i32(whole * 4)), b.load(x, e.mul(e.add(i, e.i32(whole * 4)), e.i32(2)))),
    );
    const out = new Float32Array(n);
    runProgram(b.build({ name: 'second' }), [f32(2 * n - 1, (i) => i), out]);
    expect(out).toEqual(f32(n, (i) => (i < whole * 4 ? 6 * i : 2 * i)));
  });

  it('reads half a vector and later a whole one from one place', () => {
    const b = new ProgramBuilder();
    const { e } = b;
    const [x, y, z] = [
      e.param(0, 'float32', 'read', 4),
      e.param(1, 'float32', 'write', 8),
      e.param(2, 'float32', 'write', 4),
    ];
    const lanes = (at: KNode, offsets: readonly number[]): KNode =>
      e.vec(offsets.map((k) => b.load(x, e.add(at, e.i32(k)))));
    // Both turns are written out: the first one reads x[0] and x[1] in the block of what follows.
    b.loop(2, (i) => b.store(y, e.mul(i, 4), lanes(e.mul(i, 2), [0, 0, 0, 1])));
    b.store(z, e.i32(0), lanes(e.i32(0), [0, 1, 2, 3].reverse()));
    const out = [new Float32Array(8), new Float32Array(4)] as const;
    runProgram(b.build({ name: 'halves' }), [Float32Array.of(5, 6, 7, 8), ...out]);
    expect(out).toEqual([Float32Array.of(5, 5, 5, 6, 7, 7, 7, 8), Float32Array.of(8, 7, 6, 5)]);
  });

  it('reads squares of rows as columns, in every dtype, rows apart or side by side', () => {
    const arrays = {
      float32: (n: number) => new Float32Array(n),
      float64: (n: number) => new Float64Array(n),
      int32: (n: number) => new Int32Array(n),
      int8: (n: number) => new Int8Array(n),
      uint16: (n: number) => new Uint16Array(n),
    };
    for (const [dtype, make] of Object.entries(arrays)) {
      for (const [row, lanes] of [
        [4, 4],
        [5, 4],
        [9, 4],
        [9, 2],
      ] as const) {
        const rows = 8;
        const b = new ProgramBuilder();
        const { e } = b;
        const x = e.param(0, dtype as 'float32', 'read', rows * row);
        const y = e.param(1, dtype as 'float32', 'write', 4 * rows);
        b.loop(rows / lanes, (block) => {
          for (let i = 0; i < 4; i++) {
            const at = (k: number) => e.add(e.mul(block, e.i32(lanes * row)), e.i32(k * row + i));
            const column = e.vec(Array.from({ length: lanes }, (_, k) => b.load(x, at(k))));
            b.store(y, e.add(e.mul(block, e.i32(lanes)), e.i32(i * rows)), column);
          }
        });
        const data = make(rows * row).map((_, i) => i - 3);
        const out = make(4 * rows);
        runProgram(b.build({ name: 'columns' }), [new Uint8Array(data.buffer), new Uint8Array(out.buffer)]);
        const want = make(4 * rows).map((_, i) => data[(i % rows) * row + Math.floor(i / rows)]!);
        expect(out, `${dtype}, rows of ${row}, ${lanes} lanes`).toEqual(want);
      }
    }
  });

  it('multiplies matrices with registers', () => {
    const [m, n, k] = [7, 12, 9];
    const b = new ProgramBuilder();
    const { e } = b;
    const [x, y, z] = [
      e.param(0, 'float32', 'read', m * k),
      e.param(1, 'float32', 'read', k * n),
      e.param(2, 'float32', 'write', m * n),
    ];
    const acc = b.reg('acc', 'float32', 4, 3);
    const row = e.special('group', 0, m);
    for (let j = 0; j < 3; j++) b.store(acc, j, e.constant('float32', 0, 4));
    b.loop(k, (i) => {
      const a = e.splat(b.load(x, e.add(e.mul(row, e.i32(k)), i)), 4);
      for (let j = 0; j < 3; j++) {
        const v = b.load(y, e.add(e.mul(i, e.i32(n)), e.i32(4 * j)), 4);
        b.store(acc, j, e.ternary('MULADD', a, v, b.load(acc, j)));
      }
    });
    for (let j = 0; j < 3; j++) b.store(z, e.add(e.mul(row, e.i32(n)), e.i32(4 * j)), b.load(acc, j));
    const program = b.build({ name: 'mm', grid: [m, 1, 1] });
    const a = f32(m * k, (i) => (i % 7) - 3);
    const c = f32(k * n, (i) => (i % 5) - 2);
    const want = f32(m * n, (i) => {
      let s = 0;
      for (let q = 0; q < k; q++) s += a[Math.floor(i / n) * k + q]! * c[q * n + (i % n)]!;
      return s;
    });
    for (const split of [0, 3]) {
      const out = new Float32Array(m * n);
      runProgram(program, [a, c, out], [], undefined, split);
      expect(out).toEqual(want);
    }
  });

  it('keeps reads of registers before later writes', () => {
    const b = new ProgramBuilder();
    const { e } = b;
    const out = e.param(0, 'int32', 'write', 8);
    const r = b.reg('r', 'int32', 1, 2);
    b.store(r, 0, e.i32(1));
    b.store(r, 1, e.i32(2));
    const [p, q] = [b.load(r, 0), b.load(r, 1)];
    // Swap through values that were read before.
    b.store(r, 0, q);
    b.store(r, 1, p);
    b.store(out, 0, b.load(r, 0));
    b.store(out, 1, b.load(r, 1));
    b.store(out, 2, p);
    const before = b.load(r, 0);
    b.loop(5, (i) => b.store(r, 0, e.add(b.load(r, 0), i)));
    b.store(out, 3, before);
    b.store(out, 4, b.load(r, 0));
    const data = new Int32Array(8);
    runProgram(b.build({ name: 'swap' }), [data]);
    expect([...data]).toEqual([2, 1, 1, 2, 12, 0, 0, 0]);
  });

  it('runs loops of dynamic extent, also zero and negative', () => {
    const b = new ProgramBuilder();
    const { e } = b;
    const counts = e.param(0, 'int32', 'read', 4);
    const out = e.param(1, 'int32', 'write', 4);
    const g = e.special('group', 0, 4);
    const sum = b.reg('sum', 'int32');
    b.store(sum, 0, e.i32(0));
    b.loop(b.load(counts, g), (i) => b.store(sum, 0, e.add(b.load(sum, 0), e.add(i, e.i32(1)))));
    b.store(out, g, b.load(sum, 0));
    const data = new Int32Array(4);
    runProgram(b.build({ name: 'dyn', grid: [4, 1, 1] }), [Int32Array.of(3, 0, -2, 10), data]);
    expect([...data]).toEqual([6, 0, 0, 55]);
  });

  it('derives all three grid axes', () => {
    const b = new ProgramBuilder();
    const { e } = b;
    const out = e.param(0, 'int32', 'write', 24);
    const [x, y, z] = [e.special('group', 0, 2), e.special('group', 1, 3), e.special('group', 2, 4)];
    const at = e.add(e.mul(e.add(e.mul(z, e.i32(3)), y), e.i32(2)), x);
    b.store(out, at, e.add(e.mul(z, e.i32(100)), e.add(e.mul(y, e.i32(10)), x)));
    const data = new Int32Array(24);
    runProgram(b.build({ name: 'grid', grid: [2, 3, 4] }), [data], [], undefined, 5);
    expect([...data]).toEqual(
      Array.from({ length: 24 }, (_, i) => Math.floor(i / 6) * 100 + (Math.floor(i / 2) % 3) * 10 + (i % 2)),
    );
  });

  it('masks gated loads and stores', () => {
    const n = 6;
    const b = new ProgramBuilder();
    const { e } = b;
    const x = e.param(0, 'float32', 'read', n);
    const out = e.param(1, 'float32', 'write', 3 * n);
    b.loop(n, (i) => {
      const left = e.add(i, e.i32(-1));
      const inside = e.le(e.i32(0), left);
      b.store(out, i, b.load(x, left, 1, inside));
      b.store(out, e.add(i, e.i32(n)), b.load(x, left, 1, inside, e.f32(-7)));
      b.store(out, e.add(i, e.i32(2 * n)), b.load(x, i), inside);
    });
    const data = new Float32Array(3 * n).fill(9);
    runProgram(b.build({ name: 'gates' }), [f32(n, (i) => i + 1), data]);
    expect([...data]).toEqual([0, 1, 2, 3, 4, 5, -7, 1, 2, 3, 4, 5, 9, 2, 3, 4, 5, 6]);
  });

  it('uses shared memory, conditions and flipped, strided indices', () => {
    const n = 10;
    const b = new ProgramBuilder();
    const { e } = b;
    const x = e.param(0, 'float32', 'read', 3 * n);
    const out = e.param(1, 'float32', 'write', n);
    const tile = b.shared('tile', 'float32', n);
    const other = b.shared('other', 'float32', n);
    b.loop(n, (i) => {
      b.store(tile, i, b.load(x, e.sub(e.i32(3 * n - 3), e.mul(i, e.i32(3)))));
      b.store(other, e.sub(e.i32(n - 1), i), b.load(x, i));
    });
    b.loop(n, (i) => {
      b.ifThen(e.eq(e.irem(i, e.i32(2)), e.i32(0)), () => b.store(out, i, b.load(tile, i)));
      b.ifThen(e.eq(e.irem(i, e.i32(2)), e.i32(1)), () => b.store(out, i, b.load(other, i)));
    });
    const data = new Float32Array(n);
    runProgram(b.build({ name: 'shared' }), [f32(3 * n, (i) => i), data]);
    expect([...data]).toEqual(Array.from({ length: n }, (_, i) => (i % 2 === 0 ? 27 - 3 * i : n - 1 - i)));
  });

  it('unrolls loops on request, with and without a rest', () => {
    for (const n of [3, 100, 103]) {
      const b = new ProgramBuilder();
      const { e } = b;
      const x = e.param(0, 'float32', 'read', n);
      const out = e.param(1, 'float32', 'write', n);
      b.loop(n, (i) => b.store(out, i, e.add(b.load(x, e.sub(e.i32(n - 1), i)), e.cast(e.mul(i, i), 'float32'))), {
        unrollHint: true,
      });
      const data = new Float32Array(n);
      runProgram(b.build({ name: 'unroll' }), [f32(n, (i) => i), data]);
      expect([...data]).toEqual(Array.from({ length: n }, (_, i) => n - 1 - i + i * i));
    }
  });

  it('combines atomically, in plain and in shared memory', () => {
    for (const shared of [false, true]) {
      const n = 50;
      const b = new ProgramBuilder();
      const { e } = b;
      const where = e.param(0, 'int32', 'read', n);
      const i32 = e.param(1, 'int32', 'readwrite', 12);
      const f32 = e.param(2, 'float32', 'readwrite', 9);
      const i = e.special('group', 0, n);
      const at = b.load(where, i);
      const value = e.sub(e.i32(20), i);
      (['add', 'max', 'min', 'or'] as const).forEach((op, k) => {
        b.atomic(op, i32, e.add(at, e.i32(3 * k)), value);
      });
      (['add', 'max', 'min'] as const).forEach((op, k) => {
        b.atomic(op, f32, e.add(at, e.i32(3 * k)), e.cast(value, 'float32'), e.lt(i, e.i32(40)));
      });
      const places = Int32Array.from({ length: n }, (_, q) => (q * 7) % 3);
      const ints = new Int32Array(12);
      const reals = new Float32Array(9);
      runProgram(b.build({ name: 'atomic', grid: [n, 1, 1] }), [places, ints, reals], [], { ...plainTarget, shared });
      const want = new Int32Array(12);
      const real = new Float32Array(9);
      for (let q = 0; q < n; q++) {
        const [p, v] = [places[q]!, 20 - q];
        want[p]! += v;
        want[3 + p] = Math.max(want[3 + p]!, v);
        want[6 + p] = Math.min(want[6 + p]!, v);
        want[9 + p]! |= v;
        if (q >= 40) continue;
        real[p]! += v;
        real[3 + p] = Math.max(real[3 + p]!, v);
        real[6 + p] = Math.min(real[6 + p]!, v);
      }
      expect(ints).toEqual(want);
      expect(reals).toEqual(real);
    }
  });

  it('reads scalars of every dtype', () => {
    const b = new ProgramBuilder();
    const { e } = b;
    const out = e.param(0, 'float64', 'write', 5);
    (['float32', 'float64', 'int32', 'uint32', 'bool'] as const).forEach((d, i) => {
      b.store(out, i, e.cast(e.scalar(i, d), 'float64'));
    });
    const data = new Float64Array(5);
    runProgram(b.build({ name: 'scalars' }), [data], [0.1, 0.1, -5, 4294967295, 1]);
    expect([...data]).toEqual([Math.fround(0.1), 0.1, -5, 4294967295, 1]);
  });
});
