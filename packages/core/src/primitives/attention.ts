/**
 * Attention in one kernel, and its gradients in one or two: softmax(Q K^T + mask) V without the scores in memory (programs/attention/).
 *
 * Operands are as in ops/attention/attention-blocks.ts, but 16-bit floats are not cast. A row of the result has the values of a query, then the
 * logarithm of its sum of exponentials: gradients get the softmax weights from it at once. A row of gradients has those of a key and its
 * value. Where there are as many queries as keys it has that query's too; else a node of its own has those. So results have the axes of their
 * operands, and changing sizes can share plans. Gradients of gradients, and of a mask of numbers, take the whole score matrix.
 */
import { define, type Definition, fail, type GradientRule } from '../graph/definition.ts';
import type { Node } from '../graph/node.ts';
import * as p from '../graph/primitives.ts';
import { makeAgain, makeNode } from '../graph/primitives.ts';
import type { IntWriter } from '../planner/capture/cache.ts';
import { programsOf } from '../planner/lowering/rules.ts';
import { lowerAttention, lowerAttentionGradient } from '@polygrad/compiler/programs/attention/attention';
import {
  type AttentionAttr,
  type GradientPart,
  madeWidth,
  sizesOf,
  type Wide,
} from '@polygrad/compiler/programs/attention/operands';
import { say } from '@polygrad/compiler/shape/shown';
import type { Shape } from '@polygrad/compiler/shape/view';
import { everySource } from './elementwise.ts';

declare module '../graph/node.ts' {
  interface Attrs {
    /** src [q, k, v, mask?]: [...lead, G, L, E], [...lead, S, E], [...lead, S, V], the axes of the scores. Result [...lead, G, L, values and logarithm]. */
    attention: AttentionAttr;
    /**
     * src [q, k, v, made, flow, back, mask?]: `made` is the result of attention, `flow` the gradient of its values, `back` what the division of softmax
     * subtracts from each row's gradients. Result by part: 'queries' [...lead, G, L, E]; 'keys' [...lead, S, E + V]; 'all', where L is S,
     * [...lead, S, G E + E + V].
     */
    attentionGradient: AttentionAttr & { readonly part: GradientPart };
  }
}

function encode({ causal, bound, scale }: AttentionAttr, out: IntWriter): void {
  out.push(causal === null ? 0 : 1);
  out.push(causal ?? 0);
  out.reserve(5);
  out.list([...new Int32Array(Float64Array.of(bound, scale).buffer)]);
}

type Operands = readonly [q: Node, k: Node, v: Node];

/** The dtype that attention is computed in. */
const wideOf = ({ dtype }: Node): Wide => (dtype === 'float64' ? dtype : 'float32');

/** Operands for products of whole scores: in the dtype that is computed in, queries times the scale. */
function wideOperands(src: readonly Node[], { scale }: AttentionAttr): Operands {
  const [q, k, v] = src.slice(0, 3).map((x) => p.cast(x, wideOf(x))) as [Node, Node, Node];
  return [scaled(q, scale), k, v];
}

/** Gradients of `wideOperands` as gradients of the operands themselves. */
function narrowed(gradients: readonly (Node | null)[], src: readonly Node[], { scale }: AttentionAttr): Node[] {
  return gradients.map((g, i) => p.cast(i === 0 ? scaled(g!, scale) : g!, src[i]!.dtype));
}

const scaled = (x: Node, scale: number): Node => (scale === 1 ? x : p.mul(x, p.scalar(scale, x.dtype)));

/** Elements of the last axis: `length` from `start` on. */
function columnsOf(x: Node, start: number, length: number): Node {
  const last = x.shape.length - 1;
  const at = <T>(other: (n: number, axis: number) => T, own: T): T[] =>
    x.shape.map((n, axis) => (axis === last ? own : other(n, axis)));
  return p.slice(
    x,
    at(() => 0, start),
    at((n) => n, length),
    at(() => 1, 1),
  );
}

/** The values in a result of attention, or their gradient, [...lead, G, L, V]. */
function attentionValues(made: Node, v: Node): Node {
  return columnsOf(made, 0, v.shape.at(-1)!);
}

/** The logarithms of the rows' sums, or their gradient, [...lead, G, L, 1]. */
function logarithmsOf(made: Node, v: Node): Node {
  return columnsOf(made, v.shape.at(-1)!, 1);
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

/** The softmax weights of all scores, from the logarithms of the rows' sums. */
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
  // Hidden scores are 0 before the exponential too: those under an infinite mask would give NaN in derivatives.
  const differences = p.sub(scores, logarithms);
  if (allowed === null) return p.unary('exp', differences);
  const weights = p.unary('exp', p.where(allowed, differences, p.like(differences, 0)));
  return p.where(allowed, weights, p.like(weights, 0));
}

/** Gradients of scores, and what they are made of. */
interface Slopes {
  readonly weights: Node;
  /** Gradients of the weights, less what the division subtracts. */
  readonly inner: Node;
  /** Gradients of the scores: weights times inner. */
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
  const flow = attentionValues(grad, v);
  const back = p.sub(rowSums(p.mul(flow, attentionValues(node, v))), logarithmsOf(grad, v));
  const made = (part: GradientPart): Node =>
    makeNode(attentionGradientPrimitive, [q, k, v, node, flow, back, ...(mask ? [mask] : [])], { ...attr, part });
  const result: (Node | null)[] = narrowed(gradientsOf(made, q, k, v), src, attr);
  if (mask === null) return result;
  if (needs[3] !== true || mask.dtype === 'bool') return [...result, null];
  const { scores } = slopesOf(wideOperands(src, attr), mask, logarithmsOf(node, v), flow, back, attr);
  return [...result, p.sumTo(scores, mask.shape)];
};

/** Gradients of queries, keys and values, cut out of the nodes that have them side by side. */
function gradientsOf(made: (part: GradientPart) => Node, q: Node, k: Node, v: Node): [Node, Node, Node] {
  const [depth, width] = [q.shape.at(-1)!, v.shape.at(-1)!];
  const [shared, rows, columns] = [q.shape.at(-3)!, q.shape.at(-2)!, k.shape.at(-2)!];
  if (rows !== columns) {
    const ofKeys = made('keys');
    return [made('queries'), columnsOf(ofKeys, 0, depth), columnsOf(ofKeys, depth, width)];
  }
  const all = made('all');
  const heads = p.reshape(columnsOf(all, 0, shared * depth), [...k.shape.slice(0, -1), shared, depth]);
  return [inFront(heads), columnsOf(all, shared * depth, depth), columnsOf(all, (shared + 1) * depth, width)];
}

/** Axes [..., n, G, E] as [..., G, n, E], and back. */
function inFront(x: Node): Node {
  const rank = x.shape.length;
  return p.permute(x, [...Array.from({ length: rank - 3 }, (_, i) => i), rank - 2, rank - 3, rank - 1]);
}

/**
 * The gradient of gradients. Let dq, dk and dv be the gradients of queries, keys and values, and a, b and c what flows back into them. Then
 * <a, dq> + <b, dk> + <c, dv> is <slopes, a k^T + q b^T> + <weights, flow c^T>; this rule differentiates that. A part has some of a, b, c.
 */
const gradientRule: GradientRule<'attentionGradient'> = ({ src, attr, grad, needs }) => {
  const [, , , made, flow, back] = src as [Node, Node, Node, Node, Node, Node];
  const [q, k, v] = wideOperands(src, attr);
  const mask = src[6] ?? null;
  const { part } = attr;
  const [depth, width] = [q.shape.at(-1)!, v.shape.at(-1)!];
  const before = part === 'all' ? q.shape.at(-3)! * depth : 0;
  const rowsOf = (): Node =>
    inFront(p.reshape(columnsOf(grad, 0, before), [...k.shape.slice(0, -1), q.shape.at(-3)!, depth]));
  const a = part === 'queries' ? grad : part === 'all' ? rowsOf() : null;
  const b = part === 'queries' ? null : columnsOf(grad, before, depth);
  const c = part === 'queries' ? null : columnsOf(grad, before + depth, width);
  const { weights, inner, scores } = slopesOf([q, k, v], mask, logarithmsOf(made, v), flow, back, attr);
  const bySlopes = sum(a && against(a, k), b && against(q, b))!;
  const byInner = p.mul(bySlopes, weights);
  const byScores = p.mul(weights, sum(p.mul(bySlopes, inner), c && against(flow, c))!);
  const behind = made.shape.at(-1)! - width - 1;
  const operands = [
    sum(weighed(byScores, k), b && weighed(scores, b)),
    sum(gathered(byScores, q), a && gathered(scores, a)),
    gathered(byInner, flow),
  ];
  const result = [
    ...narrowed(operands, src, attr),
    padded(p.unary('neg', rowSums(byScores)), width, behind),
    sum(weighed(byInner, v), c && weighed(weights, c)),
    p.unary('neg', rowSums(byInner)),
  ];
  if (mask === null) return result;
  return [...result, needs[6] === true && mask.dtype !== 'bool' ? p.sumTo(byScores, mask.shape) : null];
};

/** The sum of two nodes, either of which may be missing. */
function sum(x: Node | null, y: Node | null): Node | null {
  return x === null || y === null ? (x ?? y) : p.add(x, y);
}

/** With zeros in front and behind along the last axis. */
function padded(x: Node, low: number, high: number): Node {
  const at = (n: number): number[] => x.shape.map((_, axis) => (axis === x.shape.length - 1 ? n : 0));
  return p.pad(x, at(low), at(high));
}

const rowsOfMade = (q: Shape, v: Shape): Shape => [...q.slice(0, -1), madeWidth(v.at(-1)!)];

export const attentionPrimitive: Definition<'attention'> = /* @__PURE__ */ define('attention', {
  infer: {
    shape: (src, _, op) => {
      const [q, k, v] = src.map(({ shape }) => shape) as [Shape, Shape, Shape];
      if (k.at(-1) !== q.at(-1) || v.at(-2) !== k.at(-2) || k.length !== q.length - 1)
        fail(op, say`operands do not fit`, q, k, v);
      return rowsOfMade(q, v);
    },
    dtype: ([q]) => wideOf(q!),
  },
  role: 'program',
  work: 256,
  encode,
  gradient: attentionRule,
  // Undefined: the tangent is the gradient rule, transposed.
  tangent: () => undefined,
  batch: (c) => makeAgain(c.node, everySource(c), c.attr),
  sizedPrograms: true,
  programs: (node, _, size) =>
    programsOf(
      node,
      ({ out, slot, sizes }, caps, choices) => {
        const [q, k, v] = [slot(0), slot(1), slot(2)];
        const mask = node.src.length > 3 ? slot(3) : null;
        const own = sizesOf(q.view.shape, k.view.shape, v.view.shape);
        return lowerAttention({ ...node.attr, ...own, out, q, k, v, mask, sizes }, caps, choices);
      },
      false,
      size,
    ),
});

export const attentionGradientPrimitive: Definition<'attentionGradient'> = /* @__PURE__ */ define('attentionGradient', {
  infer: {
    shape: ([q, k, v], { part }, op) => {
      const [depth, width] = [q!.shape.at(-1)!, v!.shape.at(-1)!];
      const [shared, rows] = q!.shape.slice(-3) as [number, number, number];
      if (part === 'all' && rows !== k!.shape.at(-2)) fail(op, say`operands do not fit`, q!.shape, k!.shape, v!.shape);
      if (part === 'queries') return q!.shape;
      return [...k!.shape.slice(0, -1), (part === 'all' ? shared + 1 : 1) * depth + width];
    },
    dtype: ([q]) => wideOf(q!),
  },
  role: 'program',
  work: 512,
  encode: (attr, out) => {
    encode(attr, out);
    out.reserve(1);
    out.push(['all', 'queries', 'keys'].indexOf(attr.part));
  },
  gradient: gradientRule,
  tangent: () => undefined,
  batch: (c) => makeAgain(c.node, everySource(c), c.attr),
  sizedPrograms: true,
  programs: (node, _, size) =>
    programsOf(
      node,
      ({ out, slot, sizes }, caps, choices) => {
        const [q, k, v, made, flow, back] = [slot(0), slot(1), slot(2), slot(3), slot(4), slot(5)];
        const mask = node.src.length > 6 ? slot(6) : null;
        const own = sizesOf(q.view.shape, k.view.shape, v.view.shape);
        const all = { ...node.attr, ...own, out, q, k, v, mask, sizes };
        return lowerAttentionGradient({ ...all, made, flow, back }, caps, choices);
      },
      false,
      size,
    ),
});
