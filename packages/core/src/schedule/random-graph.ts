/**
 * Random graphs for differential tests: a list of numbers decides everything, so that failures shrink.
 *
 * Values stay small and, where a comparison looks at them, exact, so that rounding never decides a branch. Not for use
 * outside tests.
 */
import { makeNode } from '../graph/build.ts';
import type { Node } from '../graph/node.ts';
import { constant, scalar } from '../graph/primitives.ts';
import { sizeOf } from '../shape/view.ts';

type MakeLeaf = (values: readonly number[], shape: readonly number[], dtype: 'float32' | 'int32') => Node;

/** Largest tensor made; larger results are not kept. */
const mostElements = 4096;

class Grower {
  readonly nodes: Node[] = [];
  /** Float nodes whose values are exact multiples of 1/4 below 2^12 in size. */
  readonly exact = new Set<Node>();
  readonly #choices: readonly number[];
  readonly #leaf: MakeLeaf;
  #at = 0;

  constructor(choices: readonly number[], leaf: MakeLeaf) {
    this.#choices = choices;
    this.#leaf = leaf;
  }

  get done(): boolean {
    return this.#at >= this.#choices.length;
  }

  /** A number in 0 .. n-1. */
  pick(n: number): number {
    return (this.#choices[this.#at++] ?? 0) % n;
  }

  of<T>(list: readonly T[]): T {
    return list[this.pick(list.length)] as T;
  }

  add(node: Node, exact: boolean): Node {
    this.nodes.push(node);
    if (exact) this.exact.add(node);
    return node;
  }

  /** A float node made before, recent ones more often. */
  float(test: (node: Node) => boolean = () => true): Node | null {
    const found = this.nodes.filter((n) => n.dtype === 'float32' && test(n));
    if (found.length === 0) return null;
    const back = this.pick(3) === 0 ? this.pick(found.length) : this.pick(Math.min(4, found.length));
    return found[found.length - 1 - back] as Node;
  }

  leaf(shape: readonly number[]): Node {
    const seed = this.pick(9999);
    const values = Array.from({ length: sizeOf(shape) }, (_, i) => (((i * 7919 + seed * 104729) % 33) - 16) / 4);
    return this.add(this.#leaf(values, shape, 'float32'), true);
  }

  indices(shape: readonly number[], limit: number): Node {
    const seed = this.pick(9999);
    const values = Array.from({ length: sizeOf(shape) }, (_, i) => (i * 31 + seed) % limit);
    const node = this.#leaf(values, shape, 'int32');
    this.nodes.push(node);
    return node;
  }

  /** Brings values back to a small range of exact numbers. */
  clamp(node: Node, exact: boolean): Node {
    const low = makeNode('maximum', [node, constant(-8, 'float32')], null);
    return this.add(makeNode('minimum', [low, constant(8, 'float32')], null), exact);
  }
}

const shapes = [
  [],
  [1],
  [3],
  [8],
  [2, 3],
  [4, 4],
  [1, 5],
  [3, 1],
  [2, 3, 4],
  [2, 1, 6],
  [2, 3, 5, 5],
  [1, 2, 6, 6],
  [40, 3],
  [5, 70],
];

type Step = (g: Grower, x: Node) => void;

const steps: readonly Step[] = [
  (g) => void g.leaf(g.of(shapes)),
  (g, x) => void g.add(makeNode(g.of(['neg', 'abs', 'floor', 'ceil'] as const), [x], null), g.exact.has(x)),
  (g, x) => void g.add(makeNode(g.of(['tanh', 'exp', 'sin'] as const), [clampFor(x)], null), false),
  (g, x) => {
    const y = g.float((n) => broadcasts(n, x)) as Node;
    const node = makeNode(
      g.of(['add', 'sub', 'mul', 'maximum', 'minimum'] as const),
      g.pick(2) ? [x, y] : [y, x],
      null,
    );
    if (sizeOf(node.shape) <= mostElements) g.clamp(node, false);
  },
  (g, x) => {
    const y = g.float((n) => broadcasts(n, x)) as Node;
    if (!g.exact.has(x) || !g.exact.has(y)) return;
    const less = makeNode(g.of(['lt', 'le', 'eq'] as const), [x, y], null);
    const z = g.float((n) => broadcasts(n, less)) as Node;
    const node = makeNode('where', [less, z, x], null);
    if (sizeOf(node.shape) <= mostElements) g.add(node, g.exact.has(z));
  },
  (g, x) =>
    void g.clamp(makeNode('mul', [x, g.pick(2) ? scalar(0.5, 'float32') : constant(2, 'float32')], null), false),
  (g, x) => {
    const axes = x.shape.map((_, axis) => axis).filter(() => g.pick(2) === 1);
    if (axes.length === 0) return;
    const op = g.of(['sum', 'max', 'min'] as const);
    const node = makeNode('reduce', [x], { op, axes, ties: 'share' });
    if (op === 'sum') g.clamp(node, false);
    else g.add(node, g.exact.has(x));
  },
  (g, x) => {
    // A reduction and what it was made of, as in softmax.
    if (x.shape.length === 0) return;
    const axis = g.pick(x.shape.length);
    const op = g.of(['sum', 'max'] as const);
    const node = makeNode('reduce', [x], { op, axes: [axis], ties: 'share' });
    const kept = makeNode('reshape', [node], { shape: x.shape.map((n, i) => (i === axis ? 1 : n)) });
    const back = g.pick(2) ? makeNode('expand', [kept], { shape: x.shape }) : kept;
    g.clamp(makeNode('sub', [x, back], null), false);
  },
  (g, x) => {
    if (!g.exact.has(x) || x.shape.length === 0) return;
    const node = makeNode('argReduce', [x], { op: g.of(['max', 'min'] as const), axes: [g.pick(x.shape.length)] });
    g.add(makeNode('cast', [node], { dtype: 'float32' }), sizeOf(x.shape) <= 512);
  },
  (g, x) => {
    const axes = x.shape.map((_, axis) => axis);
    for (let i = axes.length - 1; i > 0; i--) {
      const j = g.pick(i + 1);
      [axes[i], axes[j]] = [axes[j] as number, axes[i] as number];
    }
    g.add(makeNode('permute', [x], { axes }), g.exact.has(x));
  },
  (g, x) => {
    const size = sizeOf(x.shape);
    const options = [
      [size],
      [1, size],
      [size, 1],
      ...[2, 3, 4, 5]
        .filter((d) => size % d === 0)
        .flatMap((d) => [
          [d, size / d],
          [size / d, d],
        ]),
    ];
    g.add(makeNode('reshape', [x], { shape: g.of(options) }), g.exact.has(x));
  },
  (g, x) => {
    const shape = x.shape.map((n) => (n === 1 ? 1 + g.pick(4) : n));
    if (sizeOf(shape) <= mostElements) g.add(makeNode('expand', [x], { shape }), g.exact.has(x));
  },
  (g, x) => {
    const start: number[] = [];
    const length: number[] = [];
    const step: number[] = [];
    for (const n of x.shape) {
      const by = g.of([1, 1, 2, -1, -2]);
      const count = 1 + g.pick(Math.max(1, Math.ceil(n / Math.abs(by))));
      const last = (count - 1) * by;
      const room = n - Math.abs(last);
      if (room < 1) return;
      const first = g.pick(room) + (by < 0 ? -last : 0);
      start.push(first);
      length.push(count);
      step.push(by);
    }
    g.add(makeNode('slice', [x], { start, length, step }), g.exact.has(x));
  },
  (g, x) => {
    const low = x.shape.map(() => g.pick(3));
    const high = x.shape.map(() => g.pick(3));
    const node = makeNode('pad', [x], { low, high, value: g.of([0, 0, 1, -2]) });
    if (sizeOf(node.shape) <= mostElements) g.add(node, g.exact.has(x));
  },
  (g, x) => {
    if (x.shape.length === 0) return;
    const axis = g.pick(x.shape.length);
    const y = g.float(
      (n) => n.shape.length === x.shape.length && n.shape.every((m, i) => i === axis || m === x.shape[i]),
    ) as Node;
    const node = makeNode('concat', g.pick(2) ? [x, y] : [y, x, y], { axis });
    if (sizeOf(node.shape) <= mostElements) g.add(node, g.exact.has(x) && g.exact.has(y));
  },
  (g, x) => {
    if (x.shape.length < 2) return;
    const rank = g.pick(2) + 1;
    const size = Array.from({ length: rank }, () => 1 + g.pick(3));
    const stride = size.map((n) => g.of([n, 1, 2]));
    const dilation = size.map(() => g.of([1, 1, 2]));
    const spatial = x.shape.slice(x.shape.length - rank);
    if (spatial.some((n, i) => n < ((size[i] as number) - 1) * (dilation[i] as number) + 1)) return;
    const windows = makeNode('window', [x], { size, stride, dilation });
    if (sizeOf(windows.shape) > mostElements) return;
    const axes = size.map((_, i) => windows.shape.length - rank + i);
    switch (g.pick(4)) {
      case 0:
        g.add(windows, g.exact.has(x));
        return;
      case 1:
        g.clamp(makeNode('reduce', [windows], { op: 'sum', axes, ties: 'share' }), false);
        return;
      case 2:
        g.add(makeNode('reduce', [windows], { op: 'max', axes, ties: 'first' }), g.exact.has(x));
        return;
      default: {
        const scaled = makeNode('mul', [windows, constant(0.5, 'float32')], null);
        g.clamp(makeNode('fold', [g.pick(2) ? scaled : windows], { size, stride, dilation, spatial }), false);
      }
    }
  },
  (g, x) => {
    if (x.shape.length < 2) return;
    const depth = x.shape[x.shape.length - 1] as number;
    const transposed = g.pick(2) === 1;
    const width = g.of([1, 2, 5]);
    const y = g.pick(2) ? g.float((n) => n.shape.length === 2 && n.shape[transposed ? 1 : 0] === depth) : null;
    const rhs = y ?? g.leaf(transposed ? [width, depth] : [depth, width]);
    const contract = {
      lhsBatch: [],
      rhsBatch: [],
      lhsContract: [x.shape.length - 1],
      rhsContract: [transposed ? 1 : 0],
    };
    const node = makeNode('dotGeneral', [x, rhs], contract);
    if (sizeOf(node.shape) <= mostElements) g.clamp(node, false);
  },
  (g, x) => {
    if (x.shape.length < 3) return;
    const y = g.float((n) => n.shape.length === x.shape.length && n.shape.every((m, i) => m === x.shape[i])) as Node;
    const attr = { lhsBatch: [0], rhsBatch: [0], lhsContract: [2], rhsContract: [2] };
    const node = makeNode('dotGeneral', [x, y], attr);
    if (sizeOf(node.shape) <= mostElements) g.clamp(node, false);
  },
  (g, x) => {
    if (x.shape.length !== 4) return;
    const [n, c] = [x.shape[0] as number, x.shape[1] as number];
    const groups = g.pick(2) && c % 2 === 0 ? 2 : 1;
    const batchGroups = groups === 1 && n % 2 === 0 && g.pick(3) === 0 ? 2 : 1;
    const kernel = [1 + g.pick(3), 1 + g.pick(3)];
    const w = g.leaf([2 * groups * batchGroups, c / groups, ...kernel]);
    const pair = (options: readonly number[]): number[] => [g.of(options), g.of(options)];
    const attr = {
      stride: pair([1, 2]),
      padLow: pair([0, 1, 2]),
      padHigh: pair([0, 1, 2]),
      lhsDilation: pair([1, 1, 2]),
      rhsDilation: pair([1, 1, 2]),
      groups,
      batchGroups,
    };
    const node = makeNode('conv', [x, w], attr);
    if (node.shape.includes(0) || sizeOf(node.shape) > mostElements) return;
    const biased = g.pick(2) ? makeNode('add', [node, g.leaf([node.shape[1] as number, 1, 1])], null) : node;
    g.clamp(biased, false);
  },
  (g, x) => {
    if (x.shape.length === 0) return;
    const axis = g.pick(x.shape.length);
    const node = makeNode('gather', [x, g.indices(g.of([[], [3], [2, 2]]), x.shape[axis] as number)], { axis });
    if (sizeOf(node.shape) <= mostElements) g.add(node, g.exact.has(x));
  },
  (g, x) => {
    if (x.shape.length === 0) return;
    const axis = g.pick(x.shape.length);
    const count = g.of([1, 4]);
    const updates = g.float(
      (n) => n.shape.length === x.shape.length && n.shape.every((m, i) => i === axis || m === x.shape[i]),
    ) as Node;
    const which = g.indices([updates.shape[axis] as number], Math.min(count, x.shape[axis] as number));
    g.clamp(makeNode('scatterAdd', [x, which, updates], { axis }), false);
  },
  (g, x) => void g.add(makeNode(g.of(['contiguous', 'stopGradient'] as const), [x], null), g.exact.has(x)),
];

/** Inputs of functions stay small. */
function clampFor(x: Node): Node {
  const low = makeNode('maximum', [x, constant(-3, 'float32')], null);
  return makeNode('minimum', [low, constant(3, 'float32')], null);
}

function broadcasts(a: Node, b: Node): boolean {
  const rank = Math.min(a.shape.length, b.shape.length);
  for (let i = 1; i <= rank; i++) {
    const m = a.shape[a.shape.length - i];
    const n = b.shape[b.shape.length - i];
    if (m !== n && m !== 1 && n !== 1) return false;
  }
  return true;
}

/** A graph and some of its nodes to ask for: the last ones and a few others. */
export function growGraph(choices: readonly number[], leaf: MakeLeaf): { nodes: Node[]; outputs: Node[] } {
  const g = new Grower(choices, leaf);
  g.leaf(g.of(shapes));
  while (!g.done) {
    const x = g.float() as Node;
    (steps[g.pick(steps.length)] as Step)(g, x);
  }
  const made = g.nodes.filter((n) => n.storage === null && n.op !== 'scalar');
  const outputs = made.filter((_, i) => i >= made.length - 2 || i % 5 === 0);
  return { nodes: g.nodes, outputs: [...new Set(outputs)] };
}
