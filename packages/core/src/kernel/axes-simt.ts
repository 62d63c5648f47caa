/**
 * Loop choices for SIMT engines: one thread computes one element of the stores' common loops.
 *
 * The loops all stores of a nest share become one flat index, cut into groups of threads; everything else is serial
 * within a thread.
 */
import type { EngineCaps } from '../engine/engine.ts';
import { assumeBounds, type Exprs } from './expr.ts';
import type { Range } from './free-ranges.ts';
import type { KNode, LoopStore } from './ir.ts';
import { type Replacement, Rewriter } from './rewrite.ts';

/** Threads of a group for elementwise work. */
const groupSize = 64;

/** One nest with its shared loops spread over groups and threads. */
export function shapeNestSimt(stores: readonly LoopStore[], e: Exprs, caps: EngineCaps): LoopStore[] {
  const shared = (stores[0]?.ranges ?? []).filter((r) => stores.every((s) => s.ranges.includes(r)));
  const total = shared.reduce((n, r) => n * r.arg.extent, 1);
  if (shared.length === 0 || total === 0) return [...stores];
  const threads = Math.min(groupSize, caps.maxGroup);
  const grid = e.range(Math.ceil(total / threads), 'grid');
  const start = e.mul(grid, e.i32(threads));
  const local = e.range(threads, 'local', total % threads === 0 ? undefined : e.min(e.sub(e.i32(total), start), e.i32(threads)));
  let rest: KNode = e.add(start, local);
  assumeBounds(rest, 0, total - 1);
  const changes = new Map<Range, Replacement>();
  for (let i = shared.length - 1; i >= 0; i--) {
    const r = shared[i] as Range;
    const extent = e.i32(r.arg.extent);
    changes.set(r, { value: i === 0 ? rest : e.irem(rest, extent), ranges: [] });
    rest = e.idiv(rest, extent);
  }
  const rewriter = new Rewriter(e, changes);
  return stores.map((s) => {
    const { store, ranges } = rewriter.store(s);
    return { store, ranges: [grid, local, ...ranges] };
  });
}
