/**
 * The kind and the amount of a node's work: the families that thresholds and measured costs are for.
 *
 * Sizes count what determines the time: elements of the result for elementwise work, elements read for reductions, multiplications
 * for contractions. Index maps and unchanged values are no work.
 */
import { isOp, type Node } from '../graph/node.ts';
import { definitionAt } from '../graph/definition.ts';
import { sizeOf } from '@polygrad/compiler/shape/view';

/** Kinds of work whose relative speed differs between devices. */
export type OperationFamily = 'elementwise' | 'reduction' | 'product' | 'convolution' | 'indexing' | 'sort' | 'scan';

export const operationFamilies: readonly OperationFamily[] = [
  'elementwise',
  'reduction',
  'product',
  'convolution',
  'indexing',
  'sort',
  'scan',
];

/** The family of a node that is to be computed; null for nodes that become part of any kernel that uses them, and for loops. */
export function familyOf(node: Node): OperationFamily | null {
  const { role } = definitionAt(node.kind);
  switch (role) {
    case 'elementwise':
    case 'materialize':
      return 'elementwise';
    case 'generate':
      return node.op === 'randomBits' ? 'elementwise' : null;
    case 'reduce':
      return 'reduction';
    case 'contraction':
      return node.op === 'conv' ? 'convolution' : 'product';
    case 'gather':
      return 'indexing';
    case 'program':
      return node.op === 'argSort' ? 'sort' : node.op === 'scan' ? 'scan' : 'indexing';
    case 'leaf':
    case 'movement':
    case 'pass':
    case 'loop':
      return null;
    default:
      return role satisfies never;
  }
}

/** The amount of work, as its family counts it. */
export function workOf(node: Node): number {
  const size = sizeOf(node.shape);
  const first = node.src[0];
  if (isOp(node, 'dotGeneral'))
    return node.attr.lhsContract.reduce((product, axis) => product * first!.shape[axis]!, size);
  if (isOp(node, 'conv')) {
    const [features = 1, ...kernel] = node.src[1]!.shape;
    return size * (features === 0 ? 0 : kernel.reduce((product, n) => product * n, 1));
  }
  if (isOp(node, 'fold')) return size * node.attr.size.reduce((product, n) => product * n, 1);
  const { role } = definitionAt(node.kind);
  if (role === 'reduce' || role === 'program')
    return node.src.reduce((most, s) => Math.max(most, sizeOf(s.shape)), size);
  return size;
}
