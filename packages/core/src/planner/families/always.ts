/**
 * Guesses which extents of a new form may be sizes. In tests (`setDynamicSizes('always')`) all of them may be. Otherwise those in which it differs
 * from a flush that is announced. Also axes that had one element in an earlier flush and have two now.
 *
 * A guess invents an earlier flush at another size: every extent equal to one number is that size, and computed shapes follow by the rules of
 * shapes. Two numbers may be independent sizes. sizes.ts then compares as if both flushes had happened. A wrong guess costs a plan.
 *
 * The import `#families` outside of bundles for browsers, where late.ts is in its place: families are there from the start, so plans do not depend on when
 * code arrives.
 */
import type { EngineCaps } from '../../engine/engine.ts';
import { definitionAt } from '../../graph/definition.ts';
import type { Attrs, Node } from '../../graph/node.ts';
import { unrecorded } from '../../graph/primitives.ts';
import type { Shape } from '@polygrad/compiler/shape/view';
import { IntWriter } from '../capture/cache.ts';
import type { CapturedGraph } from '../capture/captured-graph.ts';
import { reshapeGroups } from '../lowering/index-map.ts';
import type { Plan } from '../plan.ts';
import { servesBoth } from './classes.ts';
import { type Form, PlanFamilies } from './families.ts';
import { isPlannable } from './sized-graph.ts';
import { independentOf, type Sample, sampleOf, type Sizes, sizesOf } from './sizes.ts';

/** Primes used as the sizes of the invented flush. */
const otherSizes = [100_003, 5003, 5009] as const;

/** How many flushes are kept that are announced, and recent ones to notice axes that grow from one element. */
const mostKept = 16;

/** What is known of an engine's sizes before a second flush shows them. */
export class Expectations {
  readonly guess: typeof guess = guess;
  /** By the hash of their form. */
  readonly #announced = new Map<number, Sample>();
  /** Shapes of leaves of recent forms that had an axis of one element. Such an axis broadcasts, so with two elements it is another form. */
  #single: (readonly Shape[])[] = [];

  announce(hash: number, captured: CapturedGraph): void {
    if (this.#announced.size >= mostKept) this.#announced.clear();
    this.#announced.set(hash, sampleOf(captured));
  }

  /** The sizes in which a new form differs from an announced flush, if one plan serves both; else those that grow from one element. */
  expected(form: Form, captured: CapturedGraph, caps: EngineCaps): Sizes | null {
    const announced = this.#announced.get(form.hash);
    this.#announced.delete(form.hash);
    const sizes = announced === undefined ? null : sizesOf(announced, form.met, captured);
    return sizes !== null && servesBoth(sizes, captured, caps) ? sizes : this.#grown(form, captured);
  }

  /** So the second size already makes its class's plan. */
  #grown(form: Form, captured: CapturedGraph): Sizes | null {
    const shapes = Array.from(
      captured.leaves.data.subarray(0, captured.leaves.length),
      (at) => captured.nodes[at]!.shape,
    );
    let found: Sizes | null = null;
    for (const before of this.#single) found ??= grown(before, form, captured);
    if (shapes.some((shape) => shape.includes(1))) this.#single = [shapes, ...this.#single].slice(0, mostKept);
    return found;
  }
}

/** The plan with the most independent sizes that can be made; else with the first single one. Null if there is none. */
function guess(form: Form, captured: CapturedGraph, hash: number, take: (sizes: Sizes) => Plan | null): Plan | null {
  const all = [...guesses(captured, form.met, hash)];
  const extents = all.map(([extent]) => extent);
  const several = severalOf(extents.slice(0, mostTogether), captured, form.met);
  const alone = all.map(([, sizes]) => sizes);
  for (const sizes of several === null ? alone : [several, ...alone]) {
    const plan = take(sizes);
    if (plan !== null) return plan;
    form.plans.clear();
  }
  form.sizes = null;
  return null;
}

/**
 * Every extent that may be the size of a captured graph, and what follows from it. The order depends on the hash, so that tests cover different
 * extents.
 */
export function* guesses(
  captured: CapturedGraph,
  now: Sample,
  hash: number,
): Generator<readonly [extent: number, sizes: Sizes]> {
  const extents = extentsOf(captured);
  const first = extents.length === 0 ? 0 : (hash >>> 0) % extents.length;
  for (let i = 0; i < extents.length; i++) {
    const extent = extents[(first + i) % extents.length]!;
    const before = sampleAt(captured, now, extent, otherSizes[0]);
    const sizes = before === null ? null : sizesOf(before, now, captured);
    if (sizes !== null) yield [extent, sizes];
  }
}

/**
 * The size of a new form whose data equal those of an earlier flush, except that axes of one element now have two: an axis
 * that grew from one is expected to grow further. Null where the data differ otherwise, or other shapes do not follow.
 */
function grown(before: readonly Shape[], { met }: Form, captured: CapturedGraph): Sizes | null {
  const { leaves } = captured;
  if (before.length !== leaves.length) return null;
  let more = false;
  for (const [i, was] of before.entries()) {
    const { shape } = captured.nodes[leaves.data[i]!]!;
    if (shape.length !== was.length) return null;
    for (const [axis, n] of shape.entries()) {
      if (n === was[axis]) continue;
      if (was[axis] !== 1 || n !== 2) return null;
      more = true;
    }
  }
  const other = more ? sampleAt(captured, met, 2, otherSizes[0], (leaf, axis) => before[leaf]![axis] === 1) : null;
  return other === null ? null : sizesOf(other, met, captured);
}

/** At most this many extents are tried as independent sizes. */
const mostTogether = 6;

/** Two independent sizes: the first pair of extents that keeps every node uniform (uniform.ts). */
export function severalOf(extents: readonly number[], captured: CapturedGraph, now: Sample): Sizes | null {
  for (const [i, a] of extents.entries())
    for (const b of extents.slice(i + 1)) {
      const [x, y] = [a, b].map((n, k) => sampleAt(captured, now, n, otherSizes[1 + k]!));
      if (x == null || y == null) continue;
      const sizes = sizesOf(together(now, x, y), now, captured);
      if (sizes !== null && independentOf(sizes) === 2 && isPlannable(sizes, captured)) return sizes;
    }
  return null;
}

/** One sample with two changed sizes, from two samples with one each. */
function together(now: Sample, a: Sample, b: Sample): Sample {
  const key = Int32Array.from(now.key, (x, at) => bothChanged(x, a.key[at]!, b.key[at]!));
  const merge = (x: unknown, y: unknown, z: unknown): unknown => {
    if (typeof x === 'number' && typeof y === 'number' && typeof z === 'number') return bothChanged(x, y, z);
    if (x === null || typeof x !== 'object') return Object.is(x, y) ? z : y;
    const entries = Object.entries(x).map(([name, value]): [string, unknown] => [
      name,
      merge(value, (y as Record<string, unknown>)[name], (z as Record<string, unknown>)[name]),
    ]);
    return Array.isArray(x) ? entries.map(([, value]) => value) : Object.fromEntries(entries);
  };
  const shapes = now.shapes.map((shape, i) => merge(shape, a.shapes[i], b.shapes[i]) as Shape);
  const attrs = now.attrs.map((attr, i) => (attr === null ? null : merge(attr, a.attrs[i], b.attrs[i])));
  return { key, starts: now.starts, shapes, attrs };
}

/** The value of a number after both sizes changed. */
const bothChanged = (x: number, a: number, b: number): number => (a === x ? b : b === x ? a : (a / x) * b);

/**
 * The extents of leaves that are at least two, ascending. What is written over keeps its shape, as parameters do: where others are left, its extents are
 * no sizes.
 */
function extentsOf({ count, nodes, donatable }: CapturedGraph): number[] {
  const extents = new Set<number>();
  for (let i = 0; i < count; i++) {
    const { shape, storage, src, op } = nodes[i]!;
    if (storage === null && src.length > 0 && op !== 'expand' && op !== 'randomBits') continue;
    if (!shape.includes(0)) for (const n of shape) if (n > 1) extents.add(n);
  }
  const kept = new Set<number>();
  for (let i = 0; i < donatable.length; i++) for (const n of nodes[donatable.data[i]!]!.shape) kept.add(n);
  const all = [...extents].sort((a, b) => a - b);
  const free = all.filter((n) => !kept.has(n));
  return free.length > 0 ? free : all;
}

/**
 * The sample with another number in place of `n`; null where the rules of shapes do not allow that. Axes of leaves change where `isSize`
 * says so, by leaf number.
 */
function sampleAt(
  captured: CapturedGraph,
  now: Sample,
  n: number,
  to: number,
  isSize: (leaf: number, axis: number) => boolean = () => true,
): Sample | null {
  // A length that is a multiple of the size is so by chance, unless nothing else fits.
  for (const unit of [Infinity, n]) {
    // Sums of the size are found on the way, and then change wherever they stand.
    const changed: Changed = { met: new Map([[n, to]]), unit };
    for (let known = 0; known < changed.met.size; ) {
      known = changed.met.size;
      const sample = sampleWith(captured, now, n, changed, isSize);
      if (sample !== null && known === changed.met.size) return sample;
    }
  }
  return null;
}

interface Changed {
  /** Extents and what they are at another size: first the size itself, then sums of it that were met. */
  readonly met: Map<number, number>;
  /** Lengths that nothing says are multiples of this one, too. */
  readonly unit: number;
}

function sampleWith(
  captured: CapturedGraph,
  now: Sample,
  n: number,
  changed: Changed,
  isSize: (leaf: number, axis: number) => boolean,
): Sample | null {
  const { met } = changed;
  const to = met.get(n)!;
  const { count } = captured;
  let leaves = 0;
  const nodes: Node[] = [];
  const key = new IntWriter(now.key.length);
  try {
    for (let i = 0; i < count; i++) {
      const node = captured.nodes[i]!;
      const from = now.starts[i]!;
      const own = now.key.subarray(from, now.starts[i + 1]);
      key.data.set(own, key.length);
      const src = node.src.map(({ index }) => nodes[index]!);
      const attr = node.storage === null ? attrAt(node, src, n, changed) : node.attr;
      const { infer, encode } = definitionAt(node.kind);
      const leaf = node.storage === null ? -1 : leaves++;
      const shape =
        leaf < 0
          ? (infer as Rule).shape(src, attr, node.op)
          : node.shape.map((m, axis) => (isSize(leaf, axis) && m === n ? to : m));
      for (const [axis, m] of node.shape.entries())
        if (shape[axis]! * n !== m * to && shape[axis] !== m && !met.has(m)) met.set(m, shape[axis]!);
      nodes.push(unrecorded(node, src, attr as Node['attr'], shape));
      const end = key.length + own.length;
      key.length++;
      if (node.storage !== null) {
        key.list(shape);
        for (const stride of stridesAt(node.shape, shape, own.subarray(2 + shape.length))) key.push(stride);
      } else {
        if (encode != null) (encode as (attr: unknown, out: IntWriter) => void)(attr, key);
        if (src.length === 0) key.list(shape);
      }
      if (key.length > end) return null;
      key.length = end;
    }
  } catch {
    return null;
  }
  key.data.set(now.key.subarray(now.starts[count]!), key.length);
  const shapes = nodes.map(({ shape }) => shape);
  const attrs = nodes.map(({ attr }, i) => (now.attrs[i] === null ? null : attr));
  return { key: key.data.slice(0, now.key.length), starts: now.starts, shapes, attrs };
}

interface Rule {
  shape(src: readonly Node[], attr: unknown, op: string): readonly number[];
}

/** Attributes that hold lengths, with another number in place of `n` and its sums, wherever the source has that axis. */
function attrAt(node: Node, [x]: readonly Node[], n: number, changed: Changed): unknown {
  const { met, unit } = changed;
  const to = met.get(n)!;
  const otherLength = (axis: number): number => {
    const m = node.shape[axis]!;
    return met.get(m) ?? (m % unit === 0 ? (m / unit) * to : m);
  };
  const attr = node.attr as Readonly<Record<string, unknown>>;
  switch (node.op) {
    case 'constant': {
      const { value, shape } = attr as unknown as Attrs['constant'];
      return { ...attr, value: valueAt(value, n, to), shape: shape.map((_, axis) => otherLength(axis)) };
    }
    case 'randomBits':
      return { ...attr, shape: node.shape.map((_, axis) => otherLength(axis)) };
    case 'iota':
      return { length: otherLength(0) };
    case 'expand':
      return {
        shape: node.shape.map((_, axis) => (node.src[0]!.shape[axis] === 1 ? otherLength(axis) : x!.shape[axis]!)),
      };
    case 'slice': {
      const { start, length, step } = attr as unknown as Attrs['slice'];
      const whole = (axis: number): boolean =>
        start[axis] === 0 && step[axis] === 1 && length[axis] === node.src[0]!.shape[axis];
      const isLonger = (axis: number): boolean => x!.shape[axis] !== node.src[0]!.shape[axis];
      const lengthAt = (axis: number): number =>
        whole(axis) ? x!.shape[axis]! : isLonger(axis) && step[axis] === 1 ? otherLength(axis) : length[axis]!;
      // A slice that ends at the end of the axis keeps its distance from it.
      const added = (axis: number): number =>
        start[axis]! + length[axis]! === node.src[0]!.shape[axis] && start[axis]! > 0
          ? x!.shape[axis]! - node.src[0]!.shape[axis]! - (lengthAt(axis) - length[axis]!)
          : 0;
      return {
        ...attr,
        start: start.map((at, axis) => at + added(axis)),
        length: length.map((_, axis) => lengthAt(axis)),
      };
    }
    case 'pad': {
      const { low, high } = attr as unknown as Attrs['pad'];
      // What is filled up to a size keeps its distance from the end, if it has one.
      const added = (axis: number): number =>
        x!.shape[axis] === node.src[0]!.shape[axis] ? otherLength(axis) - node.shape[axis]! : 0;
      return {
        ...attr,
        low: low.map((m, axis) => (m > 0 ? m + added(axis) : m)),
        high: high.map((m, axis) => (low[axis]! > 0 ? m : m + added(axis))),
      };
    }
    case 'reshape':
      return { shape: reshapedAt(node, x!, n, to) };
    default:
      return attr;
  }
}

/** Numbers that follow from the size: the size itself, and the reciprocal in a mean. */
function valueAt(value: number | bigint, n: number, to: number): number | bigint {
  if (typeof value !== 'number' || value === 0) return value;
  if (Math.abs(value) === n) return (value / n) * to;
  const part = 1 / value / n;
  const whole = Math.round(part);
  return whole !== 0 && Math.abs(part - whole) < 1e-6 * Math.abs(part) ? 1 / (whole * to) : value;
}

/** The shape of a reshape: in each group of axes the first candidate takes the size of its source. */
function reshapedAt(node: Node, x: Node, n: number, to: number): readonly number[] {
  const from = node.src[0]!.shape;
  if (from.includes(0) || x.shape.every((m, axis) => m === from[axis])) return node.shape;
  const shape = [...node.shape];
  for (const { first, at, start, axis } of reshapeGroups(from, shape)) {
    const sizedAxes = from.map((_, i) => i).filter((i) => i >= first && i < at && x.shape[i] !== from[i]);
    const target = (i: number, by: number): boolean => node.shape[i]! % by === 0 && node.shape[i]! > 1;
    for (const i of sizedAxes) {
      const those = shape.map((_, j) => j).filter((j) => j >= start && j < axis && shape[j] === node.shape[j]);
      const found = those.find((j) => target(j, from[i]!)) ?? those.find((j) => target(j, n));
      if (found === undefined) return node.shape;
      shape[found] = (node.shape[found]! / n) * to;
    }
  }
  return shape;
}

/** Strides of a leaf with other extents: contiguous axes stay contiguous. */
function stridesAt(before: readonly number[], now: readonly number[], strides: Int32Array): number[] {
  const after = Array.from(strides.subarray(0, before.length));
  const order = before.map((_, axis) => axis).filter((axis) => after[axis]! > 0);
  order.sort((a, b) => strides[a]! - strides[b]!);
  let [dense, length] = [1, 1];
  for (const axis of order) {
    if (strides[axis] !== dense) break;
    after[axis] = length;
    dense *= before[axis]!;
    length *= now[axis]!;
  }
  return after;
}

/** False where no plan will depend on what is announced (`PlanFamilies.announce`): then there is no need to record it. */
export const isHeard = (
  { dynamicSizes, forPages }: { readonly dynamicSizes: string; readonly forPages?: boolean },
  { lowering }: EngineCaps,
): boolean => dynamicSizes === 'automatic' && !forPages && lowering.sizes === true;

/** Families of an engine, if their code is there. */
export const newFamilies = (): PlanFamilies | null => new PlanFamilies(new Expectations());

export const loadFamilies = async (): Promise<void> => {};
