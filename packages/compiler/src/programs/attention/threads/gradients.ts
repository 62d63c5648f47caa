/**
 * Attention by groups of threads, backward: blocks of queries for the gradient of queries, blocks of keys for those of keys and
 * values. By rows and by columns, as in FlashAttention-2 (2023). Both recompute the scores. The stored logarithms of the rows' sums
 * turn these into weights without another pass.
 */
import { stretchesOf } from '../../../ir/free-ranges.ts';
import type { KNode } from '../../../ir/ir.ts';
import { fromColumn, type GradientSpec, keysMade, queriesMade } from '../operands.ts';
import { type BlockProgram, factsOf, maskedScores, slopeOf } from './blocks.ts';
import { keysRoom, queriesRoom } from './tiles.ts';

/** Gradients of the queries. */
export const queriesProgram: BlockProgram<GradientSpec> = {
  name: 'queries',
  blocks: ({ q, rows, depth }) => ({ suffix: '_queries', of: q, count: rows, room: queriesRoom, widths: [depth] }),
  write: (block) => {
    const { w, o, g, head, first } = block;
    const { spec } = o;
    const { shared, rows, columns, depth, width } = spec;
    const { b, e } = w;
    const keyHead = e.idiv(head, shared);
    const [q, flow, k, v] = [o.matrix(spec.q, head), o.matrix(spec.flow, head), o.matrix(spec.k, keyHead), o.matrix(spec.v, keyHead)]; // biome-ignore format: four alike
    const mask = o.mask(head);
    const [inDepth, inWidth, outDepth] = [g.inner(depth), g.inner(width), g.outer(depth)];
    const queries = g.tile('queries', g.height, inDepth);
    const flows = g.tile('flows', g.height, inWidth);
    const [keys, values] = [g.tile('keys', g.breadth, outDepth), g.tile('values', g.breadth, inWidth)];
    g.fill(queries, { from: q, rows: g.height, first, count: rows, width: depth, padded: inDepth });
    g.fill(flows, { from: flow, rows: g.height, first, count: rows, width, padded: inWidth });
    const facts = factsOf(
      o,
      head,
      g.rows.map((row) => e.add(first, row)),
      g.height,
    );
    const results = g.results('results', depth);
    const seen = o.columnsSeen(e.min(o.now(rows), e.add(first, g.height)));
    const turns = b.place(stretchesOf(e, seen, g.breadth));
    const bringValues = (from: KNode): void =>
      g.fill(values, { from: v, rows: g.breadth, first: from, count: columns, width, padded: inWidth });
    if (o.copies) b.ifThen(e.lt(0, turns), () => bringValues(e.i32(0)));
    b.loop(turns, (turn) => {
      const from = e.mul(turn, g.breadth);
      g.fill(keys, { from: k, rows: g.breadth, first: from, count: columns, width: depth, padded: outDepth });
      if (!o.copies) bringValues(from);
      g.filled();
      const scores = g.products('scores', queries, keys, inDepth);
      const byWeights = g.products('by_weights', flows, values, inWidth);
      const found = maskedScores(block, mask, scores, from, false).map((line, i) =>
        line.map((masked, j) => slopeOf(o, masked, facts[i]!, byWeights[i]![j]!).slope),
      );
      const slopes = g.keep('weights', found);
      if (o.copies) b.barrier();
      else g.kept();
      // Values have been read: those of the next block come while keys are multiplied.
      const next = e.add(turn, 1);
      if (o.copies) b.ifThen(e.lt(next, turns), () => bringValues(e.mul(next, g.breadth)));
      g.accumulate(results, slopes, keys, depth);
      b.barrier();
    });
    g.write(results, queriesMade(o, head, keyHead, e.irem(head, shared)), first, rows, depth);
  },
};

/** Gradients of keys and values: blocks of keys, which go through the queries of all heads that share them. */
export const keysProgram: BlockProgram<GradientSpec> = {
  name: 'keys',
  blocks: ({ k, columns, depth, width }) => {
    return { suffix: '_keys', of: k, count: columns, room: keysRoom, widths: [depth, width] };
  },
  write: (block) => {
    const { w, o, g, head: keyHead, first } = block;
    const { spec } = o;
    const { shared, rows, columns, depth, width } = spec;
    const { b, e } = w;
    const [k, v] = [o.matrix(spec.k, keyHead), o.matrix(spec.v, keyHead)];
    const [outDepth, outWidth] = [g.outer(depth), g.outer(width)];
    const [inDepth, inWidth] = [g.inner(depth), g.inner(width)];
    const keys = g.tile('keys', g.height, inDepth);
    const values = g.tile('values', g.height, inWidth);
    const [queries, flows] = [g.tile('queries', g.breadth, outDepth), g.tile('flows', g.breadth, outWidth)];
    g.fill(keys, { from: k, rows: g.height, first, count: columns, width: depth, padded: inDepth });
    g.fill(values, { from: v, rows: g.height, first, count: columns, width, padded: inWidth });
    const [byKeys, byValues] = [g.results('by_keys', depth), g.results('by_values', width)];
    const start = e.idiv(o.firstRow(first), g.breadth);
    const turns = e.max(0, e.sub(stretchesOf(e, o.now(rows), g.breadth), start));
    b.loop(o.now(shared), (sharing) => {
      const head = e.add(e.mul(keyHead, shared), sharing);
      const [q, flow, mask] = [o.matrix(spec.q, head), o.matrix(spec.flow, head), o.mask(head)];
      b.loop(turns, (turn) => {
        const from = e.mul(e.add(start, turn), g.breadth);
        g.fill(queries, { from: q, rows: g.breadth, first: from, count: rows, width: depth, padded: outDepth });
        g.fill(flows, { from: flow, rows: g.breadth, first: from, count: rows, width, padded: outWidth });
        g.filled();
        const scores = g.products('scores', keys, queries, inDepth);
        const byWeights = g.products('by_weights', values, flows, inWidth);
        const facts = factsOf(
          o,
          head,
          g.columns.map((column) => e.add(from, column)),
          g.breadth,
        );
        const found = maskedScores(block, mask, scores, from, true).map((line, i) =>
          line.map((masked, j) => slopeOf(o, masked, facts[j]!, byWeights[i]![j]!)),
        );
        const weights = g.keep(
          'weights',
          found.map((line) => line.map(({ weight }) => weight)),
        );
        const slopes = g.keep(
          'slopes',
          found.map((line) => line.map(({ slope }) => o.scaled(slope))),
        );
        g.kept();
        g.accumulate(byValues, weights, flows, width);
        g.accumulate(byKeys, slopes, queries, depth);
        b.barrier();
      });
    });
    const made = keysMade(o, keyHead);
    g.write(byKeys, made, first, columns, depth);
    g.write(byValues, fromColumn(e, made, depth), first, columns, width);
  },
};
