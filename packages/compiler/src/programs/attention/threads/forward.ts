/**
 * Attention by groups of threads, forward: blocks of queries, with the running maximum and sum of the exponentials of each row (Dao et al.,
 * "FlashAttention", 2022). Scores exist for one block at a time, where they are made.
 */
import { stretchesOf } from '../../../ir/free-ranges.ts';
import type { KNode } from '../../../ir/ir.ts';
import { type AttentionSpec, fromColumn, lowest, placeOf } from '../operands.ts';
import { type BlockProgram, maskedScores } from './blocks.ts';
import { copyingRoom, forwardRoom } from './tiles.ts';

/** Values and logarithms of all queries. */
export const forwardProgram: BlockProgram<AttentionSpec> = {
  name: 'forward',
  blocks: ({ q, rows, width }, { copies }) => {
    const room = copies === true ? copyingRoom : forwardRoom;
    return { suffix: '', of: q, count: rows, room, widths: [width] };
  },
  write: (block) => {
    const { w, o, g, head, first } = block;
    const { spec } = o;
    const { shared, rows, columns, depth, width } = spec;
    const { b, e } = w;
    const keyHead = e.idiv(head, shared);
    const [q, k, v] = [o.matrix(spec.q, head), o.matrix(spec.k, keyHead), o.matrix(spec.v, keyHead)];
    const mask = o.mask(head);
    const [inDepth, inWidth] = [g.inner(depth), g.outer(width)];
    const queries = g.tile('queries', g.height, inDepth);
    // Where threads copy beside other work, keys of the next block come while values are multiplied, and values while scores are computed.
    const keys = g.tile('keys', g.breadth, o.copies ? inDepth : Math.max(inDepth, inWidth));
    const values = o.copies ? g.tile('values', g.breadth, inWidth) : keys;
    const bringKeys = (from: KNode): void =>
      g.fill(keys, { from: k, rows: g.breadth, first: from, count: columns, width: depth, padded: inDepth });
    const bringValues = (from: KNode): void =>
      g.fill(values, { from: v, rows: g.breadth, first: from, count: columns, width, padded: inWidth });
    g.fill(queries, { from: q, rows: g.height, first, count: rows, width: depth, padded: inDepth });
    const results = g.results('results', width);
    const [top, total] = [b.reg('top', o.wide, 1, g.rows.length), b.reg('total', o.wide, 1, g.rows.length)];
    for (const i of g.rows.keys()) {
      b.store(top, i, o.number(lowest[o.wide]));
      b.store(total, i, o.number(0));
    }
    const seen = o.columnsSeen(e.min(o.now(rows), e.add(first, g.height)));
    const turns = b.place(stretchesOf(e, seen, g.breadth));
    if (o.copies) b.ifThen(e.lt(0, turns), () => bringKeys(e.i32(0)));
    b.loop(turns, (turn) => {
      const from = e.mul(turn, g.breadth);
      if (!o.copies) bringKeys(from);
      g.filled();
      if (o.copies) bringValues(from);
      const found = maskedScores(block, mask, g.products('scores', queries, keys, inDepth), from, false);
      const highest = found.map((line) =>
        line
          .map(({ score, allowed }): KNode => b.place(e.where(allowed, score, o.number(lowest[o.wide]))))
          .reduce((x, y) => o.greater(x, y)),
      );
      // Where keys and values have one tile, all have read the keys before values come.
      const tops = g
        .acrossRow(highest, (x, y) => o.greater(x, y), !o.copies)
        .map((high, i): KNode => b.place(o.greater(b.load(top, i), high)));
      const shrink = tops.map((now, i): KNode => b.place(o.exp(e.sub(b.load(top, i), now))));
      const shares = found.map((line, i) =>
        line.map(({ score, allowed }): KNode => b.place(e.where(allowed, o.exp(e.sub(score, tops[i]!)), o.number(0)))),
      );
      for (const i of g.rows.keys()) {
        const own = shares[i]!.reduce((x, y) => e.add(x, y));
        b.store(total, i, o.product(b.load(total, i), shrink[i]!, own));
        b.store(top, i, tops[i]!);
      }
      g.scale(results, width, { factor: shrink });
      const weights = g.keep('weights', shares);
      if (!o.copies) bringValues(from);
      g.filled();
      const next = e.add(turn, 1);
      if (o.copies) b.ifThen(e.lt(next, turns), () => bringKeys(e.mul(next, g.breadth)));
      g.accumulate(results, weights, values, width);
      // Targets with asynchronous copies have another barrier before anything that is read here is overwritten.
      if (!o.copies) b.barrier();
    });
    const sums = g.acrossRow(
      [...g.rows.keys()].map((i) => b.load(total, i)),
      (x, y) => e.add(x, y),
      false,
    );
    const isMasked = mask !== null || spec.causal !== null;
    const none = sums.map((sum) => (isMasked ? e.eq(sum, 0) : e.bool(false)));
    const divisor = sums.map((sum, i) => e.where(none[i]!, o.number(1), sum));
    g.scale(results, width, { divisor });
    const made = o.made(head);
    g.write(results, made, first, rows, width);
    const logarithms = fromColumn(e, made, width);
    b.ifThen(g.isFirst, () =>
      divisor.forEach((sum, i) => {
        const row = e.add(first, g.rows[i]!);
        const logarithm = e.where(none[i]!, o.number(0), e.add(b.load(top, i), o.log(sum)));
        const gate = o.isWhole(rows, g.height) ? undefined : e.lt(row, o.now(rows));
        b.store(o.out, placeOf(e, logarithms, row, e.i32(0)), logarithm, gate);
      }),
    );
  },
};
