/**
 * `linearize`: a loop nest becomes a program.
 *
 * This file distributes stores over groups: nests that share no loops are independent, their grids are laid side by side
 * and the group index selects the nest. The loops of one nest are written by nest.ts, values by
 * values.ts, reductions by reduce.ts.
 */
import type { CodegenCaps } from '../lowering.ts';
import { ProgramBuilder } from '../../ir/builder/builder.ts';
import { costOf, programOf } from '../../ir/program.ts';
import { decompose } from '../../arithmetic/decompose/decompose.ts';
import { Exprs } from '../../ir/expr.ts';
import { assumeBounds } from '../../ir/node.ts';
import { FreeRanges, type Range, reduceRanges, sameRanges, sizeOf, splitNests } from '../../ir/free-ranges.ts';
import type { KNode, LoopKernel, LoopStore, Program } from '../../ir/ir.ts';
import { Nest } from './nest.ts';
import { refuse, Scope } from './scope.ts';
import { Values } from './values.ts';
import { vectorLanes } from './vector.ts';

/** Most groups along one axis that every SIMT engine takes (WebGPU's default limit). */
export const gridLimit = 65535;

/** Lowers a loop nest to a program for an engine. The nest is taken as it stands: call `optimize` before. */
export function linearize(kernel: LoopKernel, caps: CodegenCaps): Program {
  const e = new Exprs();
  const flat = kernel.stores.flatMap(({ store }) => store.src.slice(1));
  const lowered = decompose(flat, e, caps);
  let at = 0;
  const stores = kernel.stores.map(({ store, ranges }): LoopStore => {
    const [mem] = store.src;
    const parts = lowered.slice(at, (at += store.src.length - 1)) as [KNode, KNode, KNode?];
    return { store: e.store(mem, ...parts), ranges };
  });

  const b = new ProgramBuilder(e);
  const muladd = caps.nativeOps.has('MULADD');
  const nests = splitNests(stores);
  const grids = nests.map(gridOf);
  const counts = grids.map((g) => sizeOf(g));
  const onGrid = grids.some((g) => g.length > 0);
  const total = onGrid ? counts.reduce((x, y) => x + y, 0) : 1;
  const columns = caps.simt ? Math.min(total, gridLimit) : total;
  const rows = columns === 0 ? 1 : Math.ceil(total / columns);
  const group = groupIndex(e, columns, rows);
  const threads = threadsOf(stores);
  const shares = new Map<KNode, number>();
  let first = 0;
  nests.forEach((nest, i) => {
    const count = counts[i]!;
    const write = (): void => {
      const scope = new Scope(e, new FreeRanges());
      const values = new Values(b, scope);
      const index = onGrid ? e.sub(group, first) : e.i32(0);
      if (index !== group && index.op !== 'CONST') assumeBounds(index, 0, count - 1);
      const options = {
        lanes: vectorLanes(nest, caps),
        muladd,
        simt: caps.simt,
        caps,
        threads,
      };
      openGrid(scope, grids[i]!, index, () => new Nest(values, options).writeStores(nest));
    };
    if (count === 0) return;
    if (!onGrid || (nests.length === 1 && columns * rows === total)) write();
    else {
      const inside = e.and(e.le(first, group), e.lt(group, first + count));
      shares.set(inside, count / total);
      b.ifThen(inside, write);
    }
    first += count;
  });
  const program = b.build({
    name: kernel.name,
    grid: [columns, rows, 1],
    group: [threads, 1, 1],
    params: kernel.params,
    scalars: kernel.scalars,
    transforms: kernel.transforms,
  });
  return programOf({ ...program, cost: costOf(program.body, shares, threads) });
}

/** Number of the running group; large grids are folded over two axes, where the last row may have groups to spare. */
function groupIndex(e: Exprs, columns: number, rows: number): KNode {
  const column = e.special('group', 0, columns);
  return rows === 1 ? column : e.add(e.mul(e.special('group', 1, rows), columns), column);
}

/** The leading grid ranges of a nest; all its stores must have the same. */
function gridOf(nest: readonly LoopStore[]): readonly Range[] {
  const lists = nest.map(({ ranges }) => ranges.filter((r) => r.arg.kind === 'grid'));
  const [list] = lists as [Range[]];
  if (lists.some((l) => !sameRanges(l, list))) {
    refuse(nest[0]!.store, 'shares loops with a store of other grid ranges');
  }
  return list;
}

/** Threads of a group: the largest local range among loops and reductions. */
function threadsOf(stores: readonly LoopStore[]): number {
  let threads = 1;
  for (const { store, ranges } of stores) {
    for (const r of [...ranges, ...reduceRanges(store)])
      if (r.arg.kind === 'local') threads = Math.max(threads, r.arg.extent);
  }
  return threads;
}

/** Opens the grid ranges as parts of one flat index, the last varying fastest. */
function openGrid(scope: Scope, ranges: readonly Range[], index: KNode, body: () => void): void {
  const last = ranges[ranges.length - 1];
  if (last === undefined) {
    body();
    return;
  }
  const { e } = scope;
  const extent = e.i32(last.arg.extent);
  const outer = ranges.slice(0, -1);
  const value = outer.length === 0 ? index : e.irem(index, extent);
  scope.withLoop(last, value, () => openGrid(scope, outer, e.idiv(index, extent), body));
}
