/**
 * Attention in one kernel, and its gradients in two: softmax(Q K^T + mask) V without the scores in memory (programs/attention/).
 *
 * Operands are as in ops/attention/attention-blocks.ts, the queries with the scale in them. A result is flat: values, and behind them the
 * logarithm of each row's sum, from which gradients get the weights at once. Gradients are flat too: those of queries, keys and values. Those of
 * gradients, and of a mask of numbers, are made of products of whole scores.
 */
import { define, type Definition, fail, type GradientRule } from '../graph/definition.ts';
import type { Node } from '../graph/node.ts';
import * as p from '../graph/primitives.ts';
import { makeAgain, makeNode } from '../graph/primitives.ts';
import type { IntWriter } from '../planner/capture/cache.ts';
import { programsOf } from '../planner/lowering/rules.ts';
import { lowerAttention, lowerAttentionGradient } from '../programs/attention/attention.ts';
import { type AttentionAttr, type AttentionSizes, sizesOf } from '../programs/attention/operands.ts';
import { say } from '../shape/shown.ts';
import { type Shape, sizeOf } from '../shape/view.ts';
import { whole } from './elementwise.ts';

declare module '../graph/node.ts' {
  interface Attrs {
    /** src [q, k, v, mask?]: [...lead, G, L, E], [...lead, S, E], [...lead, S, V], the axes of the scores: flat, values and logarithms. */
    attention: AttentionAttr;
    /** src [q, k, v, made, flow, back, mask?]: what attention made, the gradient of the values, and what is taken back of each row's: flat. */
    attentionGradient: AttentionAttr;
  }
}

function encode({ causal, bound }: AttentionAttr, out: IntWriter): void {
  out.push(causal === null ? 0 : 1);
  out.push(causal ?? 0);
  out.reserve(2);
  out.list([...new Int32Array(Float64Array.of(bound).buffer)]);
}

type Operands = readonly [q: Node, k: Node, v: Node];

const rowsOf = ({ keyHeads, shared, rows }: AttentionSizes): number => keyHeads * shared * rows;

const sizes = (src: readonly Node[]): AttentionSizes => sizesOf(src[0]!.shape, src[1]!.shape, src[2]!.shape);

/** Elements `start` and on of a flat node, in a shape. */
function cut(flat: Node, start: number, shape: Shape): Node {
  return p.reshape(p.slice(flat, [start], [sizeOf(shape)], [1]), shape);
}

/** The values of what attention made, [...lead, G, L, V]. */
function valuesOf(made: Node, q: Node, v: Node): Node {
  return cut(made, 0, [...q.shape.slice(0, -1), v.shape.at(-1)!]);
}

/** The logarithms, [...lead, G, L, 1]. */
function logarithmsOf(made: Node, src: readonly Node[]): Node {
  const s = sizes(src);
  return cut(made, rowsOf(s) * s.width, [...src[0]!.shape.slice(0, -1), 1]);
}

// Products of matrices of heads. The axes in front of the group's are the batch.

function dot(a: Node, b: Node, lead: number, lhsContract: readonly number[], rhsContract: readonly number[]): Node {
  const batch = Array.from({ length: lead }, (_, i) => i);
  return makeNode('dotGeneral', [a, b], { lhsBatch: batch, rhsBatch: batch, lhsContract, rhsContract });
}

/** Rows of queries, [...lead, G, L, n], by rows of keys, [...lead, S, n]: scores. */
function against(rows: Node, columns: Node): Node {
  const rank = rows.shape.length;
  return dot(rows, columns, rank - 3, [rank - 1], [rank - 2]);
}

/** Scores by rows of keys: rows of queries. */
function weighed(scores: Node, columns: Node): Node {
  const rank = scores.shape.length;
  return dot(scores, columns, rank - 3, [rank - 1], [rank - 3]);
}

/** Scores by rows of queries: rows of keys. */
function gathered(scores: Node, rows: Node): Node {
  const rank = scores.shape.length;
  return dot(scores, rows, rank - 3, [rank - 3, rank - 2], [rank - 3, rank - 2]);
}

/** Sums along the last axis, which stays. */
function rowSums(x: Node): Node {
  const last = x.shape.length - 1;
  return p.insertAxes(p.reduce(x, 'sum', [last]), [last]);
}

/** All weights, by the logarithms of the rows. */
function weightsOf([q, k]: Operands, mask: Node | null, logarithms: Node, { causal, bound }: AttentionAttr): Node {
  let scores = against(q, k);
  const [rows, columns] = [q.shape.at(-2)!, k.shape.at(-2)!];
  let allowed: Node | null = null;
  if (causal !== null) {
    const query = p.add(p.iota(rows), p.constant(causal, 'int32'));
    allowed = p.le(p.reshape(p.iota(columns), [1, columns]), p.reshape(query, [rows, 1]));
  }
  if (mask !== null) {
    const isBool = mask.dtype === 'bool';
    const own = isBool ? mask : p.not(p.le(mask, p.like(mask, bound)));
    allowed = allowed === null ? own : p.binary('and', allowed, own);
    if (!isBool) scores = p.add(scores, mask);
  }
  // What is hidden is 0 before the exponential too: an infinite mask has no slope.
  const differences = p.sub(scores, logarithms);
  if (allowed === null) return p.unary('exp', differences);
  const weights = p.unary('exp', p.where(allowed, differences, p.like(differences, 0)));
  return p.where(allowed, weights, p.like(weights, 0));
}

/** What a weight's gradient becomes, as a gradient of its score. */
interface Slopes {
  readonly weights: Node;
  /** Gradients of the weights, less what the division takes back. */
  readonly inner: Node;
  readonly scores: Node;
}

function slopesOf(
  src: Operands,
  mask: Node | null,
  logarithms: Node,
  flow: Node,
  back: Node,
  attr: AttentionAttr,
): Slopes {
  const weights = weightsOf(src, mask, logarithms, attr);
  const inner = p.sub(against(flow, src[2]), back);
  return { weights, inner, scores: p.mul(weights, inner) };
}

const attentionRule: GradientRule<'attention'> = ({ node, src, attr, grad, needs }) => {
  const [q, k, v] = src as unknown as Operands;
  const mask = src[3] ?? null;
  const flow = valuesOf(grad, q, v);
  const back = p.sub(rowSums(p.mul(flow, valuesOf(node, q, v))), logarithmsOf(grad, src));
  const all = makeNode(attentionGradientPrimitive, [q, k, v, node, flow, back, ...(mask ? [mask] : [])], attr);
  const [ofKeys, ofValues] = [sizeOf(q.shape), sizeOf(q.shape) + sizeOf(k.shape)];
  const result: (Node | null)[] = [cut(all, 0, q.shape), cut(all, ofKeys, k.shape), cut(all, ofValues, v.shape)];
  if (mask === null) return result;
  if (needs[3] !== true || mask.dtype === 'bool') return [...result, null];
  const { scores } = slopesOf([q, k, v], mask, logarithmsOf(node, src), flow, back, attr);
  return [...result, p.sumTo(scores, mask.shape)];
};

/**
 * With the gradients [a, b, c] of those of queries, keys and values, <a, dq> + <b, dk> + <c, dv> is
 * <slopes, a k^T + q b^T> + <weights, flow c^T>, which is differentiated here.
 */
const gradientRule: GradientRule<'attentionGradient'> = ({ src, attr, grad, needs }) => {
  const [q, k, v, made, flow, back] = src as [Node, Node, Node, Node, Node, Node];
  const mask = src[6] ?? null;
  const [ofKeys, ofValues] = [sizeOf(q.shape), sizeOf(q.shape) + sizeOf(k.shape)];
  const [a, b, c] = [cut(grad, 0, q.shape), cut(grad, ofKeys, k.shape), cut(grad, ofValues, v.shape)];
  const { weights, inner, scores } = slopesOf([q, k, v], mask, logarithmsOf(made, src), flow, back, attr);
  const bySlopes = p.add(against(a, k), against(q, b));
  const byInner = p.mul(bySlopes, weights);
  const byScores = p.mul(weights, p.add(p.mul(bySlopes, inner), against(flow, c)));
  const byLogarithms = p.reshape(rowSums(byScores), [rowsOf(sizes(src))]);
  const result = [
    p.add(weighed(byScores, k), weighed(scores, b)),
    p.add(gathered(byScores, q), gathered(scores, a)),
    gathered(byInner, flow),
    p.unary('neg', p.pad(byLogarithms, [made.shape[0]! - byLogarithms.shape[0]!], [0])),
    p.add(weighed(byInner, v), weighed(weights, c)),
    p.unary('neg', rowSums(byInner)),
  ];
  if (mask === null) return result;
  return [...result, needs[6] === true && mask.dtype !== 'bool' ? p.sumTo(byScores, mask.shape) : null];
};

/** Parts of flat results of a batch, [size, n] in all, out of one flat result that has each part for the whole batch. */
function partsOfBatch(flat: Node, size: number, lengths: readonly number[]): Node {
  let start = 0;
  const parts = lengths.map((length) => {
    const part = cut(flat, start, [size, length]);
    start += size * length;
    return part;
  });
  return p.concat(parts, 1);
}

export const attentionPrimitive: Definition<'attention'> = /* @__PURE__ */ define('attention', {
  infer: {
    shape: (src, _, op) => {
      const s = sizes(src);
      const [q, k, v] = src as unknown as Operands;
      if (k.shape.at(-1) !== s.depth || v.shape.at(-2) !== s.columns || k.shape.length !== q.shape.length - 1)
        fail(op, say`operands do not fit`, q.shape, k.shape, v.shape);
      return [rowsOf(s) * (s.width + 1)];
    },
    dtype: ([q]) => q!.dtype,
  },
  role: 'program',
  work: 256,
  encode,
  gradient: attentionRule,
  // Gradients are linear in what flows back, so tangents are made of those.
  tangent: () => undefined,
  batch: (c) => {
    const sources = c.src.map((_, i) => whole(c, i));
    const s = sizes(c.src);
    return partsOfBatch(makeAgain(c.node, sources, c.attr), c.size, [rowsOf(s) * s.width, rowsOf(s)]);
  },
  programs: (node) =>
    programsOf(node, ({ out, slot }, caps) => {
      const [q, k, v] = [slot(0), slot(1), slot(2)];
      const mask = node.src.length > 3 ? slot(3) : null;
      return lowerAttention(
        { ...node.attr, ...sizesOf(q.view.shape, k.view.shape, v.view.shape), out, q, k, v, mask },
        caps,
      );
    }),
});

export const attentionGradientPrimitive: Definition<'attentionGradient'> = /* @__PURE__ */ define('attentionGradient', {
  infer: {
    shape: ([q, k, v]) => [sizeOf(q!.shape) + sizeOf(k!.shape) + sizeOf(v!.shape)],
    dtype: ([q]) => q!.dtype,
  },
  role: 'program',
  work: 512,
  encode,
  gradient: gradientRule,
  tangent: () => undefined,
  batch: (c) => {
    const s = sizes(c.src);
    const sources = c.src.map((_, i) => whole(c, i));
    // What attention made, with each part for the whole batch.
    const parts = [rowsOf(s) * s.width, rowsOf(s)];
    const [values, logarithms] = [0, 1].map((i) => {
      const cutOff = p.slice(sources[3]!, [0, i === 0 ? 0 : parts[0]!], [c.size, parts[i]!], [1, 1]);
      return p.reshape(cutOff, [c.size * parts[i]!]);
    }) as [Node, Node];
    sources[3] = p.concat([values, logarithms], 0);
    const lengths = c.src.slice(0, 3).map(({ shape }) => sizeOf(shape));
    return partsOfBatch(makeAgain(c.node, sources, c.attr), c.size, lengths);
  },
  programs: (node) =>
    programsOf(node, ({ out, slot }, caps) => {
      const [q, k, v, made, flow, back] = [slot(0), slot(1), slot(2), slot(3), slot(4), slot(5)];
      const mask = node.src.length > 6 ? slot(6) : null;
      const all = { ...node.attr, ...sizesOf(q.view.shape, k.view.shape, v.view.shape), out, q, k, v, mask };
      return lowerAttentionGradient({ ...all, made, flow, back }, caps);
    }),
});
