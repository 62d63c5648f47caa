/**
 * Derivatives and batches of loops, as loops: the gradient is a loop in the opposite direction, the tangent one in the same
 * direction, a batch a loop over batched values. So all of them can be differentiated and batched again.
 *
 * A step of a derivative gets values of the step it belongs to as `items`: carries, slices and expensive results. It computes all
 * other values of that step again; with `recompute` the expensive results too.
 */
import { pushForward } from '../autodiff/derivatives.ts';
import { accumulate, type Gradients, walk } from '../autodiff/walk.ts';
import type { BatchContext, GradientContext, TangentContext } from '../graph/definition.ts';
import type { LoopBody, LoopRules } from '../graph/loop.ts';
import { isOp, type Node, type PrimitiveName } from '../graph/node.ts';
import { placeholder } from '../graph/placeholder.ts';
import * as p from '../graph/primitives.ts';
import { makeNode } from '../graph/primitives.ts';
import { isFloat } from '@polygrad/compiler/shape/dtype';
import {
  eachOf,
  insideOf,
  isExpensive,
  isNumber,
  lastOf,
  type Loop,
  type LoopOutput,
  makeLoop,
  nodesOf,
} from './body.ts';

/** A node with its counterpart. */
function like(node: Node, what: string): Node {
  return placeholder(node.shape, node.dtype, `${what} inside scan`);
}

/** Nodes through which derivatives flow: what depends smoothly on one of the given ones. Carries are added until nothing changes. */
function reached(body: LoopBody, nodes: readonly Node[], start: ReadonlySet<Node>): Set<Node> {
  for (let known = new Set(start); ; ) {
    const active = new Set(known);
    for (const node of nodes) {
      const from = isOp(node, 'stopGradient') ? node.src.slice(1) : node.src;
      if (isFloat(node.dtype) && from.some((source) => active.has(source))) active.add(node);
    }
    const more = new Set(known);
    body.carries.forEach((carry, i) => {
      if (active.has(body.next[i]!)) more.add(carry);
    });
    if (more.size === known.size) return active;
    known = more;
  }
}

/** The values that a step of a derivative reads from the step it belongs to. */
class Kept {
  readonly bound: Node[] = [];
  readonly sources: Node[] = [];

  /** Finds it below the roots; `own` are bound already. */
  constructor(loop: Loop, nodes: readonly Node[], roots: readonly Node[], own: ReadonlySet<Node>) {
    const { carries, items, recompute } = loop.attr.body;
    const given = new Set([...carries, ...items]);
    const inside = new Set(nodes);
    const first = [...given, ...nodes].reduce((least, { id }) => Math.min(least, id), Number.POSITIVE_INFINITY);
    const seen = new Set<Node>(roots);
    for (const node of seen) {
      if (own.has(node) || node.id < first || node.storage !== null) continue;
      if (given.has(node) || (!recompute && inside.has(node) && isExpensive(node) && node.op !== 'loop')) {
        this.bound.push(node);
        this.sources.push(eachOf(loop, node));
      } else for (const source of node.src) seen.add(source);
    }
  }
}

const zeros = (node: Node): Node => p.constant(0, node.dtype, node.shape);

/** Gradients of outputs, taken out of what came to the loop. */
function gradientsOf(grad: Node): Map<LoopOutput, Node> {
  const found = new Map<LoopOutput, Node>();
  const stack = [grad];
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    if (isOp(node, 'loopGradient')) {
      const { output } = node.attr;
      const before = found.get(output);
      found.set(output, before === undefined ? node.src[0]! : p.add(before, node.src[0]!));
    } else stack.push(...node.src);
  }
  return found;
}

/**
 * What comes in from outside the loop: gradients of the carries that flow, at the last step, and gradients of all steps, which are added to the seeds.
 *
 * @returns nodes of the body that stand for the latter, what they are, and what the carries start with
 */
function incoming(
  outer: ReadonlyMap<LoopOutput, Node>,
  flowing: readonly number[],
  active: ReadonlySet<Node>,
  { body: { next }, length, reverse }: Loop['attr'],
  seeds: Gradients,
): { given: Node[]; sources: Node[]; starts: (Node | null)[] } {
  const starts = flowing.map((i): Node | null => {
    for (const [{ attr: of }, value] of outer) if (of.last === i && of.each === null) return value;
    return null;
  });
  const given: Node[] = [];
  const sources: Node[] = [];
  for (const [{ attr: of }, all] of outer) {
    const { each } = of;
    if (each === null || !active.has(each)) continue;
    // A gradient of only the last step's value is a gradient of the carry after it.
    const carry = flowing.findIndex((i) => next[i] === each);
    const [end, value] = carry < 0 ? [null, all] : atEnd(all, reverse ? 0 : length - 1);
    if (end !== null) starts[carry] = starts[carry] == null ? end : p.add(starts[carry], end);
    if (value === null) continue;
    const bound = like(each, 'a gradient');
    given.push(bound);
    sources.push(value);
    accumulate(seeds, each, bound);
  }
  return { given, sources, starts };
}

function gradient({ node, src, attr, grad, needs }: GradientContext<'loop'>): readonly (Node | null)[] {
  const loop: Loop = node;
  const { body, length, reverse } = attr;
  const { carries, items, next, constants, recompute } = body;
  const outer = gradientsOf(grad);
  const asked = [...outer.keys()].flatMap(({ attr: { each } }) => (each === null ? [] : [each]));
  const nodes = nodesOf(body, asked);
  const start = new Set<Node>();
  const inputs = [...carries, ...items, ...constants];
  inputs.forEach((input, i) => {
    if (needs[i] && isFloat(input.dtype)) start.add(input);
  });
  const active = reached(body, nodes, start);

  // The step back: gradients of carries come in and go out.
  const flowing = carries.flatMap((carry, i) => (active.has(carry) ? [i] : []));
  const seeds: Gradients = new Map();
  const before = flowing.map((i) => {
    const bound = like(carries[i]!, 'a gradient');
    accumulate(seeds, next[i]!, bound);
    return bound;
  });
  const { given, sources, starts } = incoming(outer, flowing, active, attr, seeds);
  walk(nodes, nodes.length, seeds, (source) => active.has(source));

  const after = flowing.map((i) => seeds.get(carries[i]!) ?? zeros(carries[i]!));
  const slices = items.map((item, i) => (needs[carries.length + i] ? (seeds.get(item) ?? null) : null));
  const own = new Set([...before, ...given]);
  const shared = constants.map((constant, i) =>
    needs[carries.length + items.length + i] ? (seeds.get(constant) ?? null) : null,
  );
  const each: Node[] = slices.filter((slice) => slice !== null);

  // Gradients of constants are sums over the steps: one product outside of the loop where they are products, else another carry.
  const summed = new Sums(loop, nodes, own, recompute);
  const outside = shared.map((part) => (part === null ? null : summed.plan(part)));
  const inner: Node[] = [];
  const totals: Node[] = [];
  shared.forEach((part, i) => {
    if (part === null || outside[i] !== null) return;
    const total = like(part, 'a sum');
    totals.push(total);
    inner.push(p.add(total, part));
  });
  each.push(...summed.each);

  const kept = new Kept(loop, nodes, [...after, ...inner, ...each], own);
  const back = makeLoop({
    carries: [...before, ...totals],
    items: [...given, ...kept.bound],
    next: [...after, ...inner],
    starts: [...starts.map((value, i) => value ?? zeros(carries[flowing[i]!]!)), ...totals.map(zeros)],
    sources: [...sources, ...kept.sources],
    each,
    length,
    reverse: !reverse,
    recompute,
    rules,
  });
  let total = flowing.length;
  const results: (Node | null)[] = carries.map((_, i) => {
    const at = flowing.indexOf(i);
    return at < 0 || !needs[i] ? null : lastOf(back, at);
  });
  for (const slice of slices) results.push(slice === null ? null : eachOf(back, slice));
  shared.forEach((part, i) => {
    if (part === null) results.push(null);
    else results.push(outside[i]?.(back) ?? lastOf(back, total++));
  });
  return src.map((_, i) => results[i] ?? null);
}

/** Whether a node is of this kind and still has its sources: a realised one has released them. A transposed tensor in memory is a realised `permute`. */
function isOpen<P extends PrimitiveName>(node: Node, op: P): node is Node<P> {
  return isOp(node, op) && node.storage === null;
}

/** Splits a gradient of all steps into that of one step and the rest; null for zero. The gradient of a slice is zero at the other steps. */
function atEnd(gradient: Node, at: number): readonly [end: Node | null, rest: Node | null] {
  if (isOpen(gradient, 'add') && gradient.src.every(({ shape }) => shape.join() === gradient.shape.join())) {
    const [a, b] = gradient.src.map((part) => atEnd(part, at)) as [ReturnType<typeof atEnd>, ReturnType<typeof atEnd>];
    const sum = (x: Node | null, y: Node | null): Node | null => (x === null ? y : y === null ? x : p.add(x, y));
    return a[0] === null && b[0] === null ? [null, gradient] : [sum(a[0], b[0]), sum(a[1], b[1])];
  }
  // The axis of the steps, before movements of the slice's gradient.
  let node = gradient;
  let axis = 0;
  const moves: Node<'permute'>[] = [];
  while (isOpen(node, 'permute')) {
    moves.unshift(node);
    axis = node.attr.axes[axis]!;
    node = node.src[0]!;
  }
  if (!isOpen(node, 'pad') || node.attr.value !== 0 || node.src[0]!.shape[axis] !== 1) return [null, gradient];
  const { low, high } = node.attr;
  if (low[axis] !== at || low.some((n, i) => i !== axis && (n !== 0 || high[i] !== 0))) return [null, gradient];
  let [row] = node.src as [Node];
  for (const { attr } of moves) row = p.permute(row, attr.axes);
  return [p.reshape(row, row.shape.slice(1)), null];
}

/** A value outside of a loop, once the loop is there. */
type Outside = (back: Loop) => Node;

/** Sums over all steps, computed at once outside of a loop from what is kept of each step. */
class Sums {
  /** What must be kept of the steps of the loop back. */
  readonly each: Node[] = [];
  readonly #loop: Loop;
  readonly #own: ReadonlySet<Node>;
  readonly #inside: ReadonlySet<Node>;
  readonly #recompute: boolean;

  constructor(loop: Loop, nodes: readonly Node[], own: ReadonlySet<Node>, recompute: boolean) {
    this.#loop = loop;
    this.#own = own;
    this.#inside = new Set(nodes);
    this.#recompute = recompute;
  }

  /** How the sum of a node over the steps is computed; null where the loop had better add it up. */
  plan(node: Node): Outside | null {
    if (this.#recompute) return null;
    if (isOpen(node, 'dotGeneral')) {
      const count = this.each.length;
      const [lhs, rhs] = node.src.map((source) => this.#stack(source, false)) as [Outside | null, Outside | null];
      if (lhs === null || rhs === null) {
        this.each.length = count;
        return null;
      }
      const { lhsBatch, rhsBatch, lhsContract, rhsContract } = node.attr;
      const behind = (axes: readonly number[]): number[] => axes.map((axis) => axis + 1);
      const attr = {
        lhsBatch: behind(lhsBatch),
        rhsBatch: behind(rhsBatch),
        lhsContract: [0, ...behind(lhsContract)],
        rhsContract: [0, ...behind(rhsContract)],
      };
      return (back) => makeNode('dotGeneral', [lhs(back), rhs(back)], attr);
    }
    if (isOpen(node, 'permute') || isOpen(node, 'reshape')) {
      const inner = this.plan(node.src[0]!);
      return inner === null ? null : (back) => p.makeAgain(node, [inner(back)], node.attr);
    }
    if (isOpen(node, 'reduce') && node.attr.op === 'sum') {
      const inner = this.#stack(node.src[0]!, true);
      const axes = [0, ...node.attr.axes.map((axis) => axis + 1)];
      return inner === null ? null : (back) => p.reduce(inner(back), 'sum', axes);
    }
    if (isOpen(node, 'add') && node.src.every(({ shape }) => shape.join() === node.shape.join())) {
      const parts = node.src.map((source) => this.plan(source));
      if (parts.includes(null)) return null;
      return (back) => p.add(parts[0]!(back), parts[1]!(back));
    }
    return null;
  }

  /** All values of a node, [length, ...]; null where it is the same at each step, or, if only `known` ones will do, where it is not kept. */
  #stack(node: Node, known: boolean): Outside | null {
    if (isOpen(node, 'permute')) {
      const inner = this.#stack(node.src[0]!, known);
      const axes = [0, ...node.attr.axes.map((axis) => axis + 1)];
      return inner === null ? null : (back) => p.permute(inner(back), axes);
    }
    if (isOpen(node, 'reshape')) {
      const inner = this.#stack(node.src[0]!, known);
      return inner === null ? null : (back) => p.reshape(inner(back), [this.#loop.attr.length, ...node.shape]);
    }
    const { carries, items } = this.#loop.attr.body;
    if (carries.includes(node) || items.includes(node)) return () => eachOf(this.#loop, node);
    if (this.#inside.has(node) && isExpensive(node) && node.op !== 'loop') return () => eachOf(this.#loop, node);
    if (isNumber(node) || node.storage !== null) return null;
    if (!this.each.includes(node)) {
      if (known) return null;
      const bound = new Set([...this.#own, ...carries, ...items]);
      if (!bound.has(node) && !insideOf([node], bound).nodes.includes(node)) return null;
      this.each.push(node);
    }
    return (back) => eachOf(back, node);
  }
}

function tangent({ node, attr, tangents }: TangentContext<'loop'>): Node | null {
  const loop: Loop = node;
  const { body, length, reverse } = attr;
  const { carries, items, next, constants, recompute } = body;
  const asked = body.outputs.flatMap(({ attr: { each } }) => (each === null ? [] : [each]));
  const nodes = nodesOf(body, asked);
  const changes = new Map<Node, Node>();
  const start = new Set<Node>();
  [...carries, ...items, ...constants].forEach((input, i) => {
    if (tangents[i] != null) start.add(input);
  });
  const active = reached(body, nodes, start);
  const flowing = carries.flatMap((carry, i) => (active.has(carry) ? [i] : []));
  const before = flowing.map((i) => {
    const bound = like(carries[i]!, 'a tangent');
    changes.set(carries[i]!, bound);
    return bound;
  });
  const given: Node[] = [];
  const sources: Node[] = [];
  items.forEach((item, i) => {
    const change = tangents[carries.length + i];
    if (change == null) return;
    const bound = like(item, 'a tangent');
    changes.set(item, bound);
    given.push(bound);
    sources.push(change);
  });
  constants.forEach((constant, i) => {
    const change = tangents[carries.length + items.length + i];
    if (change != null) changes.set(constant, change);
  });
  pushForward(nodes, changes);
  const after = flowing.map((i) => changes.get(next[i]!) ?? zeros(carries[i]!));
  const each = asked.flatMap((of) => changes.get(of) ?? []);
  const kept = new Kept(loop, nodes, [...after, ...each], new Set([...before, ...given]));
  return makeLoop({
    carries: before,
    items: [...given, ...kept.bound],
    next: after,
    starts: flowing.map((i) => tangents[i] ?? zeros(carries[i]!)),
    sources: [...sources, ...kept.sources],
    each,
    length,
    reverse,
    recompute,
    rules,
    from: changes,
    dtype: body.dtype,
  });
}

function outputTangent({ src, attr }: LoopOutput, change: Node): Node | null {
  const { carries } = (src[0] as Loop).attr.body;
  const loop = change as Loop;
  const { body } = loop.attr;
  const of = body.from.get(attr.each ?? carries[attr.last]!);
  if (of === undefined) return null;
  return attr.each === null ? lastOf(loop, body.carries.indexOf(of)) : eachOf(loop, of);
}

function batch({ src, attr, sources, size, remake }: BatchContext<'loop'>): Node {
  const { body, length, reverse } = attr;
  const { carries, items, next, recompute } = body;
  // All carries get the batch axis, also those that might do without.
  const many = (input: Node): Node => placeholder([size, ...input.shape], input.dtype, 'a batch inside scan');
  const inputs = new Map<Node, Node>();
  for (const carry of carries) inputs.set(carry, many(carry));
  const spread = items.map((item, i) => {
    const source = sources[carries.length + i];
    if (source != null) inputs.set(item, many(item));
    return source ?? null;
  });
  const asked = body.outputs.flatMap(({ attr: { each } }) => (each === null || carries.includes(each) ? [] : [each]));
  const roots = [...next, ...asked];
  const made = remake(roots, inputs);
  const from = new Map<Node, Node>(inputs);
  roots.forEach((root, i) => {
    from.set(root, made[i]!);
  });
  return makeLoop({
    carries: carries.map((carry) => inputs.get(carry)!),
    items: items.map((item) => inputs.get(item) ?? item),
    next: made.slice(0, next.length),
    starts: carries.map((carry, i) => sources[i] ?? p.broadcastTo(src[i]!, [size, ...carry.shape])),
    sources: spread.map((source, i) => (source === null ? src[carries.length + i]! : exchanged(source))),
    each: made.slice(next.length),
    length,
    reverse,
    recompute,
    rules,
    from,
    dtype: body.dtype,
  });
}

/** The first two axes in the other order. */
function exchanged(node: Node): Node {
  return p.permute(
    node,
    node.shape.map((_, axis) => (axis < 2 ? 1 - axis : axis)),
  );
}

function outputBatch({ src, attr }: LoopOutput, of: Node): Node {
  const loop = of as Loop;
  if (attr.each === null) return lastOf(loop, attr.last);
  const each = loop.attr.body.from.get(attr.each);
  if (each === undefined) throw new Error(`[batch] a value of ${(src[0] as Loop).attr.body} is missing; this is a bug`);
  return exchanged(eachOf(loop, each));
}

export const rules: LoopRules = { gradient, tangent, batch, outputTangent, outputBatch };
