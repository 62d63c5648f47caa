/**
 * Graphs as lists of nodes (`nodesBelow`), as text with one line per node (`printGraph`), and checks of what the planner relies on
 * (`verifyGraph`). For debugging, tests and code that follows nodes; nothing here changes a graph.
 */
import { checkList } from '@polygrad/compiler/shape/axes';
import { ArgumentError, OperationError, showShape } from '@polygrad/compiler/shape/errors';
import { shown } from '@polygrad/compiler/shape/options';
import { isList, say } from '@polygrad/compiler/shape/shown';
import { sameShape } from '@polygrad/compiler/shape/view';
import { definitionOf } from './definition.ts';
import { type Handle, keepsHistory, type Node } from './node.ts';

// The nodes below some roots, sources before users. Realised nodes count as leaves, even if they keep history.

/** The nodes that a user gives as roots, as tensors or nodes. Throws ArgumentError in the name of `op`. */
function rootNodes(op: string, roots: readonly (Node | Handle)[]): Node[] {
  const bad = (value: unknown): never => {
    throw new ArgumentError(op, say`bad roots: ${shown(value)}; must be a list of tensors, such as [loss]`);
  };
  if (!isList(roots)) return bad(roots);
  checkList(op, 'roots', roots, '[loss]');
  return roots.map((root: Node | Handle) => {
    const node = root !== null && typeof root === 'object' && 'node' in root ? root.node : root;
    return isList(node?.src) ? node : bad(root);
  });
}

/**
 * The roots and all nodes they are computed from, in creation order.
 *
 * @param through true to follow the kept history of realised nodes too
 */
export function nodesBelow(roots: readonly Node[], through: boolean = false): Node[] {
  const seen = new Set<Node>(roots);
  // The loop also visits what is added to the Set meanwhile.
  for (const node of seen) {
    if (node.storage !== null && !through) continue;
    for (const source of node.src) seen.add(source);
  }
  return [...seen].sort((a, b) => a.id - b.id);
}

function attributes(node: Node): string {
  if (node.attr === null || node.op === 'buffer') return '';
  const shown = Object.entries(node.attr)
    // The type shows the shape and dtype of leaves already.
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
 * The graph behind tensors (or nodes): recorded operations that are not computed yet.
 *
 * @returns one line per node in the order of recording: `%2 = add %0 %1 : float32 [2, 3]`, with attributes in braces and, behind #, what
 *   holds the node
 * @throws ArgumentError unless roots is a list of tensors or nodes
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

// Checks of what the planner relies on: shapes and dtypes that follow from the rules, sources before users, counts that agree.
//
// makeNode checks each node when it is recorded; this is for tests, and for code that changes nodes in other ways.

/**
 * An invariant of a graph does not hold.
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
 * Throws GraphInvariantError unless every node below the roots follows its primitive's rules and is counted correctly.
 *
 * @param roots tensors or nodes
 * @throws ArgumentError unless roots is a list of tensors or nodes
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
      if (node.edges === 'floating' || node.edges === 'body') continue;
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
