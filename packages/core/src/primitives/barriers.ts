/** The same value: without its history, computed from again later, or in memory. */
import { makeNode } from '../graph/build.ts';
import { customRules, elementwiseCustom } from '../graph/rules.ts';
import type { Batches, Family, Gradients, Tangents } from '../graph/definition.ts';
import type { Node } from '../graph/node.ts';
import { onPlaceholders, placeholder } from '../graph/placeholder.ts';
import * as p from '../graph/primitives.ts';
import type { BatchContext } from '../graph/rules.ts';
import { movedFrom } from '../planner/lowering/rules.ts';
import type { PlanNode } from '../planner/capture/plan-graph.ts';
import { again, everySource, inferSame, linear, whole } from './rules.ts';

type Barrier = 'stopGradient' | 'after' | 'contiguous';

export const barriers: Family<Barrier> = {
  stopGradient: { infer: inferSame, role: 'pass', work: 0, sources: () => {} },
  after: {
    infer: inferSame,
    role: 'pass',
    work: 0,
    // Computing waits for what must be there before: both are in memory then, which orders the kernels.
    sources: (c, node, index) => {
      const [x, when] = node.src as [PlanNode, PlanNode];
      c.need(x, index);
      for (const s of [movedFrom(x), movedFrom(when)])
        if (s.role !== 'leaf' && s.role !== 'generate') c.needInMemory(s);
    },
  },
  contiguous: { infer: inferSame, role: 'materialize', work: 0 },
};

/** `stopGradient` passes gradients only where a custom rule says so (autodiff/custom-gradient.ts). */
export const barrierGradients: Gradients<Barrier> = {
  stopGradient: () => [],
  after: ({ grad }) => [grad, null],
  contiguous: ({ grad }) => [grad],
};

export const barrierTangents: Tangents<'after' | 'contiguous'> = {
  after: ({ src, tangents }) => (tangents[0] == null ? null : p.after(tangents[0], src[1]!)),
  contiguous: linear,
};

export const barrierBatches: Batches<Barrier> = {
  stopGradient,
  after: (c) => makeNode('after', [whole(c, 0), c.sources[1] ?? c.src[1]!], null),
  contiguous: (c) => again(c),
};

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
      ...sources.map((s, i): [Node, Node] => [s, self.src[i]!]),
    ]);
    const parts = onPlaceholders(() => rule(seed, result));
    const given = parts.filter((part) => part !== null);
    const many = c.remake(given, inputs);
    return parts.map((part) => (part === null ? null : many[given.indexOf(part)]!));
  });
  return node;
}
