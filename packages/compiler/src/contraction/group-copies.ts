/**
 * Columns that groups copy for themselves into group memory, in the order in which their tiles read them. A rare form: few products gain
 * by it, and all can do with copies made beforehand. It imports nothing that only engines without threads in groups have: pages with
 * others load it too.
 */
import { groupCopy } from '../codegen/costs/cpu.ts';
import type { Range } from '../ir/free-ranges.ts';
import { type Replacement, Rewriter } from '../ir/rewrite.ts';
import type { GroupCopies } from './packing.ts';
import type { CopyInGroup } from './staging.ts';

const inGroup: CopyInGroup = (e, copied, { k, at, loops: own, width, columns }) => {
  const changes = new Map<Range, Replacement>();
  for (const [r, value] of at) changes.set(r, { value, ranges: [] });
  const loops = k.map((r) => e.range(r.arg.extent, 'serial', r.src[0]));
  for (const [i, r] of k.entries()) changes.set(r, { value: loops[i]!, ranges: [] });
  const memory = e.stage('shared', new Rewriter(e, changes).node(copied), [...loops, ...own]);
  return { layout: { memory, offset: 0, perTile: width, perElement: 1, strides: stridesOf(k, columns) }, loops };
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
