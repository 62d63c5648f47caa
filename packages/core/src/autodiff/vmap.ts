/**
 * vmap: a function of one example as a function of a batch of them. The function runs once on placeholders (graph/placeholder.ts). What it recorded
 * is recorded again with the batch as axis 0, by the batching rules of primitives/. So kernels work on the whole batch at once.
 */
import * as p from '../graph/primitives.ts';
import { isOp, type Node, type PrimitiveName } from '../graph/node.ts';
import {
  type BatchContext,
  type Batches,
  type BatchRule,
  type CommonPrimitive,
  definitionOf,
} from '../graph/definition.ts';
import { onPlaceholders, placeholder } from '../graph/placeholder.ts';
import { beginOp, holdFlushes, isHandle, traceScope } from '../graph/scope.ts';
import { barrierBatches, leafBatches } from '../primitives/leaves.ts';
import { contractionBatches } from '../primitives/contraction.ts';
import { type elementwise, elementwiseBatch, moved } from '../primitives/elementwise.ts';
import { movementBatches, windowBatches } from '../primitives/movement.ts';
import { reductionBatches } from '../primitives/reduction.ts';
import { normalizeAxis } from '@polygrad/compiler/shape/axes';
import { ArgumentError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { mapNested } from '@polygrad/compiler/shape/nested';
import { checkFunction, checkNames } from '@polygrad/compiler/shape/options';
import { say } from '@polygrad/compiler/shape/shown';
import { nodeOf, wrap } from '../tensor/handle.ts';
import { called } from '../tensor/scope.ts';
import type { Tensor } from '../tensor/types.ts';

/** An axis for everything, null for "not batched", or arrays and plain objects of such in the structure of the value. */
export type BatchAxes = number | null | readonly BatchAxes[] | { readonly [key: string]: BatchAxes };

/** Options of `vmap`. */
export interface VmapOptions {
  /** Axis of the arguments that is the batch: one for all, or an array with one entry per argument. Null: the same for all examples. Default 0. */
  readonly inAxes?: BatchAxes;
  /** Axis of the result that becomes the batch. Null: the result is the same for all examples and has none. Default 0. */
  readonly outAxes?: BatchAxes;
}

/** The axes for one part of a value. */
function axesFor(name: string, axes: BatchAxes, key: string | number): BatchAxes {
  if (typeof axes !== 'object' || axes === null) return axes;
  const found = (axes as Readonly<Record<string | number, BatchAxes>>)[key];
  if (found === undefined)
    throw new ArgumentError(
      'vmap',
      say`${name} has no entry '${key}': give an axis or null for every part of the value`,
    );
  return found;
}

/** Maps the tensors of a value together with their axes; what is no tensor, array or plain object stays. */
function mapWithAxes(
  name: string,
  value: unknown,
  axes: BatchAxes,
  f: (t: Tensor, axis: number | null) => unknown,
): unknown {
  const leaf = (item: unknown, own: BatchAxes): unknown => {
    if (!isHandle(item)) return item;
    if (typeof own === 'object' && own !== null)
      throw new ArgumentError('vmap', say`${name} has a list where the value has a tensor: give an axis or null`);
    return f(item as unknown as Tensor, own);
  };
  return mapNested('vmap', value, axes, leaf, (own, key) => axesFor(name, own, key));
}

/**
 * The function that applies `f` to every example of a batch at once. `f` is written for one example and run once; what it records is computed for
 * the whole batch by the same kernels. The result equals a stack of the results of single calls. Nests with itself and with all gradient
 * functions: `vmap(grad(f))` gives one gradient per example. Source: JAX `vmap`.
 *
 * Random functions without a key give every example different numbers, as single calls would; with a key all examples have the same.
 * Inside `f` a tensor has the shape of one example and no value: it cannot be read, kept or assigned to a tensor from outside, and control
 * flow cannot depend on it.
 *
 * @param f a synchronous function of tensors, and arrays and plain objects of tensors; other arguments are passed on
 * @param options inAxes (0) and outAxes (0): which axis of arguments and results is the batch; null for none
 * @returns a function of the same arguments with one more axis
 * @throws ShapeError if the sizes of the batch differ or an axis does not exist; ArgumentError if nothing is batched
 *
 * @example
 * const rows = vmap((row: Tensor, v: Tensor) => row.mul(v).sum(), { inAxes: [0, null] });
 * rows(tensor([[1, 2], [3, 4]]), tensor([10, 1])); // [12, 34]
 */
export function vmap<A extends readonly unknown[], R>(
  f: (...args: A) => R,
  options: VmapOptions = {},
): (...args: A) => R {
  checkNames('vmap', options, 'inAxes outAxes');
  checkFunction('vmap', f);
  const { inAxes = 0, outAxes = 0 } = options;
  return (...args) =>
    // Nothing is flushed before the function has returned, because placeholders cannot be computed.
    traceScope(() =>
      holdFlushes(() => {
        beginOp('vmap');
        const inputs = new Map<Node, Node>();
        let size = -1;
        let sized: readonly number[] = [];
        const examples = mapWithAxes('inAxes', args, inAxes, (t, given) => {
          const node = nodeOf(t, 'vmap');
          if (given === null) return t;
          const axis = normalizeAxis('vmap', given, node.shape.length);
          const n = node.shape[axis]!;
          if (size >= 0 && n !== size) {
            throw new ShapeError(
              'vmap',
              say`batches differ: ${size} of shape ${showShape(sized)} and ${n} of shape ${showShape(node.shape)} along axis ${axis}; make them equal, or give null in inAxes`,
              [sized, node.shape],
            );
          }
          size = n;
          sized = node.shape;
          const shape = node.shape.filter((_, i) => i !== axis);
          const example = wrap(placeholder(shape, node.dtype, 'an example inside vmap'));
          inputs.set(example.node, wrap(p.permute(node, moved(node.shape.length, axis, 0))).node);
          return example;
        });
        if (size < 0)
          throw new ArgumentError('vmap', 'nothing is batched: no argument is a tensor with an axis; check inAxes');
        const result = onPlaceholders(() => called('vmap', f, ...(examples as A)));
        beginOp('vmap');
        const roots: Node[] = [];
        mapWithAxes('outAxes', result, 0, (t) => roots.push(nodeOf(t, 'vmap')));
        const many = batched(roots, { inputs, size, spread: true });
        let next = 0;
        return mapWithAxes('outAxes', result, outAxes, (_, given) => {
          const root = roots[next]!;
          const node = many[next++] as Node | null;
          if (given === null) {
            if (node === null) return wrap(p.identity(root));
            throw new ArgumentError(
              'vmap',
              say`outAxes is null for a result of shape ${showShape(root.shape)} that differs between examples; give the axis of the batch`,
            );
          }
          const all = node ?? p.broadcastTo(root, [size, ...root.shape]);
          return wrap(p.permute(all, moved(all.shape.length, 0, normalizeAxis('vmap', given, all.shape.length))));
        }) as R;
      }),
    );
}

// Making a recorded graph again with a batch in place of its placeholders: the engine behind vmap and jacobian.
//
// Nodes that do not depend on a placeholder stay as they are and are shared by the whole batch. All others are made again by the batching
// rules of primitives/, with the batch as axis 0. What comes out is an ordinary graph of ordinary primitives, so batches nest, and can be
// differentiated.

const common: Batches<Exclude<CommonPrimitive, keyof typeof elementwise | 'buffer' | 'scalar' | 'constant' | 'iota'>> =
  {
    ...leafBatches,
    ...reductionBatches,
    ...movementBatches,
    ...windowBatches,
    ...contractionBatches,
    ...barrierBatches,
  };

/** The rule of a primitive with sources. Elementwise primitives need none. */
function batchRuleOf<P extends PrimitiveName>(op: P): BatchRule<P> {
  return (common as { readonly [Q in P]?: BatchRule<Q> })[op] ?? definitionOf(op).batch ?? elementwiseBatch;
}

/** What a batch is made from. */
export interface BatchInput {
  /** Placeholders and their replacements with a leading batch axis. */
  readonly inputs: ReadonlyMap<Node, Node>;
  readonly size: number;
  /** Gives each example different random bits, if the function took its key from the generator. */
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
