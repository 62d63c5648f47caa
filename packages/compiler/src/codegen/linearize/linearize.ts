/**
 * `linearize`: a loop nest becomes a program.
 *
 * Stores are distributed over groups first: nests that share no loops are independent, their grids are concatenated
 * and the group index selects the nest. Then come the loops of one nest (nest.ts). scope.ts writes values, reduce.ts reductions.
 */
import { told } from '#shown-as';
import { decompose } from '../../arithmetic/decompose/decompose.ts';
import { ProgramBuilder } from '../../ir/builder/builder.ts';
import { Exprs } from '../../ir/expr.ts';
import { endOf, FreeRanges, lengthOf, type Range, reduceRanges, sizeOf, splitNests } from '../../ir/free-ranges.ts';
import { Nest, type NestOptions } from './nest.ts';
import type { KNode, KValue, LoopKernel, LoopStore, Program } from '../../ir/ir.ts';
import { assumeBounds, sameNodes } from '../../ir/node.ts';
import { costOf, programOf } from '../../ir/program.ts';
import type { CodegenCaps } from '../lowering.ts';
import { refuse, Scope, Values } from './scope.ts';
import { vectorLanes } from './vector.ts';

/** Most groups along one axis that every SIMT engine takes (WebGPU's default limit). */
export const gridLimit = 65535;

/** Code of a nest in place of its own loops, inside of those of the grid. */
export interface Inside {
  /** Expressions it needs besides the stores; `write` gets them as they are lowered. */
  readonly values: readonly KNode[];
  write(values: Values, options: NestOptions, stores: readonly LoopStore[], lowered: readonly KNode[]): void;
}

/** Lowers a loop nest to a program for an engine, without changing its loops: call `optimize` before. */
export function linearize(kernel: LoopKernel, caps: CodegenCaps, inside?: Inside): Program {
  const e = new Exprs();
  const flat = kernel.stores.flatMap(({ store }) => store.src.slice(1));
  if (inside !== undefined) flat.push(...(inside.values as readonly KValue[]));
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
  const group = groupIndex(e, columns, rows, 0);
  const threads = threadsOf(stores);
  const shares = new Map<KNode, number>();
  // The number of groups of threads depends on the size; if a group is one thread it does not.
  const ends = grids.map((g) => (caps.simt ? endOf(e, g) : null));
  let first: KNode = e.i32(0);
  nests.forEach((nest, i) => {
    const count = counts[i]!;
    const end = ends[i] ?? null;
    const write = (): void => {
      const scope = new Scope(e, new FreeRanges());
      const values = new Values(b, scope, caps.lowering);
      // Its own node: what is known of it here does not hold in other nests.
      const index = onGrid ? e.sub(groupIndex(e, columns, rows, i), first) : e.i32(0);
      if (index !== group && index.op !== 'CONST') assumeBounds(index, 0, count - 1);
      const options = {
        lanes: vectorLanes(nest, caps),
        muladd,
        simt: caps.simt,
        caps,
        threads,
      };
      openGrid(values, grids[i]!, index, caps.simt, () =>
        inside === undefined
          ? new Nest(values, options).writeStores(nest)
          : inside.write(values, options, nest, lowered.slice(at)),
      );
    };
    if (count === 0) return;
    const after = e.add(first, end ?? count);
    // With one nest only the groups that a size needs are run, unless they fill rows of the grid.
    const exact = end === null ? columns * rows === total : rows === 1;
    if (!onGrid || (nests.length === 1 && exact)) write();
    else {
      const here = e.and(e.le(first, group), e.lt(group, after));
      shares.set(here, count / total);
      b.ifThen(here, write);
    }
    first = after;
  });
  const program = b.build({
    name: kernel.name,
    grid: [columns, rows, 1],
    group: [threads, 1, 1],
    params: kernel.params,
    scalars: kernel.scalars,
    transforms: kernel.transforms,
  });
  const groups = ends.some((end) => end !== null) ? { groups: first } : null;
  return programOf({ ...program, cost: costOf(program.body, shares, threads), ...groups });
}

/** Number of the running group, for one nest; large grids are folded over two axes, whose last row may have surplus groups. */
function groupIndex(e: Exprs, columns: number, rows: number, nest: number): KNode {
  const column = e.special('group', 0, columns, nest);
  return rows === 1 ? column : e.add(e.mul(e.special('group', 1, rows, nest), columns), column);
}

/** The leading grid ranges of a nest, which all its stores must share. */
function gridOf(nest: readonly LoopStore[]): readonly Range[] {
  const lists = nest.map(({ ranges }) => ranges.filter((r) => r.arg.kind === 'grid'));
  const [list] = lists as [Range[]];
  if (lists.some((l) => !sameNodes(l, list))) {
    refuse(nest[0]!.store, told && 'shares loops with a store of other grid ranges');
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

/**
 * Opens the grid ranges as parts of one flat index, the last varying fastest. Groups beyond the end of a range that ends at a size do nothing;
 * with groups of threads there are none.
 */
function openGrid(values: Values, ranges: readonly Range[], index: KNode, simt: boolean, body: () => void): void {
  const last = ranges[ranges.length - 1];
  if (last === undefined) {
    body();
    return;
  }
  const { scope, b } = values;
  const { e } = scope;
  const extent = simt ? values.lower(lengthOf(e, last)) : e.i32(last.arg.extent);
  const outer = ranges.slice(0, -1);
  const value = outer.length === 0 ? index : e.irem(index, extent);
  const [limit] = last.src;
  const rest = e.idiv(index, extent);
  if (simt && limit !== undefined && outer.length > 0) assumeBounds(rest, 0, sizeOf(outer) - 1);
  const open = (): void => scope.withLoop(last, value, () => openGrid(values, outer, rest, simt, body));
  if (simt || limit === undefined) open();
  else b.ifThen(e.lt(value, values.lower(limit)), open);
}
