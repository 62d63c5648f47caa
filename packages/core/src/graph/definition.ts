/**
 * The form of a primitive: one definition holds everything that is known of it, and one registry finds it by its name.
 *
 * Common primitives are recorded by name, and every program carries their definitions (primitives/common.ts). All others are handed to
 * `makeNode` by whoever records them, so that bundlers leave out what nobody records.
 */
import { bringFunctions, type FloatFunctions } from '../arithmetic/decompose/decompose.ts';
import type { BinaryAttrs, CommonAttrs, PrimitiveName, UnaryAttrs } from './attrs.ts';
import type { InferRule } from './infer-checks.ts';
import type { BatchRule, GradientRule, TangentRule } from './rules.ts';

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
 * value is the first source's. materialize: the identity, but in memory.
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
  | 'materialize';

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
  /** None: slopes of elementwise primitives serve in both directions; of others the gradient rule is turned around (autodiff/transpose.ts). */
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

/** From now on nodes of this primitive may exist. */
export function bring(definition: AnyDefinition): void {
  if (known.has(definition.op)) return;
  known.set(definition.op, definition);
  if (definition.functions !== undefined) bringFunctions(definition.functions);
}

/** The definition of a primitive of which there is a node. */
export function definitionOf<P extends PrimitiveName>(op: P): Definition<P> {
  return known.get(op) as Definition<P>;
}
