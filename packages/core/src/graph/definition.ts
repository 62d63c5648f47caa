/**
 * The form of a primitive and of its rules: one definition holds everything that is known of it, and one registry finds it by its name.
 *
 * Common primitives are recorded by name, and every program carries their definitions (primitives/common.ts). All others are handed to
 * `makeNode` by whoever records them, so that bundlers leave out what nobody records.
 */
import { bringFunctions, type FloatFunctions } from '@polygrad/compiler/arithmetic/decompose/functions';
import { type DType, isFloat, isInteger } from '@polygrad/compiler/shape/dtype';
import { DTypeError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { say } from '@polygrad/compiler/shape/shown';
import type { Shape } from '@polygrad/compiler/shape/view';
import type { Attrs, BinaryAttrs, CommonAttrs, Node, PrimitiveName, UnaryAttrs } from './node.ts';
import { opName } from './scope.ts';

// Checks that shape and dtype rules share, and the errors they throw.

/** Computes shape and dtype of a node from its sources; throws ShapeError or DTypeError. */
export interface InferRule<P extends PrimitiveName> {
  shape(src: readonly Node[], attr: Attrs[P], op: P): Shape;
  dtype(src: readonly Node[], attr: Attrs[P], op: P): DType;
}

/** Families of dtypes. */
export type Accepts = 'float' | 'number' | 'integer' | 'bits' | 'any';

function accepted(kind: Accepts, dtype: DType): boolean {
  switch (kind) {
    case 'float':
      return isFloat(dtype);
    case 'number':
      return dtype !== 'bool';
    case 'integer':
      return isInteger(dtype);
    case 'bits':
      return !isFloat(dtype);
    case 'any':
      return true;
    default:
      return kind satisfies never;
  }
}

const wanted: Readonly<Record<Accepts, string>> = {
  float: 'a floating-point dtype',
  number: 'numbers, not bool',
  integer: 'an integer dtype',
  bits: 'integers or bool',
  any: 'any dtype',
};

/** Throws DTypeError unless the primitive takes the dtype. */
export function checkDType(kind: Accepts, primitive: PrimitiveName, dtype: DType): void {
  if (!accepted(kind, dtype)) {
    throw new DTypeError(
      opName(primitive),
      say`dtype not accepted: ${dtype}; needs ${wanted[kind]}; convert with cast()`,
      [dtype],
    );
  }
}

/** Dtype shared by both operands. */
export function common(primitive: PrimitiveName, kind: Accepts, a: Node, b: Node): DType {
  if (a.dtype !== b.dtype) {
    throw new DTypeError(opName(primitive), say`dtypes differ: ${a.dtype} and ${b.dtype}; convert one with cast()`, [
      a.dtype,
      b.dtype,
    ]);
  }
  checkDType(kind, primitive, a.dtype);
  return a.dtype;
}

/** Throws a ShapeError in the name of the operation in progress. */
export function fail(op: PrimitiveName, message: string, ...shapes: Shape[]): never {
  throw new ShapeError(opName(op), message, shapes);
}

/** Throws unless there are `rank` integer entries. */
export function checkRank(op: PrimitiveName, what: string, entries: readonly number[], shape: Shape): void {
  if (entries.length !== shape.length) {
    fail(op, say`wrong number of ${what}: ${entries.length} for shape ${showShape(shape)}; give one per axis`, shape);
  }
}

/** Throws unless the axes exist, each once, in ascending order. */
export function sortedDistinct(op: PrimitiveName, axes: readonly number[], shape: Shape): void {
  for (let i = 0; i < axes.length; i++) {
    const axis = axes[i]!;
    if (axis < 0 || axis >= shape.length || (i > 0 && axis <= axes[i - 1]!)) {
      fail(op, say`bad axes ${showShape(axes)} for shape ${showShape(shape)}; must be distinct and ascending`, shape);
    }
  }
}

/** The shape with one axis replaced by others. */
export function spliced(shape: Shape, axis: number, middle: Shape): number[] {
  return [...shape.slice(0, axis), ...middle, ...shape.slice(axis + 1)];
}

/** Throws DTypeError unless the node is int32. */
export function checkIndex(op: PrimitiveName, index: Node): void {
  if (index.dtype !== 'int32')
    throw new DTypeError(opName(op), say`index dtype is ${index.dtype}: needs int32; convert with cast()`, [
      index.dtype,
    ]);
}

/** Throws unless the axis exists. */
export function checkAxis(op: PrimitiveName, axis: number, shape: Shape): void {
  if (axis < 0 || axis >= shape.length) fail(op, say`no axis ${axis} in shape ${showShape(shape)}`, shape);
}

// The forms of a primitive's rules: shapes are inferred, gradients go from the result to the sources, tangents from the
// sources to the result, and a batch of nodes becomes one. All record nodes, so what they make can be differentiated in turn.

/** What a gradient rule is given. */
export interface GradientContext<P extends PrimitiveName> {
  /** The node itself: its value is the output. */
  readonly node: Node<P>;
  readonly src: readonly Node[];
  readonly attr: Attrs[P];
  /** Gradient of the output: same shape and dtype. */
  readonly grad: Node;
  /** Which sources a gradient is wanted for. */
  readonly needs: readonly boolean[];
}

/**
 * Returns one gradient per source; null means zero. A gradient of an elementwise rule may have the broadcast shape and any float dtype: the walk
 * sums and casts it to the source's. Rules record nodes, so gradients can be differentiated in turn.
 */
export type GradientRule<P extends PrimitiveName> = (context: GradientContext<P>) => readonly (Node | null)[];

/** What a tangent rule is given: the node and, per source, its tangent (its shape and dtype) or null for no change; at least one is not null. */
export interface TangentContext<P extends PrimitiveName> {
  readonly node: Node<P>;
  readonly src: readonly Node[];
  readonly attr: Attrs[P];
  readonly tangents: readonly (Node | null)[];
}

/**
 * Returns the tangent of the result, or null for no change. It may have a shape that broadcasts to the result's. Undefined: the gradient rule is to
 * be turned around.
 */
export type TangentRule<P extends PrimitiveName> = (context: TangentContext<P>) => Node | null | undefined;

/** What a batching rule is given. */
export interface BatchContext<P extends PrimitiveName> {
  readonly node: Node<P>;
  /** The sources for one element of the batch. */
  readonly src: readonly Node[];
  readonly attr: Attrs[P];
  /** The sources with the batch in front; null where all elements share the source. At least one is not null, but for random bits. */
  readonly sources: readonly (Node | null)[];
  readonly size: number;
  /** Makes a graph recorded on other placeholders again for the whole batch (batch.ts). */
  readonly remake: (roots: readonly Node[], inputs: ReadonlyMap<Node, Node>) => Node[];
}

/** Returns a node of shape [size, ...node.shape]. */
export type BatchRule<P extends PrimitiveName> = (context: BatchContext<P>) => Node;

// Gradients given by users (autodiff/custom-gradient.ts), by the node they belong to: kept beside the graph, so that the graph itself stays plain
// data.

/** Rules by node: the gradients of src, from the gradient of the result. */
export const customRules: WeakMap<Node, (grad: Node, node: Node) => readonly (Node | null)[]> = new WeakMap();

/** Of these, the ones whose value and gradient belong to one element: masks of `where` pass by them as by elementwise primitives. */
export const elementwiseCustom: WeakSet<Node> = new WeakSet();

/** Primitives whose definitions every program carries. */
export type CommonPrimitive = keyof CommonAttrs;

/** Primitives whose definition is handed over by whoever records them. */
export type DefinedPrimitive = Exclude<PrimitiveName, CommonPrimitive>;

/** Functions of one and of two values, as they are recorded: by name, or by their definition. */
export type UnaryOperation = OperationIn<keyof UnaryAttrs>;
export type BinaryOperation = OperationIn<keyof BinaryAttrs>;
export type AnyDefinition = DefinitionIn<PrimitiveName>;
type OperationIn<P> = P extends CommonPrimitive ? P : DefinitionIn<P>;
type DefinitionIn<P> = P extends PrimitiveName ? Definition<P> : never;

/**
 * The part a primitive plays. leaf: data from outside. elementwise: element i of the result needs element i of each source. movement: an index
 * map. generate: computed from the index. reduce: one result from many elements of its source. contraction: sums of products of two sources.
 * gather: an index map that depends on data. program: kernels written with the builder (scatters, scans, sorts). pass: nothing at all, the
 * value is the first source's. materialize: the identity, but in memory. loop: steps one after the other, which no plan holds.
 */
export type Role =
  | 'leaf'
  | 'elementwise'
  | 'movement'
  | 'generate'
  | 'reduce'
  | 'contraction'
  | 'gather'
  | 'program'
  | 'pass'
  | 'materialize'
  | 'loop';

/** How plans are made of a primitive: planner/lowering/rules.ts fills it in. */
// biome-ignore lint/suspicious/noEmptyInterface: others add to it
// biome-ignore lint/correctness/noUnusedVariables: the name is part of the interface
export interface LoweringRules<P extends PrimitiveName> {}

/** Everything that belongs to one primitive, but for its name. Its attributes are in `Attrs`. */
export interface Facts<P extends PrimitiveName> extends LoweringRules<P> {
  readonly infer: InferRule<P>;
  readonly role: Role;
  /** Cost of one result element without its sources, in units of one addition (see planner/fusion/cost.ts). */
  readonly work: number;
  /** None: its gradient is zero. Common primitives have their rules in `Gradients`, `Tangents` and `Batches` of their family. */
  readonly gradient?: GradientRule<P>;
  /** None: slopes of elementwise primitives serve in both directions; of others the gradient rule is turned around (autodiff/derivatives.ts). */
  readonly tangent?: TangentRule<P>;
  /** Elementwise primitives need none. */
  readonly batch?: BatchRule<P>;
  /** The arithmetic of its kernel operation, for engines that have none. */
  readonly functions?: FloatFunctions;
}

/** Common primitives of one kind. */
export type Family<P extends PrimitiveName> = { readonly [Q in P]: Facts<Q> };

/** Rules of common primitives that most pages do without: tables of their own beside the family, which bundlers leave out. */
export type Gradients<P extends PrimitiveName> = { readonly [Q in P]: GradientRule<Q> };
export type Tangents<P extends PrimitiveName> = { readonly [Q in P]: TangentRule<Q> };
export type Batches<P extends PrimitiveName> = { readonly [Q in P]: BatchRule<Q> };

/** Everything that belongs to one primitive. */
export interface Definition<P extends PrimitiveName> extends Facts<P> {
  readonly op: P;
  /** Small dense number for plan keys. */
  readonly id: number;
}

let count = 0;

/** What a definition has that is handed over by whoever records it: its gradient too. */
export type Whole<P extends PrimitiveName> = Facts<P> & Required<Pick<Facts<P>, 'gradient'>>;

/** The definition made of facts. What recording and planning look at for every node stands in front, in one order. */
export function define<P extends PrimitiveName>(op: P, facts: Whole<P>): Definition<P> {
  const front = { op, id: ++count, infer: null, role: null, work: 0, encode: null, kernelOp: null };
  return Object.assign(front, facts);
}

const known = new Map<PrimitiveName, unknown>();
const numbered: AnyDefinition[] = [];

/** From now on nodes of this primitive may exist. */
export function bring(definition: AnyDefinition): void {
  if (known.has(definition.op)) return;
  known.set(definition.op, definition);
  numbered[definition.id] = definition;
  if (definition.functions !== undefined) bringFunctions(definition.functions);
}

/** The definition of a node's primitive, by its number (`Node.kind`): found faster than by name. */
export function definitionAt(kind: number): AnyDefinition {
  return numbered[kind]!;
}

/** The definition of a primitive of which there is a node. */
export function definitionOf<P extends PrimitiveName>(op: P): Definition<P> {
  return known.get(op) as Definition<P>;
}
