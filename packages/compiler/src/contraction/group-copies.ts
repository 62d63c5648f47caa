/**
 * Columns that groups copy for themselves into group memory, in the order in which their tiles read them. A rare form: few products gain by it, and all can do
 * with copies made beforehand.
 */
import { groupCopy } from '../codegen/costs/cpu.ts';
import type { Range } from '../ir/free-ranges.ts';
import { type Replacement, Rewriter } from '../ir/rewrite.ts';
import type { GroupCopies } from './packing.ts';
import type { CopyInGroup } from './staging.ts';
import { tileRanges } from './tile-nests.ts';
import { tileStart } from './tiles.ts';

const inGroup: CopyInGroup = (e, copied, { k, lanes, range, segment, tiles, count, outer }) => {
  const { width } = segment;
  const tile = tileRanges(e, 1, width / lanes, lanes);
  const changes = new Map<Range, Replacement>();
  for (const [r, at] of outer) changes.set(r, { value: at, ranges: [] });
  const column = e.add(tileStart(e, segment, tiles.value), tile.column);
  if (range !== null) changes.set(range, { value: column, ranges: [] });
  const loops = k.map((r) => e.range(r.arg.extent, 'serial', r.src[0]));
  for (const [i, r] of k.entries()) changes.set(r, { value: loops[i]!, ranges: [] });
  const own = [...loops, ...tiles.ranges, ...tile.ranges];
  const memory = e.stage('shared', new Rewriter(e, changes).node(copied), own);
  return {
    layout: { memory, offset: 0, perTile: width, perElement: 1, strides: stridesOf(k, width * count) },
    loops,
  };
};

/** Strides of loops, the last of which is `step` apart. */
function stridesOf(k: readonly Range[], step: number): Map<Range, number> {
  let size = step;
  const strides = new Map<Range, number>();
  for (const r of [...k].reverse()) {
    strides.set(r, size);
    size *= r.arg.extent;
  }
  return strides;
}

export const groupCopies: GroupCopies = {
  of(x, inPlace, width, order) {
    const copy = x.size * groupCopy + order;
    const strides = stridesOf(x.k, width);
    return inPlace.map((way) => ({ ...way, kind: 'local', copy, strides, sized: undefined, apart: 0, inGroup }));
  },
};
