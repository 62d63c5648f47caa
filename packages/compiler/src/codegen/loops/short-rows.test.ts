/** Short rows that end at a size and are stored by vectors beyond their ends: what elements hold, and which rows are left as they are. */
import { describe, expect, test } from 'vitest';
import { Exprs } from '../../ir/expr.ts';
import type { Range } from '../../ir/free-ranges.ts';
import type { KNode, LoopKernel, LoopStore } from '../../ir/ir.ts';
import { check, done, type Made, nest, wideCaps } from '../fixtures/sized-nests.ts';
import { linearize } from '../linearize/linearize.ts';
import { optimize } from './optimize.ts';

/** Stores at an index of memory that lies flat. */
function stored({ output }: Made, slot: number, length: number, at: KNode, value: KNode, ranges: Range[]): LoopStore {
  return { store: output(slot, [at], [length], value) as LoopStore['store'], ranges };
}

const most = 300;
const sizes = [2, 3, 4, 5, 6, 7];
const longer = [8, 9, 15, 16, 17, 30, 31];

/** `parts` rows side by side, in the order given. */
function joined(parts: readonly number[], low: number, n: number, many = most): LoopKernel {
  return nest(low, n, (made) => {
    const { e, rows, input } = made;
    const [i, size] = [e.range(many), e.scalar(0, 'int32', low, n)];
    const start = e.mul(e.mul(i, size), parts.length);
    return parts.map((part, slot) => {
      const j = rows();
      const x = input(slot + 1, [e.add(e.mul(i, size), j)], [many * n]);
      const at = e.add(e.add(start, e.mul(size, part)), j);
      return stored(made, 0, parts.length * many * n, at, e.mul(x, slot + 2), [i, j]);
    });
  });
}

/** Rows of `given`, which read and store at these places of a row `i` of a size. */
function single(
  read: (made: Made, i: KNode, size: KNode) => KNode,
  write: (made: Made, i: KNode, size: KNode) => KNode = ({ e }, i, size) => e.mul(i, size),
): LoopKernel {
  return nest(2, 7, (made) => {
    const { e, rows, input } = made;
    const [i, j, size] = [e.range(most), rows(), e.scalar(0, 'int32', 2, 7)];
    const value = e.unary('NEG', input(1, [e.add(read(made, i, size), j)], [most * 16]));
    return [stored(made, 0, most * 16, e.add(write(made, i, size), j), value, [i, j])];
  });
}

describe('vectors run beyond the ends of rows', () => {
  test.each([[[0, 1]], [[0, 1, 2]]])('parts %j side by side', (parts) => {
    expect(done(check(joined(parts, 2, 7), sizes))).toMatch(/beyond/);
    const kernel = joined(parts, 8, 31);
    expect(done(check(kernel, longer))).not.toMatch(/beyond/);
    expect(done(linearize(optimize(kernel, wideCaps), wideCaps))).toMatch(/beyond/);
  });

  test('in groups, each of which ends exactly', () => {
    const program = check(joined([0, 1], 2, 7, 5000), [3, 7]);
    expect(program.grid[0]).toBeGreaterThan(1);
    expect(done(program)).toMatch(/beyond/);
  });

  test('rows that are read farther apart, and a number for each', () => {
    const apart = single(({ e }, i, size) => e.mul(e.mul(i, size), 2));
    expect(done(check(apart, sizes))).toMatch(/beyond/);
  });

  test('rows that overlap where they are read', () => {
    expect(
      done(
        check(
          single((_, i) => i),
          sizes,
        ),
      ),
    ).toMatch(/beyond/);
  });

  test('two results of the same rows', () => {
    const two = nest(2, 7, (made) => {
      const { e, rows, input } = made;
      const [i, j, size] = [e.range(most), rows(), e.scalar(0, 'int32', 2, 7)];
      const at = e.add(e.mul(i, size), j);
      const x = e.mul(input(2, [at], [most * 7]), input(3, [i], [most]));
      return [0, 1].map((slot) => stored(made, slot, most * 7, at, e.add(x, slot + 1), [i, j]));
    });
    expect(done(check(two, sizes))).toMatch(/beyond/);
  });

  test('fewer rows than hold what vectors reach beyond', () => {
    const few = nest(2, 7, (made) => {
      const { e, rows, input } = made;
      const size = e.scalar(0, 'int32', 2, 7);
      // None to nine.
      const [i, j] = [e.range(most, 'loop', e.idiv(e.mul(size, size), 5)), rows()];
      const at = e.add(e.mul(i, size), j);
      const x = e.mul(input(1, [i], [most]), input(2, [at], [most * 7]));
      return [stored(made, 0, most * 7, at, x, [i, j])];
    });
    expect(done(check(few, sizes))).toMatch(/beyond/);
  });
});

describe('rows end exactly', () => {
  test.each<[string, LoopKernel]>([
    ['where parts are stored in another order', joined([1, 0], 2, 7)],
    ['where all rows read the same', single(({ e }) => e.i32(0))],
    ['where rows are read from the last to the first', single(({ e }, i, size) => e.mul(e.sub(most - 1, i), size))],
    [
      'where something lies between rows',
      single(
        ({ e }, i, size) => e.mul(i, size),
        ({ e }, i) => e.mul(i, 16),
      ),
    ],
  ])('%s', (_, kernel) => {
    expect(done(check(kernel, sizes))).not.toMatch(/beyond/);
  });

  test('where memory is read that they are stored to', () => {
    const e = new Exprs();
    const size = e.scalar(0, 'int32', 2, 7);
    const [i, j] = [e.range(most), e.range(7, 'loop', size)];
    const memory = e.param(0, 'float32', 'readwrite', most * 7);
    const factors = e.param(1, 'float32', 'read', most);
    const at = e.add(e.mul(i, size), j);
    const store = e.store(memory, at, e.mul(e.load(memory, at), e.load(factors, i)));
    const updated: LoopKernel = {
      name: 'updated',
      params: [memory, factors],
      scalars: ['int32'],
      stores: [{ store, ranges: [i, j] }],
    };
    expect(done(check(updated, sizes))).not.toMatch(/beyond/);
  });
});
