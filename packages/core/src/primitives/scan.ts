/** Running results along an axis. Their gradients are running results too, the other way. */
import { everySource } from './batch/rule.ts';
import { scanRule } from './gradient/scan.ts';
import { makeAgain } from '../graph/build.ts';
import type { Node } from '../graph/node.ts';
import { scanInfer } from '../graph/infer-order.ts';
import { lowerScan } from '../programs/scan/scan.ts';
import { programsOf } from '../planner/lowering/programs.ts';
import type { Definition } from '../graph/definition.ts';

export const scanPrimitive: Definition<'scan'> = {
  op: 'scan',
  infer: scanInfer,
  gradient: scanRule,
  tangent: ({ node, attr, tangents }) => (attr.op === 'sum' ? makeAgain(node, [tangents[0] as Node], attr) : undefined),
  batch: (c) => makeAgain(c.node, everySource(c), { ...c.attr, axis: c.attr.axis + 1 }),
  programs: (node) =>
    programsOf(node, ({ out, slot }, caps) => {
      const { axis, op, reverse } = node.attr;
      return lowerScan({ axis, op, reverse, out, x: slot(0), factor: op === 'linear' ? slot(1) : null }, caps);
    }),
};
