/** Small models written in primitives, for tests of the scheduler: a CNN training step and its parts. Not for use outside tests. */
import { type Gradients, walk } from '../autodiff/walk.ts';
import { makeNode } from '../graph/build.ts';
import type { Node } from '../graph/node.ts';
import * as p from '../graph/primitives.ts';
import { keepAxes } from '../shape/axes.ts';

export function relu(x: Node): Node {
  const zero = p.constant(0, 'float32');
  return p.where(p.le(x, zero), zero, x);
}

export function conv(x: Node, w: Node, padding: number): Node {
  const pair = (n: number): number[] => [n, n];
  const attr = {
    stride: pair(1),
    padLow: pair(padding),
    padHigh: pair(padding),
    lhsDilation: pair(1),
    rhsDilation: pair(1),
    groups: 1,
    batchGroups: 1,
  };
  return makeNode('conv', [x, w], attr);
}

export function maxPool(x: Node): Node {
  const windows = makeNode('window', [x], { size: [2, 2], stride: [2, 2], dilation: [1, 1] });
  return p.reduce(windows, 'max', [4, 5], 'first');
}

export function matmul(a: Node, b: Node): Node {
  return makeNode('dotGeneral', [a, b], { lhsBatch: [], rhsBatch: [], lhsContract: [1], rhsContract: [0] });
}

export function softmax(x: Node): Node {
  const axes = [x.shape.length - 1];
  const kept = keepAxes(x.shape, axes);
  const e = p.unary('exp', p.sub(x, p.reshape(p.reduce(p.stopGradient(x), 'max', axes), kept)));
  return p.div(e, p.reshape(p.reduce(e, 'sum', axes), kept));
}

export function layerNorm(x: Node, gain: Node, bias: Node): Node {
  const axes = [x.shape.length - 1];
  const kept = keepAxes(x.shape, axes);
  const count = p.constant(x.shape[axes[0] as number] as number, 'float32');
  const mean = p.reshape(p.div(p.reduce(x, 'sum', axes), count), kept);
  const centred = p.sub(x, mean);
  const variance = p.reshape(p.div(p.reduce(p.mul(centred, centred), 'sum', axes), count), kept);
  const scale = p.unary('rsqrt', p.add(variance, p.constant(1e-5, 'float32')));
  return p.add(p.mul(p.mul(centred, scale), gain), bias);
}

/** Mean of -log softmax(logits)[label]; labels int32. */
export function crossEntropy(logits: Node, labels: Node): Node {
  const [rows, classes] = logits.shape as [number, number];
  const shifted = p.sub(logits, p.reshape(p.reduce(p.stopGradient(logits), 'max', [1]), [rows, 1]));
  const logSum = p.unary('log', p.reduce(p.unary('exp', shifted), 'sum', [1]));
  const hot = p.eq(p.reshape(labels, [rows, 1]), p.reshape(p.iota(classes), [1, classes]));
  const picked = p.reduce(p.where(hot, shifted, p.constant(0, 'float32')), 'sum', [1]);
  return p.div(p.reduce(p.sub(logSum, picked), 'sum', [0]), p.constant(rows, 'float32'));
}

/** Gradients of a scalar by the given nodes. */
export function gradients(of: Node, by: readonly Node[]): Node[] {
  const seen = new Set<Node>();
  const stack = [of];
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    if (seen.has(node)) continue;
    seen.add(node);
    stack.push(...node.src);
  }
  const nodes = [...seen].sort((a, b) => a.id - b.id);
  const reached = new Set<Node>(by);
  for (const node of nodes) if (node.op !== 'stopGradient' && node.src.some((s) => reached.has(s))) reached.add(node);
  const found: Gradients = new Map([[of, p.constant(1, 'float32', of.shape)]]);
  walk(nodes, nodes.length, found, (node) => reached.has(node));
  return by.map((node) => {
    const gradient = found.get(node);
    if (gradient === undefined) throw new Error(`no gradient for node ${node.id} ${node.op} [${node.shape}]`);
    return gradient;
  });
}

/** State of Adam for one parameter. */
export interface AdamState {
  value: Node;
  m: Node;
  v: Node;
}

/** One Adam update; `step` is bound, the rest is baked. */
export function adam(state: AdamState, grad: Node, rate: Node, correction1: Node, correction2: Node): AdamState {
  const number = (x: number): Node => p.constant(x, 'float32');
  const m = p.add(p.mul(state.m, number(0.9)), p.mul(grad, number(0.1)));
  const v = p.add(p.mul(state.v, number(0.999)), p.mul(p.mul(grad, grad), number(0.001)));
  const direction = p.div(p.div(m, correction1), p.add(p.unary('sqrt', p.div(v, correction2)), number(1e-8)));
  return { value: p.sub(state.value, p.mul(rate, direction)), m, v };
}

/** conv8 - pool - conv16 - pool - linear on [batch, 1, 28, 28]: shapes of its parameters. Any size divisible by 4 works. */
export const cnnShapes: readonly (readonly number[])[] = [[8, 1, 3, 3], [8], [16, 8, 3, 3], [16], [784, 10], [10]];

export function cnnLoss(x: Node, labels: Node, params: readonly Node[]): Node {
  const [w1, b1, w2, b2, w3, b3] = params as [Node, Node, Node, Node, Node, Node];
  // Not p.reshape: a view of a leaf would not lead back to it.
  const channel = (b: Node): Node => makeNode('reshape', [b], { shape: [b.shape[0] as number, 1, 1] });
  const first = maxPool(relu(p.add(conv(x, w1, 1), channel(b1))));
  const second = maxPool(relu(p.add(conv(first, w2, 1), channel(b2))));
  const flat = p.reshape(second, [x.shape[0] as number, w3.shape[0] as number]);
  return crossEntropy(p.add(matmul(flat, w3), b3), labels);
}
