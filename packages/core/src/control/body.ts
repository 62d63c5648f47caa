/**
 * Bodies of loops: what a graph reads from outside, and the nodes of a loop and of its results. Also whether a step returns the carry that the next
 * one takes: structure, shapes and dtypes as they were given.
 */
import { leavesOf, mapTree } from '../autodiff/walk.ts';
import { definitionOf } from '../graph/definition.ts';
import { LoopBody, putInLoop } from '../graph/loop.ts';
import { isOp, nextMark, type Node } from '../graph/node.ts';
import * as p from '../graph/primitives.ts';
import { makeNode } from '../graph/primitives.ts';
import { graph } from '../graph/state.ts';
import { loopOutputPrimitive, loopPrimitive } from '../primitives/loop.ts';
import { nodeOf } from '../tensor/handle.ts';
import { type DType, DTypeError } from '@polygrad/compiler/shape/dtype';
import { ArgumentError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { say } from '@polygrad/compiler/shape/shown';
import { sameShape } from '@polygrad/compiler/shape/view';

export type Loop = Node<'loop'>;
export type LoopOutput = Node<'loopOutput'>;

/** A graph between what is bound and its roots. */
export interface Inside {
  /** Nodes that depend on a bound one, in the order they were made. */
  readonly nodes: readonly Node[];
  /** What they, and roots, read besides; numbers are not among them. */
  readonly constants: readonly Node[];
}

/** True for numbers and positions: they need no memory, so every body has copies of its own. */
export function isNumber(node: Node): boolean {
  return node.src.length === 0 && node.storage === null && node.op !== 'buffer';
}

/** What is between bound nodes and roots. */
export function insideOf(roots: readonly Node[], bound: Iterable<Node>): Inside {
  const [seen, depends, taken] = [nextMark(), nextMark(), nextMark()];
  let first = Number.POSITIVE_INFINITY;
  for (const node of bound) {
    node.mark = depends;
    if (node.id < first) first = node.id;
  }
  const found: Node[] = [];
  const visit = (node: Node): void => {
    if (node.mark === seen || node.mark === depends) return;
    node.mark = seen;
    found.push(node);
  };
  roots.forEach(visit);
  // The list grows while it is walked. What is older than all that is bound cannot depend on it.
  for (const node of found) if (node.id > first && node.storage === null) node.src.forEach(visit);
  const nodes: Node[] = [];
  for (const node of found.sort((a, b) => a.id - b.id)) {
    if (node.storage !== null || !node.src.some((source) => source.mark === depends)) continue;
    node.mark = depends;
    nodes.push(node);
  }
  const constants: Node[] = [];
  const take = (node: Node): void => {
    if (node.mark === depends || node.mark === taken || isNumber(node)) return;
    node.mark = taken;
    constants.push(node);
  };
  for (const node of nodes) node.src.forEach(take);
  roots.forEach(take);
  return { nodes, constants };
}

/** Nodes that no plan of a step should compute twice, and that are kept of each step for derivatives. */
export function isExpensive(node: Node): boolean {
  const { role } = definitionOf(node.op);
  return role === 'contraction' || role === 'reduce' || role === 'program' || role === 'loop';
}

/** What a loop is made of. */
export interface LoopParts extends Pick<LoopBody, 'carries' | 'items' | 'next' | 'recompute' | 'rules'> {
  readonly length: number;
  readonly reverse: boolean;
  /** Where the carries begin, and what steps are given: [length, ...]. */
  readonly starts: readonly Node[];
  readonly sources: readonly Node[];
  /** What else is computed at each step. */
  readonly each: readonly Node[];
  /** Of a tangent, or a batch: what became of nodes of the body it was made from, and the dtype of that loop. */
  readonly from?: ReadonlyMap<Node, Node>;
  readonly dtype?: DType;
}

/** The nodes of a body in the order they were made. */
export function nodesOf(body: LoopBody, each: readonly Node[]): readonly Node[] {
  return insideOf([...body.next, ...each], [...body.carries, ...body.items]).nodes;
}

/** The node of a loop. What its body recorded is no part of any tape from now on. */
export function makeLoop(parts: LoopParts): Loop {
  const { carries, next, each, length, reverse, recompute, rules, from } = parts;
  const roots = [...next, ...each];
  const given = new Set([...carries, ...parts.items]);
  const drawn = drawnInside(roots, given);
  const items = [...parts.items, ...drawn];
  const bound = [...carries, ...items];
  const { nodes, constants } = insideOf(roots, bound);
  forget(nodes);
  putInLoop(nodes);
  putInLoop([...bound, ...[...nodes.flatMap(({ src }) => src), ...roots].filter(isNumber)]);
  const dtype = parts.dtype ?? heldWith([...nodes, ...bound, ...constants]);
  const body = new LoopBody({ carries, items, next, constants, dtype, recompute, rules, from: from ?? new Map() });
  const bits = drawn.map(({ src, attr }) => makeNode('randomBits', src, { ...attr, shape: [length, ...attr.shape] }));
  const inMemory = [...parts.starts, ...parts.sources, ...bits].map(p.contiguous);
  return makeNode(loopPrimitive, [...inMemory, ...constants], { body, length, reverse });
}

/** Random bits whose key a body took from the generator: each step has its own. */
function drawnInside(roots: readonly Node[], bound: ReadonlySet<Node>): Node<'randomBits'>[] {
  let first = Number.POSITIVE_INFINITY;
  for (const node of bound) first = Math.min(first, node.id);
  const found: Node<'randomBits'>[] = [];
  const seen = new Set(roots);
  for (const node of seen) {
    if (node.id < first || node.storage !== null || bound.has(node)) continue;
    if (isOp(node, 'randomBits') && node.attr.drawn === true) found.push(node);
    else for (const source of node.src) seen.add(source);
  }
  return found;
}

/** Dtypes that every engine holds, and one that many do. */
const held: ReadonlySet<DType> = new Set(['float32', 'int32', 'uint32', 'bool', 'float16']);

/** A float dtype for the loop node, so that engines that lack a dtype of these nodes lack this one too. float64 means the CPU engine. */
function heldWith(nodes: readonly Node[]): DType {
  if (nodes.some(({ dtype }) => !held.has(dtype))) return 'float64';
  return nodes.some(({ dtype }) => dtype === 'float16') ? 'float16' : 'float32';
}

/** Takes nodes off the lists of tapes. */
function forget(nodes: readonly Node[]): void {
  const gone = new Set(nodes);
  const start = nodes[0]?.id ?? Number.POSITIVE_INFINITY;
  for (const recording of graph.recordings) {
    if (recording == null) continue;
    const list = recording.nodes;
    let first = list.length;
    while (first > 0 && list[first - 1]!.id >= start) first--;
    const left = list.slice(first).filter((node) => !gone.has(node));
    if (left.length < list.length - first) list.splice(first, list.length - first, ...left);
  }
}

function output(loop: Loop, last: number, each: Node | null): LoopOutput {
  const { outputs } = loop.attr.body;
  const node = makeNode(loopOutputPrimitive, [loop], { last, each });
  const same = outputs.find(
    (other) =>
      other.attr.last === last &&
      other.attr.each === each &&
      other.edges !== 'dead' &&
      // Known to the same tapes.
      other.pins === node.pins &&
      other.requiresGrad === node.requiresGrad,
  );
  if (same === undefined) outputs.push(node);
  return same ?? node;
}

/** A carry after the last step. */
export function lastOf(loop: Loop, carry: number): LoopOutput {
  return output(loop, carry, null);
}

/** What a node of the body is at each step, [length, ...]. */
export function eachOf(loop: Loop, node: Node): Node {
  const { body } = loop.attr;
  const item = body.items.indexOf(node);
  return item >= 0 ? loop.src[body.carries.length + item]! : output(loop, -1, node);
}

/** The structure of a tree, as text. */
function formOf(op: string, tree: unknown): string {
  return JSON.stringify(mapTree(op, tree, () => 0));
}

function shownNode({ dtype, shape }: Node): string {
  return `${dtype} ${showShape(shape)}`;
}

/** Throws unless the carry that a step returned is like the one it was given. */
export function checkCarry(op: string, before: unknown, after: unknown): void {
  const forms = [formOf(op, before), formOf(op, after)] as const;
  if (forms[0] !== forms[1])
    throw new ArgumentError(
      op,
      say`the carry changes its structure: ${forms[0]} goes in, ${forms[1]} comes out (0 for a tensor); return it in the structure of init`,
    );
  const [given, returned] = [before, after].map((tree) => leavesOf(op, tree).map((t) => nodeOf(t, op))) as [
    Node[],
    Node[],
  ];
  given.forEach((node, i) => {
    const now = returned[i]!;
    const which = given.length === 1 ? 'the carry' : say`part ${i} of the carry`;
    if (now.dtype !== node.dtype)
      throw new DTypeError(
        op,
        say`${which} changes its dtype: ${shownNode(node)} goes in, ${shownNode(now)} comes out; cast one of them, so that every step is the same`,
        [node.dtype, now.dtype],
      );
    if (!sameShape(now.shape, node.shape))
      throw new ShapeError(
        op,
        say`${which} changes its shape: ${shownNode(node)} goes in, ${shownNode(now)} comes out; start with the shape that a step returns`,
        [node.shape, now.shape],
      );
  });
}
