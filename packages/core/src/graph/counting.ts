/**
 * Who needs which node: counting, and what a node lets go of when nobody does any more.
 *
 * The rules: a Tensor holds its node (`retain`, `release`). A node that somebody needs holds its sources, until it is
 * realised without history (`realise`) or dead. A node without handles and uses is dead at once: its storage goes
 * back and its sources are let go in turn.
 */
import type { Node, NodeStorage } from './node.ts';
import { say } from '../shape/shown.ts';

const noNodes: readonly Node[] = [];

/** True if the node must keep its sources after it is realised. A leaf has no history of its own. */
export function keepsHistory(node: Node): boolean {
  return node.pins !== 0 || (node.requiresGrad && node.slot === null);
}

/** One more handle needs the node. */
export function retain(node: Node): void {
  node.handles++;
  if (node.edges === 'floating') own(node);
  else if (node.edges === 'dead')
    throw new Error(say`[recorder] node ${node.id} (${node.op}) was released before it was retained`);
}

/** A floating node becomes needed: it counts in its sources from now on, and floating sources become needed too. */
function own(start: Node): void {
  let node: Node | undefined = start;
  let stack: Node[] | null = null;
  while (node !== undefined) {
    const { src } = node;
    const history = keepsHistory(node);
    node.edges = history ? 'handles' : 'uses';
    // A leaf brings the count it was made with; a realised view of another node's buffer takes its own.
    if (node.storage !== null && node.op !== 'buffer') node.storage.buffer.retain();
    for (let i = 0; i < src.length; i++) {
      const source = src[i]!;
      if (source.edges === 'dead')
        throw new Error(
          say`[recorder] node ${source.id} (${source.op}) was released while node ${node.id} (${node.op}) needs it`,
        );
      if (source.edges === 'floating') {
        source.edges = 'uses';
        (stack ??= []).push(source);
      }
      if (history) source.handles++;
      else source.uses++;
    }
    node = stack?.pop();
  }
}

/** Keeps a node that somebody needs alive, without a name: a reader sees no difference, a flush does not write over it. */
export function holdUse(node: Node): void {
  node.uses++;
}

/** Ends what `holdUse` began. */
export function dropUse(node: Node): void {
  if (--node.uses === 0 && node.handles === 0) bury(node);
}

/** One handle less needs the node. */
export function release(node: Node): void {
  if (--node.handles === 0 && node.uses === 0) bury(node);
}

/** Nobody needs the node: gives its storage back and lets its sources go. */
function bury(start: Node): void {
  let node: Node | undefined = start;
  let stack: Node[] | null = null;
  while (node !== undefined) {
    const { edges, src } = node;
    node.edges = 'dead';
    if (node.storage !== null) {
      node.storage.buffer.release();
      node.storage = null;
    }
    if (src.length > 0 && edges !== 'dead') {
      node.src = noNodes;
      for (let i = 0; i < src.length; i++) {
        const source = src[i]!;
        if (edges === 'handles') source.handles--;
        else source.uses--;
        if (source.handles === 0 && source.uses === 0) (stack ??= []).push(source);
      }
    }
    node = stack?.pop();
  }
}

/**
 * The runtime calls this for every node whose value is in memory now. Takes over one count of the buffer. The node lets
 * its sources go unless it keeps its history.
 */
export function realise(node: Node, storage: NodeStorage): void {
  // A result realised just before may have been the last that needed this one.
  if (node.edges === 'dead') {
    storage.buffer.release();
    return;
  }
  node.storage = storage;
  if (!keepsHistory(node)) dropSources(node);
}

/** Lets the sources of a realised node go. */
function dropSources(node: Node): void {
  const { edges, src } = node;
  node.src = noNodes;
  if (edges !== 'uses' && edges !== 'handles') return;
  for (const source of src) {
    if (edges === 'handles') source.handles--;
    else source.uses--;
    if (source.handles === 0 && source.uses === 0) bury(source);
  }
}

/**
 * The node keeps no history any more (its tape ended, or backward() has used it): realised, it lets its sources go;
 * otherwise they stay for computing only.
 */
export function forgetHistory(node: Node): void {
  if (keepsHistory(node)) return;
  if (node.storage !== null) {
    dropSources(node);
    return;
  }
  if (node.edges !== 'handles') return;
  node.edges = 'uses';
  for (const source of node.src) {
    source.handles--;
    source.uses++;
  }
}
