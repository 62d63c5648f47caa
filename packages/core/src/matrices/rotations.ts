/**
 * Kernels of `spectral.ts`: tridiagonal and bidiagonal matrices are made diagonal by plane rotations, which are written down and then applied to the vectors.
 *
 * One thread of a group, which has no fewer than two, finds the rotations, as each depends on the one before. Their application has a thread for each row of the vectors.
 */
import { defineKernel } from '../custom/define.ts';
import type { KernelContext, KernelVariable } from '../custom/context.ts';
import type { KernelOutput, KernelShared } from '../custom/memory.ts';
import type { Given, Kernel } from '../custom/options.ts';
import type { KernelValue } from '../custom/value.ts';

type Floats = readonly ['float32', 'float64'];
type Lines = { readonly dtype: Floats; readonly rank: 2 };
type Matrices = { readonly dtype: Floats; readonly rank: 3 };
const floats: Floats = ['float32', 'float64'];
const lines: Lines = { dtype: floats, rank: 2 };
const matrices: Matrices = { dtype: floats, rank: 3 };

/** Bytes of memory that a group has. */
const groupBytes = 16384;

/** Most columns whose rotations a group finds: its diagonal and the one beside it are in its memory. */
export function mostColumns(dtype: string): number {
  return groupBytes / (dtype === 'float64' ? 16 : 8);
}

/** Sweeps that are tried, as in LAPACK, and rotations that there is room for: few matrices need a third of either. */
const sweepsOf = (n: number): number => 30 * n;
const turnsOf = (n: number): number => 3 * n * n + 16;

/** Where a number is nothing beside one of size 1, and where its square is no longer exact. Matrices have been scaled to sizes about 1. */
const limits = {
  float32: { epsilon: 2 ** -24, square: 2 ** -118 },
  float64: { epsilon: 2 ** -53, square: 2 ** -968 },
} as const;

const limitsOf = (dtype: string) => limits[dtype as keyof typeof limits];

/** The rotation that makes (f, g) to (r, 0): cosine, sine and r. What is too small to be squared counts as nothing. */
function rotation(k: KernelContext, f: KernelValue, g: KernelValue): Readonly<Record<'c' | 's' | 'r', KernelVariable>> {
  const { dtype } = f;
  const [c, s, r] = [k.variable(1, dtype), k.variable(0, dtype), k.variable(f)];
  const square = f.mul(f).add(g.mul(g));
  k.ifThen(square.greater(limitsOf(dtype).square), () => {
    const length = square.sqrt();
    r.set(length);
    c.set(f.div(length));
    s.set(g.div(length));
  });
  return { c, s, r };
}

type Records = Readonly<Record<'sweeps', KernelOutput>>;

/** The block of rows that is worked on, the last one with columns beside the diagonal that are not nothing, and the way through it. */
class Block {
  readonly first: KernelVariable;
  readonly last: KernelVariable;
  /** Whether sweeps go from the last row to the first. */
  readonly isUpwards: KernelVariable;
  readonly turns: KernelVariable;
  readonly sweeps: KernelVariable;
  readonly #k: KernelContext;
  readonly #before: Readonly<Record<'first' | 'last', KernelVariable>>;

  constructor(k: KernelContext, n: number) {
    this.#k = k;
    this.first = k.variable(0, 'int32');
    this.last = k.variable(n - 1, 'int32');
    this.isUpwards = k.variable(0, 'int32');
    this.turns = k.variable(0, 'int32');
    this.sweeps = k.variable(0, 'int32');
    this.#before = { first: k.variable(0, 'int32'), last: k.variable(-1, 'int32') };
  }

  /** Takes the rows that belong to the last one; a block that was not there before gets the way on which small values are found first. */
  find(e: KernelShared, isNothing: (i: KernelValue) => KernelValue, goesUp: () => KernelValue): void {
    const k = this.#k;
    const { first, last, isUpwards } = this;
    const before = this.#before;
    first.set(0);
    k.loop(last.value, (i) => first.set(k.where(isNothing(i), i.add(1), first.value)));
    k.ifThen(first.value.greater(0), () => e.set(first.value.sub(1), 0));
    k.ifThen(first.value.less(last.value), () => {
      const isNew = first.value.greater(before.last.value).logicalOr(last.value.less(before.first.value));
      k.ifThen(isNew, () => isUpwards.set(goesUp().cast('int32')));
      before.first.set(first.value);
      before.last.set(last.value);
    });
  }

  /** Works until all is diagonal; `sweep` is given the row where it begins, its step, how many there are, and the number of its first rotation. */
  run(
    { sweeps }: Records,
    n: number,
    find: () => void,
    sweep: (at: Readonly<Record<'start' | 'step' | 'count' | 'turn', KernelValue>>) => void,
  ): void {
    const k = this.#k;
    const [matrix] = k.index;
    const { first, last, isUpwards, turns } = this;
    k.loop(sweepsOf(n) + 2 * n, () =>
      k.ifThen(last.value.greater(0), () => {
        find();
        const count = last.value.sub(first.value);
        const isUp = isUpwards.value.notEqual(0);
        const isDone = count.equal(0);
        const hasRoom = turns.value
          .add(count)
          .lessEqual(turnsOf(n))
          .logicalAnd(this.sweeps.value.less(sweepsOf(n)));
        k.ifThen(isDone.logicalNot().logicalAnd(hasRoom), () => {
          const start = k.where(isUp, last.value, first.value);
          const step = k.where(isUp, k.constant(-1, 'int32'), 1);
          sweep({ start, step, count, turn: turns.value });
          const at = this.sweeps.value.add(1);
          for (const [i, value] of [start, count.mul(step), turns.value].entries())
            sweeps.set([matrix, at, i], value.cast(sweeps.dtype));
          this.sweeps.set(at);
          turns.set(turns.value.add(count));
        });
        k.ifThen(isDone, () => last.set(last.value.sub(1)));
      }),
    );
    sweeps.set([matrix, 0, 0], this.sweeps.value.cast(sweeps.dtype));
  }

  /** Whether work was given up. */
  get isLeft(): KernelValue {
    return this.last.value.greater(0);
  }
}

/** Writes values in their order, and for each row its place in it. */
function ordered(
  k: KernelContext,
  d: KernelShared,
  isLeft: KernelValue,
  isBefore: (x: KernelValue, y: KernelValue) => KernelValue,
  write: (row: KernelValue, place: KernelValue, value: KernelValue) => void,
): void {
  const n = d.length;
  const given = k.variable(isLeft);
  k.loop(n, (row) => {
    const own = d.at(row);
    const place = k.variable(0, 'int32');
    k.loop(n, (other) => {
      const value = d.at(other);
      const isEarlier = isBefore(own, value).logicalNot().logicalAnd(other.less(row));
      place.set(place.value.add(isBefore(value, own).logicalOr(isEarlier).cast('int32')));
    });
    write(row, place.value, k.where(given.value, k.constant(Number.NaN, d.dtype), own));
  });
}

const lengthOf = (d: Given<{ d: Lines }>['d']): number => d.shape[1]!;
const placesRule = { values: 'd', places: 'd' } as const;
const sweepsRule = ({ d }: Given<{ d: Lines; e: Lines }>) => ({
  shape: [d.shape[0]!, sweepsOf(lengthOf(d)) + 1, 3],
  dtype: d.dtype,
});
const turnsRule = ({ d }: Given<{ d: Lines; e: Lines }>) => ({
  shape: [d.shape[0]!, turnsOf(lengthOf(d)), 2],
  dtype: d.dtype,
});

/**
 * Eigenvalues of symmetric tridiagonal matrices, ascending, from their diagonals d and what is beside it, e; its last element is not read. Implicit QL and QR with Wilkinson's
 * shift. `places` says where the value of each column went. Source: LAPACK `dsteqr`.
 */
export const tridiagonal: Kernel<{ d: Lines; e: Lines }, 'values' | 'places' | 'sweeps' | 'turns'> =
  /* @__PURE__ */ defineKernel({
    name: 'tridiagonal',
    form: 'groups',
    threads: 2,
    inputs: { d: lines, e: lines },
    outputs: { ...placesRule, sweeps: sweepsRule, turns: turnsRule },
    grid: ({ d }) => d.shape.slice(0, 1),
    body: (k, inputs, { values, places, sweeps, turns }) => {
      const [matrix] = k.index;
      const n = inputs.d.size(1);
      const { dtype } = inputs.d;
      const [d, e] = [k.shared(dtype, n), k.shared(dtype, n)];
      k.each(1, () => {
        k.loop(n, (i) => {
          d.set(i, inputs.d.at([matrix, i]));
          e.set(i, inputs.e.at([matrix, i]));
        });
        const block = new Block(k, n);
        const isNothing = (i: KernelValue): KernelValue => {
          const beside = d
            .at(i)
            .abs()
            .add(d.at(i.add(1)).abs());
          const size = e.at(i).abs();
          return size
            .lessEqual(beside.mul(limitsOf(dtype).epsilon))
            .logicalOr(size.mul(size).less(limitsOf(dtype).square));
        };
        const find = (): void =>
          block.find(e, isNothing, () => d.at(block.first.value).abs().less(d.at(block.last.value).abs()));
        block.run({ sweeps }, n, find, ({ start, step, count, turn }) => {
          const end = k.variable(start.add(count.mul(step)));
          // What is beside the diagonal between a row and the next one on the way.
          const besideOf = (row: KernelValue): KernelValue => row.add(step.rightShift(1));
          const near = k.variable(d.at(end.value));
          const off = k.variable(e.at(besideOf(end.value.sub(step))));
          const half = k.variable(d.at(end.value.sub(step)).sub(near.value).div(off.value.mul(2)));
          const root = half.value.mul(half.value).add(1).sqrt();
          const shifted = off.value.div(half.value.add(k.where(half.value.less(0), root.neg(), root)));
          const g = k.variable(d.at(start).sub(near.value).add(shifted));
          const [c, s, p] = [k.variable(1, dtype), k.variable(1, dtype), k.variable(0, dtype)];
          k.loop(count, (i) => {
            const row = start.add(i.mul(step));
            const beside = k.variable(e.at(besideOf(row)));
            const b = k.variable(c.value.mul(beside.value));
            const made = rotation(k, g.value, s.value.mul(beside.value));
            c.set(made.c.value);
            s.set(made.s.value);
            k.ifThen(i.greater(0), () => e.set(besideOf(row.sub(step)), made.r.value));
            const rest = k.variable(d.at(row).sub(p.value));
            const r = d.at(row.add(step)).sub(rest.value).mul(s.value).add(c.value.mul(b.value).mul(2));
            const next = k.variable(r);
            p.set(s.value.mul(next.value));
            d.set(row, rest.value.add(p.value));
            g.set(c.value.mul(next.value).sub(b.value));
            turns.set([matrix, turn.add(i), 0], c.value);
            turns.set([matrix, turn.add(i), 1], s.value);
          });
          d.set(end.value, d.at(end.value).sub(p.value));
          e.set(besideOf(end.value.sub(step)), g.value);
        });
        ordered(
          k,
          d,
          block.isLeft,
          (x, y) => x.less(y),
          (row, place, value) => {
            values.set([matrix, place], value);
            places.set([matrix, row], place.cast(dtype));
          },
        );
      });
    },
  });

/**
 * Singular values of upper bidiagonal matrices, descending, from their diagonals d and what is above it, e; its last element is not read. Implicit QR with the shift of
 * the last two rows. `signs` are those that the values had. Source: LAPACK `dbdsqr`, without its tests for values far below the largest.
 */
export const bidiagonal: Kernel<{ d: Lines; e: Lines }, 'values' | 'places' | 'signs' | 'sweeps' | 'left' | 'right'> =
  /* @__PURE__ */ defineKernel({
    name: 'bidiagonal',
    form: 'groups',
    threads: 2,
    inputs: { d: lines, e: lines },
    outputs: { ...placesRule, signs: 'd', sweeps: sweepsRule, left: turnsRule, right: turnsRule },
    grid: ({ d }) => d.shape.slice(0, 1),
    body: (k, inputs, { values, places, signs, sweeps, left, right }) => {
      const [matrix] = k.index;
      const n = inputs.d.size(1);
      const { dtype } = inputs.d;
      const [d, e] = [k.shared(dtype, n), k.shared(dtype, n)];
      k.each(1, () => {
        const largest = k.variable(0, dtype);
        k.loop(n, (i) => {
          const [own, beside] = [inputs.d.at([matrix, i]), inputs.e.at([matrix, i])];
          d.set(i, own);
          e.set(i, beside);
          largest.set(largest.value.maximum(own.abs()));
          k.ifThen(i.less(n - 1), () => largest.set(largest.value.maximum(beside.abs())));
        });
        const { epsilon } = limitsOf(dtype);
        // Rounding keeps sweeps from making it much smaller: LAPACK takes 10 for 8.
        const nothing = k.variable(largest.value.mul(epsilon));
        const block = new Block(k, n);
        const isNothing = (i: KernelValue): KernelValue => {
          const size = d
            .at(i)
            .abs()
            .add(d.at(i.add(1)).abs())
            .mul(4 * epsilon);
          return e.at(i).abs().lessEqual(size.maximum(nothing.value));
        };
        const find = (): void =>
          block.find(e, isNothing, () => d.at(block.first.value).abs().less(d.at(block.last.value).abs()));
        block.run({ sweeps }, n, find, ({ start, step, count, turn }) => {
          const isUp = k.variable(step.less(0));
          const end = k.variable(start.add(count.mul(step)));
          const besideOf = (row: KernelValue): KernelValue => row.add(step.rightShift(1));
          const [most, least] = [k.variable(0, dtype), k.variable(Number.POSITIVE_INFINITY, dtype)];
          k.loop(count.add(1), (i) => {
            const size = k.variable(d.at(start.add(i.mul(step))).abs());
            most.set(most.value.maximum(size.value));
            least.set(least.value.minimum(size.value));
          });
          // The smaller singular value of the last two rows, of LAPACK's dlas2; none where a zero on the diagonal is to be moved to the end.
          const last = k.variable(end.value.sub(step));
          const [x, y] = [k.variable(d.at(last.value).abs()), k.variable(d.at(end.value).abs())];
          const [low, high] = [k.variable(x.value.minimum(y.value)), k.variable(x.value.maximum(y.value))];
          const shift = k.variable(0, dtype);
          const first = k.variable(d.at(start));
          k.ifThen(least.value.greater(most.value.mul(epsilon)), () => {
            const across = k.variable(e.at(besideOf(last.value)).div(high.value));
            const ratio = k.variable(low.value.div(high.value));
            const square = across.value.mul(across.value);
            const root = (side: KernelValue): KernelValue => side.mul(side).add(square).sqrt();
            const sum = root(ratio.value.add(1)).add(root(ratio.value.sub(1)));
            const found = k.variable(low.value.mul(2).div(sum));
            const part = found.value.div(first.value);
            k.ifThen(part.mul(part).greater(epsilon), () => shift.set(found.value));
          });
          const ahead = shift.value.div(first.value);
          const signed = k.where(first.value.less(0), k.constant(-1, dtype), 1).add(ahead);
          const f = k.variable(first.value);
          k.ifThen(shift.value.greater(0), () => f.set(first.value.abs().sub(shift.value).mul(signed)));
          const g = k.variable(e.at(besideOf(start)));
          k.loop(count, (i) => {
            const row = start.add(i.mul(step));
            const next = row.add(step);
            const inner = rotation(k, f.value, g.value);
            k.ifThen(i.greater(0), () => e.set(besideOf(row.sub(step)), inner.r.value));
            const [own, other, beside] = [d.at(row), d.at(next), e.at(besideOf(row))].map((v) => k.variable(v)) as [
              KernelVariable,
              KernelVariable,
              KernelVariable,
            ];
            const rest = k.variable(inner.c.value.mul(beside.value).sub(inner.s.value.mul(own.value)));
            const below = k.variable(inner.c.value.mul(other.value));
            const outer = rotation(
              k,
              inner.c.value.mul(own.value).add(inner.s.value.mul(beside.value)),
              inner.s.value.mul(other.value),
            );
            d.set(row, outer.r.value);
            f.set(outer.c.value.mul(rest.value).add(outer.s.value.mul(below.value)));
            d.set(next, outer.c.value.mul(below.value).sub(outer.s.value.mul(rest.value)));
            k.ifThen(i.less(count.sub(1)), () => {
              const far = k.variable(e.at(besideOf(next)));
              g.set(outer.s.value.mul(far.value));
              e.set(besideOf(next), outer.c.value.mul(far.value));
            });
            (['c', 's'] as const).forEach((part, at) => {
              const [a, b] = [inner[part].value, outer[part].value];
              right.set([matrix, turn.add(i), at], k.where(isUp.value, b, a));
              left.set([matrix, turn.add(i), at], k.where(isUp.value, a, b));
            });
          });
          e.set(besideOf(last.value), f.value);
        });
        const signOf = (x: KernelValue): KernelValue => k.where(x.less(0), k.constant(-1, dtype), 1);
        ordered(
          k,
          d,
          block.isLeft,
          (x, y) => x.abs().greater(y.abs()),
          (row, place, value) => {
            values.set([matrix, place], value.abs());
            signs.set([matrix, place], signOf(value));
            places.set([matrix, row], place.cast(dtype));
          },
        );
      });
    },
  });

/**
 * Applies rotations to the columns of matrices, given and returned transposed: [batch, n, m]. Columns then go to their places.
 */
export const turned: Kernel<{ columns: Matrices; places: Lines; sweeps: Matrices; turns: Matrices }, 'result'> =
  /* @__PURE__ */ defineKernel({
    name: 'turned',
    form: 'groups',
    threads: 64,
    inputs: { columns: matrices, places: lines, sweeps: matrices, turns: matrices },
    outputs: { result: 'columns' },
    grid: ({ columns: { shape, dtype } }) => [shape[0]!, Math.ceil(shape[2]! / rowsOf(shape, dtype))],
    body: (k, { columns, places, sweeps, turns }, { result }) => {
      const [matrix, part] = k.index;
      const n = columns.size(1);
      const rows = rowsOf(columns.shape, columns.dtype);
      const known = k.shared(columns.dtype, n * rows);
      k.loop(n, (i) =>
        k.each(rows, (row) => known.set(i.mul(rows).add(row), columns.at([matrix, i, part.mul(rows).add(row)]))),
      );
      // Indices known to be inside need no check, and two columns beside each other are a known distance apart: so rows become vectors.
      const inside = (column: KernelValue, most: number): KernelValue => column.maximum(0).minimum(most);
      // No thread reads what another one wrote: each has rows of its own.
      k.loop(sweeps.at([matrix, 0, 0]).cast('int32'), (sweep) => {
        const [start, signed, turn] = [0, 1, 2].map((i) =>
          k.variable(sweeps.at([matrix, sweep.add(1), i]).cast('int32')),
        ) as [KernelVariable, KernelVariable, KernelVariable];
        // Several rotations at a time, whose columns are in registers, then the rest one by one.
        const pass = (isUp: boolean): void => {
          const all = k.variable(signed.value.abs());
          const done = k.variable(0, 'int32');
          for (const length of n > together ? [together, 1] : [1])
            k.loop(all.value.sub(done.value).floorDivide(length), () => {
              const at = done.value;
              const first = isUp ? start.value.sub(at).sub(length) : start.value.add(at);
              const before = inside(first, n - 1 - length).mul(rows);
              const pairs = Array.from({ length }, (_, i) => {
                const place = turn.value.add(at).add(i);
                return [turns.at([matrix, place, 0]), turns.at([matrix, place, 1])] as const;
              });
              k.each(rows, (row) => {
                const places = Array.from({ length: length + 1 }, (_, i) =>
                  before.add((isUp ? length - i : i) * rows).add(row),
                );
                const columns = places.map((place) => known.at(place));
                for (const [i, [c, s]] of pairs.entries()) {
                  const [x, y] = [columns[i]!, columns[i + 1]!];
                  columns[i] = c.mul(x).add(s.mul(y));
                  columns[i + 1] = c.mul(y).sub(s.mul(x));
                }
                for (const [i, place] of places.entries()) known.set(place, columns[i]!);
              });
              done.set(done.value.add(length));
            });
        };
        k.ifThen(
          signed.value.less(0),
          () => pass(true),
          () => pass(false),
        );
      });
      k.loop(n, (i) => {
        const place = inside(places.at([matrix, i]).cast('int32'), n - 1);
        k.each(rows, (row) => result.set([matrix, place, part.mul(rows).add(row)], known.at(i.mul(rows).add(row))));
      });
    },
  });

/** Rotations that `turned` does at a time. */
const together = 4;

/** How many rows of vectors a group has in its memory: a power of two. */
function rowsOf([, n, m]: readonly number[], dtype: string): number {
  const most = groupBytes / (dtype === 'float64' ? 8 : 4) / n!;
  let rows = 1;
  while (rows * 2 <= most && rows < m! && rows < 64) rows *= 2;
  return rows;
}
