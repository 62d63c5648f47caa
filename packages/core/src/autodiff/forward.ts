/**
 * Tangent rules: how changes of a node's sources become a change of its result. For `jvp`.
 *
 * Nearly every row follows from what is there already. An elementwise primitive multiplies by the same slope in both directions, so
 * its gradient rule serves. A linear primitive does with changes what it does with values. The rest are their gradient rule
 * turned around: that rule is linear in the gradient, and the gradient of a linear map is its transpose. Tangents are graph nodes,
 * so they can be differentiated in turn, in either direction.
 */
import type { PrimitiveName } from '../graph/attrs.ts';
import { makeAgain } from '../graph/build.ts';
import { isOp, type Node } from '../graph/node.ts';
import * as p from '../graph/primitives.ts';
import { definitionOf } from '../graph/definition.ts';
import type { GradientRule, TangentRule } from '../graph/rules.ts';
import { binaryRules, unaryRules } from '../primitives/gradient/elementwise.ts';
import { transposed } from './transpose.ts';

/** Slope times tangent, source by source: what the gradient rule does with a gradient. */
function diagonal<P extends PrimitiveName>(rule: GradientRule<P>): TangentRule<P> {
  return ({ node, src, attr, tangents }) => {
    let sum: Node | null = null;
    tangents.forEach((tangent, i) => {
      if (tangent === null) return;
      const needs = src.map((_, at) => at === i);
      const part = rule({ node, src, attr, grad: tangent, needs })[i] ?? null;
      if (part === null) return;
      const cast = p.cast(part, node.dtype);
      sum = sum === null ? cast : p.add(sum, cast);
    });
    return sum;
  };
}

/** For primitives that are linear in their first source and have no other. */
function linear<P extends PrimitiveName>(): TangentRule<P> {
  return ({ node, attr, tangents }) => makeAgain(node, [tangents[0] as Node], attr);
}

/** For primitives that are linear in each of their two sources. */
function bilinear<P extends PrimitiveName>(): TangentRule<P> {
  return ({ node, src, attr, tangents }) => {
    const [a, b] = src as [Node, Node];
    const [da, db] = tangents as [Node | null, Node | null];
    const byA = da === null ? null : makeAgain(node, [da, b], attr);
    const byB = db === null ? null : makeAgain(node, [a, db], attr);
    return byA !== null && byB !== null ? p.add(byA, byB) : (byA ?? byB);
  };
}

type Elementwise = keyof typeof unaryRules | keyof typeof binaryRules;

const elementwise = Object.fromEntries(
  Object.entries({ ...unaryRules, ...binaryRules }).map(([op, rule]) => [op, diagonal(rule as GradientRule<never>)]),
) as { readonly [P in Elementwise]: TangentRule<P> };

/** The table. Primitives that are not in it are turned around (transpose.ts), which is always right and costs a few nodes more. */
const tangentRules: { readonly [P in PrimitiveName]?: TangentRule<P> } = {
  ...elementwise,
  where: ({ src, tangents }) => {
    const [condition, a, b] = src as [Node, Node, Node];
    return p.where(condition, tangents[1] ?? p.like(a, 0), tangents[2] ?? p.like(b, 0));
  },
  cast: ({ attr, tangents }) => p.cast(tangents[0] as Node, attr.dtype),
  reduce: (c) => (c.attr.op === 'sum' ? linear<'reduce'>()(c) : undefined),
  reshape: linear(),
  permute: linear(),
  expand: linear(),
  slice: linear(),
  pad: ({ attr, tangents }) => p.pad(tangents[0] as Node, attr.low, attr.high),
  concat: ({ src, attr, tangents }) =>
    p.concat(
      tangents.map((tangent, i) => tangent ?? p.zerosLike(src[i] as Node)),
      attr.axis,
    ),
  window: linear(),
  fold: linear(),
  dotGeneral: bilinear(),
  conv: bilinear(),
  after: ({ src, tangents }) => (tangents[0] == null ? null : p.after(tangents[0], src[1] as Node)),
  contiguous: linear(),
};

function ruleOf(op: PrimitiveName): TangentRule<PrimitiveName> | undefined {
  const definition = definitionOf(op);
  if (definition?.elementwise) return diagonal(definition.gradient);
  return definition?.tangent ?? (tangentRules[op] as TangentRule<PrimitiveName> | undefined);
}

/**
 * Applies the rules to `nodes` (in creation order, sources before users). To be called with flushes held.
 *
 * @param tangents those of the nodes to start from; those of all nodes reached are added
 * @returns the tangents
 */
export function pushForward(nodes: readonly Node[], tangents: Map<Node, Node>): Map<Node, Node> {
  for (const node of nodes) {
    if (tangents.has(node)) continue;
    const own = node.src.map((source) => tangents.get(source) ?? null);
    // What is behind a stopGradient flows nowhere.
    if (isOp(node, 'stopGradient')) own[0] = null;
    if (own.every((tangent) => tangent === null)) continue;
    const rule = ruleOf(node.op);
    let tangent = rule?.({ node, src: node.src, attr: node.attr, tangents: own });
    if (tangent === undefined) tangent = transposed(node, own);
    if (tangent !== null) tangents.set(node, p.broadcastTo(p.cast(tangent, node.dtype), node.shape));
  }
  return tangents;
}
