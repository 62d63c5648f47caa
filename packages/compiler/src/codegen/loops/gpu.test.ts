/** The shape of programs lowered for groups of threads: vectors, turns, shared rows, transposes. */
import { describe, expect, test } from 'vitest';
import type { EngineCaps } from '@polygrad/core/engine';
import { optimize } from './optimize.ts';
import { check, loops } from '../fixtures/lowered.ts';
import { Exprs } from '../../ir/expr.ts';
import type { KNode, LoopKernel, Program } from '../../ir/ir.ts';
import { linearize } from '../linearize/linearize.ts';
import { elementwise, flat, layerNorm, reduction, simdCaps, softmax } from '../fixtures/nests.ts';

/** Sums of columns, divided by the sum of their squares. */
function rowOfSums(rows: number, length: number): LoopKernel {
  const e = new Exprs();
  const [x, y] = [e.param(0, 'float32', 'read', rows * length), e.param(1, 'float32', 'write', length)];
  const [i, j, r, k] = [e.range(rows, 'reduce'), e.range(length, 'reduce'), e.range(length, 'reduce'), e.range(length)];
  const row = e.stage('shared', e.reduce('sum', e.load(x, flat(e, [i, j], [rows, length])), [i]), [j]);
  const squares = e.reduce('sum', e.mul(e.load(row, r), e.load(row, r)), [r]);
  const store = e.store(y, k, e.div(e.load(row, k), squares));
  return { name: 'rowOfSums', params: [x, y], scalars: [], stores: [{ store, ranges: [k] }] };
}

/** Of a table what the number of positive elements of each row says, and with `top` the row's maximum added. */
function atCount(rows: number, length: number, top: boolean): LoopKernel {
  const e = new Exprs();
  const [x, y] = [e.param(0, 'float32', 'read', rows * length), e.param(1, 'float32', 'write', rows)];
  const table = e.param(2, 'float32', 'read', length + 1);
  const [i, j] = [e.range(rows), e.range(length, 'reduce')];
  const at = e.load(x, flat(e, [i, j], [rows, length]));
  const found = e.load(table, e.reduce('sum', e.cast(e.lt(e.f32(0), at), 'int32'), [j]));
  const store = e.store(y, i, top ? e.add(found, e.reduce('max', at, [j])) : found);
  return { name: 'atCount', params: [x, y, table], scalars: [], stores: [{ store, ranges: [i] }] };
}

describe('groups of threads', () => {
  const caps: EngineCaps = { ...simdCaps, simt: true, vectorBytes: 4, maxGroup: 256, sharedBytes: 16384 };
  const wide = { ...caps, vectorBytes: 16 };
  const grid = (p: Program): number => p.grid[0] * p.grid[1];

  test('large elementwise kernels take a vector to a thread, small and odd ones an element', () => {
    const twice = (n: number): Program =>
      linearize(
        optimize(
          elementwise([n], (e, [i], x) => e.mul(x(1, i as KNode, n), e.f32(2))),
          wide,
        ),
        wide,
      );
    expect([grid(twice(2 ** 18)), grid(twice(2 ** 12)), grid(twice(2 ** 18 + 1))]).toEqual([
      2 ** 18 / 4 / twice(64).group[0],
      2 ** 12 / twice(64).group[0],
      Math.ceil((2 ** 18 + 1) / twice(64).group[0]),
    ]);
    const k = elementwise([2 ** 16, 1], (e, [i], x) => e.add(x(1, i as KNode, 2 ** 16), e.f32(1)));
    const p = check(k, wide);
    expect(p.body.filter((n) => n.op === 'LOAD').map((n) => n.lanes)).toEqual([4]);
  });

  test('stores of few loops do not keep those of many from being spread', () => {
    const channels = (count: number, reads: boolean): LoopKernel => {
      const e = new Exprs();
      const [n, inner] = [4, 96];
      const [x, spread] = [e.param(0, 'float32', 'read', n * count * inner), e.param(1, 'float32', 'read', count)];
      const [y, scale] = [
        e.param(2, 'float32', 'write', n * count * inner),
        e.param(3, 'float32', reads ? 'readwrite' : 'write', count),
      ];
      const [c, i, j] = [e.range(count), e.range(n), e.range(inner)];
      const factor = e.add(e.load(spread, c), reads ? e.load(scale, c) : e.f32(1));
      const at = flat(e, [i, c, j], [n, count, inner]);
      return {
        name: 'channels',
        params: [x, spread, y, scale],
        scalars: [],
        stores: [
          { store: e.store(scale, c, factor), ranges: [c] },
          { store: e.store(y, at, e.mul(e.load(x, at), factor)), ranges: [c, i, j] },
        ],
      };
    };
    // A group for the factors, and a thread for each product.
    expect(grid(check(channels(32, false), caps))).toBe(1 + (4 * 32 * 96) / 64);
    // What one writes the other reads: they stay together.
    expect(grid(check(channels(32, true), caps))).toBe(1);
  });

  test('threads of very large kernels take several turns', () => {
    const n = 2 ** 22 + 5;
    const p = linearize(
      optimize(
        elementwise([n], (e, [i], x) => e.mul(x(1, i as KNode, n), e.f32(2))),
        caps,
      ),
      caps,
    );
    expect(loops(p)).toBe(1);
    expect(grid(p)).toBe(Math.ceil(n / (4 * p.group[0])));
  });

  test('a row that a group shares is read once, by vectors', () => {
    for (const [length, turns] of [
      [512, 1],
      [1000, 2],
      [4096, 4],
    ] as const) {
      const p = check(layerNorm(2, length), wide, 1e-5);
      const loads = p.body.filter((n) => n.op === 'LOAD' && n.src[0]?.op === 'PARAM' && n.src[0].arg.slot === 2);
      expect(loads.map((n) => n.lanes)).toEqual(new Array(turns).fill(4));
    }
  });

  test('threads that take a row each go along it by vectors', () => {
    const p = check(layerNorm(64, 48), { ...wide, sharedIsMemory: true }, 1e-5);
    const loads = p.body.filter((n) => n.op === 'LOAD' && n.src[0]?.op === 'PARAM' && n.src[0].arg.slot === 2);
    expect(loads.map((n) => n.lanes)).toEqual([4, 4, 4]);
    expect(p.body.some((n) => n.op === 'BARRIER')).toBe(false);
  });

  test('rows are reduced by threads side by side, however many there are', () => {
    const p = linearize(optimize(reduction('sum', [40_000, 64], [1]), caps), caps);
    expect([grid(p), p.group[0]]).toEqual([40_000, 32]);
    const columns = linearize(optimize(reduction('sum', [64, 40_000], [0]), caps), caps);
    expect(grid(columns)).toBe(Math.ceil(40_000 / columns.group[0]));
  });

  test('columns are reduced side by side: whole sectors of memory, whatever the edges are', () => {
    for (const op of ['sum', 'max', 'prod'] as const)
      for (const [shape, axes] of [
        [[128, 512], [0]],
        [[130, 77], [0]],
        [[128, 10], [0]],
        [
          [4, 40, 33],
          [0, 1],
        ],
        [[3, 200, 50], [1]],
      ] as const) {
        const p = check(reduction(op, shape, axes), caps, 1e-4);
        const columns = shape[shape.length - 1]!;
        const others = shape.slice(0, -1).reduce((n, x, i) => ((axes as readonly number[]).includes(i) ? n : n * x), 1);
        expect(grid(p), `${op} ${shape.join('x')}`).toBe(others * Math.ceil(columns / 8));
        expect(p.body.filter((n) => n.op === 'SHARED').length).toBe(1);
      }
    // Of columns, what is made of two reductions, one of which needs the other, and is stored for every row.
    expect(check(softmax(130, 20, 0, false), caps, 1e-5).body.some((n) => n.op === 'SHARED')).toBe(true);
  });

  test('of a row of sums that is reduced and stored, threads share the sum that is stored', () => {
    for (const [rows, length] of [
      [8, 40],
      [64, 33],
      [6, 300],
      [150, 7],
    ] as const) {
      const p = check(rowOfSums(rows, length), caps, 1e-4);
      expect([grid(p), p.body.some((n) => n.op === 'BARRIER')]).toEqual([length, true]);
    }
  });

  test('threads share a count that is an index, whatever else they reduce', () => {
    for (const [rows, length] of [
      [6, 40],
      [4, 300],
      [3, 5000],
    ] as const) {
      for (const top of [true, false]) expect(grid(check(atCount(rows, length, top), caps))).toBe(rows);
    }
  });

  test('transposes go through group memory, with odd edges, conditions and a second factor', () => {
    for (const [n, m] of [
      [64, 64],
      [70, 90],
      [17, 300],
    ] as const) {
      for (const threads of [64, 256]) {
        const engine = { ...caps, maxGroup: threads };
        const k = elementwise([n, m], (e, [i, j], x) => {
          const turned = x(1, flat(e, [j as KNode, i as KNode], [m, n]), n * m);
          return e.add(turned, x(2, flat(e, [i as KNode, j as KNode], [n, m]), n * m));
        });
        const p = check(k, engine);
        expect(p.body.some((node) => node.op === 'BARRIER')).toBe(true);
        expect(p.group[0]).toBe(threads);
      }
    }
    const padded = elementwise([3, 64, 64], (e, [z, i, j]) => {
      const at = e.sub(j as KNode, e.i32(2));
      const inside = e.and(e.le(e.i32(0), at), e.lt(at, e.i32(50)));
      const x = e.param(1, 'float32', 'read', 3 * 50 * 64);
      return e.load(x, flat(e, [z as KNode, at, i as KNode], [3, 50, 64]), inside, e.f32(7));
    });
    expect(check(padded, caps).body.some((node) => node.op === 'SHARED')).toBe(true);
  });
});
