/** What the ways of sorting lines share. */
import type { KNode } from '../../ir/ir.ts';
import type { TensorView } from '../lines.ts';
import type { ProgramWriter } from '../program-set.ts';
import type { SortKeys } from './keys.ts';

export interface SortSpec {
  readonly axis: number;
  readonly descending: boolean;
  /** Slot 0: int32, `count` positions in every line. */
  readonly out: TensorView;
  /** Slot 1. */
  readonly x: TensorView;
}

/** A sort with what follows from its shapes. */
export interface LineSort extends SortSpec {
  readonly n: number;
  readonly count: number;
  readonly lines: number;
  readonly keys: SortKeys;
}

/** Writes position `value` as the one of rank `rank`, if it is among those wanted. */
export function storeRank(w: ProgramWriter, sort: LineSort, out: KNode, start: KNode, rank: KNode, value: KNode): void {
  const { b, e } = w;
  const at = e.add(start, e.mul(rank, sort.out.strides[sort.axis]!));
  b.store(out, at, value, sort.count < sort.n ? e.lt(rank, sort.count) : undefined);
}

/** Memory position of element i of a line that starts at `start`. */
export function elementAt({ e }: ProgramWriter, { x, axis }: LineSort, start: KNode, i: KNode): KNode {
  return e.add(start, e.mul(i, x.strides[axis]!));
}
