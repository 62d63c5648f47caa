/** Rows that end at a size given at dispatch, beside values that are the same in each; and classes with short and long rows. */
import { describe, expect, test } from 'vitest';
import type { EngineCaps } from '@polygrad/core/engine';
import { Exprs } from '../../ir/expr.ts';
import { sizeLimit, typicalOf } from '../../ir/free-ranges.ts';
import type { KNode, LoopKernel, LoopStore } from '../../ir/ir.ts';
import { assumeBounds, highOf, idOf, lowOf } from '../../ir/node.ts';
import { flattened, Rewriter, step } from '../../ir/rewrite.ts';
import { linearOf } from '../../ir/simplify/integers.ts';
import { verifyLoopKernel, verifyProgram } from '../../ir/verify/verify.ts';
import { fill } from '../fixtures/lowered.ts';
import { simdCaps, wideVectors } from '../fixtures/nests.ts';
import { checkSize, evaluateSized } from '../fixtures/sized.ts';
import { done, type Made, nest, softmaxAlong, wideCaps } from '../fixtures/sized-nests.ts';
import { linearize } from '../linearize/linearize.ts';
import { optimize } from './optimize.ts';
import { repeatRows } from './repeated-rows.ts';
import { shortAndLong } from './short-and-long.ts';

const tools = { Rewriter, flattened, step, linearOf, sizeLimit, typicalOf, lowOf, highOf, idOf, assumeBounds };
const targets: readonly EngineCaps[] = [simdCaps, { ...simdCaps, ...wideVectors }, wideCaps].map((caps) => ({
  ...caps,
  sharedBytes: 2 ** 20,
}));

/** What programs of the kernel as it is shaped compute, against the kernel as it was. */
function compare(given: LoopKernel, shaped: LoopKernel, sizes: readonly number[], transform: RegExp): void {
  const data = given.params.map((p) => fill(p.arg.length, p.arg.slot));
  verifyLoopKernel(shaped);
  for (const caps of targets) {
    const loops = optimize(shaped, caps);
    verifyLoopKernel(loops);
    const program = linearize(loops, caps);
    verifyProgram(program);
    expect(done(program)).toMatch(transform);
    for (const n of sizes) checkSize(evaluateSized(given, n, data), program, () => 1e-5);
  }
}

type Write = (made: Made, x: KNode, j: KNode, i: KNode) => KNode;

/** Elementwise over `count` rows, for each of `outer`. */
function rowsOf(low: number, n: number, write: Write, count = 150, outer = 1): LoopKernel {
  return nest(low, n, (made) => {
    const { e, rows, input, output } = made;
    const [b, i, j] = [e.range(outer), e.range(count), rows()];
    const size = e.scalar(0, 'int32', low, n);
    const inPart = e.add(e.mul(i, size), j);
    const at = outer > 1 ? e.add(e.mul(b, e.mul(size, count)), inPart) : inPart;
    const memory = [outer * count * n];
    const x = input(1, [at], memory);
    const store = output(0, [at], memory, write({ ...made, rows }, x, j, outer > 1 ? b : i));
    return [{ store: store as LoopStore['store'], ranges: outer > 1 ? [b, i, j] : [i, j] }];
  });
}

describe('values that are the same in each row', () => {
  const repeated = (k: LoopKernel): LoopKernel => repeatRows(k, new Exprs(), tools);
  const bias: Write = ({ e, n, input }, x, j) => e.add(x, input(2, [j], [n]));

  test.each([
    ['rows of 2 to 7', 2, 7, [2, 3, 4, 5, 6, 7]],
    ['rows of 8 to 31', 8, 31, [8, 9, 15, 16, 17, 30, 31]],
    ['rows of 32 to 64', 32, 64, [32, 33, 47, 48, 63, 64]],
  ] as const)('a bias: %s', (_, low, n, sizes) => {
    for (const count of [128, 150, 161]) {
      const given = rowsOf(low, n, bias, count);
      compare(given, repeated(given), sizes, /repeat/);
    }
  });

  test('vectors fill blocks of rows', () => {
    const program = linearize(optimize(repeated(rowsOf(8, 31, bias, 128)), targets[2]!), targets[2]!);
    const single = program.body.filter((n) => n.op === 'LOAD' && n.src[0].op === 'PARAM' && n.lanes === 1);
    // Those of the bias as it is laid out, four at a time.
    expect(single).toHaveLength(4);
  });

  test('what is computed of several of them, once for each element', () => {
    const given = rowsOf(8, 31, ({ e, n, input }, x, j) => {
      const scale = e.unary('EXP', input(3, [j], [n]));
      return e.mul(e.sub(x, input(2, [j], [n])), e.add(scale, e.cast(j, 'float32')));
    });
    compare(given, repeated(given), [8, 13, 31], /repeat/);
  });

  test('a condition', () => {
    const given = rowsOf(8, 31, ({ e, n, input }, x, j) => e.where(e.lt(input(2, [j], [n]), e.f32(0)), x, e.mul(x, 2)));
    compare(given, repeated(given), [8, 13, 31], /repeat/);
  });

  test('of a part of all rows', () => {
    const given = rowsOf(
      8,
      31,
      ({ e, n, input }, x, j, b) => e.add(x, input(2, [e.add(e.mul(b, n), j)], [3 * n])),
      144,
      3,
    );
    compare(given, repeated(given), [8, 13, 31], /repeat/);
  });

  test('not where rows are few or long, something belongs to a row, or rows are told apart', () => {
    const isRepeated = (k: LoopKernel): boolean => repeated(k) !== k;
    expect(isRepeated(rowsOf(8, 31, bias))).toBe(true);
    expect(isRepeated(rowsOf(8, 31, bias, 100))).toBe(false);
    expect(isRepeated(rowsOf(32, 127, bias))).toBe(false);
    expect(
      isRepeated(
        rowsOf(8, 31, ({ e, n, input }, x, j, i) =>
          e.mul(bias({ e, n, input } as Made, x, j, i), input(3, [i], [150])),
        ),
      ),
    ).toBe(false);
    expect(isRepeated(rowsOf(8, 31, ({ e }, x, j, i) => e.where(e.le(j, i), x, e.f32(0))))).toBe(false);
    expect(isRepeated(rowsOf(8, 31, (_, x) => x))).toBe(false);
  });
});

describe('short and long rows of a class', () => {
  const both = (k: LoopKernel, shape?: (part: LoopKernel, e: Exprs) => LoopKernel): LoopKernel => {
    const e = new Exprs();
    return shortAndLong(k, e, tools, (part) => shape?.(part, e) ?? part);
  };
  const sizes = [8, 9, 12, 31, 32, 33, 100, 511];

  test('softmax: several short rows in a vector, and vectors along a long one', () => {
    const given = softmaxWithin(8, 511, 67);
    const k = both(given);
    expect(k.stores).toHaveLength(2);
    compare(given, k, sizes, /lengths/);
  });

  test('a bias: short rows as stretches', () => {
    const given = rowsOf(8, 511, ({ e, n, input }, x, j) => e.add(x, input(2, [j], [n])));
    const k = both(given, (part, e) => repeatRows(part, e, tools));
    // Blocks of short rows, what is left of them, and long rows.
    expect(k.stores).toHaveLength(3);
    compare(given, k, sizes, /repeat/);
  });

  test('not where a class has one of them, or rows are few', () => {
    for (const k of [softmaxAlong(8, 31, 67), softmaxAlong(32, 127, 67), softmaxAlong(8, 511, 9)])
      expect(both(k)).toBe(k);
    const alike = rowsOf(8, 511, (_, x) => x);
    expect(both(alike)).toBe(alike);
  });

  test('not for sums of columns, whose vectors go across, with a factor for each row', () => {
    const sums = (isColumn: boolean): LoopKernel =>
      nest(8, 511, ({ e, n, rows, input, output }) => {
        const [c, r] = [e.range(67), rows('reduce')];
        const at = isColumn ? e.add(e.mul(r, 67), c) : e.add(e.mul(c, e.scalar(0, 'int32', 8, 511)), r);
        const sum = e.reduce('sum', e.mul(input(1, [at], [67 * n]), input(2, [r], [n])), [r]);
        return [{ store: output(0, [c], [67], sum) as LoopStore['store'], ranges: [c] }];
      });
    const [columns, along] = [sums(true), sums(false)];
    expect(both(columns)).toBe(columns);
    expect(both(along).stores).toHaveLength(2);
  });
});

/** Softmax along rows that lie one after another at the size that is bound. */
function softmaxWithin(low: number, n: number, count: number): LoopKernel {
  return nest(low, n, ({ e, rows, input, output }) => {
    const [i, j, r] = [e.range(count), rows(), rows('reduce')];
    const start = e.mul(i, e.scalar(0, 'int32', low, n));
    const x = input(1, [e.add(start, r)], [count * n]);
    const stage = e.stage('shared', e.unary('EXP', e.sub(x, e.reduce('max', x, [r]))), [r]);
    const sum = e.reduce('sum', e.load(stage, r), [r]);
    const store = output(0, [e.add(start, j)], [count * n], e.div(e.load(stage, j), sum));
    return [{ store: store as LoopStore['store'], ranges: [i, j] }];
  });
}
