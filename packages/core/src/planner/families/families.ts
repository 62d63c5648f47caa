/**
 * Families of plans: one plan for all sizes of a class.
 *
 * The first flush of a form - a graph up to its sizes - gets a plan of its own. The second one of another size tells which numbers are that
 * size (sizes.ts), and from then on sizes share plans: one for each class, from a power of two to the next. Such a plan is made for the
 * greatest size of the class, and its loops end at the size that is bound (`Plan.size`). What does not fit, or cannot be computed alike for
 * all sizes (uniform.ts), gets plans of its own as before.
 *
 * How its numbers tell which are sizes: the capacity of a plan is a prime that divides no other number of its key. A number of the plan that it
 * divides is a size, and no product of other numbers is one. Sums could be: the planner refuses those (plan-graph.ts).
 */
import type { Cone } from '../capture/cone.ts';
import { type SizedCone, SizesRefused } from '../capture/plan-graph.ts';
import { makePlan, type Plan, type PlanOptions, sized } from '../plan.ts';
import { matches, resized, sampleOf, type Sample, type Sizes, sizesOf } from './sizes.ts';
import { isUniform } from './uniform.ts';

/** Forms kept per engine, those used last. */
const mostForms = 64;
/** A form that differs in no size so often stays as it is. */
const mostTries = 3;

interface Form {
  sample: Sample;
  sizes: Sizes | null;
  tries: number;
  /** By the least size of the class. Null: sizes of it have plans of their own. */
  readonly plans: Map<number, Plan | null>;
}

/** The families of one engine. */
export class PlanFamilies {
  /** By hash. */
  readonly #forms = new Map<number, Form>();
  /** Plans bound to a size. */
  binds = 0;

  /** Plans for classes of sizes. */
  get size(): number {
    let size = 0;
    for (const { plans } of this.#forms.values()) for (const plan of plans.values()) size += Number(plan !== null);
    return size;
  }

  /** A plan of the family that the cone belongs to, or null: then it needs one of its own. */
  find(cone: Cone, options: PlanOptions): Plan | null {
    const hash = formOf(cone);
    const form = this.#forms.get(hash);
    if (form === undefined) {
      this.#add(hash, { sample: sampleOf(cone), sizes: null, tries: 0, plans: new Map() }, options);
      return null;
    }
    // Used last.
    this.#forms.delete(hash);
    this.#forms.set(hash, form);
    let n = form.sizes === null ? -1 : matches(form.sizes, cone);
    if (n < 0) {
      if (form.tries >= mostTries) return null;
      form.tries++;
      const now = sampleOf(cone);
      const sizes = sizesOf(form.sample, now, cone);
      if (sizes === null || !isFamily(sizes, form.sample, cone)) {
        if (form.sizes === null) form.sample = now;
        return null;
      }
      this.#dropPlans(form, options);
      form.sizes = sizes;
      n = sizes.n;
    }
    const low = 2 ** Math.floor(Math.log2(n));
    let plan = form.plans.get(low);
    if (plan === undefined) {
      plan = this.#make(form, cone, low, options);
      form.plans.set(low, plan);
    }
    if (plan === null) return null;
    this.binds++;
    options.kernels.take(plan.kernels);
    return sized(plan, n);
  }

  #make({ sizes, sample }: Form, cone: Cone, low: number, options: PlanOptions): Plan | null {
    try {
      const plan = makePlan(cone, options, sizedCone(sizes!, sample, low));
      return plan;
    } catch (error) {
      if (error instanceof SizesRefused) return null;
      throw error;
    }
  }

  #add(hash: number, form: Form, options: PlanOptions): void {
    if (this.#forms.size >= mostForms) {
      const [[oldest, left]] = this.#forms as unknown as [[number, Form]];
      this.#forms.delete(oldest);
      this.#dropPlans(left, options);
    }
    this.#forms.set(hash, form);
  }

  #dropPlans({ plans }: Form, { kernels }: PlanOptions): void {
    for (const plan of plans.values()) if (plan !== null) kernels.drop(plan.kernels);
    plans.clear();
  }

  /** Lets go of all plans. */
  clear(options: PlanOptions): void {
    for (const form of this.#forms.values()) this.#dropPlans(form, options);
    this.#forms.clear();
  }
}

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
    if (node.storage === null) for (const source of node.src) mix(source.index);
  }
  for (const list of [cone.outputs, cone.donatable]) {
    mix(list.length);
    for (let i = 0; i < list.length; i++) mix(list.data[i]!);
  }
  return hash;
}

/** True if all nodes are computed alike for every size, and what is held is read alike. */
function isFamily(sizes: Sizes, before: Sample, cone: Cone): boolean {
  const shapes = sizes.axes.map((axes, i) => {
    const { shape } = cone.nodes[i]!;
    return { axes, shape };
  });
  for (let i = 0; i < shapes.length; i++) {
    const node = cone.nodes[i]!;
    if (node.storage !== null) continue;
    const { kind, op } = node;
    const src = node.src.map(({ index }) => shapes[index]!);
    if (!isUniform(op, sizes.sample.attrs[i], shapes[i]!, src)) return false;
    if (sizes.bound.has(i) && typeof (node.attr as { value: unknown }).value !== 'number') return false;
    if (kind < 0 || before.shapes[i]!.length !== node.shape.length) return false;
  }
  return true;
}

function isPrime(x: number): boolean {
  for (let d = 2; d * d <= x; d++) if (x % d === 0) return false;
  return true;
}

/** A prime of at least `high` that divides nothing of the sample but sizes. */
function capacityFor(high: number, { sample, holes, axes }: Sizes): number {
  const fixed = new Set<number>();
  const sizeHoles = new Set(holes);
  sample.key.forEach((x, at) => {
    if (!sizeHoles.has(at)) fixed.add(Math.abs(x));
  });
  sample.shapes.forEach((shape, i) => {
    shape.forEach((x, axis) => {
      if (!axes[i]?.[axis]) fixed.add(x);
    });
  });
  fixed.delete(0);
  for (let p = high; ; p++) if (isPrime(p) && [...fixed].every((x) => x % p !== 0)) return p;
}

/** The cone at the capacity of a class. */
function sizedCone(sizes: Sizes, before: Sample, low: number): SizedCone {
  const { sample, n, axes, bound } = sizes;
  const high = 2 * low - 1;
  const capacity = capacityFor(high, sizes);
  return {
    size: { capacity, low, high },
    shapeOf: (i) => sample.shapes[i]!.map((x, axis) => ((axes[i]?.[axis] ?? 0) > 0 ? axes[i]![axis]! * capacity : x)),
    attrOf: (i) => resized(before.attrs[i], sample.attrs[i], n, capacity),
    isBound: (i) => bound.has(i),
  };
}
