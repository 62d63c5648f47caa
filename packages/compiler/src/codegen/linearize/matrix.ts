/** Products by matrix instructions (MATRIX), on panels that stages.ts brings to group memory. */
import type { KNode } from '../../ir/ir.ts';
import { type MatrixForm, fragmentLanes, matrixThreads, stepsOf } from '../../ir/matrix.ts';
import type { StagedNest } from './stages.ts';

/** How a group shares a block. */
export interface MatrixShare {
  readonly form: MatrixForm;
  /** Steps of the sum in a stage. */
  readonly depth: number;
  /** Sets of 32 threads along columns, and the tiles of each along rows and columns. */
  readonly across: number;
  readonly tiles: readonly [rows: number, columns: number];
  /** Two neighbouring columns are stored together. */
  readonly inPairs: boolean;
}

/** `StagedNest.multiply` by tiles of matrices. */
export function byMatrices({ form, depth, across, tiles, inPairs }: MatrixShare): StagedNest['multiply'] {
  return ({ b }, panels, thread) => {
    const { e } = b;
    const count = tiles[0] * tiles[1];
    const sums = b.reg('sum', 'float32', 4, count);
    const zeros = e.constant('float32', 0, 4);
    for (let i = 0; i < count; i++) b.store(sums, i, zeros);
    const steps = stepsOf(form.tile);
    const set = e.idiv(thread, matrixThreads);
    const place = [e.idiv(set, across), e.irem(set, across)] as const;
    const sides = [16, 8] as const;
    const fragment = (slot: KNode, number: 0 | 1, i: number, first: number): KNode => {
      const { memory, pitch, length, alongSum } = panels[number];
      const part = number === 0 ? 'a' : 'b';
      const element = e.add(e.mul(place[number], tiles[number] * sides[number]), i * sides[number]);
      const at = alongSum ? e.add(e.mul(element, pitch), first) : e.add(element, first * pitch);
      const arg = { tile: form.tile, part, across: alongSum ? pitch : 1, along: alongSum ? 1 : pitch } as const;
      const lanes = fragmentLanes(part, form.tile);
      return b.here('FRAGMENT', form.dtype, lanes, [memory, e.add(e.mul(slot, length), at)], arg);
    };
    return {
      add: (slot) => {
        for (let first = 0; first < depth; first += steps) {
          const right = Array.from({ length: tiles[1] }, (_, j) => fragment(slot, 1, j, first));
          for (let i = 0; i < tiles[0]; i++) {
            const left = fragment(slot, 0, i, first);
            for (const [j, y] of right.entries()) {
              const number = i * tiles[1] + j;
              const sum = b.load(sums, number);
              b.store(sums, number, b.here('MATRIX', 'float32', 4, [left, y, sum], { tile: form.tile }));
            }
          }
        }
      },
      results: () => {
        const all = Array.from({ length: count }, (_, i) => b.load(sums, i));
        return inPairs
          ? all.flatMap((v) => [0, 2].map((i) => e.vec([e.lane(v, i), e.lane(v, i + 1)])))
          : all.flatMap((v) => [0, 1, 2, 3].map((i) => e.lane(v, i)));
      },
    };
  };
}
