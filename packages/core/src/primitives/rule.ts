/** Rules that many primitives share: the shape and dtype of the first source, and what is linear in it. */
import type { PrimitiveName } from '../graph/attrs.ts';
import { makeAgain } from '../graph/build.ts';
import type { InferRule } from '../graph/infer-checks.ts';
import type { Node } from '../graph/node.ts';
import type { TangentContext } from '../graph/rules.ts';

export const dtypeOfFirst = (src: readonly Node[]): Node['dtype'] => (src[0] as Node).dtype;

export const inferSame: InferRule<PrimitiveName> = { shape: (src) => (src[0] as Node).shape, dtype: dtypeOfFirst };

/** The tangent of primitives that are linear in their first source and have no other. */
export function linear<P extends PrimitiveName>({ node, attr, tangents }: TangentContext<P>): Node {
  return makeAgain(node, [tangents[0] as Node], attr);
}
