/** Loops that end at a size given at dispatch, merged and taken in squares: rows as long as that size, transposed and reduced. */
import { describe, expect, test } from 'vitest';
import { Exprs } from '../../ir/expr.ts';
import type { EngineCaps } from '@polygrad/core/engine';
import { sizeLimit, typicalOf } from '../../ir/free-ranges.ts';
import type { KNode, LoopKernel, LoopStore, Program } from '../../ir/ir.ts';
import type { ReduceOp } from '../../ir/operations.ts';
import { printLoopKernel, printTransforms } from '../../ir/print.ts';
import { assumeBounds, highOf, idOf, lowOf } from '../../ir/node.ts';
import { flattened, Rewriter, step } from '../../ir/rewrite.ts';
import { linearOf } from '../../ir/simplify/integers.ts';
import { verifyLoopKernel, verifyProgram } from '../../ir/verify/verify.ts';
import { findRuns, isGather, pickColumn } from '../../ir/windows.ts';
import { simdCaps, wideVectors } from '../fixtures/nests.ts';
import { fill } from '../fixtures/lowered.ts';
import { checkSize, evaluateSized } from '../fixtures/sized.ts';
import { linearize } from '../linearize/linearize.ts';
import { optimize } from './optimize.ts';
import { mergeSized } from './sized.ts';
import { reduceInSquares } from './sized-squares.ts';
import { shortAndLong } from './short-and-long.ts';
import { nest, check, wideCaps, done, reduced, type Made } from '../fixtures/sized-nests.ts';

const tools = { Rewriter, flattened, step, linearOf, sizeLimit, typicalOf, lowOf, highOf, idOf, assumeBounds };

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

  /** Each of 67 rows reduced; `gate`: only elements before a place in the row count; `dear`: a function is computed for each. */
  function reducedRows(op: ReduceOp, low: number, n: number, gate = false, dear = false): LoopKernel {
    const given = nest(low, n, ({ e, rows, input, output }) => {
      const [i, r] = [e.range(67), rows('reduce')];
      const x = input(1, [e.add(e.mul(i, e.scalar(0, 'int32', low, n)), r)], [67 * n]);
      const value = gate ? e.where(e.lt(r, e.i32(5)), x, e.mul(x, 2)) : dear ? e.unary('TANH', x) : x;
      const found = e.reduce(op, value, [r]);
      const result = found.dtype === 'float32' ? found : e.cast(found, 'float32');
      return [{ store: output(0, [i], [67], result) as LoopStore['store'], ranges: [i] }];
    });
    const e = new Exprs();
    return shortAndLong(mergeSized(given, e, tools), e, tools, (part) => reduceInSquares(part, e, tools));
  }

  test.each(['sum', 'prod', 'max', 'min'] as const)('%s along them', (op) => {
    checkSquares(reducedRows(op, 8, 31), [8, 9, 10, 11, 12, 16, 27, 31], /squares/);
    checkSquares(reducedRows(op, 2, 7), [2, 3, 4, 5, 6, 7], /squares/);
    checkSquares(reducedRows(op, 8, 31, true), [8, 11, 31], /squares/);
  });

  test('longer ones where a function is computed for each element', () => {
    checkSquares(reducedRows('sum', 32, 127, false, true), [32, 33, 45, 127], /squares/);
  });

  test('the place of the best: wide vectors go across rows, as their lanes are brought together one by one', () => {
    const k = reducedRows('argmax', 32, 63);
    check(k, [32, 33, 63]);
    const wide = linearize(optimize(k, wideCaps), wideCaps);
    expect(wide.body.some((n) => n.op === 'VEC' && n.src.length > 1 && n.src.every(({ op }) => op === 'LOAD'))).toBe(
      true,
    );
    for (const n of [32, 45, 63])
      checkSize(
        evaluateSized(
          k,
          n,
          k.params.map((p) => fill(p.arg.length, p.arg.slot)),
        ),
        wide,
        () => 0,
      );
  });

  test('a chunk of a loop that ends at a size counts as whole', () => {
    const e = new Exprs();
    const size = e.scalar(0, 'int32', 512, 1023);
    const limit = e.min(e.sub(size, e.mul(e.range(16), 64)), 64);
    assumeBounds(limit, 1, 64);
    expect(typicalOf(e.range(64, 'vector', limit))).toBe(64);
    expect(typicalOf(e.range(1031, 'loop', size))).toBe(724);
  });

  test.each(['sum', 'max'] as const)('%s along them, where a class has short and long ones: a nest for each', (op) => {
    const k = reducedRows(op, 8, 511);
    expect(k.stores).toHaveLength(2);
    checkSquares(k, [8, 11, 31, 32, 49, 64, 511], /squares/);
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
