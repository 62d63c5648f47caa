/**
 * makeNode: the only place nodes come from. Checks a primitive's inputs by its rules and records the node.
 *
 * A new node is floating: it counts nowhere until a handle or another needed node takes it (node.ts). Whoever
 * makes nodes must give them an owner before releasing handles they depend on.
 */
import type { DType } from '../shape/dtype.ts';
import { mostElements } from '../shape/axes.ts';
import { ShapeError, showShape } from '../shape/errors.ts';
import { say } from '../shape/shown.ts';
import { showAs } from '#shown-as';
import type { Shape } from '../shape/view.ts';
import type { Attrs, PrimitiveName } from './attrs.ts';
import {
  type BinaryOperation,
  type UnaryOperation,
  bring,
  type CommonPrimitive,
  type DefinedPrimitive,
  type Definition,
  definitionOf,
  type AnyDefinition,
} from './definition.ts';
import type { EdgeState, GradientSlot, Node, NodeStorage } from './node.ts';
import { releasedSlot } from './recorder.ts';
import { opName } from './scope.ts';
import { graph } from './state.ts';
import { track } from './tracking.ts';

/**
 * Records one node. Throws ShapeError or DTypeError in the name of the operation in progress.
 *
 * @param op the primitive: its name, or its definition if it has one (primitives/)
 * @param src its inputs, as attrs.ts describes
 * @param attr its attributes; kept, so do not change them afterwards
 */
export function makeNode<P extends CommonPrimitive>(op: P, src: readonly Node[], attr: Attrs[P]): Node<P>;
export function makeNode<P extends DefinedPrimitive>(op: Definition<P>, src: readonly Node[], attr: Attrs[P]): Node<P>;
export function makeNode(op: UnaryOperation | BinaryOperation, src: readonly Node[], attr: null): Node;
export function makeNode(op: CommonPrimitive | AnyDefinition, src: readonly Node[], attr: Attrs[PrimitiveName]): Node {
  if (typeof op === 'string') return checked(definitionOf<PrimitiveName>(op), src, attr);
  bring(op);
  return checked(op as Definition<PrimitiveName>, src, attr);
}

/** Records a node of the same primitive as one that is there. */
export function makeAgain<P extends PrimitiveName>(node: Node<P>, src: readonly Node[], attr: Attrs[P]): Node<P> {
  return checked(definitionOf(node.op), src, attr);
}

function checked<P extends PrimitiveName>(definition: Definition<P>, src: readonly Node[], attr: Attrs[P]): Node<P> {
  const { op, infer } = definition;
  const dtype = infer.dtype(src, attr, op);
  const shape = infer.shape(src, attr, op);
  // What is fused away may be larger than any tensor, but not its axes, and not than numbers can count.
  let size = 1;
  let longest = 0;
  for (const n of shape) {
    size *= n;
    if (n > longest) longest = n;
  }
  if (!(size <= Number.MAX_SAFE_INTEGER && longest <= mostElements))
    throw new ShapeError(opName(op), say`too many elements: ${size} in ${showShape(shape)}; make sizes smaller`, [
      shape,
    ]);
  return made(definition.id, op, src, attr, shape, dtype);
}

class Recorded<P extends PrimitiveName> implements Node<P> {
  readonly id: number = ++graph.newest;
  readonly kind: number;
  readonly op: P;
  readonly attr: Attrs[P];
  src: readonly Node[];
  readonly shape: Shape;
  readonly dtype: DType;
  storage: NodeStorage | null = null;
  handles: number = 0;
  uses: number = 0;
  edges: EdgeState = 'floating';
  requiresGrad: boolean = false;
  pins: number = 0;
  slot: GradientSlot | null = null;
  mark: number = 0;
  index: number = 0;

  constructor(kind: number, op: P, src: readonly Node[], attr: Attrs[P], shape: Shape, dtype: DType) {
    this.kind = kind;
    this.op = op;
    this.attr = attr;
    this.src = src;
    this.shape = shape;
    this.dtype = dtype;
  }
}

// printGraph shows what is behind it.
showAs(Recorded.prototype, ({ id, op, dtype, shape }) => `${op} ${dtype} ${showShape(shape)} #${id}`);

/** Records a node whose shape and dtype are known to be right. */
export function record<P extends PrimitiveName>(
  op: P,
  src: readonly Node[],
  attr: Attrs[P],
  shape: Shape,
  dtype: DType,
): Node<P> {
  return made(definitionOf(op).id, op, src, attr, shape, dtype);
}

function made<P extends PrimitiveName>(
  kind: number,
  op: P,
  src: readonly Node[],
  attr: Attrs[P],
  shape: Shape,
  dtype: DType,
): Node<P> {
  const node = new Recorded(kind, op, src, attr, shape, dtype);
  let fromLeaf = false;
  let pins = 0;
  // The value behind a stopGradient is no source of gradients; a custom gradient's inputs follow it.
  for (let i = op === 'stopGradient' ? 1 : 0; i < src.length; i++) {
    const source = src[i]!;
    // What an earlier backward() released counts as a constant, unless it meets something live (then backward() says so).
    if (source.requiresGrad && source.slot !== releasedSlot) fromLeaf = true;
    pins |= source.pins;
  }
  if (fromLeaf || pins !== 0) track(node, fromLeaf, pins);
  graph.pendingNodes++;
  return node;
}

/** A leaf around memory that holds its value; takes over one count of the buffer. */
export function bufferNode(storage: NodeStorage, shape: Shape, dtype: DType): Node<'buffer'> {
  const node = record('buffer', [], { shape, dtype }, shape, dtype);
  node.storage = storage;
  return node;
}
