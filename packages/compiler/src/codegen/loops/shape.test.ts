/** The shape of programs lowered for the processor: loops, vectors, gates, divisions, and bounds of long sums. */
import { describe, expect, test } from 'vitest';
import { widerLanes } from '../costs/processors.ts';
import { optimize } from './optimize.ts';
import { pickLanes, splitPhases } from './phases.ts';
import { check, fill, loops } from '../fixtures/lowered.ts';
import { interpret } from '../../interpreter/interpret.ts';
import { Exprs } from '../../ir/expr.ts';
import type { KNode, LoopKernel } from '../../ir/ir.ts';
import { linearize } from '../linearize/linearize.ts';
import { elementwise, flat, kernelOf, reduction, simdCaps, softmax, wideCaps } from '../fixtures/nests.ts';
import { printProgram } from '../../ir/print.ts';

describe('shape of programs', () => {
  test('contiguous elementwise kernels become one loop over vectors and a tail', () => {
    const k = elementwise([4, 5, 7], (e, at, x) => e.add(x(1, flat(e, at, [4, 5, 7]), 140), e.f32(1)));
    const p = check(k, simdCaps);
    expect(loops(p)).toBe(2); // eight times four vectors, three single vectors
    expect(p.body.some((n) => n.op === 'IREM' || n.op === 'IDIV')).toBe(false);
    expect(p.body.filter((n) => n.op === 'LOAD').map((n) => n.lanes)).toEqual([4, 4, 4, 4, 4]);
  });
  test('loops over nothing but bools fill vectors with bytes, where the target says so', () => {
    const shape = [3, 100];
    const both = elementwise(shape, (e, at) => {
      const x = (slot: number): KNode => e.load(e.param(slot, 'bool', 'read', 300), flat(e, at, shape));
      return e.and(x(1), x(2));
    });
    const less = elementwise(shape, (e, at, x) => e.lt(x(1, flat(e, at, shape), 300), e.f32(0)));
    const widths = (k: LoopKernel, caps: typeof wideCaps): Set<number> =>
      new Set(check(k, caps).body.flatMap((n) => (n.op === 'LOAD' ? [n.lanes] : [])));
    expect(widths(both, wideCaps)).toEqual(new Set([16]));
    expect(widths(both, { ...wideCaps, boolBytes: 1 })).toEqual(new Set([64]));
    expect(widths(less, { ...wideCaps, boolBytes: 1 })).toEqual(new Set([16]));
  });
  test('vectors of long chains of operations are side by side, where the target says so', () => {
    const longer = (e: Exprs, x: KNode, length: number): KNode => {
      let value = x;
      for (let i = 0; i < length; i++) value = e.unary('ABS', e.sub(value, e.f32(i + 1)));
      return value;
    };
    const chain = (length: number): LoopKernel =>
      elementwise([1000], (e, at, x) => longer(e, x(1, at[0]!, 1000), length));
    const e = new Exprs();
    const [row, column] = [e.range(40), e.range(100, 'reduce')];
    const element = e.load(e.param(1, 'float32', 'read', 4000), flat(e, [row, column], [40, 100]));
    const store = e.store(e.param(0, 'float32', 'write', 40), row, e.reduce('sum', longer(e, element, 60), [column]));
    const sum = kernelOf('sum', [{ store, ranges: [row] }]);
    const widest = (k: LoopKernel, caps: typeof wideCaps): number =>
      Math.max(...check(k, caps).body.map((n) => (n.op === 'ABS' ? n.lanes : 1)));
    const wider = { ...wideCaps, lowering: { ...wideCaps.lowering, wider: widerLanes } };
    expect([widest(chain(60), wideCaps), widest(chain(60), wider)]).toEqual([16, 32]);
    expect([widest(chain(20), wider), widest(sum, wider)]).toEqual([16, 16]);
  });
  test('where one store writes consecutive elements others write theirs one by one, and what they share is computed by vectors', () => {
    const e = new Exprs();
    const ranges = [e.range(3), e.range(70)];
    const value = e.mul(e.load(e.param(2, 'float32', 'read', 210), flat(e, ranges, [3, 70])), e.f32(3));
    const kernel = kernelOf('both', [
      { store: e.store(e.param(0, 'float32', 'write', 210), flat(e, ranges, [3, 70]), value), ranges },
      {
        store: e.store(e.param(1, 'float32', 'write', 210), flat(e, [...ranges].reverse(), [70, 3]), e.neg(value)),
        ranges,
      },
    ]);
    const p = check(kernel, simdCaps);
    expect(new Set(p.body.flatMap((n) => (n.op === 'NEG' ? [n.lanes] : [])))).toEqual(new Set([4]));
    expect(p.body.some((n) => n.op === 'STORE' && n.src[2].lanes === 1)).toBe(true);
  });
  test('a stretch without conditions is cut off where they are many', () => {
    const k = elementwise([4, 120], (e, at) => {
      const [i, j] = at as readonly [KNode, KNode];
      const x = (by: number): KNode => {
        const place = flat(e, [i, e.sub(j, e.i32(by))], [4, 120]);
        return e.load(e.param(1, 'float32', 'read', 480), place, e.le(e.i32(by), j), e.f32(1));
      };
      return [1, 2, 3, 4, 5, 6, 7, 8].map(x).reduce((a, b) => e.add(a, b));
    });
    const p = check(k, simdCaps);
    expect(p.body.filter((n) => n.op === 'LOAD' && n.lanes === 4 && n.src.length === 2).length).toBeGreaterThan(7);
  });
  test('reductions at the same place share loops', () => {
    const p = check(softmax(3, 64, 1, false), simdCaps);
    expect(loops(p)).toBe(4); // rows, max, sum, quotient
  });
  test('a column reduction keeps columns as vectors', () => {
    const p = check(reduction('sum', [33, 16], [0]), simdCaps, 1e-5);
    expect(p.body.filter((n) => n.op === 'LOAD' && n.src[0]?.op === 'PARAM').every((n) => n.lanes === 4)).toBe(true);
  });
  test('padding leaves no gate inside', () => {
    const k = elementwise([4, 40], (e, [i, j]) => {
      const x = e.sub(j as KNode, e.i32(3));
      const inside = e.and(e.le(e.i32(0), x), e.lt(x, e.i32(30)));
      return e.load(e.param(1, 'float32', 'read', 120), flat(e, [i as KNode, x], [4, 30]), inside, e.f32(0));
    });
    const p = check(k, simdCaps);
    expect(p.body.filter((n) => n.op === 'LOAD').every((n) => n.src.length === 2)).toBe(true);
  });
  test('inner loops have no division', () => {
    const p = check(
      elementwise([7, 33, 100], (e, [a, b, c], x) => x(1, flat(e, [b!, a!, c!], [33, 7, 100]), 23100)),
      simdCaps,
    );
    expect(p.body.some((n) => n.op === 'IREM' || n.op === 'IDIV')).toBe(false);
  });
  test('groups of narrow rows are cut between rows, whatever their number', () => {
    for (const rows of [40000, 40001]) {
      const shape = [rows, 3];
      const k = elementwise(shape, (e, at, x) => e.add(x(1, flat(e, at, shape), rows * 3), x(2, at[1] as KNode, 3)));
      const p = linearize(optimize(k, simdCaps), simdCaps);
      expect(p.grid[0]).toBeGreaterThan(1);
      expect(p.body.some((n) => n.lanes === 1 && (n.op === 'IREM' || n.op === 'IDIV'))).toBe(false);
    }
  });
  test('a diagonal is written without a division or a condition for each element', () => {
    for (const [n, first] of [
      [40, 0],
      [33, 3],
    ] as const) {
      const k = elementwise([n * n], (e, [i]) => {
        const at = e.sub(i!, first);
        const on = e.and(e.le(e.i32(0), at), e.lt(e.irem(at, e.i32(n + 1)), e.i32(1)));
        return e.load(e.param(1, 'float32', 'read', n), e.idiv(at, e.i32(n + 1)), on, e.f32(0));
      });
      for (const caps of [simdCaps, wideCaps]) {
        const p = check(k, caps);
        expect(p.body.some((x) => x.op === 'IREM' || x.op === 'IDIV')).toBe(false);
        expect(p.body.some((x) => x.op === 'LOAD' && x.src.length > 2)).toBe(false);
      }
    }
  });
  test('a quarter turn goes in squares, as a transpose', () => {
    const turned = elementwise([64, 64], (e, [i, j], x) => x(1, flat(e, [j!, e.sub(e.i32(63), i!)], [64, 64]), 4096));
    expect(optimize(turned, simdCaps).transforms?.some(({ name }) => name === 'tile')).toBe(true);
  });
  test.each([2, 3, 4])('%i phases side by side: each element is read where it is kept, without a test', (phases) => {
    const [height, width] = [6 * phases, 16 * phases];
    const k = elementwise([3, height, width], (e, [n, i, j]) => {
      const place = flat(e, [n!, e.idiv(i!, phases), e.idiv(j!, phases)], [3, 6, 16]);
      const choose = (at: KNode, of: (phase: number) => KNode): KNode => {
        let value = of(phases - 1);
        for (let phase = phases - 2; phase >= 0; phase--)
          value = e.where(e.lt(e.irem(at, phases), phase + 1), of(phase), value);
        return value;
      };
      const part = (phase: number): KNode => e.load(e.param(1 + phase, 'float32', 'read', 3 * 6 * 16), place);
      return choose(i!, (y) => choose(j!, (x) => part(y * phases + x)));
    });
    for (const each of [simdCaps, wideCaps]) {
      const caps = { ...each, lowering: { ...each.lowering, splitPhases, pickLanes } };
      const p = check(k, caps);
      expect(p.body.some(({ op }) => op === 'WHERE' || op === 'IREM' || op === 'IDIV')).toBe(false);
      expect(p.body.every((n) => n.op !== 'LOAD' || n.src.length === 2)).toBe(true);
      expect(p.body.every((n) => n.op !== 'STORE' || n.src[2].lanes > 1)).toBe(true);
    }
  });
  describe.each([16, 32, 64])('transposes with vectors of %i bytes', (vectorBytes) => {
    const caps = { ...wideCaps, vectorBytes };
    const isWide = vectorBytes === 64;
    const written = (k: LoopKernel): number[] =>
      check(k, caps).body.flatMap((n) => (n.op === 'STORE' && n.src[0].op === 'PARAM' ? n.src[2].lanes : []));

    test.each([
      [9, 64, 9],
      [9, 19, 1024],
      [18, 67, 1024],
      [5, 16, 6],
      [4, 4, 40],
      [33, 5, 40],
    ])('%i rows of %i, from rows of %i', (m, n, row) => {
      const k = elementwise([2, m, n], (e, [b, i, j], x) => x(1, flat(e, [b!, j!, i!], [2, n, row]), 2 * n * row));
      const lanes = written(k);
      // Each loop is covered by squares alone.
      if (isWide) expect(Math.min(...lanes)).toBeGreaterThanOrEqual(4);
      if (isWide && n >= 16) expect(new Set(lanes)).toEqual(new Set([16]));
    });
    test('every second element of rows', () => {
      const k = elementwise([2, 24, 64], (e, [b, i, j], x) =>
        x(1, flat(e, [b!, j!, e.mul(i!, 2)], [2, 64, 48]), 2 * 64 * 48),
      );
      const lanes = written(k);
      if (isWide) expect(new Set(lanes)).toEqual(new Set([16]));
      expect(optimize(k, caps).transforms?.some(({ name }) => name === 'tile')).toBe(isWide);
    });
    test('what is read in the order of the result is not read twice: it may be the memory of the result', () => {
      const k = elementwise([10, 18], (e, [i, j], x) =>
        e.add(x(1, flat(e, [j!, i!], [18, 10]), 180), x(2, flat(e, [i!, j!], [10, 18]), 180)),
      );
      const program = optimize(k, caps);
      const counts = program.stores.map(({ ranges }) => ranges.reduce((n, r) => n * r.arg.extent, 1));
      expect(counts.reduce((sum, n) => sum + n, 0)).toBe(180);
      check(k, caps);
    });
    test('a copy of images with padding, four of them side by side', () => {
      const [channels, side, images] = [6, 8, 8];
      const k = elementwise([side + 2, side + 2, channels, images], (e, [i, j, c, n]) => {
        const [y, z] = [e.sub(i!, e.i32(1)), e.sub(j!, e.i32(1))];
        const on = [y, z].flatMap((at) => [e.le(e.i32(0), at), e.lt(at, e.i32(side))]).reduce((a, b) => e.and(a, b));
        const x = e.param(1, 'float32', 'read', images * channels * side * side);
        return e.load(x, flat(e, [n!, c!, y, z], [images, channels, side, side]), on, e.f32(0));
      });
      const p = check(k, caps);
      if (isWide) expect(p.body.some((n) => n.op === 'LOAD' && n.src.length > 2)).toBe(false);
    });
  });
  test('narrow rows fill wide vectors', () => {
    for (const width of [2, 3, 5, 6, 12]) {
      const rows = 16 * 9;
      const k = elementwise([rows, width], (e, at, x) =>
        e.mul(x(1, flat(e, at, [rows, width]), rows * width), x(2, at[1]!, width)),
      );
      const p = check(k, wideCaps);
      const stores = p.body.filter((n) => n.op === 'STORE' && n.src[0].op === 'PARAM');
      expect(
        stores.every((n) => n.op === 'STORE' && n.src[2].lanes === 16),
        `${width}`,
      ).toBe(true);
    }
  });
  test('rows found by their numbers are read as they are, not brought together', () => {
    const k = elementwise([90, 8], (e, [i, j], x) => {
      const row = e.load(e.param(2, 'int32', 'read', 90), i!);
      return x(1, flat(e, [e.min(e.max(row, e.i32(0)), e.i32(3)), j!], [4, 8]), 32);
    });
    const p = check(k, wideCaps);
    expect(p.body.some((n) => n.op === 'VEC' && n.src.length > 1)).toBe(false);
  });
  test('distances of rows, weighed: vectors go along what is read side by side, not along the sum', () => {
    const [n, m, size] = [24, 64, 32];
    const e = new Exprs();
    const [i, k, j] = [e.range(n), e.range(size), e.range(m, 'reduce')];
    const read = (slot: number, at: KNode, length: number): KNode =>
      e.load(e.param(slot, 'float32', 'read', length), at);
    const apart = e.sub(read(1, flat(e, [i, k], [n, size]), n * size), read(2, flat(e, [j, k], [m, size]), m * size));
    const value = e.reduce('sum', e.mul(read(3, flat(e, [i, j], [n, m]), n * m), apart), [j]);
    const out = e.param(0, 'float32', 'write', n * size);
    const kernel = kernelOf('weighed', [{ store: e.store(out, flat(e, [i, k], [n, size]), value), ranges: [i, k] }]);
    for (const caps of [simdCaps, wideCaps]) {
      const p = check(kernel, caps, 1e-4);
      expect(p.body.some((x) => x.op === 'VEC' && x.src.length > 1)).toBe(false);
    }
  });
  test('elements found by their numbers are read outside the loop that does not need them', () => {
    const [n, m, size] = [32, 64, 41];
    const e = new Exprs();
    const [i, j, k] = [e.range(n), e.range(m, 'reduce'), e.range(size, 'reduce')];
    const row = e.load(e.param(2, 'int32', 'read', n * m), flat(e, [i, j], [n, m]));
    const known = e.min(e.max(row, e.i32(0)), e.i32(size - 1));
    const table = e.param(1, 'float32', 'read', n * size);
    const lack = e.sub(e.load(table, flat(e, [i, k], [n, size])), e.load(table, flat(e, [i, known], [n, size])));
    const value = e.reduce('sum', e.binary('MAX', lack, e.f32(0)), [j, k]);
    const kernel = kernelOf('lacking', [{ store: e.store(e.param(0, 'float32', 'write', n), i, value), ranges: [i] }]);
    for (const caps of [simdCaps, wideCaps])
      expect(check(kernel, caps, 1e-4).body.some((x) => x.op === 'LANE' && x.dtype === 'int32')).toBe(false);
  });
  test('results do not depend on the number of workers', () => {
    const k = reduction('sum', [300, 257], [1]);
    const [one, many] = [1, 64].map((parallelism) =>
      printProgram(linearize(optimize(k, { ...simdCaps, parallelism }), { ...simdCaps, parallelism })),
    );
    expect(one).toBe(many);
  });
  test('long float32 sums stay within their bound', () => {
    const n = 200_000;
    const k = reduction('sum', [n], [0]);
    const x = fill(n, 1);
    const out = new Float32Array(1);
    interpret(linearize(optimize(k, simdCaps), simdCaps), [out, x]);
    const magnitude = x.reduce((s, v) => s + Math.abs(v), 0);
    const exact = x.reduce((s, v) => s + v, 0);
    const u = 2 ** -24;
    expect(Math.abs((out[0] as number) - exact)).toBeLessThan((n * u * magnitude) / (1 - n * u));
  });
});
