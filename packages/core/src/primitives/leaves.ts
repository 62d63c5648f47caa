/**
 * Where graphs begin: data and numbers from outside, numbers in kernels, positions, random bits. And barriers, which have their source's value:
 * `stopGradient`, `after` and `contiguous`, and `to`, which has it on a named engine.
 */
import * as p from '../graph/primitives.ts';
import { makeAgain, makeNode } from '../graph/primitives.ts';
import {
  type BatchContext,
  type Batches,
  customRules,
  define,
  type Definition,
  elementwiseCustom,
  fail,
  type Family,
  type Gradients,
  type Tangents,
} from '../graph/definition.ts';
import type { Node } from '../graph/node.ts';
import { onPlaceholders, placeholder } from '../graph/placeholder.ts';
import type { Exprs } from '@polygrad/compiler/ir/expr';
import type { KNode } from '@polygrad/compiler/ir/ir';
import type { PlanNode } from '../planner/capture/plan-graph.ts';
import { flatten } from '../planner/lowering/index-map.ts';
import { movedFrom, part } from '../planner/lowering/rules.ts';
import { showShape } from '@polygrad/compiler/shape/errors';
import { say } from '@polygrad/compiler/shape/shown';
import { rowMajorStrides } from '@polygrad/compiler/shape/view';
import { again, everySource, inferSame, linear, whole } from './elementwise.ts';

const rotations = [
  [13, 15, 26, 6],
  [17, 29, 16, 24],
] as const;

/**
 * Threefry-2x32 with 20 rounds: random bits as a pure function of key and counter. The first word of the block of counter (low, 0) under the
 * key; all uint32.
 *
 * Source: J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011), and its Random123 library.
 */
export function threefry(e: Exprs, key0: KNode, key1: KNode, low: KNode): KNode {
  const u32 = (value: number): KNode => e.constant('uint32', value);
  const keys = [key0, key1, e.xor(e.xor(key0, key1), u32(0x1bd11bda))];
  const rotate = (x: KNode, by: number): KNode => e.or(e.shl(x, u32(by)), e.shr(x, u32(32 - by)));
  let x0 = e.add(low, key0);
  let x1: KNode = key1;
  for (let group = 0; group < 5; group++) {
    for (const by of rotations[(group % 2) as 0 | 1]) {
      x0 = e.add(x0, x1);
      x1 = e.xor(rotate(x1, by), x0);
    }
    x0 = e.add(x0, keys[(group + 1) % 3]!);
    x1 = e.add(e.add(x1, keys[(group + 2) % 3]!), u32(group + 1));
  }
  return x0;
}

const nothing = (): void => {};

export const leaves: Family<'buffer' | 'scalar' | 'constant' | 'iota' | 'randomBits'> = {
  buffer: {
    infer: { shape: (_, attr) => attr.shape, dtype: (_, attr) => attr.dtype },
    role: 'leaf',
    work: 0,
    sources: nothing,
    value: (c, demand, node) => c.load(demand, node, demand.index, demand.gate),
  },
  // Its value is bound at each run and leaves no trace in plan keys.
  scalar: {
    infer: { shape: () => [], dtype: (_, attr) => attr.dtype },
    role: 'leaf',
    work: 0,
    sources: nothing,
    value: (c, demand) => c.scalar(demand),
  },
  constant: {
    infer: { shape: (_, attr) => attr.shape, dtype: (_, attr) => attr.dtype },
    role: 'generate',
    work: 0,
    encode: (a, out) => out.number(a.value),
    sources: nothing,
    value: (c, _, node) => c.e.constant(node.dtype, node.attr.value),
  },
  iota: {
    infer: { shape: (_, attr) => [attr.length], dtype: () => 'int32' },
    role: 'generate',
    work: 1,
    encode: (a, out) => out.push(a.length),
    sources: nothing,
    value: (c, demand, node) => {
      const [at] = demand.index as [KNode];
      return demand.kernel.context.size?.numberOf(c.e, node.shape[0]!, at) ?? at;
    },
  },
  randomBits: {
    infer: {
      shape: (_, attr) => attr.shape,
      dtype: (src) => {
        if (src.length !== 2 || src.some((key) => key.dtype !== 'uint32' || key.shape.length !== 0)) {
          fail(
            'randomBits',
            say`a key is two uint32 scalars: got ${src.map((key) => key.dtype + showShape(key.shape)).join(', ')}`,
          );
        }
        return 'uint32';
      },
    },
    role: 'generate',
    work: 90,
    encode: (a, out) => out.list(a.shape),
    sources: (c, node) => {
      for (const key of node.src) c.need(key, []);
    },
    value: (c, demand, node) => {
      const { size } = demand.kernel.context;
      const at = size?.placeIn(c.e, node, demand.index, rowMajorStrides(node.shape));
      const place = c.e.cast(at ?? flatten(c.e, node.shape, demand.index), 'uint32');
      return threefry(c.e, part(demand, 0), part(demand, 1), place);
    },
  },
};

export const leafBatches: Batches<'randomBits'> = {
  randomBits: (c) => {
    if (c.sources.some((source) => source !== null))
      throw new Error('[batch] a key depends on the batch; this is a bug');
    return makeNode('randomBits', c.src, { ...c.attr, shape: [c.size, ...c.attr.shape] });
  },
};

// Barriers: the same value without its history, for recomputation, or in memory.

type Barrier = 'stopGradient' | 'after' | 'contiguous';

export const barriers: Family<Barrier> = {
  stopGradient: { infer: inferSame, role: 'pass', work: 0, sources: () => {} },
  after: {
    infer: inferSame,
    role: 'pass',
    work: 0,
    // The kernel with this node reads both from memory, so it runs after the kernels that make them.
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
  stopGradient: batchStopGradient,
  after: (c) => makeNode('after', [whole(c, 0), c.sources[1] ?? c.src[1]!], null),
  contiguous: (c) => again(c),
};

/** A gradient rule given by the user is for one example: what it records is recorded again for the batch. */
function batchStopGradient(c: BatchContext<'stopGradient'>): Node {
  const rule = customRules.get(c.node);
  const node = makeNode('stopGradient', everySource(c), null);
  if (rule === undefined) return node;
  if (elementwiseCustom.has(c.node)) elementwiseCustom.add(node);
  customRules.set(node, (grad, self) => {
    const one = (x: Node): Node => placeholder(x.shape.slice(1), x.dtype, 'a gradient inside vmap');
    const sources = self.src.map(one);
    const seed = one(grad);
    const result = makeNode('stopGradient', sources, null);
    // The rule may use the result, whose counterpart is the batched node itself.
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

// `to`: the same value on a named engine. Runs of one engine, and bodies of loops, take the value where it is.

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
