/**
 * How two flushes of one form differ: in a size, and in what follows from it.
 *
 * Shapes are plain numbers, so sizes are not traced: they are found by comparing the keys of two cones (`sizesOf`), and what was found is
 * compared with every later key (`matches`), and with the shape of every node. A wrong guess costs a plan, never a result. Only one size may
 * change. It is written `n` below; every number that depends on it must be c * n, but for numbers of constants, which are bound, and for places
 * that count from the end of an axis, which are c * n - k.
 */
import { definitionAt } from '../../graph/definition.ts';
import type { Node, PrimitiveName } from '../../graph/node.ts';
import type { Shape } from '../../shape/view.ts';
import { intsPerAxis, IntWriter } from '../capture/cache.ts';
import type { Cone } from '../capture/cone.ts';

/** Attributes that say how long axes are. All others are alike whatever the size is, but for the values of constants. */
const lengths: ReadonlySet<string> = new Set(['shape', 'length']);

/** Attributes that may be places counted from the end of an axis. */
const places: { readonly [P in PrimitiveName]?: string } = { slice: 'start', pad: 'low' };

/** True if attributes differ in lengths and places alone, or in the value of a number. */
function differInLengths(op: PrimitiveName, before: unknown, now: unknown): boolean {
  if (before === null || now === null) return before === now;
  // Scalars are given at each run.
  const isNumber = op === 'constant' || op === 'scalar';
  const [a, b] = [before, now] as Readonly<Record<string, unknown>>[];
  return Object.entries(b!).every(
    ([name, x]) => lengths.has(name) || name === places[op] || (isNumber && name === 'value') || isEqual(a![name], x),
  );
}

function isEqual(a: unknown, b: unknown): boolean {
  if (!Array.isArray(a) || !Array.isArray(b)) return Object.is(a, b);
  return a.length === b.length && a.every((x, i) => isEqual(x, b[i]));
}

/** What is kept of a cone to compare others with. Nothing of it holds data. */
export interface Sample {
  readonly key: Int32Array;
  /** Where each node begins in the key; one more for the end of the last. */
  readonly starts: Int32Array;
  readonly shapes: readonly Shape[];
  readonly attrs: readonly unknown[];
}

/** What of two samples is one size. */
export interface Sizes {
  /** The later sample, its size, and that of the sample before. */
  readonly sample: Sample;
  readonly n: number;
  readonly before: number;
  /** Positions in the key that differ, ascending, for each its factor c and what is taken off; factor 0: half of a constant's value. */
  readonly holes: readonly number[];
  readonly factors: readonly number[];
  readonly less: readonly number[];
  /** Factors of each node's axes, 0 for fixed ones; null where all are fixed. */
  readonly axes: readonly (readonly number[] | null)[];
  /** Factors of the strides of leaves, 0 for fixed ones. */
  readonly strides: ReadonlyMap<number, readonly number[]>;
  /** Slices and paddings that count from the end: for each axis how far from it they begin, 0 for others. */
  readonly ends: ReadonlyMap<number, readonly number[]>;
  /** Constants that differ: they are bound as they stand. */
  readonly bound: ReadonlySet<number>;
}

const scratch = new IntWriter();

/** How many integers a computed node's attributes are in a key. */
function attrLength({ kind, attr, shape }: Node): number {
  const { encode } = definitionAt(kind);
  scratch.length = 0;
  scratch.reserve(shape.length * intsPerAxis + 64);
  if (encode != null) (encode as (attr: unknown, out: IntWriter) => void)(attr, scratch);
  return scratch.length;
}

/** Takes a sample of what a cone holds. */
export function sampleOf(cone: Cone): Sample {
  const { count } = cone;
  const starts = new Int32Array(count + 1);
  const shapes = new Array<Shape>(count);
  const attrs = new Array<unknown>(count);
  let at = 0;
  for (let i = 0; i < count; i++) {
    const node = cone.nodes[i]!;
    const rank = node.shape.length;
    starts[i] = at;
    shapes[i] = node.shape;
    attrs[i] = node.storage === null ? node.attr : null;
    if (node.storage !== null) at += 4 + 2 * rank;
    else at += 1 + attrLength(node) + (node.src.length === 0 ? 1 + rank : node.src.length);
  }
  starts[count] = at;
  return { key: cone.key.data.slice(0, cone.key.length), starts, shapes, attrs };
}

/** Where in the key a node's integers may be sizes: from, and up to. */
function sizeSpan(cone: Cone, { starts }: Sample, i: number): readonly [number, number] {
  const node = cone.nodes[i]!;
  const start = starts[i]!;
  // A leaf: what it is, its shape with the length before, strides, buffer, alignment.
  if (node.storage !== null) return [start + 2, start + 2 + 2 * node.shape.length];
  return [start + 1, node.src.length === 0 ? starts[i + 1]! : starts[i + 1]! - node.src.length];
}

/**
 * The size in which a cone differs from a sample of the same form; null where that is not all. A size of 0 or 1 is a form of its own.
 */
export function sizesOf(before: Sample, now: Sample, cone: Cone): Sizes | null {
  const { key, starts, shapes } = now;
  if (before.key.length !== key.length || before.starts.length !== starts.length) return null;
  const [p, n] = changedSize(before, now) ?? [0, 0];
  if (p < 2 || n < 2) return null;
  const factor = (a: number, b: number): number => (a > 0 && a * n === b * p && a % p === 0 ? a / p : 0);

  const axes: (readonly number[] | null)[] = [];
  for (let i = 0; i < shapes.length; i++) {
    const [a, b] = [before.shapes[i]!, shapes[i]!];
    if (a.length !== b.length) return null;
    if (a.every((x, axis) => x === b[axis])) {
      axes.push(null);
      continue;
    }
    const factors = a.map((x, axis) => (x === b[axis] ? 0 : factor(x, b[axis]!)));
    if (factors.some((c, axis) => c === 0 && a[axis] !== b[axis])) return null;
    axes.push(factors);
  }

  const holes: number[] = [];
  const factors: number[] = [];
  const less: number[] = [];
  const bound = new Set<number>();
  const strides = new Map<number, number[]>();
  const ends = new Map<number, readonly number[]>();
  for (let i = 0; i < shapes.length; i++) {
    const { op, storage, shape } = cone.nodes[i]!;
    if (!differInLengths(op, before.attrs[i], now.attrs[i])) return null;
    const fromEnd = storage === null ? distances(before, now, cone.nodes[i]!) : null;
    if (fromEnd !== null) {
      if (fromEnd.some(Number.isNaN)) return null;
      ends.set(i, fromEnd);
    }
    const [from, to] = sizeSpan(cone, now, i);
    for (let at = starts[i]!; at < starts[i + 1]!; at++) {
      const [a, b] = [before.key[at]!, key[at]!];
      if (a === b) continue;
      if (at < from || at >= to) return null;
      let [c, k] = [factor(a, b), 0];
      if (c === 0 && fromEnd !== null) {
        c = (b - a) / (n - p);
        k = c * n - b;
        if (!Number.isInteger(c) || c < 1) return null;
      }
      // A constant that was computed is a leaf.
      if (op === 'constant' && storage === null && at < from + 3) {
        c = 0;
        bound.add(i);
      } else if (c === 0) return null;
      if (storage !== null && at >= from + shape.length) {
        if (!strides.has(i)) strides.set(i, new Array<number>(shape.length).fill(0));
        strides.get(i)![at - from - shape.length] = c;
      }
      holes.push(at);
      factors.push(c);
      less.push(k);
    }
  }
  // Outputs and donations.
  for (let at = starts[shapes.length]!; at < key.length; at++) if (before.key[at] !== key[at]) return null;
  return { sample: now, n, before: p, holes, factors, less, axes, strides, ends, bound };
}

/** How far from the ends of axes a slice or a padding begins, NaN where that differs too; null where it begins at the same places. */
function distances(before: Sample, now: Sample, node: Node): readonly number[] | null {
  const name = places[node.op];
  if (name === undefined) return null;
  const [a, b] = [before, now].map(({ attrs, shapes }) => {
    const shape = shapes[node.op === 'slice' ? node.src[0]!.index : node.index]!;
    return (attrs[node.index] as Readonly<Record<string, readonly number[]>>)[name]!.map((at, axis) => [
      at,
      shape[axis]! - at,
    ]);
  });
  if (a!.every(([at], axis) => at === b![axis]![0])) return null;
  return a!.map(([at, left], axis) => (at === b![axis]![0] ? 0 : left === b![axis]![1] ? left! : Number.NaN));
}

/** The smallest extent that differs, before and now. */
function changedSize(before: Sample, now: Sample): readonly [number, number] | null {
  let least: readonly [number, number] | null = null;
  for (const [i, b] of now.shapes.entries()) {
    const a = before.shapes[i]!;
    for (let axis = 0; axis < Math.min(a.length, b.length); axis++)
      if (a[axis] !== b[axis] && (least === null || a[axis]! < least[0])) least = [a[axis]!, b[axis]!];
  }
  return least;
}

/** The size of a cone that differs from the sample in nothing else; -1 where it does. */
export function matches({ sample, holes, factors, less, axes }: Sizes, cone: Cone): number {
  const { data, length } = cone.key;
  const { key, shapes } = sample;
  if (length !== key.length || cone.count !== shapes.length) return -1;
  const first = factors.findIndex((c, at) => c > 0 && less[at] === 0);
  const n = data[holes[first]!]! / factors[first]!;
  if (!Number.isInteger(n) || n < 2) return -1;
  let hole = 0;
  for (let at = 0; at < length; at++) {
    if (at !== holes[hole]) {
      if (data[at] !== key[at]) return -1;
      continue;
    }
    const [c, k] = [factors[hole]!, less[hole]!];
    hole++;
    if (c > 0 && data[at] !== c * n - k) return -1;
  }
  for (let i = 0; i < shapes.length; i++) {
    const { shape } = cone.nodes[i]!;
    const expected = shapes[i]!;
    const own = axes[i];
    if (shape.length !== expected.length) return -1;
    for (let axis = 0; axis < shape.length; axis++) {
      const c = own == null ? 0 : own[axis]!;
      if (shape[axis] !== (c === 0 ? expected[axis] : c * n)) return -1;
    }
  }
  return n;
}

/** Attributes at another size: numbers of two samples that differ grow with the size, as much from one to the other as from there on. */
export function resized(attrs: readonly [unknown, unknown], sizes: readonly [number, number], size: number): unknown {
  const [before, now] = attrs;
  if (before === now || before === null || now === null) return now;
  if (typeof now === 'number') {
    const [p, n] = sizes;
    return now + ((now - (before as number)) / (n - p)) * (size - n);
  }
  if (Array.isArray(now)) return now.map((x, i) => resized([(before as unknown[])[i], x], sizes, size));
  if (typeof now !== 'object') return now;
  return Object.fromEntries(
    Object.entries(now).map(([name, x]) => [
      name,
      resized([(before as Record<string, unknown>)[name], x], sizes, size),
    ]),
  );
}
