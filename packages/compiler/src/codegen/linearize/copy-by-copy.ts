/** The end of reductions whose many copies have lanes to combine. */
import type { DType } from '../../shape/dtype.ts';
import type { CopyByCopy, State } from '../lowering.ts';

/** Combines lanes in a loop over the copies, through memory, because registers have no indices at run time. */
export const copyByCopy: CopyByCopy = (values, { dtype }, accumulator, count, { groups, tree, combine }) => {
  const { b, scope } = values;
  const { e } = scope;
  const held = groups.map(({ lanes, combined }) => {
    const memory = b.shared('parts', accumulator, count * lanes);
    for (let k = 0; k < count; k++) b.store(memory, k * lanes, combined(k));
    return { lanes, memory };
  });
  const whole = b.shared('whole', dtype as DType, count);
  b.loop(count, (copy) => {
    const parts = held.map(({ lanes, memory }) => {
      const at = e.mul(copy, lanes);
      return tree(Array.from({ length: lanes }, (_, k): State => [b.load(memory, e.add(at, k))]));
    });
    b.store(whole, copy, e.cast(parts.reduce((x, y) => combine(x, y))[0]!, dtype));
  });
  return whole;
};
