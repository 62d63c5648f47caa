/**
 * The primitives of loops (graph/loop.ts): the loop itself, its outputs, and gradients on their way from the outputs to the loop. The rules for
 * derivatives and batches come with the body (control/derivatives.ts), so that pages without loops leave them out.
 */
import { define, type Definition } from '../graph/definition.ts';
import type { Node } from '../graph/node.ts';
import type { IntWriter } from '../planner/capture/cache.ts';
import { makeNode } from '../graph/primitives.ts';
import type { Shape } from '@polygrad/compiler/shape/view';

/** Loops are in no plan key: this says that the run has loops, so it is cut into stages at them (runtime/loops.ts). */
function encode(_: unknown, out: IntWriter): void {
  out.looped = true;
}

function callOf(node: Node): Node<'loop'> {
  return node.src[0] as Node<'loop'>;
}

export const loopPrimitive: Definition<'loop'> = /* @__PURE__ */ define('loop', {
  infer: { shape: () => [], dtype: (_, attr) => attr.body.dtype },
  role: 'loop',
  work: 0,
  encode,
  gradient: (c) => c.attr.body.rules.gradient(c),
  tangent: (c) => c.attr.body.rules.tangent(c),
  batch: (c) => c.attr.body.rules.batch(c),
});

export const loopOutputPrimitive: Definition<'loopOutput'> = /* @__PURE__ */ define('loopOutput', {
  infer: {
    shape: ([call], { last, each }): Shape => {
      const { body, length } = (call as Node<'loop'>).attr;
      return each === null ? body.carries[last]!.shape : [length, ...each.shape];
    },
    dtype: ([call], { last, each }) => (each ?? (call as Node<'loop'>).attr.body.carries[last]!).dtype,
  },
  role: 'loop',
  work: 0,
  encode,
  gradient: ({ node, grad }) => [makeNode(loopGradientPrimitive, [grad], { output: node })],
  tangent: ({ node, tangents }) => callOf(node).attr.body.rules.outputTangent(node, tangents[0]!),
  batch: ({ node, sources }) => callOf(node).attr.body.rules.outputBatch(node, sources[0]!),
});

/** The loop's gradient rule takes out what it holds, so it is never computed. */
export const loopGradientPrimitive: Definition<'loopGradient'> = /* @__PURE__ */ define('loopGradient', {
  infer: { shape: () => [], dtype: (_, { output }) => callOf(output).attr.body.dtype },
  role: 'loop',
  work: 0,
  encode,
  gradient: () => [null],
  tangent: () => null,
  batch: ({ node }) => node,
});
