/**
 * makeNode: the only place nodes come from. Checks a primitive's inputs by its rules and records the node.
 *
 * A new node is floating: it counts nowhere until a handle or another needed node takes it (recorder.ts). Whoever
 * makes nodes must give them an owner before releasing handles they depend on.
 */
import type { DType } from '../shape/dtype.ts';
import type { Shape } from '../shape/view.ts';
import type { Attrs, PrimitiveName } from './attrs.ts';
import { inferRules } from './infer.ts';
import type { InferRule } from './infer-checks.ts';
import type { Node, NodeStorage } from './node.ts';
import { countNode, releasedSlot } from './recorder.ts';
import { track } from './tracking.ts';

let nextId = 1;

/** Nodes recorded from now on have this id or a larger one. */
export function upcomingId(): number {
  return nextId;
}

/**
 * Records one node. Throws ShapeError or DTypeError in the name of the operation in progress.
 *
 * @param op the primitive
 * @param src its inputs, as attrs.ts describes
 * @param attr its attributes; kept, so do not change them afterwards
 */
export function makeNode<P extends PrimitiveName>(op: P, src: readonly Node[], attr: Attrs[P]): Node<P> {
  const rule: InferRule<P> = inferRules[op];
  const dtype = rule.dtype(src, attr);
  return record(op, src, attr, rule.shape(src, attr), dtype);
}

/** Records a node whose shape and dtype are known to be right. */
export function record<P extends PrimitiveName>(
  op: P,
  src: readonly Node[],
  attr: Attrs[P],
  shape: Shape,
  dtype: DType,
): Node<P> {
  const node: Node<P> = {
    id: nextId++,
    op,
    attr,
    src,
    shape,
    dtype,
    storage: null,
    handles: 0,
    uses: 0,
    edges: 'floating',
    requiresGrad: false,
    pins: 0,
    slot: null,
    mark: 0,
    index: 0,
  };
  let fromLeaf = false;
  let pins = 0;
  // The value behind a stopGradient is no source of gradients; a custom gradient's inputs follow it.
  for (let i = op === 'stopGradient' ? 1 : 0; i < src.length; i++) {
    const source = src[i] as Node;
    // What an earlier backward() released counts as a constant, unless it meets something live (then backward() says so).
    if (source.requiresGrad && source.slot !== releasedSlot) fromLeaf = true;
    pins |= source.pins;
  }
  if (fromLeaf || pins !== 0) track(node, fromLeaf, pins);
  countNode();
  return node;
}

/** A leaf around memory that holds its value; takes over one count of the buffer. */
export function bufferNode(storage: NodeStorage, shape: Shape, dtype: DType): Node<'buffer'> {
  const node = record('buffer', [], { shape, dtype }, shape, dtype);
  node.storage = storage;
  return node;
}
