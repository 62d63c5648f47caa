/**
 * Checks that a graph is what the planner relies on: rules hold, order is right, counts are consistent.
 *
 * makeNode checks each node when it is recorded; this is for tests, and for code that builds or changes nodes by other means.
 */
import { sameShape } from '../shape/broadcast.ts';
import { OperationError, showShape } from '../shape/errors.ts';
import { definitionOf } from './definition.ts';
import { type Handle, keepsHistory, type Node } from './node.ts';
import { nodesBelow, rootNodes } from './order.ts';
import { say } from '../shape/shown.ts';

/**
 * Something is wrong with a graph.
 *
 * @example
 * const node = { ...ones([2]).add(1).node, shape: [3] };
 * verifyGraph([node]); // throws GraphInvariantError
 */
export class GraphInvariantError extends OperationError {
  override readonly name: string = 'GraphInvariantError';
  readonly node: Node;

  constructor(node: Node, message: string) {
    super('verifyGraph', say`node ${node.id} (${node.op} ${node.dtype} ${showShape(node.shape)}): ${message}`, 'GRAPH');
    this.node = node;
  }
}

function verifyNode(node: Node): void {
  if (node.edges === 'dead') throw new GraphInvariantError(node, 'dead, but still reachable');
  if (node.storage !== null) {
    if (node.storage.view.strides.length !== node.shape.length)
      throw new GraphInvariantError(node, say`view has ${node.storage.view.strides.length} strides`);
    if (node.src.length > 0 && !keepsHistory(node))
      throw new GraphInvariantError(node, 'realised without history, but keeps its sources');
    return;
  }
  if (node.op === 'buffer') throw new GraphInvariantError(node, 'a leaf without storage');
  const { op, role, infer } = definitionOf(node.op);
  if (node.src.length === 0 && role !== 'leaf' && role !== 'generate' && op !== 'concat')
    throw new GraphInvariantError(node, 'has lost its sources');
  const shape = infer.shape(node.src, node.attr, op);
  const dtype = infer.dtype(node.src, node.attr, op);
  if (!sameShape(shape, node.shape) || dtype !== node.dtype)
    throw new GraphInvariantError(node, say`its rule gives ${dtype} ${showShape(shape)}`);
}

/**
 * Throws GraphInvariantError unless every node below the roots is well formed and counted.
 *
 * @param roots tensors or nodes
 * @example
 * verifyGraph([ones([2]).add(1)]);
 */
export function verifyGraph(roots: readonly (Node | Handle)[]): void {
  const nodes = nodesBelow(rootNodes('verifyGraph', roots), true);
  const handles = new Map<Node, number>();
  const uses = new Map<Node, number>();
  for (const node of nodes) {
    verifyNode(node);
    for (const source of node.src) {
      if (source.id >= node.id) throw new GraphInvariantError(node, say`comes before its source ${source.id}`);
      if (node.edges === 'floating') continue;
      if (source.edges === 'floating')
        throw new GraphInvariantError(source, say`counts nowhere, but node ${node.id} needs it`);
      const counts = node.edges === 'handles' ? handles : uses;
      counts.set(source, (counts.get(source) ?? 0) + 1);
    }
  }
  for (const node of nodes) {
    if (node.handles < (handles.get(node) ?? 0))
      throw new GraphInvariantError(node, say`${node.handles} handles for ${handles.get(node)} history edges`);
    if (node.uses < (uses.get(node) ?? 0))
      throw new GraphInvariantError(node, say`${node.uses} uses for ${uses.get(node)} edges`);
  }
}
