/**
 * `linearize`: a loop nest becomes a program.
 *
 * This file distributes stores over groups: nests that share no loops are independent, their grids are laid side by side
 * and the group index selects the nest. The loops of one nest are written by linearize-nest.ts, values by
 * linearize-values.ts, reductions by linearize-reduce.ts.
 */
import type { EngineCaps } from '../engine/engine.ts';
import { ProgramBuilder } from './builder.ts';
import { costOf } from './cost.ts';
import { decompose } from './decompose.ts';
import { assumeBounds, Exprs } from './expr.ts';
import { FreeRanges, type Range } from './free-ranges.ts';
import type { KNode, LoopKernel, LoopStore, Program } from './ir.ts';
import { Nest } from './linearize-nest.ts';
import { Scope } from './linearize-scope.ts';
import { Values } from './linearize-values.ts';
import { vectorLanes } from './linearize-vector.ts';
import { splitNests } from './nests.ts';

/** Lowers a loop nest to a program for an engine. The nest is taken as it stands: call `optimize` before. */
export function linearize(kernel: LoopKernel, caps: EngineCaps): Program {
  const e = new Exprs();
  const flat = kernel.stores.flatMap(({ store }) => store.src.slice(1));
  const lowered = decompose(flat, e, caps);
  let at = 0;
  const stores = kernel.stores.map(({ store, ranges }): LoopStore => {
    const [mem] = store.src as readonly [KNode];
    const parts = lowered.slice(at, (at += store.src.length - 1)) as [KNode, KNode, KNode?];
    return { store: e.store(mem, ...parts), ranges };
  });

  const b = new ProgramBuilder(e);
  const muladd = caps.nativeOps.has('MULADD');
  const nests = splitNests(stores);
  const grids = nests.map(gridOf);
  const counts = grids.map((g) => g.reduce((n, r) => n * r.arg.extent, 1));
  const onGrid = grids.some((g) => g.length > 0);
  const total = onGrid ? counts.reduce((x, y) => x + y, 0) : 1;
  const group = e.special('group', 0, total);
  const locals = nests.map(localOf);
  const threads = Math.max(1, ...locals.map((r) => r?.arg.extent ?? 1));
  const thread = threads === 1 ? e.i32(0) : e.special('local', 0, threads);
  const shares = new Map<KNode, number>();
  let first = 0;
  nests.forEach((nest, i) => {
    const count = counts[i] as number;
    const write = (): void => {
      const scope = new Scope(e, new FreeRanges());
      const values = new Values(b, scope);
      const index = onGrid ? e.sub(group, e.i32(first)) : e.i32(0);
      if (index !== group && index.op !== 'CONST') assumeBounds(index, 0, count - 1);
      const options = { lanes: vectorLanes(nest, caps), muladd, sharedBytes: caps.sharedBytes };
      openGrid(scope, grids[i] as readonly Range[], index, () => {
        const inside = (): void => new Nest(values, options).writeStores(nest);
        const local = locals[i];
        if (local === undefined) return b.ifThen(e.eq(thread, e.i32(0)), inside);
        scope.withLoop(local, thread, () => {
          const limit = local.src[0];
          b.ifThen(e.lt(thread, limit === undefined ? e.i32(local.arg.extent) : values.lower(limit)), inside);
        });
      });
    };
    if (count === 0) return;
    if (!onGrid || nests.length === 1) write();
    else {
      const inside = e.and(e.le(e.i32(first), group), e.lt(group, e.i32(first + count)));
      shares.set(inside, count / total);
      b.ifThen(inside, write);
    }
    first += count;
  });
  const program = b.build({ name: kernel.name, grid: [total, 1, 1], group: [threads, 1, 1], params: kernel.params, scalars: kernel.scalars });
  return { ...program, cost: costOf(program.body, shares) };
}

/** The leading grid ranges of a nest; all its stores must have the same. */
function gridOf(nest: readonly LoopStore[]): readonly Range[] {
  const lists = nest.map(({ ranges }) => ranges.filter((r) => r.arg.kind === 'grid'));
  const [list] = lists as [Range[]];
  if (lists.some((l) => l.length !== list.length || l.some((r, i) => r !== list[i]))) {
    throw new Error('[linearize] stores that share loops must have the same grid ranges');
  }
  return list;
}

/** The range of a nest that runs over the threads of a group, if there is one. */
function localOf(nest: readonly LoopStore[]): Range | undefined {
  const found = new Set(nest.map(({ ranges }) => ranges.find((r) => r.arg.kind === 'local')));
  if (found.size > 1) throw new Error('[linearize] stores that share loops must have the same local range');
  return [...found][0];
}

/** Opens the grid ranges as parts of one flat index, the last varying fastest. */
function openGrid(scope: Scope, ranges: readonly Range[], index: KNode, body: () => void): void {
  const last = ranges[ranges.length - 1];
  if (last === undefined) return body();
  const { e } = scope;
  const extent = e.i32(last.arg.extent);
  const outer = ranges.slice(0, -1);
  const value = outer.length === 0 ? index : e.irem(index, extent);
  scope.withLoop(last, value, () => openGrid(scope, outer, e.idiv(index, extent), body));
}
