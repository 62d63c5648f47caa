/** Forms of work that few programs have, which `#rare` gives at once or loads: code that plans can do without, more slowly. */
import { reduceColumns } from '@polygrad/compiler/codegen/linearize/columns';
import { columnsOf } from '@polygrad/compiler/codegen/loops/columns';
import { reduceWhileStaging } from '@polygrad/compiler/codegen/loops/reduce-while-staging';
import { rowsAndRest } from '@polygrad/compiler/codegen/loops/rows-and-rest';
import { cutShort, joinShort } from '@polygrad/compiler/codegen/loops/short-rows';
import type { RareLoops } from '@polygrad/compiler/codegen/lowering';
import { dropAxes } from '@polygrad/compiler/shape/axes';
import type { Shape } from '@polygrad/compiler/shape/view';
import type { Attrs } from '../../graph/node.ts';
import type { PlanGraph, PlanNode } from '../capture/plan-graph.ts';
import { chunkCount, chunkLeast, enough, inChunks, runsOf, staysWhole } from '../capture/split.ts';
import { keepRow } from './keep-row.ts';
import { splitDilated } from './split-dilated.ts';
import { sumOfProducts } from './sum-of-products.ts';

export interface RareForms extends RareLoops {
  readonly keepRow: typeof keepRow;
  readonly splitDilated: typeof splitDilated;
  readonly splitArgReduce: typeof splitArgReduce;
  readonly sumOfProducts: typeof sumOfProducts;
}

export const forms: RareForms = {
  columnsOf,
  reduceColumns,
  reduceWhileStaging,
  rowsAndRest,
  cutShort,
  joinShort,
  keepRow,
  splitDilated,
  splitArgReduce,
  sumOfProducts,
};

/**
 * The two-step form of a position of the greatest or least element, or null if it is better left whole: each chunk's position and
 * value, then the chunk that wins. Chunks are cut from the slowest axis, so that the first of equal elements lies in the first of
 * equal chunks.
 */
export function splitArgReduce(
  graph: PlanGraph,
  x: PlanNode,
  { op, axes: reduced }: Attrs['argReduce'],
  shape: Shape,
  size: number,
): PlanNode | null {
  const total = x.size / size;
  if (staysWhole(graph, x, reduced, size)) return null;
  const run = runsOf(x.shape, reduced)[0]!;
  const chunks = chunkCount(
    run.extent,
    Math.min(Math.floor(total / chunkLeast), Math.max(2, Math.ceil(enough / size))),
  );
  if (chunks < 2) return null;
  const length = Math.ceil(run.extent / chunks);
  const { value, axes, chunkAxis } = inChunks(graph, x, { op, axes: reduced }, run, chunks, length);
  const partial = dropAxes(value.shape, axes);
  const best = graph.exactly('reduce', { op, axes, ties: 'share' }, [value], partial, x.dtype);
  const at = graph.exactly('argReduce', { op, axes }, [value], partial, 'int32');
  best.forced = at.forced = true;
  // First the winning chunk, then the winning position in the whole source.
  const winner = graph.exactly('argReduce', { op, axes: [chunkAxis] }, [best], shape, 'int32');
  winner.forced = true;
  const kept = partial.map((n, axis) => (axis === chunkAxis ? 1 : n));
  const spread = graph.make('expand', { shape: partial }, [graph.reshape(winner, kept)], partial, 'int32');
  const line = partial.map((n, axis) => (axis === chunkAxis ? n : 1));
  const counted = graph.reshape(graph.make('iota', { length: chunks }, [], [chunks], 'int32'), line);
  const number = graph.make('expand', { shape: partial }, [counted], partial, 'int32');
  const step = graph.constant((total / run.extent) * length, partial, 'int32');
  const first = graph.make('mul', null, [number, step], partial, 'int32');
  const whole = graph.make('add', null, [first, at], partial, 'int32');
  const wins = graph.make('eq', null, [number, spread], partial, 'bool');
  const one = graph.make('where', null, [wins, whole, graph.constant(0, partial, 'int32')], partial, 'int32');
  return graph.exactly('reduce', { op: 'sum', axes: [chunkAxis], ties: 'share' }, [one], shape, 'int32');
}
