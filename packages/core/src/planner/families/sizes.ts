/**
 * How two flushes of one form differ: in sizes, and in numbers that follow from sizes.
 *
 * Shapes are plain numbers, so sizes are not traced. `sizesOf` finds them by comparing the keys of two captured graphs; `matches` compares the result
 * with every later key and with the shape of every node. A wrong guess costs a plan, never a result. Up to three sizes may
 * change independently; others follow from them, as sums: n + k, n + m. Every number that depends on sizes must be a multiple of one, or of a
 * product of them, such as c * n * m. Two kinds are excepted: values of constants, which are bound, and positions counted from the end of an axis,
 * which are c * n - k.
 */
import { definitionAt } from '../../graph/definition.ts';
import type { Attrs, Node, PrimitiveName } from '../../graph/node.ts';
import { type Shape, whole } from '@polygrad/compiler/shape/view';
import { intsPerAxis, IntWriter } from '../capture/cache.ts';
import type { CapturedGraph } from '../capture/captured-graph.ts';

/** Attributes that hold lengths of axes. The others do not depend on the size, except for the values of constants. */
const lengths: ReadonlySet<string> = new Set(['shape', 'length']);

/** Attributes that are positions where something begins along each axis. They are the first of a node's integers in the key, behind their number. */
const places: { readonly [P in PrimitiveName]?: string } = { slice: 'start', pad: 'low' };

/** True if attributes differ only in lengths and positions, or in the value of a number. */
function differInLengths(op: PrimitiveName, before: unknown, now: unknown): boolean {
  if (before === null || now === null) return before === now;
  // Scalars are bound at each run.
  const isNumber = op === 'constant' || op === 'scalar';
  const [a, b] = [before, now] as Readonly<Record<string, unknown>>[];
  return Object.entries(b!).every(
    ([name, x]) =>
      lengths.has(name) ||
      name === places[op] ||
      // What is padded at the end follows from both shapes and the beginning.
      (op === 'pad' && name === 'high') ||
      (isNumber && name === 'value') ||
      isEqual(a![name], x),
  );
}

function isEqual(a: unknown, b: unknown): boolean {
  if (!Array.isArray(a) || !Array.isArray(b)) return Object.is(a, b);
  return a.length === b.length && a.every((x, i) => isEqual(x, b[i]));
}

/** The part of a captured graph that is kept for comparison. It holds no data. */
export interface Sample {
  readonly key: Int32Array;
  /** Where each node begins in the key, and one entry more for the end. */
  readonly starts: Int32Array;
  readonly shapes: readonly Shape[];
  readonly attrs: readonly unknown[];
}

/** At most this many sizes change independently. */
const mostSizes = 3;
/** At most this many others follow from them. */
const mostSums = 3;

/** A size that follows from others: the sum of one to three of them, by index, and `more`. */
export interface Sum {
  readonly of: readonly number[];
  readonly more: number;
}

/** For each size null if it is independent, else what it follows from: sizes before it that are independent. */
export type Sums = readonly (Sum | null)[];

/** A factor times a product of sizes. */
export interface Multiple {
  readonly factor: number;
  /** Index of the product in `Sizes.terms`. */
  readonly term: number;
}

/** For each of some numbers its multiple; null for fixed ones. */
export type Multiples = readonly (Multiple | null)[];

/** The sizes found between two samples. */
export interface Sizes {
  /** The later sample, and the one before. */
  readonly sample: Sample;
  readonly earlier: Sample;
  /** The sizes in both. */
  readonly n: readonly number[];
  readonly before: readonly number[];
  readonly sums: Sums;
  /** Products of sizes that numbers may be multiples of, as lists of sizes: first each size alone. */
  readonly terms: readonly (readonly number[])[];
  /** Positions in the key that differ, ascending: their factors, terms, and what is subtracted. Factor 0: half of a constant's value. */
  readonly holes: readonly number[];
  readonly factors: readonly number[];
  readonly of: readonly number[];
  readonly less: readonly number[];
  /** For each size, the hole that gives its value; -1 for sums. */
  readonly leads: readonly number[];
  /** The sized axes of each node; null where all are fixed. */
  readonly axes: readonly (Multiples | null)[];
  /** The sized strides of leaves. */
  readonly strides: ReadonlyMap<number, Multiples>;
  /** Where slices and paddings begin whose beginning depends on sizes. */
  readonly begins: ReadonlyMap<number, readonly Begin[]>;
  /** Constants that differ: their values are bound. */
  readonly bound: ReadonlySet<number>;
}

/** Where a slice or a padding begins along an axis: at a distance from the end, at a multiple of sizes, or (null) at a fixed place. */
export type Begin = { readonly left: number } | Multiple | null;

/** All products of at most three of the sizes. */
function termsOf(count: number): readonly (readonly number[])[] {
  const all = Array.from({ length: count }, (_, i) => [i]);
  const longer = (terms: readonly (readonly number[])[]): number[][] =>
    terms.flatMap((term) => all.filter(([i]) => i! >= term.at(-1)!).map(([i]) => [...term, i!]));
  const pairs = longer(all);
  return [...all, ...pairs, ...longer(pairs)];
}

/** The values of the products at these sizes. */
export function valuesOf(terms: Sizes['terms'], sizes: readonly number[]): readonly number[] {
  return terms.map((term) => term.reduce((product, i) => product * sizes[i]!, 1));
}

/** The multiple that is `a` for the first values of the products and `b` for the second; null if there is none. */
function multipleOf(was: readonly number[], is: readonly number[], a: number, b: number): Multiple | null {
  for (let term = 0; term < was.length; term++)
    if (a > 0 && a * is[term]! === b * was[term]! && a % was[term]! === 0) return { factor: a / was[term]!, term };
  return null;
}

/** All sizes: numbers for the independent ones, and for sums what follows from these. `at` gets the index of an independent size. */
export function withSums(sums: Sums, at: (size: number) => number): number[] {
  const all: number[] = [];
  for (const [i, sum] of sums.entries())
    all.push(sum === null ? at(i) : sum.of.reduce((total, size) => total + all[size]!, sum.more));
  return all;
}

/** How many sizes change independently. */
export function independentOf({ sums }: Pick<Sizes, 'sums'>): number {
  return sums.filter((sum) => sum === null).length;
}

const scratch = new IntWriter();

/** How many integers of the key a computed node's attributes take. */
function attrLength({ kind, attr, shape }: Node): number {
  const { encode } = definitionAt(kind);
  scratch.length = 0;
  scratch.reserve(shape.length * intsPerAxis + 64);
  if (encode != null) (encode as (attr: unknown, out: IntWriter) => void)(attr, scratch);
  return scratch.length;
}

/** Takes a sample of what a captured graph holds. */
export function sampleOf(captured: CapturedGraph): Sample {
  const { count } = captured;
  const starts = new Int32Array(count + 1);
  const shapes = new Array<Shape>(count);
  const attrs = new Array<unknown>(count);
  let at = 0;
  for (let i = 0; i < count; i++) {
    const node = captured.nodes[i]!;
    const rank = node.shape.length;
    starts[i] = at;
    shapes[i] = node.shape;
    attrs[i] = node.storage === null ? node.attr : null;
    if (node.storage !== null) at += 4 + 2 * rank;
    else at += 1 + attrLength(node) + (node.src.length === 0 ? 1 + rank : node.src.length);
  }
  starts[count] = at;
  return { key: captured.key.data.slice(0, captured.key.length), starts, shapes, attrs };
}

/** The part of a node's integers in the key that may hold sizes: begin and end. */
export function sizeSpan(captured: CapturedGraph, { starts }: Sample, i: number): readonly [number, number] {
  const node = captured.nodes[i]!;
  const start = starts[i]!;
  // A leaf: what it is, its shape with the length before, strides, buffer, alignment.
  if (node.storage !== null) return [start + 2, start + 2 + 2 * node.shape.length];
  return [start + 1, node.src.length === 0 ? starts[i + 1]! : starts[i + 1]! - node.src.length];
}

/**
 * The sizes in which a captured graph differs from a sample of the same form; null where something else differs too. A size of 0 or 1 is another form.
 */
export function sizesOf(before: Sample, now: Sample, captured: CapturedGraph): Sizes | null {
  const { key, starts, shapes } = now;
  if (before.key.length !== key.length || before.starts.length !== starts.length) return null;
  const changed = changedSizes(before, now);
  if (changed === null) return null;
  const terms = termsOf(changed.n.length);
  const [was, is] = [valuesOf(terms, changed.before), valuesOf(terms, changed.n)];
  const multiple = (a: number, b: number): Multiple | null => multipleOf(was, is, a, b);

  const axes = axesOf(before, now, multiple);
  if (axes === null) return null;
  const holes: number[] = [];
  const factors: number[] = [];
  const of: number[] = [];
  const less: number[] = [];
  const bound = new Set<number>();
  const strides = new Map<number, (Multiple | null)[]>();
  const begins = new Map<number, readonly Begin[]>();
  for (let i = 0; i < shapes.length; i++) {
    const { op, storage, shape } = captured.nodes[i]!;
    if (!differInLengths(op, before.attrs[i], now.attrs[i])) return null;
    const own = storage === null ? beginsOf(before, now, captured.nodes[i]!, multiple) : null;
    if (own === undefined) return null;
    if (own !== null) begins.set(i, own);
    const [from, to] = sizeSpan(captured, now, i);
    const rank = shape.length;
    for (let at = starts[i]!; at < starts[i + 1]!; at++) {
      const [a, b] = [before.key[at]!, key[at]!];
      if (a === b) continue;
      if (at < from || at >= to) return null;
      const begin = own?.[at - from - 1] ?? null;
      const k = begin !== null && 'left' in begin ? begin.left : 0;
      let m = begin !== null && 'factor' in begin ? begin : multiple(a + k, b + k);
      if (op === 'constant' && storage === null && at < from + 3) {
        // A constant that was computed is a leaf.
        m = null;
        bound.add(i);
      } else if (op === 'pad' && storage === null && at > from + 1 + rank) {
        // The widths behind follow.
        if (at > from + 1 + 2 * rank) return null;
        m = null;
      } else if (m === null) return null;
      if (storage !== null && at >= from + rank) {
        if (!strides.has(i)) strides.set(i, new Array<Multiple | null>(rank).fill(null));
        strides.get(i)![at - from - rank] = m;
      }
      holes.push(at);
      factors.push(m?.factor ?? 0);
      of.push(m?.term ?? 0);
      less.push(k);
    }
  }
  // Then outputs and donations.
  for (let at = starts[shapes.length]!; at < key.length; at++) if (before.key[at] !== key[at]) return null;
  const leads = changed.sums.map((sum, size) =>
    sum === null ? holes.findIndex((_, at) => factors[at]! > 0 && of[at] === size && !less[at]) : -1,
  );
  if (leads.some((hole, size) => hole < 0 && changed.sums[size] === null)) return null;
  return {
    sample: now,
    earlier: before,
    ...changed,
    terms,
    holes,
    factors,
    of,
    less,
    leads,
    axes,
    strides,
    begins,
    bound,
  };
}

/** What the axes of each shape are of sizes, null for shapes that stay; null where one is no multiple of a size. */
function axesOf(
  before: Sample,
  now: Sample,
  multiple: (a: number, b: number) => Multiple | null,
): (Multiples | null)[] | null {
  const axes: (Multiples | null)[] = [];
  for (const [i, b] of now.shapes.entries()) {
    const a = before.shapes[i]!;
    if (a.length !== b.length) return null;
    if (a.every((x, axis) => x === b[axis])) {
      axes.push(null);
      continue;
    }
    const multiples = a.map((x, axis) => (x === b[axis] ? null : multiple(x, b[axis]!)));
    if (multiples.some((m, axis) => m === null && a[axis] !== b[axis])) return null;
    axes.push(multiples);
  }
  return axes;
}

/** Where a slice or a padding begins; null where both samples agree, undefined where the beginning depends on sizes in another way. */
function beginsOf(
  before: Sample,
  now: Sample,
  node: Node,
  multiple: (a: number, b: number) => Multiple | null,
): readonly Begin[] | null | undefined {
  const name = places[node.op];
  if (name === undefined) return null;
  const [a, b] = [before, now].map(({ attrs, shapes }) => {
    const shape = shapes[node.op === 'slice' ? node.src[0]!.index : node.index]!;
    return (attrs[node.index] as Readonly<Record<string, readonly number[]>>)[name]!.map((at, axis) => ({
      at,
      left: shape[axis]! - at,
    }));
  });
  if (a!.every(({ at }, axis) => at === b![axis]!.at)) return null;
  const begins: Begin[] = [];
  for (const [axis, is] of b!.entries()) {
    const was = a![axis]!;
    if (was.at === is.at) begins.push(null);
    else if (was.left === is.left) begins.push({ left: is.left });
    else {
      const m = multiple(was.at, is.at);
      if (m === null) return undefined;
      begins.push(m);
    }
  }
  return begins;
}

/** Sizes before and now: of all changed extents, ascending, those that are not multiples of others. Null for none, and for too many. */
function changedSizes(before: Sample, now: Sample): Pick<Sizes, 'n' | 'before' | 'sums'> | null {
  const pairs = new Map<string, readonly [number, number]>();
  for (const [i, b] of now.shapes.entries()) {
    const a = before.shapes[i]!;
    for (let axis = 0; axis < Math.min(a.length, b.length); axis++)
      if (a[axis] !== b[axis]) pairs.set(`${a[axis]} ${b[axis]}`, [a[axis]!, b[axis]!]);
  }
  const [p, n, sums]: [number[], number[], (Sum | null)[]] = [[], [], []];
  for (const [a, b] of [...pairs.values()].sort(([a], [b]) => a - b)) {
    const terms = termsOf(n.length);
    if (multipleOf(valuesOf(terms, p), valuesOf(terms, n), a, b) !== null) continue;
    const sum = sumOf(p, n, sums, a, b);
    const alike = sums.filter((other) => (other === null) === (sum === null)).length;
    if (a < 2 || b < 2 || alike === (sum === null ? mostSizes : mostSums)) return null;
    p.push(a);
    n.push(b);
    sums.push(sum);
  }
  return n.length === 0 ? null : { before: p, n, sums };
}

/** The sum of at most three independent sizes and a number that is `a` for the first values and `b` for the second; null if there is none. */
function sumOf(p: readonly number[], n: readonly number[], sums: Sums, a: number, b: number): Sum | null {
  for (const of of termsOf(n.length)) {
    if (of.some((i) => sums[i] !== null)) continue;
    const more = of.reduce((rest, i) => rest - p[i]!, a);
    if (more >= 0 && more === of.reduce((rest, i) => rest - n[i]!, b)) return { of, more };
  }
  return null;
}

/** The sizes of a captured graph that differs from the sample only in them; null otherwise. */
export function matches(sizes: Sizes, captured: CapturedGraph): readonly number[] | null {
  const { sample, sums, holes, factors, of, less, leads, axes } = sizes;
  const { data, length } = captured.key;
  const { key, shapes } = sample;
  if (length !== key.length || captured.count !== shapes.length) return null;
  const n = withSums(sums, (size) => data[holes[leads[size]!]!]! / factors[leads[size]!]!);
  if (n.some((x) => !Number.isInteger(x) || x < 2)) return null;
  const values = valuesOf(sizes.terms, n);
  let hole = 0;
  for (let at = 0; at < length; at++) {
    if (at !== holes[hole]) {
      if (data[at] !== key[at]) return null;
      continue;
    }
    const c = factors[hole]!;
    if (c > 0 && data[at] !== c * values[of[hole]!]! - less[hole]!) return null;
    hole++;
  }
  for (let i = 0; i < shapes.length; i++) {
    const { shape } = captured.nodes[i]!;
    const expected = shapes[i]!;
    const own = axes[i];
    if (shape.length !== expected.length) return null;
    for (let axis = 0; axis < shape.length; axis++) {
      const m = own == null ? null : own[axis]!;
      if (shape[axis] !== (m === null ? expected[axis] : m.factor * values[m.term]!)) return null;
    }
  }
  return n;
}

/** The numbers, given the values of the products. */
export function numbersAt(
  numbers: readonly number[],
  multiples: Multiples | null,
  values: readonly number[],
): readonly number[] {
  if (multiples === null) return numbers;
  return listOf(numbers, (x, i) => {
    const m = multiples[i]!;
    return m === null ? x : m.factor * values[m.term]!;
  });
}

/** As `map`, which V8 optimises to make doubles of products: rules of shapes that once met those make lists of doubles for good. */
function listOf(numbers: readonly number[], at: (x: number, i: number) => number): number[] {
  const list: number[] = [];
  for (let i = 0; i < numbers.length; i++) list.push(whole(at(numbers[i]!, i)));
  return list;
}

type Pad = Attrs['pad'];

/**
 * Attributes of a node, given the values of the products and shapes at these: lengths and some positions are multiples of products, other positions
 * keep their distance from the end. Everything else is unchanged. `fromEnd`: positions that do so are negative, as plans for a class have them.
 */
export function attrAt(
  sizes: Sizes,
  i: number,
  { op, src }: Pick<Node, 'op' | 'src'>,
  shapeOf: (i: number) => Shape,
  values: readonly number[],
  fromEnd: boolean = false,
): unknown {
  const { earlier, sample, terms } = sizes;
  const [before, now] = [earlier.attrs[i], sample.attrs[i]] as (Readonly<Record<string, unknown>> | null)[];
  if (before === now || before == null || now == null) return now;
  const [was, is] = [valuesOf(terms, sizes.before), valuesOf(terms, sizes.n)];
  const length = (a: number, b: number): number => {
    const m = a === b ? null : multipleOf(was, is, a, b);
    return m === null ? b : m.factor * values[m.term]!;
  };
  const begins = sizes.begins.get(i);
  const sized: Record<string, unknown> & { high?: readonly number[] } = { ...now };
  for (const [name, x] of Object.entries(now)) {
    const a = before[name];
    if (lengths.has(name))
      sized[name] =
        typeof x === 'number'
          ? whole(length(a as number, x))
          : listOf(x as number[], (b, k) => length((a as number[])[k]!, b));
    else if (name === places[op] && begins !== undefined) {
      const along = shapeOf(op === 'slice' ? src[0]!.index : i);
      sized[name] = listOf(x as number[], (at, axis) => {
        const begin = begins[axis]!;
        if (begin === null) return at;
        return 'left' in begin ? (fromEnd ? 0 : along[axis]!) - begin.left : begin.factor * values[begin.term]!;
      });
    }
  }
  if (op === 'pad') {
    const [was, is, { low }] = [before, now, sized] as unknown as readonly [Pad, Pad, Pad];
    const [inner, outer] = [shapeOf(src[0]!.index), shapeOf(i)];
    sized.high = listOf(is.high, (at, axis) => (at === was.high[axis] ? at : outer[axis]! - inner[axis]! - low[axis]!));
  }
  return sized;
}
