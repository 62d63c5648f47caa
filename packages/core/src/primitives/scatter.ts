/** Updates written into places given by indices, or combined with what is there other than by sums. */
import { scatterBatch } from './batch/indexing.ts';
import { scatterRule } from './gradient/scatter.ts';
import { scatterInfer } from '../graph/infer-indexing.ts';
import { lowerScatter } from '../programs/scatter/update.ts';
import { programsOf } from '../planner/lowering/programs.ts';
import type { Definition } from '../graph/definition.ts';

export const scatterPrimitive: Definition<'scatter'> = {
  op: 'scatter',
  infer: scatterInfer,
  gradient: scatterRule,
  batch: scatterBatch,
  programs: (node) =>
    programsOf(node, ({ out, slot, operand }, caps) => {
      const { axis, op } = node.attr;
      return lowerScatter({ op, axis, out, base: operand(0), index: slot(1), updates: operand(2) }, caps);
    }),
};
