/**
 * The form of a primitive and of its rules. One definition holds all that is known of a primitive; one registry finds it by name or number.
 * Checks that shape and dtype rules share stand here too.
 *
 * Common primitives are recorded by name, and every program carries their definitions (primitives/common.ts). For all others the caller passes
 * the definition to `makeNode`, so that bundlers leave out unused ones.
 */
import { registerFunctions, type FloatFunctions } from '@polygrad/compiler/arithmetic/decompose/functions';
import { type DType, dtypeInfo, type DTypeKind, DTypeError } from '@polygrad/compiler/shape/dtype';
import { ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { say } from '@polygrad/compiler/shape/shown';
import type { Shape } from '@polygrad/compiler/shape/view';
import type { Attrs, BinaryAttrs, CommonAttrs, Node, PrimitiveName, UnaryAttrs } from './node.ts';
import { opName } from './scope.ts';

// Checks shared by shape and dtype rules, and their errors.

/** Computes shape and dtype of a node from its sources; throws ShapeError or DTypeError. */
export interface InferRule<P extends PrimitiveName> {
  shape(src: readonly Node[], attr: Attrs[P], op: P): Shape;
  dtype(src: readonly Node[], attr: Attrs[P], op: P): DType;
}

/** Groups of dtypes that a primitive may accept. */
export type Accepts = 'float' | 'number' | 'integer' | 'bits' | 'any';

/** The kinds of dtypes in each group. */
const kinds: Readonly<Record<Accepts, readonly DTypeKind[]>> = {
  float: ['float'],
  number: ['float', 'int', 'uint'],
  integer: ['int', 'uint'],
  bits: ['int', 'uint', 'bool'],
  any: ['float', 'int', 'uint', 'bool'],
};

const wanted: Readonly<Record<Accepts, string>> = {
  float: 'a floating-point dtype',
  number: 'numbers, not bool',
  integer: 'an integer dtype',
  bits: 'integers or bool',
  any: 'any dtype',
};

/** Throws DTypeError unless the primitive accepts the dtype. */
export function checkDType(kind: Accepts, primitive: PrimitiveName, dtype: DType): void {
  if (!kinds[kind].includes(dtypeInfo[dtype].kind)) {
    throw new DTypeError(
      opName(primitive),
      say`dtype not accepted: ${dtype}; needs ${wanted[kind]}; convert with cast()`,
      [dtype],
    );
  }
}

/** The dtype of both operands. Throws DTypeError if they differ, or if the primitive does not accept it. */
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

/** Throws a ShapeError in the name of the current operation. */
export function fail(op: PrimitiveName, message: string, ...shapes: Shape[]): never {
  throw new ShapeError(opName(op), message, shapes);
}

/** Throws ShapeError unless there is one entry per axis of the shape. `what` names the entries. */
export function checkRank(op: PrimitiveName, what: string, entries: readonly number[], shape: Shape): void {
  if (entries.length !== shape.length) {
    fail(op, say`wrong number of ${what}: ${entries.length} for shape ${showShape(shape)}; give one per axis`, shape);
  }
}

/** Throws ShapeError unless the axes exist, each once, in ascending order. */
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

/** Throws ShapeError unless the axis exists. */
export function checkAxis(op: PrimitiveName, axis: number, shape: Shape): void {
  if (axis < 0 || axis >= shape.length) fail(op, say`no axis ${axis} in shape ${showShape(shape)}`, shape);
}

// The forms of a primitive's rules: shape inference, gradients from the result to the sources, tangents from the
// sources to the result, and batching. All record nodes, so their results can be differentiated again.

/** The input of a gradient rule. */
export interface GradientContext<P extends PrimitiveName> {
  /** The node itself: its value is the output. */
  readonly node: Node<P>;
  readonly src: readonly Node[];
  readonly attr: Attrs[P];
  /** Gradient of the output: same shape and dtype. */
  readonly grad: Node;
  /** Which sources need a gradient. */
  readonly needs: readonly boolean[];
}

/**
 * Returns one gradient per source; null, or none, means zero. The gradient of an elementwise primitive may have the result's shape and any float
 * dtype: the walk sums and casts it to the source's (autodiff/walk.ts).
 */
export type GradientRule<P extends PrimitiveName> = (context: GradientContext<P>) => readonly (Node | null)[];

/** The input of a tangent rule. Each source has a tangent of its shape and dtype, or null for no change; at least one is not null. */
export interface TangentContext<P extends PrimitiveName> {
  readonly node: Node<P>;
  readonly src: readonly Node[];
  readonly attr: Attrs[P];
  readonly tangents: readonly (Node | null)[];
}

/**
 * Returns the tangent of the result, or null for no change. Its shape may broadcast to the result's. Undefined: the gradient rule is transposed
 * instead (`transposed` in autodiff/derivatives.ts).
 */
export type TangentRule<P extends PrimitiveName> = (context: TangentContext<P>) => Node | null | undefined;

/** The input of a batching rule. */
export interface BatchContext<P extends PrimitiveName> {
  readonly node: Node<P>;
  /** The sources of one example. */
  readonly src: readonly Node[];
  readonly attr: Attrs[P];
  /** The sources with a leading batch axis; null if all examples share the source. At least one is not null, except for random bits. */
  readonly sources: readonly (Node | null)[];
  /** Number of examples in the batch. */
  readonly size: number;
  /** Records nodes that depend on other placeholders again, for the whole batch (`batchedAll` in autodiff/vmap.ts). */
  readonly remake: (roots: readonly Node[], inputs: ReadonlyMap<Node, Node>) => Node[];
}

/** Returns a node of shape [size, ...node.shape]. */
export type BatchRule<P extends PrimitiveName> = (context: BatchContext<P>) => Node;

// Gradients given by users (autodiff/custom-gradient.ts), by node. They are kept beside the graph, so that the graph itself stays plain
// data.

/** Rules by node: from the gradient of the result, the gradients of `src`. */
export const customRules: WeakMap<Node, (grad: Node, node: Node) => readonly (Node | null)[]> = new WeakMap();

/** Nodes with such a rule whose gradient is elementwise: the walk treats them as elementwise primitives, masks of `where` included. */
export const elementwiseCustom: WeakSet<Node> = new WeakSet();

/** Primitives whose definitions every program carries. */
export type CommonPrimitive = keyof CommonAttrs;

/** Primitives whose definition is passed to `makeNode`. */
export type DefinedPrimitive = Exclude<PrimitiveName, CommonPrimitive>;

/** Elementwise functions of one and of two values, as `makeNode` takes them: by name if common, else by definition. */
export type UnaryOperation = OperationIn<keyof UnaryAttrs>;
export type BinaryOperation = OperationIn<keyof BinaryAttrs>;
export type AnyDefinition = DefinitionIn<PrimitiveName>;
type OperationIn<P> = P extends CommonPrimitive ? P : DefinitionIn<P>;
type DefinitionIn<P> = P extends PrimitiveName ? Definition<P> : never;

/**
 * The role of a primitive. leaf: data from outside. elementwise: element i of the result needs element i of each source. movement: an index
 * map. generate: computed from the index. reduce: one result from many elements of its source. contraction: sums of products of two sources.
 * gather: an index map that depends on data. program: kernels written with the builder (scatters, scans, sorts). pass: no work, the
 * value is the first source's. materialize: the identity, but in memory. loop: consecutive steps, which do not fit into one plan.
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

/** How a primitive is lowered: planner/lowering/rules.ts adds the members. */
// biome-ignore lint/suspicious/noEmptyInterface: others add to it
// biome-ignore lint/correctness/noUnusedVariables: the name is part of the interface
export interface LoweringRules<P extends PrimitiveName> {}

/** Everything that belongs to one primitive except its name. Its attributes are in `Attrs`. */
export interface Facts<P extends PrimitiveName> extends LoweringRules<P> {
  readonly infer: InferRule<P>;
  readonly role: Role;
  /** Cost of one result element without its sources, in units of one addition (see planner/fusion/cost.ts). */
  readonly work: number;
  /** Absent: its gradient is zero. Common primitives have their rules in `Gradients`, `Tangents` and `Batches` of their family. */
  readonly gradient?: GradientRule<P>;
  /** Absent: slopes of elementwise primitives serve in both directions; for others the gradient rule is transposed (autodiff/derivatives.ts). */
  readonly tangent?: TangentRule<P>;
  /** Elementwise primitives need none. */
  readonly batch?: BatchRule<P>;
  /** The arithmetic of its kernel operation, for engines without it. */
  readonly functions?: FloatFunctions;
}

/** Common primitives of one kind. */
export type Family<P extends PrimitiveName> = { readonly [Q in P]: Facts<Q> };

/** Rules of common primitives that most pages do not need: tables beside the family, which bundlers leave out. */
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

/** The facts in a definition that is passed to `makeNode`: they include its gradient. */
export type Whole<P extends PrimitiveName> = Facts<P> & Required<Pick<Facts<P>, 'gradient'>>;

/**
 * Makes a definition with a new number. Fields that recording and planning read for every node come first and in one order: objects of one
 * form are faster to read.
 */
export function define<P extends PrimitiveName>(op: P, facts: Whole<P>): Definition<P> {
  const front = { op, id: ++count, infer: null, role: null, work: 0, encode: null, kernelOp: null };
  return Object.assign(front, facts);
}

const known = new Map<PrimitiveName, unknown>();
const numbered: AnyDefinition[] = [];

/** Definitions by their numbers: faster than `definitionOf` for callers that look up many. */
export const definitions: readonly AnyDefinition[] = numbered;

/** Registers a definition, before the first node of its primitive. */
export function registerDefinition(definition: AnyDefinition): void {
  if (known.has(definition.op)) return;
  known.set(definition.op, definition);
  numbered[definition.id] = definition;
  if (definition.functions !== undefined) registerFunctions(definition.functions);
}

/** The definition by number (`Node.kind`), which is faster than by name. */
export function definitionAt(kind: number): AnyDefinition {
  return numbered[kind]!;
}

/** The definition of a primitive that has been registered. */
export function definitionOf<P extends PrimitiveName>(op: P): Definition<P> {
  return known.get(op) as Definition<P>;
}
