/**
 * The batching rule of every primitive but those that bring theirs (primitives/). Most say that the batch is one more axis in front; contractions
 * are in a file of their own.
 */
import type { Attrs, PrimitiveName } from '../../graph/attrs.ts';
import { makeAgain, makeNode } from '../../graph/build.ts';
import type { Node } from '../../graph/node.ts';
import { onPlaceholders, placeholder } from '../../graph/placeholder.ts';
import { type CommonPrimitive, definitionOf } from '../../graph/definition.ts';
import { customRules, elementwiseCustom } from '../../graph/custom-rules.ts';
import type { BatchContext, BatchRule } from '../../graph/rules.ts';
import { behind, elementwiseBatch as elementwise, everySource, whole } from './rule.ts';
import { convBatch, dotGeneralBatch } from './contraction.ts';
import { binaryRules, unaryRules } from '../gradient/elementwise.ts';
import { say } from '../../shape/shown.ts';

/** For primitives with one source that work along its last axes, or on every element. */
function alike<P extends PrimitiveName>(c: BatchContext<P>): Node {
  return makeAgain(c.node, [whole(c, 0)], c.attr);
}

/** For primitives with one source, given the attributes that leave the first axis alone. */
function withAttr<P extends PrimitiveName>(attr: (attr: Attrs[P], size: number) => Attrs[P]): BatchRule<P> {
  return (c) => makeAgain(c.node, [whole(c, 0)], attr(c.attr, c.size));
}

/** Leaves depend on nothing. */
function never(c: BatchContext<PrimitiveName>): Node {
  throw new Error(say`[batch] a ${c.node.op} has no sources; this is a bug`);
}

type Elementwise = keyof typeof unaryRules | keyof typeof binaryRules;

const elementwiseRules = Object.fromEntries(
  [...Object.keys(unaryRules), ...Object.keys(binaryRules)].map((op) => [op, elementwise]),
) as { readonly [P in Elementwise]: BatchRule<P> };

/** The table. */
const batchRules: { readonly [P in CommonPrimitive]: BatchRule<P> } = {
  ...elementwiseRules,
  buffer: never,
  scalar: never,
  constant: never,
  iota: never,
  randomBits: (c) => {
    const shape = [c.size, ...c.attr.shape];
    if (c.sources.every((source) => source === null)) return makeNode('randomBits', c.src, { ...c.attr, shape });
    throw new Error('[batch] a key depends on the batch; this is a bug');
  },
  where: elementwise,
  cast: alike,
  bitcast: alike,
  reduce: withAttr((a) => ({ ...a, axes: behind(a.axes) })),
  argReduce: withAttr((a) => ({ ...a, axes: behind(a.axes) })),
  reshape: withAttr((a, n) => ({ shape: [n, ...a.shape] })),
  permute: withAttr((a) => ({ axes: [0, ...behind(a.axes)] })),
  expand: withAttr((a, n) => ({ shape: [n, ...a.shape] })),
  slice: withAttr((a, n) => ({ start: [0, ...a.start], length: [n, ...a.length], step: [1, ...a.step] })),
  pad: withAttr((a) => ({ low: [0, ...a.low], high: [0, ...a.high], value: a.value })),
  concat: (c) => makeNode('concat', everySource(c), { axis: c.attr.axis + 1 }),
  window: alike,
  fold: alike,
  dotGeneral: dotGeneralBatch,
  conv: convBatch,
  stopGradient,
  after: (c) => makeNode('after', [whole(c, 0), c.sources[1] ?? (c.src[1] as Node)], null),
  contiguous: alike,
};

/** The rule of a primitive of which there is a node. */
export function batchRuleOf<P extends PrimitiveName>(op: P): BatchRule<P> {
  return definitionOf(op)?.batch ?? (batchRules as unknown as { readonly [Q in P]: BatchRule<Q> })[op];
}

/** A gradient given by the user is a function of one element: its graph is made again for the batch too. */
function stopGradient(c: BatchContext<'stopGradient'>): Node {
  const rule = customRules.get(c.node);
  const node = makeNode('stopGradient', everySource(c), null);
  if (rule === undefined) return node;
  if (elementwiseCustom.has(c.node)) elementwiseCustom.add(node);
  customRules.set(node, (grad, self) => {
    const one = (x: Node): Node => placeholder(x.shape.slice(1), x.dtype, 'a gradient inside vmap');
    const sources = self.src.map(one);
    const seed = one(grad);
    const result = makeNode('stopGradient', sources, null);
    // The rule may use the result, and the gradient of that is this function's own.
    const inputs = new Map<Node, Node>([
      [seed, grad],
      [result, self],
      ...sources.map((s, i): [Node, Node] => [s, self.src[i] as Node]),
    ]);
    const parts = onPlaceholders(() => rule(seed, result));
    const given = parts.filter((part) => part !== null);
    const many = c.remake(given, inputs);
    return parts.map((part) => (part === null ? null : (many[given.indexOf(part)] as Node)));
  });
  return node;
}
