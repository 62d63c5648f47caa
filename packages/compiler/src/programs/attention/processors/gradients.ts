/**
 * Attention by processors, backward: all gradients of a head in one pass over its scores, or those of queries, and of keys and values, in a pass each.
 */
import { attentionHeads } from '../../../codegen/costs/attention.ts';
import type { CodegenCaps } from '../../../codegen/lowering.ts';
import { stretchesOf } from '../../../ir/free-ranges.ts';
import type { KNode } from '../../../ir/ir.ts';
import type { ProgramSet } from '../../program-set.ts';
import { fromColumn, type GradientSpec, keysMade, type Matrix, Operands, placeOf, queriesMade } from '../operands.ts';
import { eachBlock, shapeFor, Strip, type StripFacts, stripOf, stripsOfQueries, up } from './strip.ts';

/** The logarithms of a head. */
function logarithmsOf(o: Operands<GradientSpec>, head: KNode): Matrix {
  const { made, width } = o.spec;
  return fromColumn(o.w.e, o.matrix(made, head), width);
}

/**
 * Gradients of queries, keys and values. If there are enough heads of keys for all workers, a group has one of them and computes every score once. Otherwise, or if
 * rows are not whole vectors, queries and keys have separate programs. The bits are the same: sums are taken in the same order.
 */
export function gradientByProcessors(set: ProgramSet, spec: GradientSpec, caps: CodegenCaps): void {
  const { lanes } = shapeFor(caps, spec, spec.rows, spec.columns);
  const inVectors = [spec.depth, spec.width].every((n) => n % lanes === 0);
  const inRows = [spec.q, spec.flow].every(({ view }) => view.strides.at(-1) === 1 && view.dtype === spec.out.dtype);
  const isOne = spec.part === 'all' && inVectors && inRows;
  if (isOne && (caps.parallelism === 1 || spec.keyHeads >= attentionHeads * caps.parallelism))
    headsByProcessors(set, spec, caps);
  else {
    if (spec.part !== 'keys') queriesByProcessors(set, spec, caps);
    if (spec.part !== 'queries') keysByProcessors(set, spec, caps);
  }
}

/** All gradients of a head of keys. */
function headsByProcessors(set: ProgramSet, spec: GradientSpec, caps: CodegenCaps): void {
  const { keyHeads, shared, rows, columns, depth, width } = spec;
  const shape = shapeFor(caps, spec, rows, columns);
  set.add('', keyHeads, (w) => {
    const { b, e, group: keyHead } = w;
    const o = new Operands(w, spec, caps, 'readwrite');
    o.ifThere(spec.k, keyHead, null, 0, () => {
      const ofKeys = keysMade(o, keyHead);
      const ofValues = fromColumn(e, ofKeys, depth);
      b.loop(o.now(columns), (c) =>
        b.loop((depth + width) / shape.lanes, (i) =>
          b.store(o.out, placeOf(e, ofKeys, c, e.mul(i, shape.lanes)), e.splat(o.number(0), shape.lanes)),
        ),
      );
      const [k, v] = [o.matrix(spec.k, keyHead), o.matrix(spec.v, keyHead)];
      b.loop(o.now(shared), (sharing) => {
        const head = e.add(e.mul(keyHead, shared), sharing);
        const [q, flow, mask] = [o.matrix(spec.q, head), o.matrix(spec.flow, head), o.mask(head)];
        const made = queriesMade(o, head, keyHead, sharing);
        b.loop(stretchesOf(e, o.now(rows), shape.strip), (turn) => {
          const s = new Strip(w, o, shape, e.mul(turn, shape.strip), rows);
          const [queries, flows] = [s.transposed('queries', q, depth), s.transposed('flows', flow, width)];
          const facts = rowFacts(s, o, head);
          const lines = up(shape.block, shape.tile[0]);
          const [scores, byWeights] = [s.lines('scores', lines), s.lines('by_weights', lines)];
          const results = s.lines('results', depth);
          s.clear(results, depth, 0);
          const end = o.columnsSeen(e.min(o.now(rows), e.add(s.first, shape.strip)));
          eachBlock(w, shape.block, columns, e.i32(0), end, (block) => {
            s.products('products', scores, k, block, depth, queries);
            s.products('flowing', byWeights, v, block, width, flows);
            s.slopes(scores, byWeights, facts, mask, block, true);
            s.accumulate('slopes', results, k, block, depth, { weights: byWeights });
            s.gather('by_keys', ofKeys, block, byWeights, q, depth);
            s.gather('by_values', ofValues, block, scores, flow, width);
          });
          s.write(results, made, depth);
        });
      });
    });
  });
}

function rowFacts(s: Strip, o: Operands<GradientSpec>, head: KNode): StripFacts {
  return {
    logs: s.transposed('logarithms', logarithmsOf(o, head), 1),
    backs: s.transposed('backs', o.matrix(o.spec.back, head), 1),
  };
}

/** Gradients of the queries. */
function queriesByProcessors(set: ProgramSet, spec: GradientSpec, caps: CodegenCaps): void {
  const { shared, columns, depth, width } = spec;
  stripsOfQueries(set, '_queries', spec, caps, ({ s, o, head, keyHead, k, v, mask, queries, end }) => {
    const { w, s: shape } = s;
    const flows = s.transposed('flows', o.matrix(spec.flow, head), width);
    const facts = rowFacts(s, o, head);
    const lines = up(shape.block, shape.tile[0]);
    const [scores, byWeights] = [s.lines('scores', lines), s.lines('by_weights', lines)];
    const results = s.lines('results', depth);
    s.clear(results, depth, 0);
    eachBlock(w, shape.block, columns, w.e.i32(0), end(), (block) => {
      s.products('products', scores, k, block, depth, queries);
      s.products('flowing', byWeights, v, block, width, flows);
      s.slopes(scores, byWeights, facts, mask, block, false);
      s.accumulate('slopes', results, k, block, depth, { weights: byWeights });
    });
    s.write(results, queriesMade(o, head, keyHead, w.e.irem(head, shared)), depth);
  });
}

/** Gradients of keys and values: strips of keys, which go through the queries of all heads that share them. */
function keysByProcessors(set: ProgramSet, spec: GradientSpec, caps: CodegenCaps): void {
  const { keyHeads, shared, rows, columns, depth, width } = spec;
  const shape = shapeFor(caps, spec, columns, rows);
  const strips = Math.ceil(columns / shape.strip);
  set.add('_keys', keyHeads * strips, (w) => {
    const { b, e } = w;
    const o = new Operands(w, spec, caps);
    const { head: keyHead, first } = stripOf(w, strips, shape.strip);
    o.ifThere(spec.k, keyHead, first, columns, () => {
      const s = new Strip(w, o, shape, first, columns);
      const keys = s.transposed('keys', o.matrix(spec.k, keyHead), depth);
      const values = s.transposed('values', o.matrix(spec.v, keyHead), width);
      const lines = up(shape.block, shape.tile[0]);
      const [scores, byWeights] = [s.lines('scores', lines), s.lines('by_weights', lines)];
      const [byKeys, byValues] = [s.lines('by_keys', depth), s.lines('by_values', width)];
      s.clear(byKeys, depth, 0);
      s.clear(byValues, width, 0);
      const start = o.firstRow(first);
      b.loop(o.now(shared), (sharing) => {
        const head = e.add(e.mul(keyHead, shared), sharing);
        const [q, flow, mask] = [o.matrix(spec.q, head), o.matrix(spec.flow, head), o.mask(head)];
        const [logs, backs] = [logarithmsOf(o, head), o.matrix(spec.back, head)];
        eachBlock(w, shape.block, rows, start, o.now(rows), (block) => {
          s.products('products', scores, q, block, depth, keys);
          s.products('flowing', byWeights, flow, block, width, values);
          b.loop(block.length, (c) => {
            const row = e.add(block.from, c);
            const [log, back] = [logs, backs].map((m) =>
              e.splat(b.place(o.read(m.memory, placeOf(e, m, row, e.i32(0)))), shape.lanes),
            ) as [KNode, KNode];
            s.eachVector((x) => {
              const at = s.at(c, x);
              const score = b.place(s.masked(s.load(scores, at), mask, x, row, true));
              const weight = b.place(s.weight(score, log));
              b.store(scores, at, weight);
              b.store(byWeights, at, e.mul(weight, e.sub(s.load(byWeights, at), back)));
            });
          });
          s.accumulate('weights', byValues, flow, block, width, { weights: scores });
          s.accumulate('slopes', byKeys, q, block, depth, { weights: byWeights });
        });
      });
      const made = keysMade(o, keyHead);
      s.write(byKeys, made, depth);
      s.write(byValues, fromColumn(e, made, depth), width);
    });
  });
}
