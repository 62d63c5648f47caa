/** Graphs as text, one line per node, for debugging and tests. */
import { showShape } from '../shape/errors.ts';
import type { Handle, Node } from './node.ts';
import { nodesBelow, rootNodes } from './order.ts';

function attributes(node: Node): string {
  if (node.attr === null || node.op === 'buffer') return '';
  const shown = Object.entries(node.attr)
    // Shape and dtype of leaves are in the type already.
    .filter(([key]) => !(node.src.length === 0 && (key === 'shape' || key === 'dtype')))
    .map(([key, value]) => `${key}=${Array.isArray(value) ? `[${value.join(', ')}]` : String(value)}`);
  return shown.length === 0 ? '' : ` {${shown.join(', ')}}`;
}

function marks(node: Node): string {
  const words: string[] = [];
  if (node.storage !== null) words.push(`buffer ${node.storage.buffer.id}`);
  if (node.slot !== null) words.push('leaf');
  else if (node.requiresGrad) words.push('requires grad');
  if (node.handles > 0) words.push(`${node.handles} handles`);
  return words.length === 0 ? '' : `  # ${words.join(', ')}`;
}

/**
 * The graph behind tensors (or nodes): what is recorded and not computed yet.
 *
 * @returns one line per node in the order of recording: `%2 = add %0 %1 : float32 [2, 3]`, with attributes in braces and, behind #, what
 *   holds the node
 *
 * @example
 * console.log(printGraph([ones([2]).add(ones([2]))]));
 */
export function printGraph(roots: readonly (Node | Handle)[]): string {
  const nodes = nodesBelow(rootNodes('printGraph', roots));
  const numbers = new Map(nodes.map((node, i) => [node, i]));
  return nodes
    .map((node, i) => {
      const sources = node.storage === null ? node.src.map((source) => ` %${numbers.get(source)}`).join('') : '';
      return `%${i} = ${node.op}${sources}${attributes(node)} : ${node.dtype} ${showShape(node.shape)}${marks(node)}`;
    })
    .join('\n');
}
