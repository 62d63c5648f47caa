/** Attention by processors, forward: strips of queries, with a running maximum and sum of each. */
import type { CodegenCaps } from '../../../codegen/lowering.ts';
import type { ProgramSet } from '../../program-set.ts';
import { type AttentionSpec, fromColumn, lowest } from '../operands.ts';
import { eachBlock, stripsOfQueries, up } from './strip.ts';

/** Values and logarithms of all queries. */
export function forwardByProcessors(set: ProgramSet, spec: AttentionSpec, caps: CodegenCaps): void {
  const { columns, depth, width } = spec;
  stripsOfQueries(set, '', spec, caps, ({ s, o, head, k, v, mask, queries, end }) => {
    const { w, s: shape } = s;
    const { b, e } = w;
    const scores = s.lines('scores', up(shape.block, shape.tile[0]));
    const results = s.lines('results', width);
    const [top, total, shrink] = [s.lines('top', 1), s.lines('total', 1), s.lines('shrink', 1)];
    s.clear(results, width, 0);
    s.clear(total, 1, 0);
    s.clear(top, 1, lowest[o.wide]);
    eachBlock(w, shape.block, columns, e.i32(0), end(), (block) => {
      s.products('products', scores, k, block, depth, queries);
      s.eachVector((x) => {
        const [high, sum] = [b.reg('high', o.wide, shape.lanes), b.reg('sum', o.wide, shape.lanes)];
        const before = s.load(top, x);
        b.store(high, 0, before);
        b.loop(block.length, (c) => {
          const at = s.at(c, x);
          const score = s.load(scores, at);
          const masked = b.place(s.masked(score, mask, x, e.add(block.from, c), false));
          if (s.isMasked) b.store(scores, at, masked);
          b.store(high, 0, o.greater(b.load(high, 0, shape.lanes), masked));
        });
        const now = b.load(high, 0, shape.lanes);
        const factor = b.place(o.exp(e.sub(before, now)));
        b.store(shrink, x, factor);
        b.store(top, x, now);
        b.store(sum, 0, e.mul(s.load(total, x), factor));
        b.loop(block.length, (c) => {
          const at = s.at(c, x);
          const weight = b.place(s.weight(s.load(scores, at), now));
          b.store(scores, at, weight);
          b.store(sum, 0, e.add(b.load(sum, 0, shape.lanes), weight));
        });
        b.store(total, x, b.load(sum, 0, shape.lanes));
      });
      s.accumulate('values', results, v, block, width, { weights: scores, shrink });
    });
    s.eachVector((x) => {
      const sum = s.load(total, x);
      const zero = e.splat(o.number(0), shape.lanes);
      const none = s.isMasked ? e.eq(sum, zero) : e.bool(false, shape.lanes);
      const divisor = b.place(e.where(none, e.splat(o.number(1), shape.lanes), sum));
      b.loop(width, (i) => b.store(results, s.at(i, x), e.div(s.load(results, s.at(i, x)), divisor)));
      b.store(shrink, x, e.where(none, zero, e.add(s.load(top, x), o.log(divisor))));
    });
    const made = o.made(head);
    s.write(results, made, width);
    s.write(shrink, fromColumn(e, made, width), 1);
  });
}
