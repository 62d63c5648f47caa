/**
 * Scans, sorts and scatters as programs: on the interpreter, which finds races and accesses out of bounds, for engines with and without
 * groups of threads, and on the CPU engine; over transposed, reversed and strided tensors, lengths around every limit.
 */
import { createCpuEngine } from '@polygrad/backend-cpu';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { IEngine } from '@polygrad/core/engine';
import { createReferenceEngine } from '@polygrad/testing';
import { numbers, runOn } from './fixtures/programs.ts';
import { rowMajor, type TensorView } from './program-set.ts';
import { lowerScan, type ScanOp } from './scan/scan.ts';
import { lowerScatter, type ScatterOp } from './scatter/update.ts';
import { lowerSort } from './sort/sort.ts';
import { verifyProgram } from '../ir/verify/verify.ts';
import type { Lowered } from '../codegen/lowering.ts';
import { threadCaps } from '../contraction/fixtures/cases.ts';

const makers: Readonly<Record<string, () => Promise<IEngine> | IEngine>> = {
  interpreter: () => createReferenceEngine(),
  'interpreter with groups': () => createReferenceEngine({ simt: true }),
  'cpu, two threads': () => createCpuEngine({ threads: 2 }),
};

/** A view of two axes in larger memory, and the place of an element. */
interface Laid {
  readonly view: TensorView;
  readonly at: (line: number, i: number) => number;
}

type Layout = 'rows' | 'columns' | 'reversed' | 'strided';
const layouts: readonly Layout[] = ['rows', 'columns', 'reversed', 'strided'];

/** `lines` lines of n elements along axis 1 (axis 0 for columns). */
function laid(layout: Layout, lines: number, n: number, dtype: TensorView['dtype'] = 'float32'): Laid {
  const place = (shape: number[], strides: number[], shift: number, span: number): TensorView => ({
    dtype,
    shape,
    strides,
    shift,
    span,
  });
  switch (layout) {
    case 'rows':
      return { view: rowMajor(dtype, [lines, n]), at: (l, i) => l * n + i };
    case 'columns':
      return { view: rowMajor(dtype, [n, lines]), at: (l, i) => i * lines + l };
    case 'reversed':
      return {
        view: place([lines, n], [-n, -1], lines * n - 1, lines * n),
        at: (l, i) => lines * n - 1 - l * n - i,
      };
    case 'strided':
      return {
        view: place([lines, n], [2 * n + 3, 2], 1, lines * (2 * n + 3) + 1),
        at: (l, i) => 1 + l * (2 * n + 3) + 2 * i,
      };
  }
  return layout satisfies never;
}

const steps: Readonly<Record<ScanOp, (before: number, x: number, a: number) => number>> = {
  sum: (h, x) => h + x,
  prod: (h, x) => h * x,
  max: (h, x) => Math.max(h, x),
  min: (h, x) => Math.min(h, x),
  linear: (h, x, a) => a * h + x,
};
const starts: Readonly<Record<ScanOp, number>> = { sum: 0, prod: 1, max: -Infinity, min: Infinity, linear: 0 };

for (const [name, make] of Object.entries(makers)) {
  describe(`programs on the ${name}`, () => {
    let engine: IEngine;
    beforeAll(async () => {
      engine = await make();
    });
    afterAll(() => engine.dispose());
    const fast = !name.startsWith('interpreter');

    function checkScan(op: ScanOp, layout: Layout, lines: number, n: number, reverse: boolean): void {
      const x = laid(layout, lines, n);
      const axis = layout === 'columns' ? 0 : 1;
      const out = rowMajor('float32', x.view.shape);
      // Small factors, so that products stay in range and sums of eighths are exact.
      const memory = Float32Array.from(numbers(x.view.span, 3), (v) => (op === 'prod' ? 1 + v / 4096 : v));
      const factors = Float32Array.from(numbers(x.view.span, 7), (v) => (v > 0 ? 1 : v < -40 ? 0 : 0.5));
      const result = new Float32Array(lines * n).fill(7);
      const factor = op === 'linear' ? { slot: 2, view: x.view } : null;
      const spec = { op, axis, reverse, out, x: { slot: 1, view: x.view }, factor };
      runOn(engine, (caps) => lowerScan(spec, caps), [result, memory, factors]);
      let worst = 0;
      for (let line = 0; line < lines; line++) {
        let value = starts[op];
        let size = 1;
        for (let k = 0; k < n; k++) {
          const i = reverse ? n - 1 - k : k;
          const [v, a] = [memory[x.at(line, i)]!, factors[x.at(line, i)]!];
          value = steps[op](value, v, a);
          size = Math.max(size, Math.abs(value));
          const got = result[layout === 'columns' ? i * lines + line : line * n + i]!;
          worst = Math.max(worst, Math.abs(got - value) / size);
        }
      }
      expect(worst).toBeLessThanOrEqual(op === 'max' || op === 'min' ? 0 : n * 2 ** -24);
    }

    it('scans lines of every layout, both ways', () => {
      for (const op of Object.keys(steps) as ScanOp[])
        for (const layout of layouts)
          for (const [lines, n] of [
            [1, 1],
            [3, 17],
            [5, 3],
            [37, 11],
            [45, 2],
          ] as const)
            checkScan(op, layout, lines, n, n % 3 === 2);
    });

    it('scans few long lines in segments', () => {
      for (const op of fast ? (Object.keys(steps) as ScanOp[]) : (['sum', 'linear'] as const))
        for (const n of fast ? [32767, 32768, 40001, 100003] : [32769]) checkScan(op, 'rows', 1, n, n % 2 === 1);
      if (fast) checkScan('linear', 'columns', 3, 50021, true);
    });

    function checkSort(layout: Layout, lines: number, n: number, count: number, descending: boolean, from = 0): void {
      const x = laid(layout, lines, n);
      const axis = layout === 'columns' ? 0 : 1;
      const out = rowMajor('int32', layout === 'columns' ? [count, lines] : [lines, count]);
      const memory = Float32Array.from(numbers(x.view.span, n), (v, i) =>
        i % 97 === 5 ? Number.NaN : v === 0 ? -0 : v,
      );
      const result = new Int32Array(lines * count).fill(-7);
      runOn(engine, (caps) => lowerSort({ axis, descending, from, out, x: x.view }, caps), [result, memory]);
      const rank = (v: number): number => (Number.isNaN(v) ? 1e9 : v);
      for (let line = 0; line < lines; line++) {
        const values = Array.from({ length: n }, (_, i) => rank(memory[x.at(line, i)]!));
        const order = values.map((_, i) => i);
        order.sort((i, j) => (descending ? -1 : 1) * (values[i]! - values[j]!) || i - j);
        const got = Array.from({ length: count }, (_, k) =>
          layout === 'columns' ? result[k * lines + line] : result[line * count + k],
        );
        expect(got).toEqual(order.slice(from, from + count));
      }
    }

    it('sorts lines of every length and layout', () => {
      for (const layout of layouts)
        for (const [lines, n] of [
          [1, 2],
          [5, 9],
          [2, 40],
          [3, 41],
          [2, 80],
          [3, 81],
          [1, 700],
        ] as const)
          checkSort(layout, lines, n, n, n % 2 === 1);
      for (const n of fast ? [8192, 8193, 16385, 70001] : [8193]) checkSort('rows', 1, n, n, false);
      if (fast) checkSort('strided', 3, 20000, 20000, true);
    });

    it('finds the first few of a line, by lists and by sorting', () => {
      for (const [n, count] of [
        [30, 3],
        [41, 5],
        [41, 40],
        [300, 33],
        [1000, 100],
        [9000, 1],
      ] as const)
        for (const layout of ['rows', 'columns'] as const) checkSort(layout, 2, n, count, n % 2 === 0);
      if (fast) for (const count of [1, 32, 33, 500, 8000]) checkSort('rows', 2, 66001, count, true);
    });

    it('finds elements at ranks in the middle, where keys are equal too', () => {
      for (const [n, from, count] of [
        [30, 14, 2],
        [60, 59, 1],
        [300, 149, 2],
        [1000, 400, 3],
        [9001, 4500, 1],
      ] as const)
        for (const layout of ['rows', 'columns'] as const) checkSort(layout, 2, n, count, n % 2 === 0, from);
      if (fast)
        for (const [from, count] of [
          [1, 1],
          [33000, 2],
          [69999, 1],
        ] as const)
          checkSort('rows', 2, 70001, count, false, from);
    });

    it('finds elements of 64 bits at ranks in the middle', () => {
      for (const n of fast ? [90, 700, 9001, 40001] : [90, 700]) {
        const memory = Float64Array.from(numbers(n, 11), (v, i) => Math.round(v / 25) * (1 + (i % 5) * 2 ** -45));
        const result = new Int32Array(2);
        const spec = {
          axis: 0,
          descending: true,
          from: n / 2 - (n % 2) / 2,
          out: rowMajor('int32', [2]),
          x: rowMajor('float64', [n]),
        };
        runOn(engine, (caps) => lowerSort(spec, caps), [result, memory]);
        const order = Array.from(memory.keys());
        order.sort((i, j) => memory[j]! - memory[i]! || i - j);
        expect(Array.from(result)).toEqual(order.slice(spec.from, spec.from + 2));
      }
    });

    it('finds the first few where every element is better than the one before', () => {
      const n = fast ? 20000 : 1500;
      for (const count of [3, 60]) {
        const out = rowMajor('int32', [count]);
        const result = new Int32Array(count);
        const rising = Float32Array.from({ length: n }, (_, i) => i);
        runOn(
          engine,
          (caps) => lowerSort({ axis: 0, descending: true, from: 0, out, x: rowMajor('float32', [n]) }, caps),
          [result, rising],
        );
        expect(Array.from(result)).toEqual(Array.from({ length: count }, (_, i) => n - 1 - i));
      }
    });

    it('sorts 64 bits by both words', () => {
      for (const n of fast ? [30, 79, 500, 9001] : [30, 79, 500]) {
        const memory = Float64Array.from(numbers(n, 11), (v, i) => Math.round(v / 25) * (1 + (i % 5) * 2 ** -45));
        const result = new Int32Array(n);
        const out = rowMajor('int32', [n]);
        const x = rowMajor('float64', [n]);
        runOn(engine, (caps) => lowerSort({ axis: 0, descending: false, from: 0, out, x }, caps), [result, memory]);
        const order = Array.from(memory.keys());
        order.sort((i, j) => memory[i]! - memory[j]! || i - j);
        expect(Array.from(result)).toEqual(order);
      }
    });

    it('scatters in order, slices of every width', () => {
      const combine: Readonly<Record<ScatterOp, (there: number, value: number) => number>> = {
        add: (a, b) => a + b,
        set: (_, b) => b,
        prod: (a, b) => a * b,
        max: Math.max,
        min: Math.min,
      };
      for (const op of Object.keys(combine) as ScatterOp[]) {
        for (const [before, n, after, many] of [
          [1, 5, 1, 9],
          [2, 3, 4, 7],
          [3, 4, 67, 5],
          [1, 2, 130, 3],
          [1, 9, 1, 700],
          [2, 40, 3, 300],
          // So many of a kind that blocks of them are combined first.
          [2, 3, 2, 2101],
        ] as const) {
          if (many > 2000 && op !== 'add') continue;
          const shape = [before, n, after];
          const base = Float32Array.from(numbers(before * n * after, 1), (v) => Math.round(v / 10));
          const updates = Float32Array.from(numbers(before * many * after, 2), (v) => Math.round(v / 16));
          const index = Int32Array.from(numbers(many, 5), (v) => Math.abs(Math.round(v)) % n);
          const result = new Float32Array(base.length).fill(7);
          const expected = Float32Array.from(base);
          for (let b = 0; b < before; b++)
            for (let t = 0; t < many; t++)
              for (let a = 0; a < after; a++) {
                const to = (b * n + index[t]!) * after + a;
                expected[to] = combine[op](expected[to]!, updates[(b * many + t) * after + a]!);
              }
          const spec = {
            op,
            axis: 1,
            out: rowMajor('float32', shape),
            base: { slot: 1, view: rowMajor('float32', shape) },
            index: { slot: 2, view: rowMajor('int32', [many]) },
            updates: { slot: 3, view: rowMajor('float32', [before, many, after]) },
          };
          runOn(engine, (caps) => lowerScatter(spec, caps), [result, base, index, updates]);
          expect(result).toEqual(expected);
        }
      }
    });

    it('scatters numbers into numbers without reading either', () => {
      const result = new Int32Array(9).fill(5);
      const index = Int32Array.of(2, 2, 8);
      const spec = {
        op: 'add',
        axis: 0,
        out: rowMajor('int32', [9]),
        base: { constant: 3 },
        index: { slot: 1, view: rowMajor('int32', [3]) },
        updates: { constant: 10 },
      } as const;
      runOn(engine, (caps) => lowerScatter(spec, caps), [result, index]);
      expect(Array.from(result)).toEqual([3, 3, 23, 3, 3, 3, 3, 3, 13]);
    });
  });
}

describe('a million elements on groups of threads', () => {
  const n = 1 << 20;
  const row = rowMajor('float32', [n]);
  const lowered: Readonly<Record<string, () => Lowered>> = {
    scan: () =>
      lowerScan({ op: 'sum', axis: 0, reverse: false, out: row, x: { slot: 1, view: row }, factor: null }, threadCaps),
    recurrence: () => {
      const x = { slot: 1, view: row };
      return lowerScan({ op: 'linear', axis: 0, reverse: false, out: row, x, factor: { ...x, slot: 2 } }, threadCaps);
    },
    sort: () => lowerSort({ axis: 0, descending: false, from: 0, out: rowMajor('int32', [n]), x: row }, threadCaps),
    'first ten': () =>
      lowerSort({ axis: 0, descending: true, from: 0, out: rowMajor('int32', [10]), x: row }, threadCaps),
    scatter: () =>
      lowerScatter(
        {
          op: 'add',
          axis: 0,
          out: row,
          base: { constant: 0 },
          index: { slot: 1, view: rowMajor('int32', [n]) },
          updates: { slot: 2, view: row },
        },
        threadCaps,
      ),
  };
  for (const [name, lower] of Object.entries(lowered)) {
    it(`${name}: many threads, few elements each`, () => {
      for (const { program } of lower().dispatches) {
        verifyProgram(program);
        const [x, y] = program.grid;
        expect(x).toBeLessThanOrEqual(65535);
        // What is short does little: carries over segments, the last merges of a few elements, places of digits.
        if (/_carry|_merge|_places/.test(program.name)) continue;
        expect(x * y * program.group[0], program.name).toBeGreaterThanOrEqual(512);
      }
    });
  }
});
