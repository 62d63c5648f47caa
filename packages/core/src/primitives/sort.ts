/** Positions in sorted order. */
import { everySource } from './batch/rule.ts';
import { makeAgain } from '../graph/build.ts';
import { argSortInfer } from '../graph/infer-order.ts';
import { lowerSort } from '../programs/sort/sort.ts';
import { programsOf } from '../planner/lowering/programs.ts';
import type { Definition } from '../graph/definition.ts';

export const argSortPrimitive: Definition<'argSort'> = {
  op: 'argSort',
  infer: argSortInfer,
  gradient: () => [],
  batch: (c) => makeAgain(c.node, everySource(c), { ...c.attr, axis: c.attr.axis + 1 }),
  programs: (node) =>
    programsOf(node, ({ out, slot }, caps) => {
      const { axis, descending } = node.attr;
      return lowerSort({ axis, descending, out, x: slot(0).view }, caps);
    }),
};
