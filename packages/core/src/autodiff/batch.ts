/**
 * Making a recorded graph again with a batch in place of its placeholders: the engine behind vmap and jacobian.
 *
 * Nodes that do not depend on a placeholder stay as they are and are shared by the whole batch. All others are made again by the batching
 * rules of primitives/, with the batch as axis 0. What comes out is an ordinary graph of ordinary primitives, so batches nest, and can be
 * differentiated.
 */
import type { PrimitiveName } from '../graph/attrs.ts';
import { isOp, type Node } from '../graph/node.ts';
import * as p from '../graph/primitives.ts';
import { type Batches, type CommonPrimitive, definitionOf } from '../graph/definition.ts';
import type { BatchContext, BatchRule } from '../graph/rules.ts';
import { barrierBatches } from '../primitives/barriers.ts';
import { contractionBatches } from '../primitives/contraction.ts';
import type { elementwise } from '../primitives/elementwise.ts';
import { leafBatches } from '../primitives/leaves.ts';
import { movementBatches } from '../primitives/movement.ts';
import { reductionBatches } from '../primitives/reduction.ts';
import { elementwiseBatch } from '../primitives/rules.ts';
import { windowBatches } from '../primitives/windows.ts';

const common: Batches<Exclude<CommonPrimitive, keyof typeof elementwise | 'buffer' | 'scalar' | 'constant' | 'iota'>> =
  {
    ...leafBatches,
    ...reductionBatches,
    ...movementBatches,
    ...windowBatches,
    ...contractionBatches,
    ...barrierBatches,
  };

/** The rule of a primitive of which there is a node with sources. Elementwise primitives need none of their own. */
function batchRuleOf<P extends PrimitiveName>(op: P): BatchRule<P> {
  return (common as { readonly [Q in P]?: BatchRule<Q> })[op] ?? definitionOf(op).batch ?? elementwiseBatch;
}

/** What a batch is made from. */
export interface BatchInput {
  /** Placeholders and what stands in their place: the same with the batch in front. */
  readonly inputs: ReadonlyMap<Node, Node>;
  readonly size: number;
  /** Give each element of the batch random bits of its own, where the function took its key from the generator. */
  readonly spread: boolean;
}

/** The nodes between the placeholders and the roots, in creation order; realised ones cannot depend on a placeholder. */
function nodesBetween(roots: readonly Node[], first: number): Node[] {
  const seen = new Set<Node>();
  const visit = (node: Node): void => {
    if (node.id > first && node.storage === null) seen.add(node);
  };
  roots.forEach(visit);
  // A Set visits what is added while it is walked.
  for (const node of seen) node.src.forEach(visit);
  return [...seen].sort((a, b) => a.id - b.id);
}

/** The roots with the batch as axis 0; null for a root that does not depend on the batch. To be called with flushes held. */
export function batched(roots: readonly Node[], { inputs, size, spread }: BatchInput): (Node | null)[] {
  const made = new Map<Node, Node>(inputs);
  const remake: BatchContext<PrimitiveName>['remake'] = (others, own) =>
    batchedAll(others, { inputs: new Map([...made, ...own]), size, spread });
  const first = [...inputs.keys()].reduce((least, node) => Math.min(least, node.id), Number.POSITIVE_INFINITY);
  for (const node of nodesBetween(roots, first)) {
    if (made.has(node)) continue;
    const own = spread && isOp(node, 'randomBits') && node.attr.drawn === true;
    const sources = node.src.map((source) => made.get(source) ?? null);
    if (!own && sources.every((source) => source === null)) continue;
    made.set(node, batchRuleOf(node.op)({ node, src: node.src, attr: node.attr, sources, size, remake }));
  }
  return roots.map((root) => made.get(root) ?? null);
}

/** The same with every root stretched over the batch. */
export function batchedAll(roots: readonly Node[], batch: BatchInput): Node[] {
  return batched(roots, batch).map((node, i) => node ?? p.broadcastTo(roots[i]!, [batch.size, ...roots[i]!.shape]));
}
