/** Loops that end at a size given at dispatch: merged, cut, taken in groups and vectors, and nothing touched beyond the end. */
import { describe, expect, test } from 'vitest';
import { Exprs } from '../../ir/expr.ts';
import type { EngineCaps } from '@polygrad/core/engine';
import { type Range, sizeLimit, typicalOf } from '../../ir/free-ranges.ts';
import type { KNode, LoopKernel, LoopStore, Program } from '../../ir/ir.ts';
import type { ReduceOp } from '../../ir/operations.ts';
import { printLoopKernel, printTransforms } from '../../ir/print.ts';
import { idOf, lowOf } from '../../ir/node.ts';
import { flattened, Rewriter, step } from '../../ir/rewrite.ts';
import { linearOf } from '../../ir/simplify/integers.ts';
import { verifyLoopKernel, verifyProgram } from '../../ir/verify/verify.ts';
import { findRuns, isGather, pickColumn } from '../../ir/windows.ts';
import { flat, simdCaps, wideVectors } from '../fixtures/nests.ts';
import { fill } from '../fixtures/lowered.ts';
import { checkSize, evaluateSized } from '../fixtures/sized.ts';
import { linearize } from '../linearize/linearize.ts';
import { mergeRanges, optimize } from './optimize.ts';
import { mergeSized } from './sized.ts';
import { reduceInSquares } from './sized-squares.ts';

/** What a nest is made of: its sized loops, fixed ones and memory. */
interface Made {
  readonly e: Exprs;
  readonly n: number;
  /** The sized loop, anew at each call. */
  rows(kind?: 'loop' | 'reduce'): Range;
  input(slot: number, at: readonly KNode[], shape: readonly number[]): KNode;
  output(slot: number, at: readonly KNode[], shape: readonly number[], value: KNode): KNode;
}

/** A nest with a size from `low` to `n`. */
function nest(low: number, n: number, write: (made: Made) => readonly LoopStore[]): LoopKernel {
  const e = new Exprs();
  const params = new Map<number, KNode>();
  const size = e.scalar(0, 'int32', low, n);
  const param = (slot: number, access: 'read' | 'write', shape: readonly number[]): KNode => {
    const p = e.param(
      slot,
      'float32',
      access,
      shape.reduce((x, y) => x * y, 1),
    );
    params.set(slot, p);
    return p;
  };
  const stores = write({
    e,
    n,
    rows: (kind = 'loop') => e.range(n, kind, size),
    input: (slot, at, shape) => e.load(param(slot, 'read', shape), flat(e, at, shape)),
    output: (slot, at, shape, value) => e.store(param(slot, 'write', shape), flat(e, at, shape), value),
  });
  const list = [...params].sort(([a], [b]) => a - b).map(([, p]) => p) as LoopKernel['params'][number][];
  return { name: 'sized', params: list, scalars: ['int32'], stores };
}

function check(k: LoopKernel, sizes: readonly number[], tolerance = 2e-6): Program {
  verifyLoopKernel(k);
  const programs = [simdCaps, wideCaps, ...threadCaps].map((caps) => {
    const shaped = optimize(k, caps);
    verifyLoopKernel(shaped);
    const made = linearize(shaped, caps);
    verifyProgram(made);
    return made;
  });
  const data = k.params.map((p) => fill(p.arg.length, p.arg.slot));
  for (const n of sizes) {
    const result = evaluateSized(k, n, data);
    for (const program of programs) checkSize(result, program, () => tolerance);
  }
  return programs[0]!;
}

/** Vectors of 16 numbers: more than the least sizes have. */
const wideCaps: EngineCaps = { ...simdCaps, vectorBytes: 64 };

const simtCaps: EngineCaps = { ...simdCaps, simt: true, maxGroup: 256, sharedBytes: 16384 };

/** Groups of threads: of a graphics card, with subgroups, and of a processor that emulates them. */
const threadCaps: readonly EngineCaps[] = [
  simtCaps,
  { ...simtCaps, maxGroup: 32, subgroups: { least: 8, most: 8, numbered: true } },
  { ...simtCaps, sharedIsMemory: true },
];

function done(p: Program): string {
  return printTransforms(p.transforms ?? []).join('\n');
}

/** Elementwise over rows of `c`, with what belongs to a column if `bias`. */
function elementwise(low: number, n: number, c: number, bias = false): LoopKernel {
  return nest(low, n, ({ e, rows, input, output }) => {
    const [i, j] = [rows(), e.range(c)];
    const x = e.mul(input(1, [i, j], [n, c]), 2);
    const value = bias ? e.add(x, input(2, [j], [c])) : e.add(x, input(2, [i, j], [n, c]));
    return [{ store: output(0, [i, j], [n, c], value) as LoopStore['store'], ranges: [i, j] }];
  });
}

function reduced(op: ReduceOp, low: number, n: number, c: number, axes: readonly number[]): LoopKernel {
  return nest(low, n, ({ e, rows, input, output }) => {
    const at = [rows(axes.includes(0) ? 'reduce' : 'loop'), e.range(c, axes.includes(1) ? 'reduce' : 'loop')];
    const kept = [0, 1].filter((i) => !axes.includes(i));
    const value = e.reduce(
      op,
      input(1, at, [n, c]),
      axes.map((i) => at[i]!),
    );
    const store = output(
      0,
      kept.map((i) => at[i]!),
      kept.map((i) => [n, c][i]!),
      value.dtype === 'float32' ? value : e.cast(value, 'float32'),
    );
    return [{ store: store as LoopStore['store'], ranges: kept.map((i) => at[i]!) }];
  });
}

function softmaxAlong(low: number, n: number, rows: number): LoopKernel {
  return nest(low, n, ({ e, rows: sized, input, output }) => {
    const [i, j, r] = [e.range(rows), sized(), sized('reduce')];
    const top = e.reduce('max', input(1, [i, r], [rows, n]), [r]);
    const stage = e.stage('shared', e.unary('EXP', e.sub(input(1, [i, r], [rows, n]), top)), [r]);
    const sum = e.reduce('sum', e.load(stage, r), [r]);
    const store = output(0, [i, j], [rows, n], e.div(e.load(stage, j), sum));
    return [{ store: store as LoopStore['store'], ranges: [i, j] }];
  });
}

describe('merged', () => {
  test('rows of fixed length with their number', () => {
    const text = printLoopKernel(mergeRanges(elementwise(2, 64, 48), new Exprs()));
    expect(text.match(/RANGE/g)).toHaveLength(1);
    expect(text).toMatch(/RANGE 3072/);
    expect(text).toMatch(/CONST 48/);
  });

  test('no fixed loop with a size inside it', () => {
    const k = nest(2, 64, ({ e, rows, input, output }) => {
      const [i, j] = [e.range(8), rows()];
      const store = output(0, [i, j], [8, 64], input(1, [i, j], [8, 64]));
      return [{ store: store as LoopStore['store'], ranges: [i, j] }];
    });
    expect(printLoopKernel(mergeRanges(k, new Exprs())).match(/RANGE/g)).toHaveLength(2);
    check(k, [2, 3, 7, 63, 64]);
  });
});

/** What the planner hands to it. */
const tools = { Rewriter, flattened, step, linearOf, sizeLimit, typicalOf, lowOf, idOf };

/** Loops over a fixed number of rows and two sizes, whose tensors lie for the size that is bound. */
describe('merged where rows are as long as the size that is bound', () => {
  /** `op`: how the two sizes are reduced; null: they are stored. `bias`: for each element of a row. */
  function held(op: ReduceOp | null, bias = false): LoopKernel {
    const given = nest(3, 20, ({ e, n, rows, input, output }) => {
      const kind = op === null ? 'loop' : 'reduce';
      const [i, j, k] = [e.range(6), rows(kind), rows(kind)];
      const size = e.scalar(0, 'int32', 3, n);
      const at = e.add(e.add(e.mul(i, e.mul(size, size)), e.mul(j, size)), k);
      const x = e.unary('EXP', input(1, [at], [6 * n * n]));
      const value = bias ? e.add(x, input(2, [k], [n])) : x;
      if (op === null) return [{ store: output(0, [at], [6 * n * n], value) as LoopStore['store'], ranges: [i, j, k] }];
      const found = e.reduce(op, value, [j, k]);
      const all = found.dtype === 'float32' ? found : e.cast(found, 'float32');
      return [{ store: output(0, [i], [6], all) as LoopStore['store'], ranges: [i] }];
    });
    return mergeSized(given, new Exprs(), tools);
  }
  const loops = (k: LoopKernel): string[] => [
    ...new Set([...printLoopKernel(k).matchAll(/RANGE (\d+)/g)].map(([, extent]) => extent!)),
  ];
  const sizes = [3, 4, 7, 15, 16, 19, 20];

  test('elements of all', () => {
    expect(loops(held(null))).toEqual(['2400']);
    check(held(null), sizes);
  });

  test('rows beside what belongs to an element of each, four at a time', () => {
    expect(loops(held(null, true)).sort()).toEqual(['120', '20']);
    expect(done(check(held(null, true), sizes))).toMatch(/peel.*\n.*split.*4.*unroll/);
  });

  test.each(['sum', 'max', 'prod'] as const)('reduced by %s', (op) => {
    expect(loops(held(op)).sort()).toEqual(['400', '6']);
    check(held(op), sizes, 1e-5);
  });

  /** Values of `many` rows, of as many elements as the size, beside each other in memory. */
  function short(write: (made: Made, index: (i: KNode, j: KNode) => KNode, many: number) => LoopStore): LoopKernel {
    const given = nest(8, 31, (made) => {
      const size = made.e.scalar(0, 'int32', 8, 31);
      return [write(made, (i, j) => made.e.add(made.e.mul(i, size), j), 37)];
    });
    return mergeSized(given, new Exprs(), tools);
  }
  const shortSizes = [8, 9, 12, 15, 16, 17, 24, 31];
  /** Vectors whose lanes are read one by one. */
  const brought = ({ body }: Program): number =>
    body.filter((n) => n.op === 'VEC' && n.src.length > 1 && n.src.every(({ op }) => op === 'LOAD')).length;

  test('softmax of short rows: vectors take an element of several rows', () => {
    const k = short(({ e, rows, input, output }, index, many) => {
      const [i, j, r] = [e.range(many), rows(), rows('reduce')];
      const at = (x: KNode): KNode => input(1, [index(i, x)], [many * 31]);
      const stage = e.stage('shared', e.unary('EXP', e.sub(at(r), e.reduce('max', at(r), [r]))), [r]);
      const all = e.reduce('sum', e.load(stage, r), [r]);
      const store = output(0, [index(i, j)], [many * 31], e.div(e.load(stage, j), all));
      return { store: store as LoopStore['store'], ranges: [i, j] };
    });
    expect(brought(check(k, shortSizes))).toBeGreaterThan(0);
  });

  test('softmax of rows that are counted by two loops, one of them a size: these are one', () => {
    const k = short(({ e, rows, input, output }, index) => {
      const [h, i, j, r] = [e.range(5), rows(), rows(), rows('reduce')];
      const size = e.scalar(0, 'int32', 8, 31);
      const at = (x: KNode): KNode => index(e.add(e.mul(h, size), i), x);
      const read = (x: KNode): KNode => input(1, [at(x)], [5 * 31 * 31]);
      const stage = e.stage('shared', e.unary('EXP', e.sub(read(r), e.reduce('max', read(r), [r]))), [r]);
      const all = e.reduce('sum', e.load(stage, r), [r]);
      const store = output(0, [at(j)], [5 * 31 * 31], e.div(e.load(stage, j), all));
      return { store: store as LoopStore['store'], ranges: [h, i, j] };
    });
    expect(loops(k).sort()).toEqual(['155', '31']);
    expect(brought(check(k, [8, 9, 17, 31]))).toBeGreaterThan(0);
  });

  test.each(['max', 'argmin'] as const)('%s of short rows: vectors take an element of several rows', (op) => {
    const k = short(({ e, rows, input, output }, index, many) => {
      const [i, r] = [e.range(many), rows('reduce')];
      const found = e.reduce(op, input(1, [index(i, r)], [many * 31]), [r]);
      return { store: output(0, [i], [many], e.cast(found, 'float32')) as LoopStore['store'], ranges: [i] };
    });
    expect(brought(check(k, shortSizes))).toBeGreaterThan(0);
  });

  test('the mean of the rows of each of several blocks, four blocks at a time', () => {
    const k = short(({ e, rows, input, output }, index, many) => {
      const [i, r, j] = [e.range(many), e.range(5, 'reduce'), rows()];
      const sum = e.reduce('sum', input(1, [index(e.add(e.mul(i, 5), r), j)], [many * 5 * 31]), [r]);
      return { store: output(0, [index(i, j)], [many * 31], sum) as LoopStore['store'], ranges: [i, j] };
    });
    expect(done(check(k, shortSizes, 1e-5))).toMatch(/peel.*\n.*split.*4.*unroll/);
  });

  test('sums of a few columns take several rows at once', () => {
    const k = short(({ e, rows, input, output }, index, many) => {
      const [r, j] = [e.range(many - 1, 'reduce'), rows()];
      const sum = e.reduce('sum', input(1, [index(r, j)], [many * 31]), [r]);
      return { store: output(0, [j], [31], sum) as LoopStore['store'], ranges: [j] };
    });
    check(k, shortSizes, 1e-5);
    expect(done(linearize(optimize(k, wideCaps), wideCaps))).toMatch(/split.*unroll|beside/);
  });

  test('sums of short rows along vectors that the least size fills', () => {
    const k = short(({ e, rows, input, output }, index, many) => {
      const [i, r] = [e.range(many), rows('reduce')];
      const x = input(1, [index(i, r)], [many * 31]);
      return { store: output(0, [i], [many], e.reduce('sum', x, [r])) as LoopStore['store'], ranges: [i] };
    });
    check(k, shortSizes, 1e-5);
    const several: EngineCaps = { ...simdCaps, ...wideVectors };
    const program = linearize(optimize(k, several), several);
    const data = k.params.map((p) => fill(p.arg.length, p.arg.slot));
    for (const n of shortSizes) checkSize(evaluateSized(k, n, data), program, () => 1e-5);
    const single = program.body.filter((n) => n.op === 'LOAD' && n.src[0].op === 'PARAM' && n.lanes === 1);
    expect(single).toHaveLength(0);
  });

  test('beside powers with billions of factors', () => {
    const k = nest(3, 20, ({ e, n, rows, input, output }) => {
      const [i, j] = [rows(), rows()];
      const at = e.add(e.mul(i, e.scalar(0, 'int32', 3, n)), j);
      let power: KNode = e.cast(input(1, [at], [n * n]), 'int32');
      for (let k = 0; k < 31; k++) power = e.mul(power, power);
      return [{ store: output(0, [at], [n * n], e.cast(power, 'float32')) as LoopStore['store'], ranges: [i, j] }];
    });
    expect(loops(mergeSized(k, new Exprs(), tools))).toEqual(['400']);
  });

  test('not where the place of the best is asked', () => {
    expect(loops(held('argmax')).sort()).toEqual(['20', '6']);
    check(held('argmax'), sizes);
  });
});

/** How many vectors are columns of squares that emitters transpose. */
function columnsIn(program: Program): number {
  const places = findRuns(program);
  return program.body.filter((n) => isGather(n) && pickColumn(n.src.slice(0, 4), places) !== null).length;
}

/** Rows as long as the size that is bound, one after another in memory. */
describe('squares of rows that end at a size', () => {
  const several: EngineCaps = { ...simdCaps, ...wideVectors };
  const transposing: readonly EngineCaps[] = [simdCaps, several];
  const all: readonly EngineCaps[] = [...transposing, wideCaps];

  function checkSquares(k: LoopKernel, sizes: readonly number[], transform: RegExp, targets = all): void {
    check(k, sizes, 1e-5);
    const data = k.params.map((p) => fill(p.arg.length, p.arg.slot));
    for (const caps of targets) {
      const shaped = optimize(k, caps);
      verifyLoopKernel(shaped);
      const program = linearize(shaped, caps);
      verifyProgram(program);
      expect(done(program)).toMatch(transform);
      expect(columnsIn(program)).toBeGreaterThan(0);
      for (const n of sizes) checkSize(evaluateSized(k, n, data), program, () => 1e-5);
    }
  }

  /** Each of 67 rows reduced; `gate`: only elements before a place in the row count. */
  function reducedRows(op: ReduceOp, low: number, n: number, gate = false): LoopKernel {
    const given = nest(low, n, ({ e, rows, input, output }) => {
      const [i, r] = [e.range(67), rows('reduce')];
      const x = input(1, [e.add(e.mul(i, e.scalar(0, 'int32', low, n)), r)], [67 * n]);
      const value = gate ? e.where(e.lt(r, e.i32(5)), x, e.mul(x, 2)) : x;
      const found = e.reduce(op, value, [r]);
      const result = found.dtype === 'float32' ? found : e.cast(found, 'float32');
      return [{ store: output(0, [i], [67], result) as LoopStore['store'], ranges: [i] }];
    });
    return reduceInSquares(mergeSized(given, new Exprs(), tools), new Exprs(), tools);
  }

  test.each(['sum', 'prod', 'max', 'min'] as const)('%s along them', (op) => {
    checkSquares(reducedRows(op, 8, 31), [8, 9, 10, 11, 12, 16, 27, 31], /squares/);
    checkSquares(reducedRows(op, 2, 7), [2, 3, 4, 5, 6, 7], /squares/);
    checkSquares(reducedRows(op, 8, 31, true), [8, 11, 31], /squares/);
  });

  test.each(['sum', 'max'] as const)('%s along them, where a class has short and long ones: a nest for each', (op) => {
    const k = reducedRows(op, 8, 511);
    expect(k.stores).toHaveLength(2);
    checkSquares(k, [8, 11, 48, 49, 64, 511], /squares/);
    // A vector that is moved back ends long rows. Read one by one are those short rows that fill no vector: two squares.
    const program = linearize(optimize(k, several), several);
    const places = findRuns(program);
    const single = program.body.filter((n) => n.op === 'LOAD' && n.src[0].op === 'PARAM' && n.lanes === 1);
    expect(single.filter((n) => !places.has(n))).toHaveLength(8);
  });

  test('the spread about a mean: each of the two sums in squares', () => {
    const given = nest(8, 31, ({ e, rows, input, output }) => {
      const [i, r, s] = [e.range(67), rows('reduce'), rows('reduce')];
      const size = e.scalar(0, 'int32', 8, 31);
      const at = (k: KNode): KNode => input(1, [e.add(e.mul(i, size), k)], [67 * 31]);
      const d = e.sub(at(r), e.div(e.reduce('sum', at(s), [s]), e.cast(size, 'float32')));
      return [{ store: output(0, [i], [67], e.reduce('sum', e.mul(d, d), [r])) as LoopStore['store'], ranges: [i] }];
    });
    const k = reduceInSquares(mergeSized(given, new Exprs(), tools), new Exprs(), tools);
    expect(printTransforms(k.transforms ?? []).join()).toMatch(/squares/);
    check(k, [8, 9, 15, 31], 1e-4);
  });

  test('not where a row is long, where results are few, or the place of the best is asked', () => {
    const squares = (k: LoopKernel): string => printTransforms(k.transforms ?? []).join();
    expect(squares(reducedRows('sum', 32, 127))).not.toMatch(/squares/);
    expect(squares(reducedRows('argmax', 8, 31))).not.toMatch(/squares/);
    expect(squares(reduceInSquares(reduced('sum', 8, 31, 9, [0]), new Exprs(), tools))).not.toMatch(/squares/);
  });

  test.each([
    [8, 31],
    [32, 127],
  ])('transposed, rows of %i to %i', (low, n) => {
    const k = nest(low, n, ({ e, rows, input, output }) => {
      const [h, j, i] = [e.range(3), rows(), e.range(21)];
      const size = e.scalar(0, 'int32', low, n);
      const from = e.add(e.mul(e.add(e.mul(h, 21), i), size), j);
      const to = e.add(e.mul(e.add(e.mul(h, size), j), 21), i);
      const store = output(0, [to], [63 * n], e.mul(input(1, [from], [63 * n]), 2));
      return [{ store: store as LoopStore['store'], ranges: [h, j, i] }];
    });
    checkSquares(k, [low, low + 1, low + 5, n - 1, n], /tile/, transposing);
  });

  test('transposed, where rows of the result end at a size too', () => {
    const k = nest(8, 31, ({ e, rows, input, output }) => {
      const [h, j, i] = [e.range(3), rows(), rows()];
      const size = e.scalar(0, 'int32', 8, 31);
      const at = (a: KNode, b: KNode): KNode => e.add(e.mul(e.add(e.mul(h, size), a), size), b);
      const store = output(0, [at(j, i)], [3 * 31 * 31], e.mul(input(1, [at(i, j)], [3 * 31 * 31]), 2));
      return [{ store: store as LoopStore['store'], ranges: [h, j, i] }];
    });
    checkSquares(k, [8, 9, 12, 15, 16, 31], /tile/, transposing);
  });
});

describe('groups', () => {
  test('those beyond the end do nothing', () => {
    const program = check(elementwise(512, 12001, 64), [512, 700]);
    expect(program.grid[0]).toBeGreaterThan(3);
    expect(program.body.filter((n) => n.op === 'IF').length).toBeGreaterThan(0);
  });

  test('a group may be a single row, which is read outside all loops', () => {
    const k = nest(1, 9, ({ e, rows, input, output }) => {
      const [i, r] = [rows(), e.range(16384, 'reduce')];
      const row = input(2, [i], [9]);
      const sum = e.reduce('sum', e.mul(e.unary('EXP', input(1, [i, r], [9, 16384])), row), [r]);
      return [{ store: output(0, [i], [9], sum) as LoopStore['store'], ranges: [i] }];
    });
    expect(check(k, [1, 4], 1e-4).grid[0]).toBe(9);
  });

  test('take parts of rows that are long', () => {
    const k = nest(128, 255, ({ e, rows, input, output }) => {
      const [i, j] = [e.range(3), rows()];
      return [{ store: output(0, [i, j], [3, 255], input(1, [j, i], [255, 3])) as LoopStore['store'], ranges: [i, j] }];
    });
    check(k, [128, 129, 192, 255]);
    const both = nest(128, 131, ({ e, rows, input, output }) => {
      const [i, j] = [rows(), rows()];
      const value = e.mul(input(1, [i, j], [131, 131]), 2);
      return [{ store: output(0, [i, j], [131, 131], value) as LoopStore['store'], ranges: [i, j] }];
    });
    check(both, [129]);
  });

  test('what is known of the groups of one nest is not taken for those of the next', () => {
    const [n, fixed] = [511, 32];
    const k = nest(256, n, ({ e, rows, input, output }) => {
      const [a, b, row, c] = [rows(), e.range(fixed), e.range(2), rows()];
      return [
        { store: output(0, [a], [n], e.mul(input(1, [a], [n]), 2)) as LoopStore['store'], ranges: [a] },
        { store: output(2, [b], [fixed], e.neg(input(3, [b], [fixed]))) as LoopStore['store'], ranges: [b] },
        // As they lie at the size that is bound: the last group of a row ends before the next row.
        {
          store: e.store(
            e.param(4, 'float32', 'write', 2 * n),
            e.add(e.mul(row, e.scalar(0, 'int32', 256, n)), c),
            input(1, [c], [n]),
          ),
          ranges: [row, c],
        },
      ];
    });
    const params = [...k.params, k.stores[2]!.store.src[0]] as LoopKernel['params'];
    check({ ...k, params }, [256, 257, 450, 511]);
  });

  test('in each of several nests', () => {
    const [a, b] = [elementwise(1, 2000, 64), reduced('sum', 1, 2000, 64, [1])];
    const k = nest(1, 2000, ({ e, rows, input, output }) => {
      const [i, j, k, r] = [rows(), e.range(64), rows(), e.range(64, 'reduce')];
      const sum = e.reduce('sum', input(1, [k, r], [2000, 64]), [r]);
      return [
        { store: output(0, [i, j], [2000, 64], input(1, [i, j], [2000, 64])) as LoopStore['store'], ranges: [i, j] },
        { store: output(2, [k], [2000], sum) as LoopStore['store'], ranges: [k] },
      ];
    });
    for (const each of [a, b, k]) check(each, [1, 77], 1e-5);
  });
});

describe('vectors', () => {
  test('whole rows leave no rest', () => {
    const { body } = check(elementwise(1, 40, 64), [1, 7, 40]);
    expect(body.filter((n) => n.op === 'STORE' && n.src[2].lanes === 1)).toHaveLength(0);
  });

  test('the last one is moved back where the size is one at least', () => {
    const [some, few] = [elementwise(8, 100, 1), elementwise(3, 100, 1)].map((k) => check(k, [8, 9, 11, 50, 99, 100]));
    const single = ({ body }: Program): number => body.filter((n) => n.op === 'STORE' && n.src[2].lanes === 1).length;
    expect(single(some!)).toBe(0);
    expect(single(few!)).toBe(1);
    check(elementwise(3, 100, 1), [3, 4, 5]);
  });

  test.each(['sum', 'prod', 'max', 'argmin'] as const)('%s: what the last one has again does not count', (op) => {
    const { body } = check(reduced(op, 9, 61, 1, [0]), [9, 10, 15, 16, 17, 47, 61], 1e-5);
    expect(body.filter((n) => n.op === 'LOAD' && n.src[0].op === 'PARAM' && n.lanes === 1)).toHaveLength(0);
  });

  test('lengths below one vector are taken by narrower ones', () => {
    const singles = (k: LoopKernel): number => {
      const { body } = linearize(optimize(k, wideCaps), wideCaps);
      return body.filter((n) => n.op === 'STORE' && n.src[0].op === 'PARAM' && n.src[2].lanes === 1).length;
    };
    for (const low of [4, 8, 9]) {
      const k = elementwise(low, 100, 1);
      check(k, [low, low + 1, 15, 16, 17, 31, 100]);
      expect(singles(k)).toBe(0);
      check(softmaxAlong(low, 61, 5), [low, low + 1, 15, 16, 17, 24, 61]);
      for (const op of ['sum', 'max', 'argmin'] as const)
        check(reduced(op, low, 61, 1, [0]), [low, low + 1, 15, 16, 25, 61], 1e-5);
    }
  });

  test('softmax along a size', () => {
    for (const [low, sizes] of [
      [1, [1, 2, 5, 31]],
      [16, [16, 17, 23, 31, 61]],
    ] as const)
      check(softmaxAlong(low, 61, 5), sizes);
  });
});

describe('rows', () => {
  test.each([2, 3])('of %i elements, four at a time', (c) => {
    const program = check(elementwise(1, 67, c, true), [1, 3, 4, 5, 64, 66, 67]);
    expect(done(program)).toMatch(/peel/);
  });

  test.each(['sum', 'max', 'argmax'] as const)('%s of few columns', (op) => {
    check(reduced(op, 1, 67, 10, [0]), [1, 3, 4, 9, 66, 67]);
    check(reduced(op, 1, 67, 64, [0]), [1, 3, 4, 9, 66, 67]);
  });

  test.each([10, 32, 48])('sums of %i columns over batches of rows', (c) => {
    const k = nest(8, 521, ({ e, n, rows, input, output }) => {
      const [j, batch, row] = [e.range(c), e.range(4, 'reduce'), rows('reduce')];
      const sum = e.reduce('sum', input(1, [batch, row, j], [4, n, c]), [batch, row]);
      return [{ store: output(0, [j], [c], sum) as LoopStore['store'], ranges: [j] }];
    });
    check(k, [8, 35], 1e-4);
    // Registers hold several rows of so few columns.
    const { body } = linearize(optimize(k, wideCaps), wideCaps);
    expect(body.filter((n) => n.op === 'SHARED')).toHaveLength(0);
  });

  test.each(['sum', 'min', 'argmin'] as const)('%s of many columns, in memory', (op) => {
    check(reduced(op, 2, 80, 1000, [0]), [2, 3, 37, 80], 1e-5);
  });

  test.each(['sum', 'argmax'] as const)('%s of all', (op) => {
    check(reduced(op, 1, 67, 12, [0, 1]), [1, 2, 66, 67]);
  });

  test('positions where a size is inside another loop', () => {
    const k = nest(1, 19, ({ e, rows, input, output }) => {
      const [i, j] = [e.range(6, 'reduce'), rows('reduce')];
      const at = e.cast(e.reduce('argmax', input(1, [i, j], [6, 19]), [i, j]), 'float32');
      return [{ store: output(0, [], [], at) as LoopStore['store'], ranges: [] }];
    });
    check(k, [1, 2, 5, 18, 19]);
  });
});

describe('more memory than caches hold', () => {
  test('elementwise work in two streams', () => {
    const program = check(elementwise(1, 737317, 1), [9001]);
    expect(done(program)).toMatch(/unroll/);
  });

  test('transposes in squares', () => {
    for (const turned of [false, true]) {
      const k = nest(1, 70, ({ e, rows, input, output }) => {
        const [i, j] = [rows(), e.range(40)];
        const [to, from] = [[i, j] as const, [j, i] as const];
        const store = turned
          ? output(0, from, [40, 70], e.mul(input(1, to, [70, 40]), 2))
          : output(0, to, [70, 40], e.mul(input(1, from, [40, 70]), 2));
        return [{ store: store as LoopStore['store'], ranges: turned ? [j, i] : [i, j] }];
      });
      expect(done(check(k, [1, 3, 4, 17, 69, 70]))).toMatch(/tile/);
    }
  });

  test('rows of sums, interleaved', () => {
    const program = check(reduced('sum', 1, 66, 16700, [1]), [6], 1e-4);
    expect(done(program)).toMatch(/interleaved/);
  });
});
