/**
 * Phases side by side, where a test of a loop's number modulo a small divisor chooses what is read. Results of a convolution whose input had holes are such.
 * Each phase reads its own tensor without a test. Pages whose engine is WebAssembly do not load this: such gradients take at most a tenth longer there.
 */
import { endsAlone, isMultiple } from '../../ir/free-ranges.ts';
import type { KNode, KNodeOf } from '../../ir/ir.ts';
import { nodesOf } from '../../ir/node.ts';
import { literalOf } from '../../ir/simplify/integers.ts';
import type { Values } from '../linearize/scope.ts';
import { type LoopNest, split } from './transforms.ts';
import { workOf } from './work.ts';

/** Most phases of a loop that are computed side by side. */
const mostPhases = 4;

/**
 * The nest with its phases side by side. Lanes choose by themselves along the loop that is written in order (`pickLanes`), if all vectors have the
 * same pattern.
 */
export function splitPhases(nest: LoopNest): LoopNest {
  for (const n of nodesOf(nest.stores.map((s) => s.store))) {
    const rem = n.op === 'LT' ? n.src.find((x) => x.op === 'IREM') : undefined;
    const range = rem?.src[0];
    const by = rem === undefined ? null : (literalOf(rem.src[1]!) as number | null);
    if (range?.op !== 'RANGE' || by === null || by > mostPhases || !endsAlone(range) || !isMultiple(range, by))
      continue;
    const work = workOf(nest);
    const isUnit = work.writes(range, 1);
    if (work.common()?.includes(range) !== true || (isUnit && by !== 3)) continue;
    return splitPhases(split(nest, range, by, range.arg.kind, isUnit ? range.arg.kind : 'unroll'));
  }
  return nest;
}

/**
 * Elements of several rows in a fixed pattern: each lane reads only what it keeps. Null where the pattern is not known, is the same in all lanes, or
 * whole vectors of a row are blended.
 */
export function pickLanes(root: KNodeOf<'WHERE'>, values: Values): KNode | null {
  const { scope } = values;
  if (!scope.isVector(scope.free.of(root.src[0]))) return null;
  const leaves = new Set<KNode>();
  const lanes: KNode[] = [];
  for (let k = 0; k < scope.vector!.lanes; k++) {
    let n: KNode = root;
    while (n.op === 'WHERE') {
      const [test, yes, no]: KNodeOf<'WHERE'>['src'] = n.src;
      const known = literalOf(scope.atLane(k, () => values.lower(test)));
      if (known === null) return null;
      n = known ? yes : no;
    }
    if (n.op !== 'LOAD' || n.src[0].op === 'STAGE') return null;
    if (!leaves.has(n) && values.address(n.src[1]).kind === 'unit') return null;
    leaves.add(n);
    const leaf = n;
    lanes.push(scope.atLane(k, () => values.lower(leaf)));
  }
  return leaves.size < 2 ? null : scope.e.vec(lanes);
}
