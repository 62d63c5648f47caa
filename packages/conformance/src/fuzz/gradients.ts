/**
 * Derivatives of a random program: against differences of its float64 formulas, and against each other - backwards, forwards, of second
 * order, recomputed, in a batch.
 */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import { arrayOf, arraysOf } from '../host.ts';
import { count, map, type NDArray } from '../oracle/ndarray.ts';
import { leavingNothing } from './check.ts';
import { evaluate } from '../programs/evaluate.ts';
import { type Handles, inputTensor, record } from './execute.ts';
import type { InputStep, Program } from '../programs/program.ts';

const step = 1e-6;

/** Numbers of 0.5 .. 1.5, others for every salt. */
const numbers = (shape: readonly number[], salt: number): NDArray => ({
  shape,
  data: Array.from({ length: count(shape) }, (_, i) => 0.5 + ((i * 7 + salt * 5 + ((i * i) % 11)) % 13) / 13),
});

const dot = (a: NDArray, b: NDArray): number => a.data.reduce((s, x, i) => s + x * b.data[i]!, 0);
const size = (a: NDArray, b: NDArray): number => a.data.reduce((s, x, i) => s + Math.abs(x * b.data[i]!), 0);

/** A value of a program, changed a little at its use of this number. */
type Nudge = (t: Tensor, use: number) => Tensor;

/** By a small part of itself, up to `most`: as roundings would change it. */
const scaledBy =
  (most: number): Nudge =>
  (t, use) =>
    pg.mul(t, 1 + (((use * 5 + 3) % 13) / 6 - 1) * most);

/** Each element by another small number, up to `most`: those that were equal, zeros too, are so no longer. */
const spreadBy =
  (most: number, salt: number): Nudge =>
  (t, use) =>
    pg.add(
      t,
      inputTensor(
        numbers(t.shape, use + salt).data.map((x) => 2 * (x - 1) * most),
        'float64',
        t.shape,
      ),
    );

/** Values of a program that are nudged each time they are used. */
class NudgedHandles extends Map<number, Tensor> {
  readonly #nudge: Nudge;
  #uses = 0;

  constructor(nudge: Nudge) {
    super();
    this.#nudge = nudge;
  }

  override get(id: number): Tensor | undefined {
    const t = super.get(id);
    return t?.dtype === 'float64' ? this.#nudge(t, this.#uses++) : t;
  }
}

export class Problem {
  readonly program: Program;
  readonly inputs: readonly InputStep[];
  readonly #outputs: readonly number[];
  readonly #nudge: Nudge | undefined;

  /** @param nudge See NudgedHandles. */
  constructor(program: Program, nudge?: Nudge) {
    this.program = program;
    this.#nudge = nudge;
    this.inputs = program.steps.filter((s): s is InputStep => s.kind === 'input' && s.dtype === 'float64');
    const floats = new Set(program.steps.flatMap((s) => ('dtype' in s && s.dtype === 'float64' ? [s.id] : [])));
    this.#outputs = program.outputs.filter((id) => floats.has(id));
  }

  get empty(): boolean {
    return this.#outputs.length === 0 || this.inputs.length === 0;
  }

  /** Where the inputs are, moved along directions. */
  at(directions: readonly NDArray[], by: number): Program {
    const steps = this.program.steps.map((s) => {
      const i = this.inputs.indexOf(s as InputStep);
      if (i < 0) return s;
      const d = directions[i]!;
      return { ...(s as InputStep), data: (s as InputStep).data.map((x, q) => x + by * d.data[q]!) };
    });
    return { ...this.program, steps };
  }

  /** The weighted sum of all outputs by the formulas, and that of their magnitudes. */
  value(program: Program): { value: number; magnitude: number } {
    const values = evaluate(program);
    let [value, magnitude] = [0, 0];
    for (const id of this.#outputs) {
      const y = values.get(id) as NDArray;
      const weights = numbers(y.shape, id);
      value += dot(y, weights);
      magnitude += size(y, weights);
    }
    return { value, magnitude };
  }

  /** The same sum as a function of tensors. */
  readonly run = (...xs: Tensor[]): Tensor => {
    const handles: Handles = this.#nudge === undefined ? new Map() : new NudgedHandles(this.#nudge);
    for (const s of this.program.steps) {
      const i = this.inputs.indexOf(s as InputStep);
      if (i >= 0) handles.set((s as InputStep).id, xs[i]!);
      else record(s, handles);
    }
    return this.#outputs
      .map((id) => {
        const y = handles.get(id) as Tensor;
        return pg.sum(pg.mul(y, inputTensor(numbers(y.shape, id).data, 'float64', y.shape)));
      })
      .reduce((a, b) => pg.add(a, b));
  };

  points(program: Program = this.program): Tensor[] {
    return this.inputs.map((s) => {
      const here = program.steps.find((x) => x.kind === 'input' && x.id === s.id) as InputStep;
      return inputTensor(here.data, 'float64', here.shape);
    });
  }
}

const wide = (a: NDArray): Tensor => inputTensor(a.data, 'float64', a.shape);

const finite = (arrays: readonly NDArray[]): boolean => arrays.every((a) => a.data.every(Number.isFinite));

interface Slope {
  readonly value: number;
  readonly doubt: number;
}

/** Ways to part the elements of all inputs in two: neighbours, or whole inputs. */
const partings: readonly ((input: number, element: number) => number)[] = [(_, i) => i % 2, (k) => k % 2];

/**
 * Whether slopes add up: that along the directions is those along two parts of them. A corner need not show along one direction: the median of
 * equal numbers has none where they move by d and by -d. Here it does.
 */
async function isSmooth(
  whole: Slope,
  directions: readonly NDArray[],
  along: (directions: readonly NDArray[]) => Promise<Slope | null>,
): Promise<boolean> {
  for (const side of partings) {
    const part = (which: number): NDArray[] =>
      directions.map((d, k) => ({ shape: d.shape, data: d.data.map((x, i) => (side(k, i) === which ? x : 0)) }));
    const [a, b] = [await along(part(0)), await along(part(1))];
    if (a === null || b === null) return false;
    const allowed = 1e-5 + 1e-3 * Math.abs(whole.value) + whole.doubt + a.doubt + b.doubt;
    if (Math.abs(a.value + b.value - whole.value) > allowed) return false;
  }
  return true;
}

/** The central difference of f at 0, and how sure it is; null next to a kink or where nothing can be said. */
async function slope(f: (by: number) => Promise<number>): Promise<Slope | null> {
  const [here, a, b, c, d] = [await f(0), await f(step), await f(-step), await f(step / 2), await f(-step / 2)];
  const value = (a - b) / (2 * step);
  const doubt = Math.max(
    Math.abs(value - (c - d) / step),
    Math.abs(value - (a - here) / step),
    Math.abs(value - (here - b) / step),
  );
  return doubt <= 1e-3 * Math.abs(value) + 1e-4 ? { value, doubt } : null;
}

/** Two values of one derivative are too far apart. */
class Disagreement extends Error {
  readonly what: string;
  readonly values: Pair;

  constructor(what: string, actual: number, expected: number, allowed: number) {
    super(`${what}: ${actual} where ${expected} is expected (allowed ${allowed.toExponential(1)})`);
    this.what = what;
    this.values = [actual, expected];
  }
}

/** Two values of one derivative. */
type Pair = readonly [actual: number, expected: number];

/** Compares, and remembers what it compared. */
class Comparisons {
  readonly seen = new Map<string, Pair>();
  /** Whether it throws nothing. */
  readonly onlyLooks: boolean;

  constructor({ onlyLooks = false } = {}) {
    this.onlyLooks = onlyLooks;
  }

  agree(what: string, actual: number, expected: number, allowed: number): void {
    this.seen.set(what, [actual, expected]);
    if (!this.onlyLooks && !(Math.abs(actual - expected) <= allowed))
      throw new Disagreement(what, actual, expected, allowed);
  }

  /** At a corner there is no derivative to agree with. That costs many evaluations to find out, so it is asked where the two differ. */
  async agreeOrCorner(
    what: string,
    actual: number,
    expected: number,
    allowed: number,
    isCorner: () => Promise<boolean>,
  ): Promise<void> {
    if (Math.abs(actual - expected) <= allowed || !(await isCorner())) this.agree(what, actual, expected, allowed);
  }
}

/** What the program compares under a name; undefined where it fails before this. */
async function seenIn(program: Program, what: string, nudge?: Nudge): Promise<Pair | undefined> {
  const look = new Comparisons({ onlyLooks: true });
  await compare(program, look, nudge).catch(() => undefined);
  return look.seen.get(what);
}

/** How the two values differ from those that the engine gives once more: a fault of the moment; empty where it is one of the program. */
async function changedOnceMore(program: Program, { what, values }: Disagreement): Promise<string> {
  const again = await seenIn(program, what);
  if (again === undefined) return 'once more, the program fails before this';
  return values
    .flatMap((value, i) => (Object.is(value, again[i]) ? [] : [`the same program gave ${value}, then ${again[i]}`]))
    .join('; ');
}

const smallNudge = 2 ** -50;

/**
 * Whether two values differ by rounding alone. Large terms may cancel on the way to a small derivative: what is left holds their roundings,
 * and how much that is, the derivative does not show. So all values are changed by a few last digits wherever they are used. Rounding explains
 * a difference where that changes the derivative as much, and 16 times the nudge by more: values that were equal and are so no longer (of
 * a maximum) change it by the same amount, however small the nudge.
 */
async function isRounding(program: Program, { what, values }: Disagreement): Promise<boolean> {
  const changeBy = async (most: number): Promise<number> => {
    const there = await seenIn(program, what, scaledBy(most));
    return there === undefined ? Number.NaN : Math.max(...values.map((x, i) => Math.abs(there[i]! - x)));
  };
  const [little, more] = [await changeBy(smallNudge), await changeBy(16 * smallNudge)];
  return little >= Math.abs(values[0] - values[1]) / 2 && more >= 4 * little;
}

/**
 * Whether the derivative is taken at equal values of which an operation picks one: a median among zeros that dropout left and zeros that it kept.
 * The function may be smooth there, as any of them gives its value, while the derivative is that of the one picked. It jumps as soon as the
 * values differ, and by the same amount where they differ a hundred times less.
 */
async function isTie(program: Program, { what, values }: Disagreement): Promise<boolean> {
  if (what !== 'gradient' && what !== 'second derivative') return false;
  const [actual, expected] = values;
  const gap = Math.abs(actual - expected);
  for (let salt = 0; salt < 8; salt++) {
    const [near, nearer] = [
      await seenIn(program, what, spreadBy(1e-9, salt)),
      await seenIn(program, what, spreadBy(1e-11, salt)),
    ];
    if (near === undefined || nearer === undefined) continue;
    const jump = nearer[0] - actual;
    if (Math.abs(jump) >= gap / 2 && Math.abs(near[0] - nearer[0]) <= gap / 100) return true;
  }
  return false;
}

/** Throws where derivatives of the program do not agree; false if it has none to compare. */
export async function checkGradients(program: Program): Promise<boolean> {
  try {
    return await compare(program, new Comparisons());
  } catch (error) {
    if (!(error instanceof Disagreement)) throw error;
    const changed = await changedOnceMore(program, error);
    if (changed === '' && ((await isRounding(program, error)) || (await isTie(program, error)))) return true;
    error.message += `; ${changed === '' ? 'once more, the values are the same' : changed}`;
    throw error;
  }
}

/** The gradient of a program as `grads` has it, and what others are compared with. */
interface Found {
  readonly comparisons: Comparisons;
  readonly problem: Problem;
  readonly points: readonly Tensor[];
  readonly directions: readonly NDArray[];
  readonly gradient: readonly NDArray[];
  /** A gradient along the directions. */
  readonly sum: (of: readonly NDArray[]) => number;
  readonly scale: number;
  readonly value: number;
  readonly magnitude: number;
}

/** The gradient against finite differences in float64, but for corners. */
async function differences({ comparisons, problem, directions, gradient, sum, magnitude }: Found): Promise<void> {
  const slopeAlong = (ways: readonly NDArray[]): Promise<Slope | null> =>
    slope(async (by) => problem.value(problem.at(ways, by)).value);
  const straight = await slopeAlong(directions);
  if (straight !== null) {
    const isCorner = async (): Promise<boolean> => !(await isSmooth(straight, directions, slopeAlong));
    const allowed = 1e-5 + 1e-3 * Math.abs(straight.value) + straight.doubt + 1e-9 * magnitude;
    if (finite(gradient)) await comparisons.agreeOrCorner('gradient', sum(gradient), straight.value, allowed, isCorner);
    else if (!(await isCorner())) throw new Error(`gradient: not finite where ${straight.value} is expected`);
  }
}

/** The gradient with a checkpoint, by backward() and by a tape. */
async function otherWays({ comparisons, problem, points, gradient, sum }: Found, close: number): Promise<void> {
  const again = await arraysOf(pg.grads((...xs: Tensor[]) => pg.checkpoint(problem.run, ...xs))(...points));
  comparisons.agree('gradient with checkpoint', sum(again), sum(gradient), close);

  const leaves = problem.points();
  for (const t of leaves) t.requiresGrad = true;
  pg.scope(() => problem.run(...leaves).backward());
  const own = await arraysOf(leaves.map((t) => t.grad ?? pg.zerosLike(t)));
  for (const t of leaves) t.dispose();
  comparisons.agree('backward()', sum(own), sum(gradient), close);

  const taped = await arraysOf(
    pg.scope(() => {
      const tape = new pg.GradientTape();
      tape.watch(...points);
      const loss = problem.run(...points);
      pg.noGrad(() => problem.run(...points));
      return tape.gradient(loss, [...points]);
    }),
  );
  comparisons.agree('GradientTape', sum(taped), sum(gradient), close);
}

/** Values and gradients of two points at once, by vmap. */
async function inBatches(found: Found, close: number): Promise<void> {
  const { comparisons, problem, points, directions, gradient, sum, scale, value, magnitude } = found;
  const moved = problem.points(problem.at(directions, 1e-3));
  const batch = points.map((t, i) => pg.stack([t, moved[i]!]));
  const both = await arrayOf(pg.vmap(problem.run)(...batch));
  const one = await arrayOf(pg.scope(() => problem.run(...moved)));
  const apart = await arraysOf(pg.vmap((...xs: Tensor[]) => pg.grads(problem.run)(...xs))(...batch));
  const there = await arraysOf(pg.grads(problem.run)(...moved));
  pg.dispose([moved, batch]);
  const part = (half: number): NDArray[] =>
    apart.map(({ shape, data }) => {
      const many = data.length / 2;
      return { shape: shape.slice(1), data: data.slice(half * many, (half + 1) * many) };
    });
  comparisons.agree('gradients in a batch, first', sum(part(0)), sum(gradient), close);
  if (finite(there) && (scale < 1e6 || comparisons.onlyLooks))
    comparisons.agree('gradients in a batch, second', sum(part(1)), sum(there), 2 * close);
  comparisons.agree('vmap, first', both.data[0]!, value, 1e-9 * magnitude + 1e-9);
  if (Number.isFinite(one.data[0]!))
    comparisons.agree('vmap, second', both.data[1]!, one.data[0]!, 1e-9 * magnitude + 1e-9);
}

async function compare(program: Program, comparisons: Comparisons, nudge?: Nudge): Promise<boolean> {
  const problem = new Problem(program, nudge);
  if (problem.empty) return false;
  const { value, magnitude } = problem.value(program);
  if (!Number.isFinite(value) || magnitude > 1e8) return false;
  const directions = problem.inputs.map((s, i) => map(numbers(s.shape, i + 17), (x) => x - 1));
  const probes = problem.inputs.map((s, i) => numbers(s.shape, i + 29));
  const along = (ts: readonly Tensor[], vs: readonly Tensor[]): Tensor =>
    ts.map((t, i) => pg.sum(pg.mul(t, vs[i]!))).reduce((a, b) => pg.add(a, b));
  return leavingNothing(async () => {
    const points = problem.points();
    const probeTensors = probes.map(wide);
    const directionTensors = directions.map(wide);
    try {
      const gradient = await arraysOf(pg.grads(problem.run)(...points));
      const sum = (of: readonly NDArray[]): number => of.reduce((s, g, i) => s + dot(g, directions[i]!), 0);
      const scale = gradient.reduce((s, g, i) => s + size(g, directions[i]!), 0);
      const found = { comparisons, problem, points, directions, gradient, sum, scale, value, magnitude };
      await differences(found);
      if (!finite(gradient) || (scale > 1e10 && !comparisons.onlyLooks)) return true;
      const close = 1e-9 * scale + 1e-10;

      const [y, change] = pg.jvp(problem.run, points, directionTensors);
      comparisons.agree('value', (await arrayOf(y)).data[0]!, value, 1e-9 * magnitude + 1e-9);
      comparisons.agree('jvp and gradient', (await arrayOf(change)).data[0]!, sum(gradient), close);

      await otherWays(found, close);
      await inBatches(found, close);
      const probe = { points, directions, directionTensors, probes, probeTensors };
      await second(comparisons, problem, probe, along);
      return true;
    } finally {
      pg.dispose([points, probeTensors, directionTensors]);
    }
  });
}

/** Where derivatives are taken, and along what: once for the second derivative (`directions`), once for the first (`probes`). */
interface Probe {
  readonly points: readonly Tensor[];
  readonly directions: readonly NDArray[];
  readonly directionTensors: readonly Tensor[];
  readonly probes: readonly NDArray[];
  readonly probeTensors: readonly Tensor[];
}

async function second(
  comparisons: Comparisons,
  problem: Problem,
  { points, directions, directionTensors, probes, probeTensors }: Probe,
  along: (ts: readonly Tensor[], vs: readonly Tensor[]) => Tensor,
): Promise<void> {
  const tilt = (...xs: Tensor[]): Tensor => along(pg.grads(problem.run)(...xs), probeTensors);
  const twice = await arraysOf(pg.grads(tilt)(...points));
  const sum = twice.reduce((s, g, i) => s + dot(g, directions[i]!), 0);
  const scale = twice.reduce((s, g, i) => s + size(g, directions[i]!), 0);
  const slopeAlong = (ways: readonly NDArray[]): Promise<Slope | null> =>
    slope(async (by) => {
      const xs = problem.points(problem.at(ways, by));
      const gs = await arraysOf(pg.grads(problem.run)(...xs));
      pg.dispose(xs);
      return gs.reduce((s, g, i) => s + dot(g, probes[i]!), 0);
    });
  const expected = await slopeAlong(directions);
  if (expected === null || !finite(twice) || (scale > 1e10 && !comparisons.onlyLooks)) return;
  const allowed = 1e-4 + 2e-3 * Math.abs(expected.value) + 2 * expected.doubt + 1e-8 * scale;
  // Equal values may have equal gradients, as the least of cosh(x) and cosh(y) at 0. There the gradient has a corner.
  const isCorner = async (): Promise<boolean> => !(await isSmooth(expected, directions, slopeAlong));
  await comparisons.agreeOrCorner('second derivative', sum, expected.value, allowed, isCorner);
  const products = await arraysOf(pg.hvp(problem.run, [...points], [...directionTensors]));
  const forward = products.reduce((s, g, i) => s + dot(g, probes[i]!), 0);
  comparisons.agree('hvp and gradient of gradient', forward, sum, 1e-8 * scale + 1e-9);
  const rate = (...xs: Tensor[]): Tensor => pg.jvp(problem.run, xs, [...directionTensors])[1];
  const [slopeThere, bend] = pg.jvp(rate, [...points], [...directionTensors]);
  slopeThere.dispose();
  const own = products.reduce((s, g, i) => s + dot(g, directions[i]!), 0);
  const much = products.reduce((s, g, i) => s + size(g, directions[i]!), 0);
  comparisons.agree('jvp of jvp and hvp', (await arrayOf(bend)).data[0]!, own, 1e-8 * much + 1e-9);
}
