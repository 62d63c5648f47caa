/**
 * Families of plans: one plan for all sizes of a class.
 *
 * The first flush of a form - a graph up to its sizes - gets its own plan. A second flush at other sizes shows which numbers are sizes
 * (sizes.ts). From then on sizes share plans: one for each class (`classFrom`) of each. Such a plan is made for the greatest sizes of its
 * classes, and its loops end at the sizes that are bound (`Plan.sizes`). What does not fit, or cannot be computed alike for all sizes
 * (uniform.ts), keeps getting its own plans.
 *
 * How sizes are recognised inside a plan: its capacities are primes that divide no other number of its key. So a number
 * that a capacity divides is a size, and no product of other numbers is one. A size that is a sum of others has a prime of its own too. Sums that
 * the planner itself makes could look like a size: those are refused (uniform.ts).
 */
import { showShape } from '@polygrad/compiler/shape/errors';
import type { EngineCaps, Logger } from '../../engine/engine.ts';
import { CompileError } from '../../engine/errors.ts';
import type { CapturedGraph } from '../capture/captured-graph.ts';
import { SizesRefused } from '../capture/plan-graph.ts';
import type { Plan, PlanOptions } from '../plan.ts';
import { sized } from './bound.ts';
import { classesFrom, classesOf, lacksFixed, nameOf, type SizeClass } from './classes.ts';
import { sizedGraph } from './sized-graph.ts';
import { independentOf, matches, type Sample, sampleOf, type Sizes, sizesOf } from './sizes.ts';

/** Forms kept per engine, the most recently used ones. */
const mostForms = 64;
/** Kept forms that differ only in fixed numbers. */
const mostAlike = 8;
/**
 * If all kept forms are alike and no two share a plan, a new flush is compared with this many, the newest. So it is where
 * a number changes in each step that plans cannot share.
 */
const newestAlike = 2;

/** One known form. */
export interface Form {
  /** Its structure (`formOf`). */
  readonly hash: number;
  met: Sample;
  /** Found from two flushes of the form, one of which may be a guess (always.ts). */
  sizes: Sizes | null;
  /** Lower bounds of the classes of its sizes (`classFrom`), once the sizes are known. */
  classes: readonly number[];
  /** Plans by class. Null: its sizes have their own plans. */
  readonly plans: Map<string, Plan | null>;
}

/**
 * When a form that is new shares a plan at once: always, for each of its sizes that can be guessed; where another size of it is expected; never. Then a second
 * flush has to show its sizes, as in pages.
 */
export type AtFirstSight = 'always' | 'expected' | 'never';

/** Finds sizes of a new form; `take` makes their plan, or returns null. */
type Guess = (form: Form, captured: CapturedGraph, hash: number, take: (sizes: Sizes) => Plan | null) => Plan | null;

/** Finds sizes the first time a form is seen (always.ts). */
interface Guesses {
  readonly guess: Guess;
  /** Sizes of a new form that are expected to change, or null. */
  expected(form: Form, captured: CapturedGraph, caps: EngineCaps): Sizes | null;
  /** A flush of a form is expected. */
  announce(hash: number, captured: CapturedGraph): void;
}

/** The families of one engine. */
export class PlanFamilies {
  /** By hash; several where forms differ in fixed numbers. The most recently used come last. */
  readonly #forms = new Map<number, Form[]>();
  #count = 0;
  /** How many times a plan was bound to a size. */
  binds = 0;
  readonly #hints = new PlanHints();
  readonly #guesses: Guesses | undefined;
  /** The form whose plan was bound last: the next new size is mostly of the same form. */
  #last: Form | null = null;

  /** @param guesses for forms whose size is wanted at first sight */
  constructor(guesses?: Guesses) {
    this.#guesses = guesses;
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
   * A plan of the family that the captured graph belongs to, or null: then it needs its own.
   *
   * @param first what is done when a form is seen for the first time
   * @param hits how often a plan was known
   * @param log gets a hint about forms that get many plans
   */
  findOrHint(
    captured: CapturedGraph,
    options: PlanOptions,
    first: AtFirstSight,
    hits: number,
    log: Logger | null,
  ): Plan | null {
    const again = this.#again(captured, options);
    const hash = again === null ? formOf(captured) : this.#last!.hash;
    const plan = again ?? (options.engine.caps.lowering.sizes ? this.#find(hash, captured, options, first) : null);
    if (log === null) return plan;
    if (plan !== null) this.#hints.shared(hash);
    else this.#hints.made(hash, captured, hits, log);
    return plan;
  }

  /** A plan of the form whose plan was bound last. The captured graph has to be of it, and its sizes of a class that has one. */
  #again(captured: CapturedGraph, options: PlanOptions): Plan | null {
    const form = this.#last;
    const n = form === null || form.sizes === null ? null : matches(form.sizes, captured);
    if (n === null || form!.plans.get(nameOf(n, form!.classes, form!.sizes!.sums)) == null) return null;
    this.#used(form!.hash, this.#forms.get(form!.hash)!);
    return this.#bound(form!, n, captured, options);
  }

  /**
   * A flush of this form is expected later. If one of another size of the same class comes first, it gets the plan of their class at once. That
   * is so where this plan is as fast as one of its own.
   */
  announce(captured: CapturedGraph): void {
    this.#guesses?.announce(formOf(captured), captured);
  }

  /** Moves forms to the end: the most recently used come last. */
  #used(hash: number, forms: Form[]): void {
    this.#forms.delete(hash);
    this.#forms.set(hash, forms);
  }

  #find(hash: number, captured: CapturedGraph, options: PlanOptions, first: AtFirstSight): Plan | null {
    const forms = this.#forms.get(hash) ?? [];
    this.#used(hash, forms);
    let [last, of]: [Form | null, readonly number[]] = [null, []];
    for (const form of forms) {
      const n = form.sizes === null ? null : matches(form.sizes, captured);
      if (n === null) continue;
      const plan = form.plans.get(nameOf(n, form.classes, form.sizes!.sums));
      if (plan === null && last !== null) continue;
      // Forms with more sizes come later in the list.
      [last, of] = [form, n];
      if (plan != null) break;
    }
    if (last !== null) return this.#bound(last, of, captured, options);
    const now = sampleOf(captured);
    const hopeless = forms.length === mostAlike && forms.every(({ sizes }) => sizes === null);
    for (const form of hopeless ? forms.slice(-newestAlike) : forms) {
      const { sizes, met } = form;
      const found = sizes === null || sizes.earlier !== met ? sizesOf(met, now, captured) : null;
      if (found === null) continue;
      // A guess is not trusted after a real flush differs from it.
      this.#dropPlans(form, options);
      return this.#take(form, found, captured, options);
    }
    const more = moreSizes(forms, now, captured);
    const form: Form = { hash, met: now, sizes: null, classes: [], plans: new Map() };
    this.#add(hash, forms, form, options);
    const guesses = first === 'never' ? undefined : this.#guesses;
    if (first === 'always' && more === null && guesses !== undefined)
      return guesses.guess(form, captured, hash, (sizes) => this.#take(form, sizes, captured, options));
    const found = more ?? guesses?.expected(form, captured, options.engine.caps) ?? null;
    const plan = found && this.#take(form, found, captured, options);
    // Refused: later flushes may differ from this one in fewer sizes, as batches of images do whose height and width are others than before.
    if (plan === null) [form.sizes] = [null, this.#dropPlans(form, options)];
    else if (more !== null) form.met = more.earlier;
    return plan;
  }

  /** Accepts sizes for a form. */
  #take(form: Form, sizes: Sizes, captured: CapturedGraph, options: PlanOptions): Plan | null {
    form.sizes = sizes;
    form.classes = classesOf(sizes, captured, options.engine.caps);
    return this.#bound(form, sizes.n, captured, options);
  }

  #bound(form: Form, n: readonly number[], captured: CapturedGraph, options: PlanOptions): Plan | null {
    const { sums } = form.sizes!;
    const name = nameOf(n, form.classes, sums);
    let plan = form.plans.get(name);
    if (plan === undefined) {
      const classes = classesFrom(form.classes, n, sums);
      plan = this.#make(form.sizes!, classes, captured, options);
      form.plans.set(name, plan);
    }
    if (plan === null) return null;
    const at = sized(plan, n, options.engine.caps);
    // Kernels read a tensor from a fixed element on. One that is shorter than that is not read there, and the flush gets a plan of its own.
    if (at.dispatches.some(({ bindings }) => bindings.some(({ bytes }) => bytes < 0))) return null;
    this.#last = form;
    this.binds++;
    options.kernels.take(plan.kernels);
    return at;
  }

  #make(sizes: Sizes, classes: readonly SizeClass[], captured: CapturedGraph, options: PlanOptions): Plan | null {
    const { simt } = options.engine.caps;
    if (!simt && lacksFixed(sizes, captured, classes)) return null;
    try {
      const sized = sizedGraph(sizes, classes, captured, simt);
      if (sized === null) return null;
      return options.makePlan(captured, options, sized);
    } catch (error) {
      // A kernel that does not compile for the greatest size of a class may compile for a smaller one.
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

  /** Evicts the oldest of some forms. */
  #forget(forms: Form[], options: PlanOptions): void {
    const form = forms.shift()!;
    this.#dropPlans(form, options);
    if (form === this.#last) this.#last = null;
    this.#count--;
  }

  #dropPlans({ plans }: Form, { kernels }: PlanOptions): void {
    for (const plan of plans.values()) if (plan !== null) kernels.drop(plan.kernels);
    plans.clear();
  }

  /** Releases all plans. */
  clear(options: PlanOptions): void {
    for (const form of this.#all()) this.#dropPlans(form, options);
    this.#forms.clear();
    this.#last = null;
    this.#count = 0;
  }
}

/** Attributes that distinguish forms. Lengths, and what follows from them, are left out: otherwise each size would be a form. */
const ownAttributes = ['op', 'axes', 'axis', 'lhsBatch', 'rhsBatch', 'lhsContract', 'rhsContract'] as const;

/** The structure of a captured graph without its sizes. */
function formOf(captured: CapturedGraph): number {
  return mixed(captured.count, (mix) => mixForm(captured, mix));
}

type Mix = (x: number) => void;

function mixed(seed: number, write: (mix: Mix) => void): number {
  let hash = seed;
  write((x) => {
    hash = Math.imul(hash ^ x, 0x9e3779b1);
    hash ^= hash >>> 15;
  });
  return hash;
}

/** Operations and ranks alone. */
function mixOperations(captured: CapturedGraph, mix: Mix): void {
  for (let i = 0; i < captured.count; i++) {
    const node = captured.nodes[i]!;
    mix(node.storage === null ? node.kind : -1);
    mix(node.shape.length);
  }
}

function mixForm(captured: CapturedGraph, mix: Mix): void {
  for (let i = 0; i < captured.count; i++) {
    const node = captured.nodes[i]!;
    mix(node.storage === null ? node.kind : -1);
    mix(node.shape.length);
    // Axes of one element and of none are fixed.
    for (let axis = 0; axis < node.shape.length; axis++) mix(Math.min(node.shape[axis]!, 2));
    if (node.storage !== null) continue;
    for (let s = 0; s < node.src.length; s++) mix(node.src[s]!.index);
    if (node.attr === null) continue;
    const attr = node.attr as Readonly<Record<string, string | readonly number[] | number>>;
    for (let a = 0; a < ownAttributes.length; a++) {
      const x = attr[ownAttributes[a]!];
      if (typeof x === 'number') mix(x);
      else if (typeof x === 'string') for (let at = 0; at < x.length; at++) mix(x.charCodeAt(at));
      else if (x !== undefined) for (let at = 0; at < x.length; at++) mix(x[at]!);
    }
  }
  for (const list of [captured.outputs, captured.donatable]) {
    mix(list.length);
    for (let i = 0; i < list.length; i++) mix(list.data[i]!);
  }
}

/**
 * More sizes than any known form has: two flushes of a form differed in one size, and this one differs from them in another
 * as well. Null where it differs otherwise.
 */
function moreSizes(forms: readonly Form[], now: Sample, captured: CapturedGraph): Sizes | null {
  for (const { met, sizes } of forms) {
    if (sizes === null) continue;
    for (const before of [met, sizes.sample]) {
      const found = sizesOf(before, now, captured);
      if (found !== null && independentOf(found) > independentOf(sizes)) return found;
    }
  }
  return null;
}

/** The hint comes after this many plans of one form in a row. */
const manyPlans = 20;
/** With more hits than this in between, plans do not count as a row. */
const mostHits = 100;
/** Computations for which plans are counted. */
const mostRows = 64;
/** The hint names at most this many shapes. */
const mostShapes = 3;

interface Row {
  plans: number;
  hits: number;
  readonly first: Sample;
}

/**
 * One hint to the user about a form whose sizes do not share plans: every new size makes a plan. Counts of one engine; it gives its hint once.
 */
class PlanHints {
  /** By operations and ranks, because sizes of 1 make other forms: where one of many sizes is 1 now and then, hardly any form comes twice. Null once the hint was given. */
  #rows: Map<number, Row> | null = new Map();
  /** The row of each form. */
  readonly #rowOf = new Map<number, number>();

  /** A form got a shared plan, which ends its row. */
  shared(hash: number): void {
    const row = this.#rowOf.get(hash);
    if (row !== undefined) this.#rows?.delete(row);
  }

  /** A form got its own plan, after `hits` flushes with known plans. */
  made(hash: number, captured: CapturedGraph, hits: number, log: Logger): void {
    if (this.#rows === null) return;
    const like = mixed(captured.count, (mix) => mixOperations(captured, mix));
    this.#rowOf.set(hash, like);
    const row = this.#rows.get(like);
    if (row === undefined || hits - row.hits > mostHits) {
      // Programs with many forms: old rows have ended.
      if (this.#rows.size >= mostRows) this.#rows.clear();
      if (this.#rowOf.size > mostRows * manyPlans) this.#rowOf.clear();
      this.#rows.set(like, { plans: 1, hits, first: sampleOf(captured) });
      return;
    }
    row.hits = hits;
    if (++row.plans < manyPlans) return;
    this.#rows = null;
    this.#rowOf.clear();
    const text =
      `[polygrad] ${manyPlans} new plans in a row for one computation, because ${changes(row.first, captured)}. Each takes as long as planning and compiling; pad to a few sizes. ` +
      'See https://github.com/polygrad/polygrad/blob/main/docs/plans.md; setLogger(null) silences this.';
    // After planning: the logger may compute.
    void Promise.resolve(text).then(log);
  }
}

/** How a captured graph differs from one of the same form, in words. */
function changes(before: Sample, captured: CapturedGraph): string {
  const leaves: string[] = [];
  let inner = '';
  for (let i = 0; i < Math.min(captured.count, before.shapes.length); i++) {
    const { shape, storage, op } = captured.nodes[i]!;
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
