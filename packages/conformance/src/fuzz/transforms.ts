/**
 * Random programs as functions of some of their inputs: replayed by `compile`, as the body of a loop, of a batch, of both inside each other, on state
 * that each call changes. Each must give what the program gives by itself at the same inputs, and their gradients those of the program.
 */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import { arraysOf } from '../host.ts';
import { count, type NDArray } from '../oracle/ndarray.ts';
import { Choices } from '../programs/choices.ts';
import { evaluate, hold } from '../programs/evaluate.ts';
import { isFloat } from '../programs/pool.ts';
import { type InputStep, printProgram, type Program, type Step } from '../programs/program.ts';
import { agree, type CheckOptions, leavingNothing } from './check.ts';
import { execute, type Handles, inputTensor, type Outcome, readTensor, record } from './execute.ts';
import { generate, type Settings } from './generate.ts';
import { Problem } from './gradients.ts';
import type { Rows } from './sizes.ts';

/** Values of an input one after the other. */
type Series = readonly (readonly number[])[];

/** A function of tensors that are stacked along one axis for each transform around it. */
type Lifted = (...stacked: Tensor[]) => Tensor[];

type Lift = 'scan' | 'vmap';
type Way = 'compile' | 'state' | 'step' | Lift | 'while';
const ways: readonly Way[] = ['compile', 'state', 'step', 'scan', 'vmap', 'while'];

/** What a function with a derivative may stand in: its derivatives are the same. */
type Wrap = 'none' | 'checkpoint' | 'custom' | 'jvp' | 'vjp';
const wraps: readonly Wrap[] = ['none', 'checkpoint', 'custom', 'jvp', 'vjp'];

/** How the function of a program is called. */
export interface Plan {
  readonly way: Way;
  /** Transforms around the program, the innermost one first. */
  readonly inner: readonly Lift[];
  readonly compiled: boolean;
  readonly eager: boolean;
  /** Around the function whose derivatives are compared, the innermost one first. */
  readonly wrapped: readonly Wrap[];
  readonly reverse: boolean;
  readonly recompute: boolean;
  /** Changes of state that a kernel may write in place, or that move elements. */
  readonly adds: boolean;
  /** Whether state is changed before the program reads it. */
  readonly before: boolean;
  /** How arguments lie in memory. */
  readonly layouts: readonly Layout[];
  readonly check: number | boolean;
  /** Sizes of the axes that transforms add, the outermost first: one list for each call. */
  readonly sizes: readonly (readonly number[])[];
}

type Layout = 'plain' | 'part' | 'turned' | 'pending';
const layouts: readonly Layout[] = ['plain', 'part', 'turned', 'pending'];

/** A program as a function: its inputs that change, and those it uses from outside or makes itself. */
export interface Subject {
  readonly program: Program;
  readonly varied: readonly InputStep[];
  readonly outside: readonly InputStep[];
  readonly plan: Plan;
}

/** Steps of a loop on the host, and of most others. */
const length = 3;
/** Sets of inputs that the calls of a compiled function get: it is recorded twice and then replayed. */
const order = [0, 1, 2, 0, 2, 1];

/** What the rows mean; the last one says how the program is called. */
export function subjectOf(rows: Rows, settings: Settings): Subject {
  const c = new Choices(rows.at(-1) ?? []);
  const drawn = generate(rows.slice(0, -1), settings);
  const way = c.pick(ways);
  const nested = c.pick<readonly Lift[]>([[], [], ['scan'], ['vmap']]);
  const inner = way === 'scan' || way === 'vmap' ? [...nested, way] : way === 'compile' ? nested : [];
  // Where examples stand for values, nothing can be flushed.
  const flushes = inner.length === 0 && way !== 'while';
  const steps = drawn.steps.filter((s) => 'id' in s || (flushes && s.kind === 'flush'));
  const program: Program = { steps, outputs: drawn.outputs, scoped: true };
  const changed = new Set(steps.flatMap((s) => (s.kind === 'assign' ? [s.target] : [])));
  const free = steps.filter((s): s is InputStep => s.kind === 'input' && !changed.has(s.id));
  // Derivatives are of all inputs.
  const varied = settings.smooth ? free.filter(({ dtype }) => dtype === 'float64') : c.some(free, 1);
  const outside = c.some(free.filter((s) => !varied.includes(s)));
  return {
    program,
    varied,
    outside,
    plan: {
      way,
      inner,
      compiled: way === 'compile' || way === 'state' || (inner.length > 0 && c.nat(3) === 0),
      eager: c.seldom(4),
      reverse: c.nat(2) === 1,
      recompute: c.nat(2) === 1,
      adds: c.nat(2) === 1,
      before: c.nat(2) === 1,
      layouts: Array.from({ length: 8 }, () => c.pick(layouts)),
      check: c.pick([128, 1, true, false]),
      sizes: sizesOf(c, inner.length),
      wrapped: [c.pick(wraps), c.pick(wraps)],
    },
  };
}

/** Sizes that differ from axis to axis, and for some calls on the way from those of the call before. */
function sizesOf(c: Choices, depth: number): readonly (readonly number[])[] {
  if (depth === 0) return [[]];
  const one = (): readonly number[] => Array.from({ length: depth }, () => c.pick([length, 2, 4, 1, 5]));
  const [first, other] = [one(), one()];
  return [first, first, c.nat(2) === 0 ? first : other, first];
}

/** How many sets of inputs a call needs. */
function setsOf({ way, sizes, inner }: Plan): number {
  if (way === 'state' || way === 'step') return order.length + 1;
  return inner.length === 0 ? length : Math.max(...sizes.map(count));
}

/** The next value of state, as the library computes it. */
function nextState(t: Tensor, adds: boolean): Tensor {
  return adds && isFloat(t.dtype) ? pg.add(t, 0.25) : pg.reshape(pg.roll(pg.reshape(t, [-1]), 1), [...t.shape]);
}

function after({ dtype }: InputStep, data: readonly number[], adds: boolean): readonly number[] {
  if (adds && isFloat(dtype)) return data.map((x) => hold(dtype, x + 0.25) as number);
  return [...data.slice(-1), ...data.slice(0, -1)];
}

/** The values of an input: as drawn, then each from the one before. */
function seriesOf(step: InputStep, many: number, adds: boolean): Series {
  const found: (readonly number[])[] = [step.data];
  while (found.length < many) found.push(after(step, found.at(-1)!, adds));
  return found;
}

/** The program at a set of its inputs. */
function programAt({ program, varied }: Subject, series: readonly Series[], k: number): Program {
  const steps = program.steps.map((s): Step => {
    const i = varied.indexOf(s as InputStep);
    return i < 0 ? s : { ...(s as InputStep), data: series[i]![k]! };
  });
  return { ...program, steps };
}

/** Prints how a program is called, and the program. */
export function printSubject({ program, varied, outside, plan }: Subject): string {
  const names = (steps: readonly InputStep[]): string => steps.map(({ id }) => `t${id}`).join(', ');
  return `// ${JSON.stringify(plan)}; arguments ${names(varied)}; from outside ${names(outside)}\n${printProgram(program)}`;
}

/** An argument of a call, in one of several layouts. */
function argument({ dtype, shape }: InputStep, data: readonly number[], layout: Layout): Tensor {
  if (shape.length === 0 || data.length === 0 || layout === 'plain') return inputTensor(data, dtype, shape);
  if (layout === 'pending') return pg.scope(() => pg.flip(pg.flip(inputTensor(data, dtype, shape), [0]), [0]));
  const [rows] = shape as [number];
  if (layout === 'part') {
    const around = [...data, ...data, ...data];
    return pg.scope(() =>
      pg.slice(inputTensor(around, dtype, [3 * rows, ...shape.slice(1)]), [{ start: rows, stop: 2 * rows }]),
    );
  }
  const axes = shape.map((_, i) => shape.length - 1 - i);
  const strides = shape.map((_, axis) => count(shape.slice(axis + 1)));
  const turned = axes.map((i) => shape[i]!);
  const moved = data.map((_, flat) => {
    let [rest, from] = [flat, 0];
    for (let i = axes.length - 1; i >= 0; i--) {
      from += (rest % turned[i]!) * strides[axes[i]!]!;
      rest = Math.floor(rest / turned[i]!);
    }
    return data[from]!;
  });
  return pg.scope(() => pg.permute(inputTensor(moved, dtype, turned), axes));
}

const zerosOf = (t: Tensor): Tensor => pg.zeros([...t.shape], { dtype: t.dtype });

/** A function over one more axis of its arguments: a loop that also carries what it gave last, or a batch. */
function lifted(f: Lifted, by: Lift, { reverse, recompute }: Plan): Lifted {
  if (by === 'vmap') return (...stacked) => pg.vmap((...xs: Tensor[]) => f(...xs))(...stacked);
  return (...stacked) => {
    const first = f(...stacked.map((t) => pg.select(t, 0, 0)));
    const [last, all] = pg.scan(
      (_: readonly Tensor[], xs: readonly Tensor[]) => {
        const results = f(...xs);
        return [results, results];
      },
      first.map(zerosOf),
      stacked as readonly Tensor[],
      { reverse, recompute },
    );
    // What is carried last is that of the step that ran last.
    return all.map((t, i) => {
      const steps = pg.arange(t.shape[0]!, { dtype: 'int32' });
      const isLast = pg.equal(pg.reshape(steps, [-1, ...last[i]!.shape.map(() => 1)]), reverse ? 0 : t.shape[0]! - 1);
      return pg.where(isLast, last[i]!, t);
    });
  };
}

type Scalar = (...xs: Tensor[]) => Tensor;

/** The same function through something that makes its derivatives in another way. What it is given it uses as it is, or from outside. */
function wrappedBy(f: Scalar, wrap: Wrap): Scalar {
  switch (wrap) {
    case 'none':
      return f;
    case 'checkpoint':
      // The last argument comes from outside.
      return (...xs) => pg.checkpoint((...own: Tensor[]) => f(...own, xs.at(-1)!), ...xs.slice(0, -1));
    case 'custom':
      return pg.customGradient(f, (g, { inputs }) => {
        const [value, gradients] = pg.vjp(f, [...inputs], g, { createGraph: true });
        value.dispose();
        return gradients;
      });
    case 'jvp':
      return (...xs) => pg.jvp(f, xs, xs)[0];
    case 'vjp':
      return (...xs) => pg.vjp(f, xs, pg.ones([], { dtype: 'float64' }))[0];
    default:
      return wrap satisfies never;
  }
}

/** Everything the program gives at stacked inputs, by the transforms of the plan. */
function transformed(f: Lifted, plan: Plan): Lifted {
  return plan.inner.reduce((g, by) => lifted(g, by, plan), f);
}

/** Runs functions of random programs, and counts. */
export class TransformFuzz {
  ran: number = 0;
  /** Calls that were replayed. */
  replays: number = 0;
  /** Sets of inputs whose results were compared. */
  compared: number = 0;
  /** Programs whose formulas do not hold at other inputs. */
  unsure: number = 0;
  readonly #settings: Settings;
  readonly #options: CheckOptions;

  constructor(settings: Settings, options: CheckOptions) {
    this.#settings = settings;
    this.#options = options;
  }

  async check(rows: Rows, told: (subject: Subject) => void = () => {}): Promise<void> {
    const subject = subjectOf(rows, this.#settings);
    this.ran++;
    told(subject);
    const { program, varied, plan } = subject;
    if (program.outputs.length === 0 || varied.length === 0) return;
    // Every transform adds an axis.
    const most = 8 - plan.inner.length;
    if ([...evaluate(program).values()].some(({ shape }) => shape.length > most)) return;
    if (this.#settings.smooth) await this.#derivatives(subject);
    else await this.#values(subject);
  }

  /** Values of the program, transformed, against the program at the same inputs and its formulas. */
  async #values(subject: Subject): Promise<void> {
    const { plan, program, varied } = subject;
    const many = setsOf(plan);
    const series = varied.map((s) => seriesOf(s, many, plan.adds));
    const alone: (readonly Outcome[] | null)[] = [];
    const programs = Array.from({ length: many }, (_, k) => programAt(subject, series, k));
    for (const [k, at] of programs.entries()) alone.push(await this.#trusted(at, k === 0));
    if (alone.every((outcomes) => outcomes === null)) return;
    const f = functionOf(subject);
    const found = await this.#run(subject, series, f);
    for (const { k, outcomes } of found) {
      const expected = alone[k];
      if (expected == null) continue;
      this.compared++;
      const named = [
        { name: 'alone, ', outcomes: expected },
        { name: `${plan.way} at inputs ${k}, `, outcomes },
      ];
      agree({ ...programs[k]!, outputs: program.outputs }, named, this.#options);
    }
  }

  /** What the program gives alone; null where it is not what the formulas say: they need not hold at other inputs than those `drawn`. */
  async #trusted(program: Program, drawn: boolean): Promise<readonly Outcome[] | null> {
    const outcomes = await leavingNothing(() => execute(program));
    try {
      agree(program, [{ name: '', outcomes }], this.#options);
      return outcomes;
    } catch (error) {
      if (drawn) throw error;
      this.unsure++;
      return null;
    }
  }

  /** Gradients of the program, transformed, against its gradients at each of the inputs. */
  async #derivatives(subject: Subject): Promise<void> {
    const { plan, varied } = subject;
    const many = setsOf(plan);
    const series = varied.map((s) => seriesOf(s, many, plan.adds));
    const problem = new Problem(subject.program);
    if (problem.empty || problem.inputs.some((s) => !varied.includes(s))) return;
    const run = plan.wrapped.reduce(wrappedBy, problem.run);
    const gradients: Lifted = (...xs) => pg.grads(run)(...xs);
    const alone: NDArray[][] = [];
    for (let k = 0; k < many; k++)
      alone.push(
        await leavingNothing(async () => {
          const points = varied.map((s, i) => inputTensor(series[i]![k]!, s.dtype, s.shape));
          const result = await arraysOf(pg.grads(problem.run)(...points));
          pg.dispose(points);
          return result;
        }),
      );
    const given = { ...subject, outside: [] };
    for (const { k, outcomes } of await this.#run(given, series, () => gradients)) {
      this.compared++;
      near(`${plan.way} at inputs ${k}`, outcomes, alone[k]!);
    }
    if (plan.inner.length === 0) return;
    // The gradient of a loop or a batch is that of its parts.
    const whole: Lifted = (...stacked) =>
      pg.grads((...xs: Tensor[]) => pg.sum(transformed((...each) => [run(...each)], plan)(...xs)[0]!))(...stacked);
    for (const { k, outcomes } of await this.#run(given, series, () => whole, true))
      near(`gradient of ${plan.way} at inputs ${k}`, outcomes, alone[k]!);
  }

  /** The results of all calls, and which set of inputs each is of. */
  async #run(
    subject: Subject,
    series: readonly Series[],
    make: (outside: Handles) => Lifted,
    whole = false,
  ): Promise<{ readonly k: number; readonly outcomes: readonly Outcome[] }[]> {
    const { plan } = subject;
    const before = pg.stats().replays;
    pg.setEager(plan.eager);
    try {
      return await leavingNothing(async () => {
        const outside: Handles = new Map(subject.outside.map((s) => [s.id, inputTensor(s.data, s.dtype, s.shape)]));
        try {
          const f = make(outside);
          if (plan.way === 'state' || plan.way === 'step') return await onState(subject, series, f);
          if (plan.way === 'while') return await inWhileLoop(subject, series, f);
          return await onArguments(subject, series, whole ? f : transformed(f, plan));
        } finally {
          for (const t of outside.values()) t.dispose();
        }
      });
    } finally {
      pg.setEager(false);
      this.replays += Math.max(0, pg.stats().replays - before);
    }
  }
}

/** The program as a function of what varies. What it has from outside is there before. */
function functionOf({ program, varied }: Subject): (outside: Handles) => Lifted {
  return (outside) =>
    (...xs) => {
      const handles: Handles = new Map();
      for (const s of program.steps) {
        const i = varied.indexOf(s as InputStep);
        const known = s.kind === 'input' ? outside.get(s.id) : undefined;
        if (i >= 0) handles.set((s as InputStep).id, xs[i]!);
        else if (known !== undefined) handles.set((s as InputStep).id, known);
        else if (s.kind === 'flush') pg.flush();
        else record(s, handles);
      }
      // What is from outside stays there.
      const isOutside = new Set(outside.values());
      return program.outputs.map((id) => {
        const t = handles.get(id)!;
        return isOutside.has(t) ? pg.reshape(t, [...t.shape]) : t;
      });
    };
}

type Found = { readonly k: number; readonly outcomes: readonly Outcome[] }[];

/** Reads results that are not arguments, and lets them go. */
async function readAll(results: readonly Tensor[], args: readonly Tensor[]): Promise<Outcome[]> {
  const found: Outcome[] = [];
  for (const t of results) found.push(await readTensor(t));
  for (const t of results) if (!args.includes(t)) t.dispose();
  return found;
}

/** The parts of results that are stacked along axes of these sizes. */
function unstacked(outcomes: readonly Outcome[], sizes: readonly number[]): Outcome[][] {
  const [many, ...inner] = sizes;
  if (many === undefined) return [[...outcomes]];
  return Array.from({ length: many }, (_, k) =>
    outcomes.map(({ shape, dtype, values }): Outcome => {
      const size = values.length / many;
      return { shape: shape.slice(1), dtype, values: values.slice(k * size, (k + 1) * size) };
    }),
  ).flatMap((part) => unstacked(part, inner));
}

/** Calls with arguments: one set of inputs after the other, or many at once, stacked. */
async function onArguments({ varied, plan }: Subject, series: readonly Series[], f: Lifted): Promise<Found> {
  const stacks = plan.inner.length > 0;
  const compiled = plan.compiled ? pg.compile((...xs: Tensor[]) => f(...xs), { check: plan.check }) : null;
  const call = compiled ?? ((...xs: Tensor[]) => pg.scope(() => f(...xs)));
  const found: Found = [];
  // Calls of loops and batches cost as much as their sets of inputs: as few as tell something.
  const calls = stacks ? plan.sizes.slice(plan.compiled ? 0 : 1, plan.compiled ? undefined : 3) : order;
  for (const [turn, given] of calls.entries()) {
    const [k, sizes] = typeof given === 'number' ? [given, []] : [0, given];
    const args = varied.map((s, i) => {
      const layout = plan.layouts[(turn + i) % plan.layouts.length]!;
      const stacked = { ...s, shape: [...sizes, ...s.shape] };
      return argument(stacked, series[i]!.slice(k, k + count(sizes)).flat(), layout);
    });
    const outcomes = await readAll(call(...args), args);
    for (const [at, part] of unstacked(outcomes, sizes).entries()) found.push({ k: k + at, outcomes: part });
    pg.dispose(args);
  }
  compiled?.dispose();
  return found;
}

/** Calls that read state and change it. */
async function onState({ varied, plan }: Subject, series: readonly Series[], f: Lifted): Promise<Found> {
  const state = varied.map((s, i) => inputTensor(series[i]![0]!, s.dtype, s.shape));
  const change = (): void => {
    for (const t of state) t.assign(nextState(t, plan.adds));
  };
  const step = (): Tensor[] => {
    if (plan.before) change();
    // State that is a result would be what it is afterwards.
    const results = f(...state).map((t) => (state.includes(t) ? pg.reshape(t, [...t.shape]) : t));
    if (!plan.before) change();
    return results;
  };
  const compiled = plan.way === 'state' ? pg.compile(step, { check: plan.check }) : null;
  const found: Found = [];
  for (const [turn] of order.entries()) {
    const results = (compiled ?? (() => pg.scope(step)))();
    found.push({ k: turn + Number(plan.before), outcomes: await readAll(results, []) });
  }
  compiled?.dispose();
  pg.dispose(state);
  return found;
}

/** One step for each set of inputs in a loop of the host; what came last is compared. */
async function inWhileLoop({ varied }: Subject, series: readonly Series[], f: Lifted): Promise<Found> {
  const stacked = varied.map((s, i) => inputTensor(series[i]!.flat(), s.dtype, [series[i]!.length, ...s.shape]));
  const zero = pg.zeros([], { dtype: 'int32' });
  const at = (i: Tensor): Tensor[] =>
    stacked.map((t) => pg.reshape(pg.indexSelect(t, pg.reshape(i, [1]), 0), t.shape.slice(1)));
  const first = pg.scope(() => f(...at(zero)).map(zerosOf));
  const many = series[0]!.length;
  type Carry = readonly [step: Tensor, results: readonly Tensor[]];
  const carry: Carry = [zero, first];
  const [steps, results] = await pg.whileLoop(
    ([i]: Carry) => pg.less(i, many),
    ([i]: Carry): Carry => [pg.add(i, 1), f(...at(i))],
    carry,
  );
  const outcomes = await readAll(results, []);
  pg.dispose([stacked, zero, first, steps]);
  return [{ k: many - 1, outcomes }];
}

/** Throws unless gradients are those expected, but for the order of sums. */
function near(what: string, outcomes: readonly Outcome[], expected: readonly NDArray[]): void {
  for (const [i, { data }] of expected.entries()) {
    const scale = data.reduce((most, x) => (Number.isFinite(x) ? Math.max(most, Math.abs(x)) : most), 0);
    if (scale > 1e10) continue;
    for (const [k, x] of data.entries()) {
      const y = outcomes[i]!.values[k]!;
      if (Object.is(x, y) || Math.abs(x - y) <= 1e-9 * scale + 1e-12) continue;
      throw new Error(`${what}: gradient ${i}, element ${k} is ${y} where ${x} is expected`);
    }
  }
}
