/**
 * Random programs of what has a history: leaves with `backward()`, several times, tapes inside each other, `detach`, `noGrad`, leaves that are assigned
 * between, gradients of gradients, functions that others wrap. Each runs several times in a row, compiled or not, and is compared with the same on
 * arrays of the oracle.
 */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import { arrayOf } from '../host.ts';
import { type Held, Histories, type Recorder } from '../oracle/history.ts';
import { count, type NDArray } from '../oracle/ndarray.ts';
import { Choices } from '../programs/choices.ts';
import { leavingNothing } from './check.ts';
import { inputTensor } from './execute.ts';
import type { Rows } from './sizes.ts';

const shapes = [[3], [2, 3], [], [2, 1]] as const;
const functions = ['mul', 'add', 'sin', 'cos', 'scale', 'flip', 'total'] as const;
type Function = (typeof functions)[number];
const wraps = ['checkpoint', 'custom', 'vmap', 'scan', 'jvp', 'compile'] as const;
type Wrap = (typeof wraps)[number];

/** A step; numbers name values in the order in which they were made. */
export type Step =
  | { readonly kind: 'call' | 'quiet'; readonly f: Function; readonly a: number; readonly b: number }
  | { readonly kind: 'detach' | 'flush'; readonly a: number }
  | { readonly kind: 'backward'; readonly a: number; readonly retain: boolean; readonly create: boolean }
  | { readonly kind: 'read' | 'clear'; readonly leaf: number }
  | { readonly kind: 'assign'; readonly leaf: number; readonly a: number }
  | { readonly kind: 'open'; readonly watched: readonly number[] }
  | { readonly kind: 'pause'; readonly tape: number; readonly f: Function; readonly a: number; readonly b: number }
  | {
      readonly kind: 'gradient';
      readonly tape: number;
      readonly a: number;
      readonly of: number;
      readonly create: boolean;
    }
  | { readonly kind: 'slope'; readonly a: number; readonly b: number; readonly create: boolean }
  | { readonly kind: 'wrapped'; readonly by: Wrap; readonly a: number; readonly b: number };

/** How it runs, and what. */
export interface History {
  readonly leaves: readonly NDArray[];
  readonly way: 'plain' | 'scope' | 'eager' | 'compile';
  readonly calls: number;
  /** Whether results are detached: only then is a compiled function replayed. */
  readonly detached: boolean;
  readonly steps: readonly Step[];
}

const numbers = (c: Choices, shape: readonly number[]): NDArray => ({
  shape,
  data: Array.from({ length: count(shape) }, () => (c.nat(41) - 20) / 16 + 0.03),
});

/** What runs on the arrays of the oracle. */
class Expected {
  readonly world: Histories = new Histories();
  readonly leaves: Held[];
  values: Held[] = [];
  tapes: Recorder[] = [];
  /** A checkpoint runs again, so nothing is assigned until its gradient is made. */
  #fixed = false;
  /** A gradient computes something again, so that a tape opened since sees more of it than of values that were there. */
  #again = false;

  constructor(leaves: readonly NDArray[]) {
    this.leaves = leaves.map((array) => this.world.leaf(array));
  }

  begin(): void {
    this.values = [...this.leaves];
    this.tapes = [];
    this.#fixed = false;
    this.#again &&= this.leaves.some(({ slot }) => slot!.grad?.requires);
  }

  end(): void {
    for (const tape of this.tapes) this.world.close(tape);
  }

  apply(f: Function, a: Held, b: Held): Held {
    const { world } = this;
    if (f === 'mul' || f === 'add') return world[f](a, b);
    if (f === 'scale') return world.scale(a, 0.5);
    return f === 'total' ? world.sumTo(a, []) : world[f](a);
  }

  /** The function of two values that others wrap. */
  readonly inner = (a: Held, b: Held): Held => {
    const { world } = this;
    return world.add(world.mul(world.sin(a), b), world.scale(a, 0.5));
  };

  /** Whether the step can be taken. */
  allows(step: Step): boolean {
    const { world, values, tapes, leaves } = this;
    if (step.kind === 'backward') return world.canGoBack(values[step.a]!);
    if (step.kind === 'read') return leaves[step.leaf]!.slot!.grad !== null;
    if (step.kind === 'pause') return tapes[step.tape] !== undefined;
    if (step.kind === 'gradient') return tapes[step.tape]?.knows(values[step.of]!) ?? false;
    if (step.kind === 'assign')
      return (
        !this.#fixed &&
        world.shapeOf(leaves[step.leaf]!, values[step.a]!).join() === leaves[step.leaf]!.array.shape.join()
      );
    if (step.kind === 'wrapped' && (step.by === 'vmap' || step.by === 'scan'))
      return values[step.a]!.array.shape.length === 2 && values[step.b]!.array.shape.length < 2;
    if (step.kind === 'wrapped' && step.by === 'jvp') return true;
    return step.kind !== 'open' || (tapes.length < 4 && !this.#again);
  }

  take(step: Step): void {
    const { world, values } = this;
    switch (step.kind) {
      case 'call':
        values.push(this.apply(step.f, values[step.a]!, values[step.b]!));
        return;
      case 'quiet':
        values.push(world.quiet(() => this.apply(step.f, values[step.a]!, values[step.b]!)));
        return;
      case 'detach':
        values.push(world.detach(values[step.a]!));
        return;
      case 'backward':
        world.backward(values[step.a]!, step);
        return;
      case 'read':
        values.push(world.scale(this.leaves[step.leaf]!.slot!.grad!, 1));
        return;
      case 'clear':
        this.leaves[step.leaf]!.slot!.grad = null;
        return;
      case 'assign': {
        const before = this.leaves[step.leaf]!;
        const { array } = world.quiet(() => world.expand(values[step.a]!, before.array.shape));
        values[step.leaf] = this.leaves[step.leaf] = world.leaf(array, before.slot!);
        return;
      }
      case 'open':
        this.tapes.push(world.open(...step.watched.map((i) => values[i]!)));
        return;
      case 'pause': {
        const tape = this.tapes[step.tape]!;
        tape.paused = true;
        values.push(this.apply(step.f, values[step.a]!, values[step.b]!));
        tape.paused = false;
        return;
      }
      case 'gradient':
        values.push(world.gradient(this.tapes[step.tape]!, values[step.a]!, values[step.of]!, step.create));
        return;
      case 'slope':
        values.push(world.slope((x) => world.sumTo(this.inner(x, values[step.b]!), []), values[step.a]!, step.create));
        return;
      case 'wrapped':
        if (step.by === 'checkpoint') this.#fixed = true;
        if (step.by !== 'vmap' && step.by !== 'compile') this.#again = true;
        values.push(this.inner(values[step.a]!, values[step.b]!));
        return;
      case 'flush':
        return;
      default:
        step satisfies never;
    }
  }
}

/** What the rows mean: steps that the oracle could take. */
export function historyOf(rows: Rows): History {
  const c = new Choices(rows[0] ?? []);
  const way = c.pick(['plain', 'scope', 'compile', 'eager'] as const);
  const [calls, detached] = [c.pick([1, 2, 4, 5]), c.nat(3) > 0];
  const leaves = Array.from({ length: 1 + c.nat(3) }, () => numbers(c, c.pick(shapes)));
  const expected = new Expected(leaves);
  expected.begin();
  const steps: Step[] = [];
  for (const row of rows.slice(1).flatMap((r) => [r.slice(0, 6), r.slice(6, 12), r.slice(12, 18), r.slice(18)])) {
    const step = stepOf(new Choices(row), expected);
    if (step === null || !expected.allows(step)) continue;
    expected.take(step);
    steps.push(step);
    if (expected.values.at(-1)!.array.data.some((x) => Math.abs(x) > 1e4)) break;
  }
  return { leaves, way, calls, detached, steps };
}

function stepOf(c: Choices, { values, leaves, tapes }: Expected): Step | null {
  const kind = c.nat(24);
  // The newest value most of the time, so that histories are long.
  const one = (): number => (c.nat(3) === 0 ? c.nat(values.length) : Math.max(0, values.length - 1 - c.nat(3)));
  const [a, leaf, tape] = [one(), c.nat(leaves.length), Math.max(0, tapes.length - 1 - c.nat(2))];
  const [b, f, flag, other] = [one(), c.pick(functions), c.nat(2) === 1, c.nat(2) === 1];
  if (kind === 0) return null;
  if (kind < 9) return { kind: 'call', f, a, b };
  if (kind === 9) return { kind: 'quiet', f, a, b };
  if (kind === 10) return { kind: 'detach', a };
  if (kind < 14) return { kind: 'backward', a, retain: flag || other, create: other };
  if (kind === 14) return { kind: 'read', leaf };
  if (kind === 15) return flag ? { kind: 'clear', leaf } : { kind: 'flush', a };
  if (kind === 16) return { kind: 'assign', leaf, a };
  if (kind === 17) return { kind: 'open', watched: flag ? [a, b] : [a] };
  if (kind === 18) return { kind: 'pause', tape, f, a, b };
  if (kind < 21) return { kind: 'gradient', tape, a, of: b, create: flag };
  if (kind === 21) return { kind: 'slope', a, b, create: flag };
  return { kind: 'wrapped', by: c.pick(wraps), a, b };
}

/** The same on the library. */
class Actual {
  readonly leaves: Tensor[];
  values: Tensor[] = [];
  tapes: pg.GradientTape[] = [];

  constructor(leaves: readonly NDArray[]) {
    this.leaves = leaves.map(({ data, shape }) => {
      const t = inputTensor(data, 'float64', shape);
      t.requiresGrad = true;
      return t;
    });
  }

  apply(f: Function, a: Tensor, b: Tensor): Tensor {
    if (f === 'mul') return pg.mul(a, b);
    if (f === 'add') return pg.add(a, b);
    if (f === 'scale') return pg.mul(a, 0.5);
    if (f === 'flip')
      return pg.flip(
        a,
        a.shape.map((_, axis) => axis),
      );
    if (f === 'total') return pg.sum(a);
    return f === 'sin' ? pg.sin(a) : pg.cos(a);
  }

  readonly inner = (a: Tensor, b: Tensor): Tensor => pg.add(pg.mul(pg.sin(a), b), pg.mul(a, 0.5));

  wrapped(by: Wrap, a: Tensor, b: Tensor): Tensor {
    const { inner } = this;
    switch (by) {
      case 'checkpoint':
        return pg.checkpoint((x: Tensor) => inner(x, b), a);
      case 'custom':
        return pg.customGradient(
          inner,
          (g, { inputs }) => pg.vjp(inner, [...inputs] as [Tensor, Tensor], g, { createGraph: true })[1],
        )(a, b);
      case 'vmap':
        return pg.vmap((x: Tensor) => inner(x, b))(a);
      case 'scan':
        return pg.scan(
          (carry: Tensor, x: Tensor): [Tensor, Tensor] => [pg.add(carry, 1), inner(x, b)],
          pg.tensor(0, { dtype: 'float64' }),
          a,
        )[1];
      case 'jvp':
        return pg.jvp((x: Tensor) => inner(x, b), [a], [a], { createGraph: true })[0];
      case 'compile':
        return pg.compile((x: Tensor, y: Tensor) => inner(x, y))(a, b);
      default:
        return by satisfies never;
    }
  }

  /** All values of the steps. */
  run({ steps, detached, way }: History): Tensor[] {
    this.values = [...this.leaves];
    this.tapes = [];
    for (const step of steps) this.#take(step, way);
    for (const tape of this.tapes) tape.dispose();
    const made = this.values.slice(this.leaves.length);
    return detached ? made.map((t) => pg.detach(t)) : made.map((t) => pg.mul(t, 1));
  }

  #take(step: Step, way: History['way']): void {
    const { values, leaves } = this;
    const [a, b] = ['a' in step ? values[step.a]! : leaves[0]!, 'b' in step ? values[step.b]! : leaves[0]!];
    switch (step.kind) {
      case 'call':
        values.push(this.apply(step.f, a, b));
        return;
      case 'quiet':
        values.push(pg.noGrad(() => this.apply(step.f, a, b)));
        return;
      case 'detach':
        values.push(pg.detach(a));
        return;
      case 'backward':
        a.backward({
          gradient: pg.ones([...a.shape], { dtype: 'float64' }),
          retainGraph: step.retain,
          createGraph: step.create,
        });
        return;
      case 'read': {
        const { grad } = leaves[step.leaf]!;
        // The next backward() disposes the gradient itself.
        values.push(pg.mul(grad!, 1));
        return;
      }
      case 'clear':
        leaves[step.leaf]!.grad = null;
        return;
      case 'assign': {
        const leaf = leaves[step.leaf]!;
        pg.noGrad(() => leaf.assign(pg.broadcastTo(pg.detach(a), [...leaf.shape])));
        return;
      }
      case 'open': {
        const tape = new pg.GradientTape({ persistent: true });
        tape.watch(...step.watched.map((i) => values[i]!));
        this.tapes.push(tape);
        return;
      }
      case 'pause':
        values.push(this.tapes[step.tape]!.stopRecording(() => this.apply(step.f, a, b)));
        return;
      case 'gradient':
        values.push(this.tapes[step.tape]!.gradient(a, values[step.of]!, { createGraph: step.create }));
        return;
      case 'slope':
        values.push(pg.grad((x: Tensor) => pg.sum(this.inner(x, b)), { createGraph: step.create })(a));
        return;
      case 'wrapped':
        values.push(this.wrapped(step.by, a, b));
        return;
      case 'flush':
        if (way !== 'compile') pg.flush();
        return;
      default:
        step satisfies never;
    }
  }
}

/** Prints the steps. */
export function printHistory({ leaves, steps, ...how }: History): string {
  const named = steps.map((step) => JSON.stringify(step));
  return `// ${JSON.stringify(how)}\n${leaves.map((x, i) => `// ${i}: leaf ${JSON.stringify(x)}`).join('\n')}\n${named.join('\n')}\n`;
}

/** Runs histories, and counts. */
export class HistoryFuzz {
  compared: number = 0;
  /** Calls that were replayed. */
  replays: number = 0;

  async check(rows: Rows, told: (step: Step) => void = () => {}): Promise<void> {
    const history = historyOf(rows);
    for (const step of history.steps) told(step);
    const expected = new Expected(history.leaves);
    const results: Results[] = [];
    for (let call = 0; call < history.calls; call++) {
      expected.begin();
      // What an earlier call left in the leaves may forbid a step.
      const all = history.steps.every((step) => {
        if (!expected.allows(step)) return false;
        expected.take(step);
        return true;
      });
      if (!all) break;
      expected.end();
      const made = expected.values.slice(history.leaves.length).map(({ array }) => array);
      if (made.some(({ data }) => data.some((x) => !(Math.abs(x) < 1e6)))) break;
      const { leaves } = expected;
      results.push({
        values: made,
        leaves: leaves.map((x) => x.array),
        grads: leaves.map((x) => x.slot!.grad?.array ?? null),
      });
    }
    if (results.length === 0) return;
    const before = pg.stats().replays;
    pg.setEager(history.way === 'eager');
    try {
      await leavingNothing(() => this.#compare(history, results));
    } finally {
      pg.setEager(false);
    }
    this.replays += pg.stats().replays - before;
  }

  async #compare(history: History, results: readonly Results[]): Promise<void> {
    const actual = new Actual(history.leaves);
    const step = (): Tensor[] => actual.run(history);
    const compiled = history.way === 'compile' ? pg.compile(step) : null;
    try {
      for (const [call, { values, leaves, grads }] of results.entries()) {
        const found = compiled !== null ? compiled() : pg.scope(step);
        for (const [i, t] of found.entries())
          near(`call ${call}, value ${i + leaves.length}`, await arrayOf(t), values[i]!);
        for (const [i, leaf] of actual.leaves.entries()) {
          near(`call ${call}, leaf ${i}`, await arrayOf(pg.noGrad(() => pg.mul(leaf, 1))), leaves[i]!);
          const expected = grads[i]!;
          if ((leaf.grad === null) !== (expected === null))
            throw new Error(`call ${call}: leaf ${i} has ${leaf.grad === null ? 'no' : 'a'} gradient`);
          const { grad } = leaf;
          if (grad !== null)
            near(`call ${call}, gradient of leaf ${i}`, await arrayOf(pg.noGrad(() => pg.mul(grad, 1))), expected!);
        }
        this.compared++;
      }
    } finally {
      compiled?.dispose();
      for (const leaf of actual.leaves) {
        leaf.grad?.dispose();
        leaf.dispose();
      }
    }
  }
}

interface Results {
  readonly values: readonly NDArray[];
  readonly leaves: readonly NDArray[];
  readonly grads: readonly (NDArray | null)[];
}

function near(what: string, { shape, data }: NDArray, expected: NDArray): void {
  if (shape.join() !== expected.shape.join())
    throw new Error(`${what}: shape [${shape}] where [${expected.shape}] is expected`);
  const scale = expected.data.reduce((most, x) => Math.max(most, Math.abs(x)), 1);
  for (const [k, x] of expected.data.entries())
    if (!(Math.abs(x - data[k]!) <= 1e-9 * scale))
      throw new Error(`${what}: element ${k} is ${data[k]} where ${x} is expected`);
}
