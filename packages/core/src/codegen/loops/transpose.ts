/**
 * Transposes on SIMT engines: tiles that go through group memory, so that neighbouring threads read and write neighbours.
 *
 * A kernel that writes along one loop and reads along another is cut into square tiles of both. The group fills group memory along
 * the one and reads it along the other. Each line of the tile is turned by its number, so that threads that go down a column of it
 * use different banks.
 */
import { transposeSide, leastTransposed, leastTransposedElements } from '../costs/gpu.ts';
import type { CodegenCaps } from '../lowering.ts';
import { dtypeInfo } from '../../shape/dtype.ts';
import { workOf } from './work.ts';
import { assumeBounds } from '../../ir/node.ts';
import { type Range, sizeOf } from '../../ir/free-ranges.ts';
import type { KNode, KNodeOf } from '../../ir/ir.ts';
import { storesWhere } from '../../ir/kept.ts';
import { type Replacement, Rewriter } from '../../ir/rewrite.ts';
import { nodesOf } from '../../ir/traverse.ts';
import type { LoopNest } from '../transforms/nest.ts';

export interface Transpose {
  /** Loops that are written along, and that the loads below are read along. */
  readonly along: Range;
  readonly across: Range;
  readonly loads: readonly KNodeOf<'LOAD'>[];
}

/** What a nest transposes, if anything. */
export function findTranspose(nest: LoopNest, caps: CodegenCaps): Transpose | null {
  if (caps.sharedIsMemory === true || caps.maxGroup < 2 * transposeSide) return null;
  const work = workOf(nest);
  const along = work.unitRange();
  if (work.binders.length > 0 || along === undefined || along.arg.extent < leastTransposed) return null;
  const list = work.common() ?? [];
  if (list.some((r) => r.src.length > 0) || sizeOf(list) < leastTransposedElements) return null;
  const loads: KNodeOf<'LOAD'>[] = [];
  let across: Range | undefined;
  let bytes = 0;
  for (const n of nodesOf(nest.stores.map((s) => s.store))) {
    const memory = n.src[0];
    if (n.op !== 'LOAD' || memory?.op !== 'PARAM' || memory.arg.access !== 'read') continue;
    const index = n.src[1];
    const stride = work.strideOf(index, along);
    if (stride === null || Math.abs(stride) < leastTransposed) continue;
    const found = list.find((r) => r !== along && r.arg.extent >= leastTransposed && work.strideOf(index, r) === 1);
    if (found === undefined || (across !== undefined && across !== found)) continue;
    bytes += transposeSide * transposeSide * Math.max(4, dtypeInfo[n.dtype].bytes);
    if (bytes > caps.sharedBytes) continue;
    across = found;
    loads.push(n);
  }
  return across === undefined ? null : { along, across, loads };
}

/** The nest in tiles, for groups of `threads`, a power of two. */
export function shapeTranspose(nest: LoopNest, { along, across, loads }: Transpose, threads: number): LoopNest {
  const { e, stores } = nest;
  const changes = new Map<Range, Replacement>();
  const grid: Range[] = [];
  const open = (extent: number): Range => {
    const r = e.range(extent, 'grid');
    grid.push(r);
    return r;
  };
  for (const r of stores[0]!.ranges) {
    if (r !== along && r !== across) changes.set(r, { value: open(r.arg.extent), ranges: [] });
  }
  const [down, right] = [across, along].map((r) =>
    e.mul(open(Math.ceil(r.arg.extent / transposeSide)), transposeSide),
  ) as [KNode, KNode];
  const steps = (kind: 'unroll' | 'serial'): { flat: KNode; ranges: Range[] } => {
    const [turn, local] = [e.range((transposeSide * transposeSide) / threads, kind), e.range(threads, 'local')];
    return { flat: e.add(e.mul(turn, threads), local), ranges: [local, turn] };
  };
  const inside = (start: KNode, within: KNode, { arg }: Range): KNode => {
    const at = e.add(start, within);
    if (arg.extent % transposeSide !== 0) return e.min(at, arg.extent - 1);
    assumeBounds(at, 0, arg.extent - 1);
    return at;
  };
  const turned = (line: KNode, at: KNode): KNode => e.irem(e.add(line, at), transposeSide);

  const out = steps('serial');
  const [i, j] = [e.idiv(out.flat, transposeSide), e.irem(out.flat, transposeSide)];
  const outside = new Map(changes);
  outside.set(across, { value: inside(down, i, across), ranges: [] });
  outside.set(along, { value: inside(right, j, along), ranges: [] });
  const rewriter = new Rewriter(e, outside);
  for (const load of loads) {
    const { flat, ranges } = steps('unroll');
    const line = e.idiv(flat, transposeSide);
    const filling = new Map(changes);
    const back = turned(e.sub(transposeSide, line), e.irem(flat, transposeSide));
    filling.set(across, { value: inside(down, back, across), ranges: [] });
    filling.set(along, { value: inside(right, line, along), ranges: [] });
    const [local, turn] = ranges as [Range, Range];
    const tile = e.stage('shared', new Rewriter(e, filling).node(load), [turn, local]);
    rewriter.set(load, e.load(tile, e.add(e.mul(j, transposeSide), turned(j, i))));
  }
  const edges = [
    { r: across, at: e.add(down, i) },
    { r: along, at: e.add(right, j) },
  ].flatMap(({ r, at }) => (r.arg.extent % transposeSide === 0 ? [] : [e.lt(at, r.arg.extent)]));
  const kept = edges.length === 0 ? null : edges.reduce((x, y) => e.and(x, y));
  const tiled = storesWhere(e, stores, rewriter, kept, [...grid, ...out.ranges]);
  return nest.wrote(tiled, 'stage', [across, along], [transposeSide, transposeSide]);
}
