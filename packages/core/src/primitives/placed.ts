/** `to`: the same value on a named engine. Runs of one engine, and bodies of loops, take the value where it is. */
import { define, type Definition } from '../graph/definition.ts';
import type { Node } from '../graph/node.ts';
import { makeAgain, makeNode } from '../graph/primitives.ts';

/** An engine, as far as the graph knows one. */
export interface Place {
  readonly name: string;
}

declare module '../graph/node.ts' {
  interface Attrs {
    /** `from`: the engine of the source, to which gradients go back; null: they are computed where their values are. */
    to: { readonly engine: Place; readonly from: Place | null };
  }
}

function back(node: Node<'to'>, grad: Node): Node {
  const { engine, from } = node.attr;
  return from === null ? grad : makeNode(toPrimitive, [grad], { engine: from, from: engine });
}

export const toPrimitive: Definition<'to'> = /* @__PURE__ */ define('to', {
  infer: { shape: ([x]) => x!.shape, dtype: ([x]) => x!.dtype },
  role: 'pass',
  work: 0,
  encode: (_, out) => {
    out.placed = true;
  },
  sources: (c, node, index) => c.need(node.src[0]!, index),
  gradient: ({ node, grad }) => [back(node, grad)],
  tangent: ({ node, tangents }) => (tangents[0] == null ? null : makeAgain(node, [tangents[0]], node.attr)),
  batch: ({ node, sources }) => makeAgain(node, [sources[0]!], node.attr),
});
