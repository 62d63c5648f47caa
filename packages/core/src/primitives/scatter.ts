/** Updates written into places given by indices, or combined with what is there other than by sums. */
import { scatterBatch } from '../autodiff/batch-rules-indexing.ts';
import { scatterRule } from '../autodiff/rules-scatter.ts';
import { scatterInfer } from '../graph/infer-indexing.ts';
import { lowerScatter } from '../templates/scatter-update.ts';
import { programsOf } from '../schedule/programs.ts';
import type { Definition } from './definition.ts';

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
