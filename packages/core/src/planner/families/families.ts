/**
 * Families of plans: one plan for all sizes of a class.
 *
 * The first flush of a form - a graph up to its sizes - gets a plan of its own. The second one of another size tells which numbers are that
 * size (sizes.ts), and from then on sizes share plans: one for each class (`classOf`). Such a plan is made for the
 * greatest size of the class, and its loops end at the size that is bound (`Plan.size`). What does not fit, or cannot be computed alike for
 * all sizes (uniform.ts), gets plans of its own as before.
 *
 * How its numbers tell which are sizes: the capacity of a plan is a prime that divides no other number of its key. A number of the plan that it
 * divides is a size, and no product of other numbers is one. Sums could be: those are refused (uniform.ts).
 */
import type { Logger } from '../../engine/engine.ts';
import { CompileError } from '../../engine/errors.ts';
import type { Node, PrimitiveName } from '../../graph/node.ts';
import { isFloat } from '../../shape/dtype.ts';
import { showShape } from '../../shape/errors.ts';
import type { Cone } from '../capture/cone.ts';
import { type PlanSize, type SizedCone, SizesRefused } from '../capture/plan-graph.ts';
import { makePlan, type Plan, type PlanOptions } from '../plan.ts';
import { bytesAt, forPrograms, placeIn, sized } from './bound.ts';
import { matches, resized, type Sample, sampleOf, type Sizes, sizesOf } from './sizes.ts';
import { addStretches, checkExtents, isUniform } from './uniform.ts';

/** Forms kept per engine, those used last. */
const mostForms = 64;
/** Forms that differ in fixed numbers alone. */
const mostAlike = 8;

/**
 * Sizes, and which extents are several stretches of them, by factor (uniform.ts); null where elements do not follow from others alike for every
 * size.
 */
type FamilySizes = Sizes & { readonly stretches: ReadonlyMap<number, number> | null };

/** A form that was met. */
export interface Form {
  readonly met: Sample;
  /** What its sizes were found by, beside a later flush: the first one, or one that was guessed (always.ts). */
  sample: Sample;
  sizes: FamilySizes | null;
  /** By the least size of the class. Null: sizes of it have plans of their own. */
  readonly plans: Map<number, Plan | null>;
}

/** Finds sizes of a form that is new, of which `take` makes a plan, or null. */
type Guess = (form: Form, cone: Cone, hash: number, take: (sizes: Sizes) => Plan | null) => Plan | null;

/** The families of one engine. */
export class PlanFamilies {
  /** By hash; several where forms differ in fixed numbers. Those used last come last. */
  readonly #forms = new Map<number, Form[]>();
  #count = 0;
  /** Plans bound to a size. */
  binds = 0;
  /** Plans made for classes of sizes. */
  made = 0;
  readonly #hints = new PlanHints();
  readonly #guess: Guess | undefined;

  /** @param guess for forms of which a size is wanted at once */
  constructor(guess?: Guess) {
    this.#guess = guess;
  }

  /** Plans for classes of sizes. */
  get size(): number {
    let size = 0;
    for (const form of this.#all()) for (const plan of form.plans.values()) size += Number(plan !== null);
    return size;
  }

  #all(): Form[] {
    return [...this.#forms.values()].flat();
  }

  /**
   * A plan of the family that the cone belongs to, or null: then it needs one of its own. `always`: at the first sight of a form too. `hits`: how
   * often a plan was known; `log` hears of forms that get many plans.
   */
  findOrHint(cone: Cone, options: PlanOptions, always: boolean, hits: number, log: Logger | null): Plan | null {
    const hash = formOf(cone);
    const plan = options.engine.caps.lowering.sizes ? this.#find(hash, cone, options, always) : null;
    if (log === null) return plan;
    if (plan !== null) this.#hints.shared(hash);
    else this.#hints.made(hash, cone, hits, log);
    return plan;
  }

  #find(hash: number, cone: Cone, options: PlanOptions, always: boolean): Plan | null {
    const forms = this.#forms.get(hash) ?? [];
    // Used last.
    this.#forms.delete(hash);
    this.#forms.set(hash, forms);
    for (const form of forms) {
      const n = form.sizes === null ? -1 : matches(form.sizes, cone);
      if (n >= 0) return this.#bound(form, n, cone, options);
    }
    const now = sampleOf(cone);
    for (const form of forms) {
      const { sizes, sample, met } = form;
      const found = sizes === null || sample !== met ? sizesOf(met, now, cone) : null;
      if (found === null) continue;
      // What was guessed is not taken for what was met.
      this.#dropPlans(form, options);
      form.sample = met;
      return this.#take(form, found, cone, options);
    }
    const form: Form = { met: now, sample: now, sizes: null, plans: new Map() };
    this.#add(hash, forms, form, options);
    return always && this.#guess !== undefined
      ? this.#guess(form, cone, hash, (sizes) => this.#take(form, sizes, cone, options))
      : null;
  }

  /** Takes sizes for those of a form. */
  #take(form: Form, sizes: Sizes, cone: Cone, options: PlanOptions): Plan | null {
    form.sizes = { ...sizes, stretches: stretchesOf(sizes, cone) };
    return this.#bound(form, sizes.n, cone, options);
  }

  #bound(form: Form, n: number, cone: Cone, options: PlanOptions): Plan | null {
    const range = classOf(n);
    let plan = form.plans.get(range.low);
    if (plan === undefined) {
      plan = this.#make(form, cone, range, options);
      form.plans.set(range.low, plan);
    }
    if (plan === null) return null;
    this.binds++;
    options.kernels.take(plan.kernels);
    return sized(plan, n, options.engine.caps.simt);
  }

  #make({ sizes, sample }: Form, cone: Cone, range: SizeClass, options: PlanOptions): Plan | null {
    const { stretches } = sizes!;
    if (stretches === null || (!options.engine.caps.simt && lacksFixed(sizes!, cone, range))) return null;
    try {
      const plan = makePlan(cone, options, sizedCone(sizes!, stretches, sample, range));
      this.made++;
      return plan;
    } catch (error) {
      // A kernel that the engine does not compile for the greatest size of a class may be one that it does for less.
      if (error instanceof SizesRefused || error instanceof CompileError) return null;
      throw error;
    }
  }

  #add(hash: number, forms: Form[], form: Form, options: PlanOptions): void {
    forms.push(form);
    this.#count++;
    if (forms.length > mostAlike) this.#forget(forms, options);
    while (this.#count > mostForms) {
      const [[oldest, left]] = this.#forms as unknown as [[number, Form[]]];
      this.#forget(left, options);
      if (left.length === 0 && oldest !== hash) this.#forms.delete(oldest);
    }
  }

  /** The oldest of some forms goes. */
  #forget(forms: Form[], options: PlanOptions): void {
    this.#dropPlans(forms.shift()!, options);
    this.#count--;
  }

  #dropPlans({ plans }: Form, { kernels }: PlanOptions): void {
    for (const plan of plans.values()) if (plan !== null) kernels.drop(plan.kernels);
    plans.clear();
  }

  /** Lets go of all plans. */
  clear(options: PlanOptions): void {
    for (const form of this.#all()) this.#dropPlans(form, options);
    this.#forms.clear();
    this.#count = 0;
  }
}

/** Attributes that tell forms apart. Lengths are not among them, nor what may follow from a length: each size would be a form of its own. */
const ownAttributes = ['op', 'axes', 'axis', 'lhsBatch', 'rhsBatch', 'lhsContract', 'rhsContract'] as const;

/** The structure of a cone without its sizes. */
function formOf(cone: Cone): number {
  let hash = cone.count;
  const mix = (x: number): void => {
    hash = Math.imul(hash ^ x, 0x9e3779b1);
    hash ^= hash >>> 15;
  };
  for (let i = 0; i < cone.count; i++) {
    const node = cone.nodes[i]!;
    mix(node.storage === null ? node.kind : -1);
    mix(node.shape.length);
    // Axes of one element, and empty ones, are what they are.
    for (const extent of node.shape) mix(Math.min(extent, 2));
    if (node.storage !== null) continue;
    for (const source of node.src) mix(source.index);
    const attr = (node.attr ?? {}) as Readonly<Record<string, string | readonly number[] | number>>;
    for (const name of ownAttributes) {
      const x = attr[name];
      if (typeof x === 'number') mix(x);
      else if (typeof x === 'string') for (let at = 0; at < x.length; at++) mix(x.charCodeAt(at));
      else for (const axis of x ?? []) mix(axis);
    }
  }
  for (const list of [cone.outputs, cone.donatable]) {
    mix(list.length);
    for (let i = 0; i < list.length; i++) mix(list.data[i]!);
  }
  return hash;
}

/** Primitives that take or give positions along axes, of themselves or of their source. */
const positionsIn: { readonly [P in PrimitiveName]?: 'own' | 'source' } = {
  iota: 'own',
  randomBits: 'own',
  argReduce: 'source',
  gather: 'source',
  scatterAdd: 'own',
  // What counts from the end.
  slice: 'source',
  pad: 'own',
};

/** The stretches of its axes, if all nodes are computed alike for every size and what is held is read alike; else null. */
function stretchesOf(sizes: Sizes, cone: Cone): ReadonlyMap<number, number> | null {
  const stretches = new Map<number, number>();
  const shapes = sizes.axes.map((axes, i) => {
    const { shape } = cone.nodes[i]!;
    return { axes, shape };
  });
  for (let i = 0; i < shapes.length; i++) {
    const node = cone.nodes[i]!;
    const shape = shapes[i]!;
    if (node.storage !== null) {
      const { strides } = cone.storageOf(node).view;
      if ((shape.axes !== null || sizes.strides.has(i)) && strides.some((stride) => stride < 0)) return null;
      continue;
    }
    const src = node.src.map(({ index }) => shapes[index]!);
    if (!isUniform(node.op, sizes.sample.attrs[i], shape, src, sizes.ends.get(i))) return null;
    if (node.op === 'reshape' && !addStretches(stretches, src[0]!, shape)) return null;
    if (sizes.bound.has(i) && typeof (node.attr as { value: unknown }).value !== 'number') return null;
  }
  // Where positions are given as numbers, or become numbers, they must be those of one stretch.
  for (const [i, { axes }] of shapes.entries()) {
    const { op, storage, src } = cone.nodes[i]!;
    if (storage !== null) continue;
    const from = (op === 'slice' || op === 'pad') && !sizes.ends.has(i) ? undefined : positionsIn[op];
    const positions = from === undefined ? null : from === 'source' ? shapes[src[0]!.index]!.axes : axes;
    if (positions?.some((c) => (stretches.get(c) ?? 1) > 1)) return null;
  }
  return stretches;
}

/** The sizes that share a plan. */
interface SizeClass {
  readonly low: number;
  readonly high: number;
}

/** From here on a class ends at twice its least size, for what a plan keeps is laid out for the greatest; below at four times. */
const wideBelow = 128;

function classOf(n: number): SizeClass {
  const k = Math.floor(Math.log2(n));
  const low = 2 ** (n < wideBelow ? k - ((k + 1) % 2) : k);
  return { low, high: (n < wideBelow ? 4 : 2) * low - 1 };
}

/** Products of matrices from which on a plan for each size takes less than tiles save. */
const manyProducts: number = 2 ** 23;

/** True for a large product of which no loop has a fixed length: vectors of processors run along such loops, and tiles with them. */
function lacksFixed({ axes }: Sizes, { count, nodes }: Cone, { high }: SizeClass): boolean {
  const isSized = ({ index, shape }: Node): boolean =>
    axes[index]?.every((factor, axis) => factor > 0 || shape[axis] === 1) ?? false;
  const many = high ** 3 < manyProducts ? [] : (nodes.slice(0, count) as Node[]);
  return many.some((n) => n.op === 'dotGeneral' && !n.storage && isFloat(n.dtype) && [n, ...n.src].every(isSized));
}

function isPrime(x: number): boolean {
  for (let d = 2; d * d <= x; d++) if (x % d === 0) return false;
  return true;
}

/** A prime of at least `high` that divides nothing of the sample but sizes, nor how often they are in a number. */
function capacityFor(high: number, { sample, holes, factors, axes }: Sizes): number {
  const { key, shapes } = sample;
  const dividesNone = (p: number): boolean => {
    const isFixed = (x: number): boolean => x === 0 || x % p !== 0;
    let hole = 0;
    for (let at = 0; at < key.length; at++)
      if (!isFixed(at === holes[hole] ? factors[hole++]! : key[at]!)) return false;
    return shapes.every((shape, i) => shape.every((x, axis) => isFixed(axes[i]?.[axis] || x)));
  };
  for (let p = high; ; p++) if (isPrime(p) && dividesNone(p)) return p;
}

/** The cone at the capacity of a class. */
function sizedCone(sizes: Sizes, counts: ReadonlyMap<number, number>, before: Sample, range: SizeClass): SizedCone {
  const { sample, n, axes, bound } = sizes;
  const { low, high } = range;
  const capacity = capacityFor(high, sizes);
  const stretches = new Map([...counts].map(([factor, count]) => [factor * capacity, count]));
  const atCapacity = (numbers: readonly number[], factors: readonly number[] | null | undefined): readonly number[] =>
    numbers.map((x, axis) => (factors?.[axis] ?? 0) * capacity || x);
  const size: PlanSize = {
    capacity,
    low,
    high,
    stretches,
    check: (op, attr, src, shape) => checkExtents(capacity, op, attr, src, shape),
    bytesAt: (node, elementBytes, start) => bytesAt(capacity, node, elementBytes, start),
    placeIn: (e, node, index, strides) => placeIn(e, size, node, index, strides),
    forPrograms: (graph, op, attr, src) => forPrograms(size, graph, op, attr, src),
  };
  return {
    size,
    stridesOf: (i, own) => atCapacity(own, sizes.strides.get(i)),
    shapeOf: (i) => atCapacity(sample.shapes[i]!, axes[i]),
    attrOf: (i) => resized([before.attrs[i], sample.attrs[i]], [sizes.before, n], capacity),
    isBound: (i) => bound.has(i),
  };
}

// One hint to the user about a form whose sizes do not share plans: it comes again and again, each time with a plan of its own.

/** So many plans of one form in a row. */
const manyPlans = 20;
/** Flushes with a known plan between two of them that make no row of it. */
const mostHits = 100;
/** Shapes that are named. */
const mostShapes = 3;

interface Row {
  plans: number;
  hits: number;
  readonly first: Sample;
}

/** What one engine has counted; it says its hint once. */
export class PlanHints {
  /** By hash of the form; null once the hint is said. */
  #rows: Map<number, Row> | null = new Map();

  /** A form was given a plan that it shares: it makes no row. */
  shared(hash: number): void {
    this.#rows?.delete(hash);
  }

  /** A form was given a plan of its own, when flushes had met known plans so many times. */
  made(hash: number, cone: Cone, hits: number, log: Logger): void {
    if (this.#rows === null) return;
    const row = this.#rows.get(hash);
    if (row === undefined || hits - row.hits > mostHits) {
      // Programs of many forms: rows that began long ago have ended.
      if (this.#rows.size >= 64) this.#rows.clear();
      this.#rows.set(hash, { plans: 1, hits, first: sampleOf(cone) });
      return;
    }
    row.hits = hits;
    if (++row.plans < manyPlans) return;
    this.#rows = null;
    const text =
      `[polygrad] ${manyPlans} new plans in a row for one computation, because ${changes(row.first, cone)}. Each takes as long as planning and compiling; pad to a few sizes. ` +
      'See https://github.com/polygrad/polygrad/blob/main/docs/plans.md; setLogger(null) silences this.';
    // Not within planning: whoever listens may compute.
    void Promise.resolve(text).then(log);
  }
}

/** How a cone differs from one of the same form, in words. */
function changes(before: Sample, cone: Cone): string {
  const leaves: string[] = [];
  let inner = '';
  for (let i = 0; i < Math.min(cone.count, before.shapes.length); i++) {
    const { shape, storage, op } = cone.nodes[i]!;
    const was = before.shapes[i]!;
    if (was.length === shape.length && was.every((n, axis) => n === shape[axis])) continue;
    const text = `${showShape(was)} became ${showShape(shape)}`;
    if (storage !== null) leaves.push(text);
    else if (inner === '') inner = `${op} ${text}`;
  }
  if (leaves.length > 0) return `shapes of its data change: ${[...new Set(leaves)].slice(0, mostShapes).join(', ')}`;
  if (inner !== '') return `shapes inside change: ${inner}`;
  return 'something but its data and shapes changes, as where slices begin or which tensors are kept';
}
