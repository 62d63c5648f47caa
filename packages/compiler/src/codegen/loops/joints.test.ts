/** Loops cut where conditions change at a size: what the nests compute is compared with the nests before. */
import { describe, expect, test } from 'vitest';
import { Exprs } from '../../ir/expr.ts';
import { type Range, sizeLimit, typicalOf } from '../../ir/free-ranges.ts';
import type { KNode, LoopKernel, LoopStore, Program } from '../../ir/ir.ts';
import { printTransforms } from '../../ir/print.ts';
import { assumeBounds, highOf, idOf, lowOf } from '../../ir/node.ts';
import { flattened, Rewriter, step } from '../../ir/rewrite.ts';
import { linearOf } from '../../ir/simplify/integers.ts';
import { verifyLoopKernel, verifyProgram } from '../../ir/verify/verify.ts';
import { fill } from '../fixtures/lowered.ts';
import { simdCaps, wideVectors } from '../fixtures/nests.ts';
import { type Made, nest, wideCaps } from '../fixtures/sized-nests.ts';
import { checkSize, evaluateSized } from '../fixtures/sized.ts';
import { linearize } from '../linearize/linearize.ts';
import { cutFixedReductions } from './fixed-joints.ts';
import { cutReductions } from './joined-reductions.ts';
import { cutJoints } from './joints.ts';
import { optimize } from './optimize.ts';
import { mergeSized } from './sized.ts';

const tools = { Rewriter, flattened, step, linearOf, sizeLimit, typicalOf, lowOf, highOf, idOf, assumeBounds };
const targets = [simdCaps, { ...simdCaps, ...wideVectors }, wideCaps];

/** The nest with its loops cut and merged, after its programs have been compared with the nest itself. */
function cutOf(
  given: LoopKernel,
  sizes: readonly number[],
): { readonly done: string; readonly stores: readonly LoopStore[]; readonly programs: readonly Program[] } {
  const e = new Exprs();
  const full = new Rewriter(e, new Map());
  const cut = mergeSized(cutJoints(cutReductions(given, e, tools, full), e, tools, full), e, tools);
  verifyLoopKernel(cut);
  const data = given.params.map((p) => fill(p.arg.length, p.arg.slot));
  const programs = targets.map((caps): Program => {
    const program = linearize(optimize(cut, caps), caps);
    verifyProgram(program);
    return program;
  });
  for (const n of sizes) for (const p of programs) checkSize(evaluateSized(given, n, data), p, () => 1e-5);
  return { done: printTransforms(cut.transforms ?? []).join('\n'), stores: cut.stores, programs };
}

/** How many loads ask whether they may read. */
const asking = ({ body }: Program): number => body.filter((n) => n.op === 'LOAD' && n.src[2] !== undefined).length;

function sizeFrom({ e, n }: Made, low: number): KNode {
  return e.scalar(0, 'int32', low, n);
}

const store = (node: KNode, ranges: readonly Range[]): LoopStore => ({ store: node as LoopStore['store'], ranges });

/** 21 rows of `parts` tensors side by side, each as wide as the size; `last`: more columns of another one. */
function beside(low: number, n: number, parts: number, last = 0): LoopKernel {
  return nest(low, n, (made) => {
    const { e, input, output } = made;
    const size = sizeFrom(made, low);
    const width = e.add(e.mul(size, parts), last);
    const [i, j] = [e.range(21), e.range(parts * n + last, 'loop', width)];
    const part = (slot: number, from: KNode, columns: KNode, most: number): KNode => {
      const load = input(slot, [e.add(e.mul(i, columns), e.sub(j, from))], [21 * most]);
      const [memory, index] = load.src as readonly [KNode, KNode];
      const inside = e.and(e.le(from, j), e.lt(e.sub(j, from), columns));
      return e.load(memory, index, inside, e.constant('float32', 0));
    };
    let value = last === 0 ? e.constant('float32', 0) : part(parts + 1, e.mul(size, parts), e.i32(last), last);
    for (let k = parts - 1; k >= 0; k--)
      value = e.where(e.lt(j, e.mul(size, k + 1)), part(k + 1, e.mul(size, k), size, n), value);
    return [store(output(0, [e.add(e.mul(i, width), j)], [21 * (parts * n + last)], value), [i, j])];
  });
}

describe('joints along memory', () => {
  test.each([
    [2, 7],
    [8, 31],
    [32, 63],
  ])('two tensors of %i to %i columns', (low, n) => {
    const { done, programs } = cutOf(beside(low, n, 2), [low, low + 1, low + 3, n - 1, n]);
    expect(done).toMatch(/^cut/);
    expect(programs.map(asking)).toEqual([0, 0, 0]);
  });

  test('three tensors, and columns of another one', () => {
    const { stores, programs } = cutOf(beside(8, 31, 3, 5), [8, 9, 17, 31]);
    expect(stores).toHaveLength(4);
    expect(programs.map(asking)).toEqual([0, 0, 0]);
  });

  test('not where there are many', () => {
    expect(cutOf(beside(8, 31, 6), [8, 13, 31]).done).not.toMatch(/cut/);
  });
});

test('borders of padding', () => {
  // Rows of n - 5 elements, two zeros before and three behind.
  const padded = nest(13, 36, ({ e, rows, input, output }) => {
    const size = e.scalar(0, 'int32', 13, 36);
    const [i, j] = [e.range(21), rows()];
    const load = input(1, [e.add(e.mul(i, e.sub(size, 5)), e.sub(j, 2))], [21 * 31]);
    const [memory, index] = load.src as readonly [KNode, KNode];
    const inside = e.and(e.le(e.i32(2), j), e.lt(e.sub(j, 2), e.sub(size, 5)));
    const value = e.load(memory, index, inside, e.constant('float32', 0));
    return [store(output(0, [e.add(e.mul(i, size), j)], [21 * 36], value), [i, j])];
  });
  const { stores, programs } = cutOf(padded, [13, 14, 20, 35, 36]);
  expect(stores).toHaveLength(3);
  expect(programs.map(asking)).toEqual([0, 0, 0]);
});

test('a length that is a size of its own: cut where it is known as a sum', () => {
  const e = new Exprs();
  const [size, longer] = [e.scalar(0, 'int32', 8, 31), e.scalar(1, 'int32', 13, 36)];
  const j = e.range(36, 'loop', longer);
  const memory = e.param(0, 'float32', 'write', 36);
  const value = e.where(e.lt(j, size), e.constant('float32', 1), e.constant('float32', 2));
  const given: LoopKernel = {
    name: 'longer',
    params: [memory],
    scalars: ['int32', 'int32'],
    stores: [store(e.store(memory, j, value), [j])],
  };
  const full = new Rewriter(e, new Map());
  expect(cutJoints(given, e, tools, full).stores).toHaveLength(1);
  const known = new Rewriter(e, new Map());
  known.set(longer, e.add(size, 5));
  const { stores } = cutJoints(given, e, tools, known);
  expect(stores.map(({ ranges: [r] }) => [r!.arg.extent, r!.src[0]])).toEqual([
    [31, size],
    [5, undefined],
  ]);
});

test('joined rows: each tensor is one stretch of memory', () => {
  const joined = nest(8, 31, (made) => {
    const { e, input, output } = made;
    const size = sizeFrom(made, 8);
    const [i, j] = [e.range(62, 'loop', e.mul(size, 2)), e.range(31, 'loop', size)];
    const part = (slot: number, row: KNode, inside: KNode): KNode => {
      const [memory, index] = input(slot, [e.add(e.mul(row, size), j)], [31 * 31]).src as readonly [KNode, KNode];
      return e.load(memory, index, inside, e.constant('float32', 0));
    };
    const isFirst = e.lt(i, size);
    const second = e.sub(i, size);
    const value = e.where(isFirst, part(1, i, isFirst), part(2, second, e.and(e.le(size, i), e.lt(second, size))));
    return [store(output(0, [e.add(e.mul(i, size), j)], [62 * 31], value), [i, j])];
  });
  const { done, stores, programs } = cutOf(joined, [8, 9, 15, 31]);
  expect(done).toMatch(/^cut.*\nmerge.*\nmerge/);
  expect(stores.map(({ ranges }) => ranges.length)).toEqual([1, 1]);
  expect(programs.map(asking)).toEqual([0, 0, 0]);
});

test('conditions that hold up to the end of a loop are no longer asked', () => {
  const whole = nest(8, 31, (made) => {
    const { e, rows, input, output } = made;
    const size = sizeFrom(made, 8);
    const [i, j] = [e.range(21), rows()];
    const [memory, index] = input(1, [e.add(e.mul(i, size), j)], [21 * 31]).src as readonly [KNode, KNode];
    const value = e.load(memory, index, e.lt(j, size), e.constant('float32', 0));
    return [store(output(0, [e.add(e.mul(i, size), j)], [21 * 31], value), [i, j])];
  });
  const { done, programs } = cutOf(whole, [8, 9, 31]);
  expect(done).toMatch(/^merge/);
  expect(programs.map(asking)).toEqual([0, 0, 0]);
});

test('not where differences wrap: numbers of users are no places', () => {
  const wrapping = nest(8, 31, (made) => {
    const { e, rows, output } = made;
    const size = sizeFrom(made, 8);
    const [i, j] = [e.range(21), rows()];
    // From the 18th element on the left side is below zero.
    const big = e.add(e.mul(j, 2 ** 26), e.i32(2 ** 30 - 1));
    const isWrapped = e.lt(big, e.sub(e.mul(j, 2 ** 26), 2 ** 30));
    const value = e.where(isWrapped, e.constant('float32', 5), e.constant('float32', 7));
    return [store(output(0, [e.add(e.mul(i, size), j)], [21 * 31], value), [i, j])];
  });
  expect(cutOf(wrapping, [8, 20, 31]).done).not.toMatch(/cut/);
});

test('loops around a reduction that each stretch would compute stay whole', () => {
  const beforeMean = nest(8, 31, (made) => {
    const { e, rows, input, output } = made;
    const size = sizeFrom(made, 8);
    const [i, j, r] = [e.range(62, 'loop', e.mul(size, 2)), e.range(21), rows('reduce')];
    const mean = e.reduce('sum', input(1, [e.add(e.mul(j, size), r)], [21 * 31]), [r]);
    const value = e.where(e.lt(i, size), mean, e.mul(mean, 2));
    return [store(output(0, [i, j], [62, 21], value), [i, j])];
  });
  expect(cutOf(beforeMean, [8, 13, 31]).done).not.toMatch(/cut/);
});

describe('reductions', () => {
  /** The element of two rows of `size` beside each other. */
  const joinedRow = ({ e, n, input }: Made, size: KNode, i: KNode, j: KNode): KNode => {
    const part = (slot: number, at: KNode, inside: KNode): KNode => {
      const [memory, index] = input(slot, [e.add(e.mul(i, size), at)], [21 * n]).src as readonly [KNode, KNode];
      return e.load(memory, index, inside, e.constant('float32', 0));
    };
    const isFirst = e.lt(j, size);
    const second = e.sub(j, size);
    return e.where(isFirst, part(1, j, isFirst), part(2, second, e.and(e.le(size, j), e.lt(second, size))));
  };
  const pairs = (made: Made, size: KNode, kind: 'loop' | 'reduce'): Range =>
    made.e.range(2 * made.n, kind, made.e.mul(size, 2));

  test.each(['sum', 'max', 'min'] as const)('%s of joined rows: one for each tensor', (op) => {
    for (const [low, n] of [
      [2, 7],
      [8, 31],
    ] as const) {
      const given = nest(low, n, (made) => {
        const { e, output } = made;
        const size = sizeFrom(made, low);
        const [i, j] = [e.range(21), pairs(made, size, 'reduce')];
        return [store(output(0, [i], [21], e.reduce(op, joinedRow(made, size, i, j), [j])), [i])];
      });
      const { done, programs } = cutOf(given, [low, low + 1, n - 1, n]);
      expect(done).toMatch(/^cut/);
      expect(programs.map(asking)).toEqual([0, 0, 0]);
    }
  });

  test('a row that is kept, in as many parts', () => {
    const given = nest(8, 31, (made) => {
      const { e, output } = made;
      const size = sizeFrom(made, 8);
      const [i, j] = [e.range(21), pairs(made, size, 'loop')];
      const [own, r] = [pairs(made, size, 'reduce'), pairs(made, size, 'reduce')];
      const kept = e.stage('shared', e.mul(joinedRow(made, size, i, own), 3), [own]);
      const value = e.sub(e.load(kept, j), e.reduce('sum', e.load(kept, r), [r]));
      return [store(output(0, [e.add(e.mul(i, e.mul(size, 2)), j)], [21 * 62], value), [i, j])];
    });
    const { programs } = cutOf(given, [8, 9, 15, 16, 31]);
    expect(programs.map(asking)).toEqual([0, 0, 0]);
  });

  test('borders of zeros', () => {
    for (const op of ['sum', 'max'] as const) {
      const given = nest(10, 33, (made) => {
        const { e, output, input } = made;
        const size = sizeFrom(made, 10);
        const [i, j] = [e.range(21), e.range(33, 'reduce', size)];
        const inside = e.and(e.le(e.i32(1), j), e.lt(e.sub(j, 1), e.sub(size, 3)));
        const [memory, index] = input(1, [e.add(e.mul(i, e.sub(size, 3)), e.sub(j, 1))], [21 * 30]).src as readonly [
          KNode,
          KNode,
        ];
        const value = e.load(memory, index, inside, e.constant('float32', 0));
        return [store(output(0, [i], [21], e.reduce(op, value, [j])), [i])];
      });
      const { programs } = cutOf(given, [10, 11, 17, 32, 33]);
      expect(programs.map(asking)).toEqual([0, 0, 0]);
    }
  });

  test('positions of extrema count through the whole row', () => {
    const given = nest(8, 31, (made) => {
      const { e, input, output } = made;
      const size = sizeFrom(made, 8);
      const [i, j] = [e.range(21), pairs(made, size, 'reduce')];
      const at = e.reduce('argmax', joinedRow(made, size, i, j), [j]);
      return [store(output(0, [i], [21], e.add(input(3, [i], [21]), e.cast(at, 'float32'))), [i])];
    });
    expect(cutOf(given, [8, 9, 31]).done).not.toMatch(/cut/);
  });

  test.each([
    ['two of 13', 13, true],
    ['two of 3, which are written out', 3, false],
  ] as const)('with machine code, rows of fixed length: %s', (_, n, isCut) => {
    const given = nest(n, n, (made) => {
      const { e, output } = made;
      const [i, j] = [e.range(21), e.range(2 * n, 'reduce')];
      return [store(output(0, [i], [21], e.reduce('sum', joinedRow(made, e.i32(n), i, j), [j])), [i])];
    });
    const cut = cutFixedReductions(given, new Exprs());
    verifyLoopKernel(cut);
    expect(printTransforms(cut.transforms ?? []).length > 0).toBe(isCut);
    const data = given.params.map((p) => fill(p.arg.length, p.arg.slot));
    for (const caps of targets) {
      const program = linearize(optimize(cut, caps), caps);
      verifyProgram(program);
      if (isCut) expect(asking(program)).toBe(0);
      checkSize(evaluateSized(given, n, data), program, () => 1e-5);
    }
  });
});
