/** Products of panels that stages.ts brings to group memory, by threads with a few rows and columns of a block each. */
import type { Exprs } from '../../ir/expr.ts';
import type { KNode } from '../../ir/ir.ts';
import { type DType, dtypeInfo } from '../../shape/dtype.ts';
import type { StagedNest } from './stages.ts';

/** How a group shares a block: threads along columns and rows, and the part of each. */
export interface ThreadShare {
  readonly dtype: DType;
  /** Steps of the sum in a stage. */
  readonly depth: number;
  readonly across: number;
  readonly down: number;
  /** Multiples of `unitOf`. */
  readonly rows: number;
  readonly columns: number;
  /** Steps of the sum read at a time, `unitOf` or half of it: they wait in registers. */
  readonly steps: number;
  /** Neighbouring columns are stored together. */
  readonly inVectors: boolean;
}

/** Elements of a vector of 16 bytes. */
export function unitOf(dtype: DType): number {
  return 16 / dtypeInfo[dtype].bytes;
}

/** Arrangement of the 32 threads that run together: a square reads fewer different lines at once than a row. */
const together = { across: 8, down: 4 };

/** Position of a thread along rows and columns. */
export function threadPlace(
  e: Exprs,
  { across, down }: Pick<ThreadShare, 'across' | 'down'>,
  thread: KNode,
): readonly [row: KNode, column: KNode] {
  if (across % together.across !== 0 || down % together.down !== 0)
    return [e.idiv(thread, across), e.irem(thread, across)];
  const count = together.across * together.down;
  const [set, lane] = [e.idiv(thread, count), e.irem(thread, count)];
  const sets = across / together.across;
  return [
    e.add(e.mul(e.idiv(set, sets), together.down), e.idiv(lane, together.across)),
    e.add(e.mul(e.irem(set, sets), together.across), e.irem(lane, together.across)),
  ];
}

/** How the elements of a side of a block are dealt to threads: so many of them, in vectors of `unit` elements, from lines along the sum or across. */
export interface Dealt {
  readonly threads: number;
  readonly unit: number;
  readonly alongSum: boolean;
}

/**
 * The position in a block of a thread's element: the `lane`-th of its `vector`-th vector. If lines of the panel are along the sum, the elements of a
 * thread are in neighbouring lines, which use different banks; otherwise a vector of a thread is contiguous.
 */
export function placeInBlock(
  e: Exprs,
  { threads, unit, alongSum }: Dealt,
  thread: KNode,
  vector: KNode,
  lane: KNode,
): KNode {
  return alongSum
    ? e.add(thread, e.mul(e.add(e.mul(vector, unit), lane), threads))
    : e.add(e.mul(e.add(e.mul(vector, threads), thread), unit), lane);
}

/** `StagedNest.multiply` by a thread's rows and columns, one step of the sum after another. */
export function byThreadsAlone(share: ThreadShare, muladd: boolean): StagedNest['multiply'] {
  const { dtype, depth, across, down, steps } = share;
  const unit = unitOf(dtype);
  const [rows, vectors] = [share.rows, share.columns / unit];
  return ({ b }, panels, thread) => {
    const { e } = b;
    const place = threadPlace(e, share, thread);
    const sums = b.reg('sum', dtype, unit, rows * vectors);
    for (let i = 0; i < rows * vectors; i++) b.store(sums, i, e.constant(dtype, 0, unit));
    /** What the thread needs of a side for `steps` steps: for each step, the elements of all its vectors. */
    const part = (number: 0 | 1, count: number, slot: KNode, first: number): ((step: number) => readonly KNode[][]) => {
      const { memory, pitch, length, alongSum } = panels[number];
      const start = e.mul(slot, length);
      const threads = number === 0 ? down : across;
      const at = (v: number, l: number): KNode =>
        placeInBlock(e, { threads, unit, alongSum }, place[number], e.i32(v), e.i32(l));
      const whole = (index: KNode, count: number): KNode => b.place(b.load(memory, e.add(start, index), count));
      const lanes = Array.from({ length: unit }, (_, l) => l);
      const all = Array.from({ length: count / unit }, (_, v) => v);
      if (alongSum) {
        const lines = all.map((v) => lanes.map((l) => whole(e.add(e.mul(at(v, l), pitch), first), steps)));
        return (step) => lines.map((vector) => vector.map((line) => e.lane(line, step)));
      }
      return (step) =>
        all.map((v) => {
          const vector = whole(e.add(at(v, 0), (first + step) * pitch), unit);
          return lanes.map((l) => e.lane(vector, l));
        });
    };
    return {
      add: (slot) => {
        for (let first = 0; first < depth; first += steps) {
          const [left, right] = [part(0, share.rows, slot, first), part(1, share.columns, slot, first)];
          for (let step = 0; step < steps; step++) {
            const [x, y] = [left(step).flat(), right(step).map((vector) => e.vec(vector))];
            for (const [i, one] of x.entries())
              for (const [v, vector] of y.entries()) {
                const [number, factor] = [i * vectors + v, e.splat(one, unit)];
                const sum = b.load(sums, number);
                const next = muladd ? e.ternary('MULADD', factor, vector, sum) : e.add(sum, e.mul(factor, vector));
                b.store(sums, number, next);
              }
          }
        }
      },
      results: () => {
        const all = Array.from({ length: rows * vectors }, (_, i) => b.load(sums, i));
        return share.inVectors ? all : all.flatMap((v) => Array.from({ length: unit }, (_, l) => e.lane(v, l)));
      },
    };
  };
}
