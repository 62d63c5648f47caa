/**
 * Orders of copies for processors with known facts; pages do not load this. A step of the innermost loop of a sum should go on where the one before
 * ended.
 */
import type { Range } from '../ir/free-ranges.ts';
import { type Axis, isFixed } from './access.ts';
import { innermostLoop } from './depth.ts';
import { domain, type Orders } from './packing.ts';
import { phased } from './phases.ts';

export const stepOrders: Orders = {
  phased,
  /** Axes of the sum that cannot become an innermost loop (depth.ts) stand outside the others. */
  inside(x, axes) {
    const isShort = (a: Axis): boolean => x.isDeep(a) && a.extent < innermostLoop;
    return [...axes.filter(isShort), ...axes.filter((a) => !isShort(a))];
  },
  /** Of a factor with windows also with the longest loop of the sum last, so that its steps stay within cache lines. */
  domains(x, along) {
    if (!x.hasWindows) return [];
    const longest = x.k
      .filter(isFixed)
      .reduce<Range | null>((a, b) => (a !== null && a.arg.extent >= b.arg.extent ? a : b), null);
    return longest !== null && longest !== along && x.isAlone(longest) ? [domain(x, along, longest)] : [];
  },
};
