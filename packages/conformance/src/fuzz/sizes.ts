/**
 * Random programs at several sizes: one extent, or two, are drawn anew, everything else as before. Plans that sizes share must give what the formulas
 * say. Where the order of sums is not open they must give the bits of plans made for one size.
 */
import * as pg from '@polygrad/core';
import { clearPlans, setDynamicSizes, stats } from '@polygrad/core';
import { arraysOf } from '../host.ts';
import type { NDArray } from '../oracle/ndarray.ts';
import { Choices } from '../programs/choices.ts';
import { type Program, printProgram } from '../programs/program.ts';
import { agree, type CheckOptions, leavingNothing, type NamedRun, opByOp, settled } from './check.ts';
import { execute, type Outcome } from './execute.ts';
import { generate, type Settings } from './generate.ts';
import { checkGradients, Problem } from './gradients.ts';

export type Rows = readonly (readonly number[])[];

/** Sizes to run a program at: of one class or several, its ends among them, the first one again at last. */
function drawSizes(c: Choices): number[] {
  const [low, high] = c.pick([
    [8, 31],
    [2, 7],
    [32, 127],
    [8, 31],
    [128, 255],
    [256, 511],
  ] as const);
  const within = (): number => low + c.nat(high - low + 1);
  const sizes = [within(), within(), low, high];
  if (c.nat(2) === 0) sizes.push(c.pick([low / 2 + 1, high + 1, high + 4, 1, high + low]));
  return [...sizes, within(), sizes[0]!];
}

/** Sizes of a second extent, for every size of the first: drawn on their own, or one more than it, as of a row that was added. */
function drawSecond(c: Choices, sizes: readonly number[]): number[] {
  if (c.nat(4) === 3) return sizes.map((n) => n + 1);
  const [low, high] = c.pick([
    [2, 7],
    [8, 31],
    [3, 12],
  ] as const);
  const seldom = c.nat(3);
  const first = low + c.nat(high - low + 1);
  // Now and then it is as before, so that sizes are met one by one.
  return sizes.map(() => (c.nat(4) < seldom ? first : low + c.nat(high - low + 1)));
}

/** A program, and its sizes. */
export interface SizedProgram {
  readonly n: readonly number[];
  readonly program: Program;
}

/** What the rows mean at each of their sizes, which the last row gives. */
export function programsOf(rows: Rows, settings: Settings): SizedProgram[] {
  const c = new Choices(rows.at(-1) ?? []);
  const sizes = drawSizes(c);
  const others = c.nat(2) === 0 ? null : drawSecond(c, sizes);
  const most = Math.max(...sizes);
  return sizes.map((n, i) => {
    const also = others === null ? {} : { also: { n: others[i]!, most: Math.max(...others) } };
    const program = generate(rows.slice(0, -1), { ...settings, size: { n, most, ...also } });
    return { n: others === null ? [n] : [n, others[i]!], program };
  });
}

/** The programs as TypeScript, as they are run. */
export function printSizes(programs: readonly SizedProgram[]): string {
  return programs.map(({ n, program }) => `// size ${n.join(', ')}\n${printProgram(program)}`).join('\n');
}

/** Has sizes share plans from the first on: what makes them is loaded when it is missed. */
export async function loadSharing(): Promise<void> {
  setDynamicSizes('automatic');
  for (let n = 2; n < 200 && stats().binds === 0; n++) {
    const x = pg.tensor(Array.from({ length: n }, (_, i) => i));
    const y = pg.add(x, x);
    await y.data();
    pg.dispose([x, y]);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  if (stats().binds === 0) throw new Error('no plan was bound to a size');
}

/** How sizes share plans while programs run: from the second size of a form on, or from the first. */
export type Sharing = 'automatic' | 'always';

/** Runs programs at sizes, and counts. */
export class SizesFuzz {
  ran: number = 0;
  /** Programs of which a plan was bound: as a whole, and where every operation runs by itself. */
  bound: number = 0;
  boundOpByOp: number = 0;
  /** Runs of a program at a size, as a whole or op by op, whose bound plans were compared with plans of their own. */
  compared: number = 0;
  binds: number = 0;
  /** Programs whose derivatives differ from differences of the formulas whatever the plans are. */
  unsure: number = 0;
  readonly #settings: Settings;
  readonly #options: CheckOptions;
  readonly #sharing: Sharing;

  constructor(settings: Settings, options: CheckOptions, sharing: Sharing = 'automatic') {
    this.#settings = settings;
    this.#options = options;
    this.#sharing = sharing;
  }

  /** @param told the program at its first size */
  async check(rows: Rows, told: (program: Program) => void = () => {}): Promise<void> {
    const programs = programsOf(rows, this.#settings);
    this.ran++;
    told(programs[0]!.program);
    if (this.#settings.smooth) return this.#checkDerivatives(programs.map(({ program }) => program));
    const some = programs.filter(({ program }) => program.outputs.length > 0);
    const alone: (readonly Outcome[])[] = [];
    try {
      setDynamicSizes('never');
      clearPlans();
      for (const { program } of some) alone.push(await leavingNothing(() => execute(program)));
    } finally {
      setDynamicSizes(this.#sharing);
    }
    clearPlans();
    const shared: Outcome[][] = [];
    this.bound += await this.#counted(async () => {
      for (const { program } of some) shared.push(await this.#compared(() => leavingNothing(() => execute(program))));
    });
    // Every operation by itself takes longest: of some programs where the first flush is bound already.
    const hasOwnPlans = this.#sharing === 'automatic' || rows.length % 4 === 0;
    const apart: Outcome[][] = [];
    if (hasOwnPlans) clearPlans();
    this.boundOpByOp += await this.#counted(async () => {
      if (hasOwnPlans) for (const { program } of some) apart.push(await this.#compared(() => opByOp(program)));
    });
    for (const [i, { n, program }] of some.entries()) {
      const others: NamedRun[] = [{ name: 'shared, ', outcomes: shared[i]! }];
      if (hasOwnPlans) others.push({ name: 'shared op by op, ', outcomes: apart[i]! });
      // What has the bits of plans of its own needs no formulas; those are right for one size as for another.
      const changed = i === 0 ? others : others.filter(({ outcomes }) => !sameBits(outcomes, alone[i]!));
      if (changed.length === 0) continue;
      const runs: NamedRun[] = [{ name: 'alone, ', outcomes: alone[i]! }, ...changed];
      at(n, i, () => agree(program, runs, this.#options));
    }
  }

  /** 1 if a plan was bound meanwhile. */
  async #counted(run: () => Promise<void>): Promise<number> {
    const before = stats().binds;
    await run();
    // Those of families that are gone count no more.
    const binds = stats().binds - before;
    this.binds += binds;
    return Number(binds > 0);
  }

  /** Runs a program at one size; it counts if a plan was bound. */
  async #compared<T>(run: () => Promise<T>): Promise<T> {
    const before = stats().binds;
    const result = await run();
    if (stats().binds > before) this.compared++;
    return result;
  }

  async #checkDerivatives(programs: readonly Program[]): Promise<void> {
    const alone: NDArray[][] = [];
    try {
      setDynamicSizes('never');
      clearPlans();
      for (const program of programs) alone.push(await gradients(program));
    } finally {
      setDynamicSizes(this.#sharing);
    }
    clearPlans();
    this.bound += await this.#counted(async () => {
      for (const [i, program] of programs.entries()) {
        const shared = await this.#compared(() => gradients(program));
        at([], i, () => same(shared, alone[i]!));
      }
    });
    // What the formulas say, of sizes whose plans are made by then.
    this.boundOpByOp += await this.#counted(async () => {
      if (this.#sharing === 'automatic') for (const i of [0, 1, 3]) await this.#checkFormulas(programs[i]!);
    });
  }

  /** Throws where derivatives differ from differences of the formulas with shared plans only: close to a kink the two differ anyway. */
  async #checkFormulas(program: Program): Promise<void> {
    try {
      await checkGradients(program);
    } catch (error) {
      setDynamicSizes('never');
      clearPlans();
      try {
        await checkGradients(program);
      } catch {
        this.unsure++;
        return;
      } finally {
        setDynamicSizes(this.#sharing);
        clearPlans();
      }
      throw error;
    }
  }
}

/** True if outcomes are the same; zeros of both signs are. */
function sameBits(a: readonly Outcome[], b: readonly Outcome[]): boolean {
  return a.every(({ shape, dtype, values }, i) => {
    const other = b[i]!;
    if (dtype !== other.dtype || shape.join() !== other.shape.join()) return false;
    return values.every((x, at) => x === other.values[at] || (Number.isNaN(x) && Number.isNaN(other.values[at])));
  });
}

/** Gradients of all outputs together. */
async function gradients(program: Program): Promise<NDArray[]> {
  const problem = new Problem(program);
  if (problem.empty) return [];
  return leavingNothing(async () => {
    const points = problem.points();
    try {
      return await arraysOf(pg.grads(problem.run)(...points));
    } finally {
      pg.dispose(points);
      await settled();
    }
  });
}

/** Throws unless two runs have the same gradients but for the order of sums. */
function same(actual: readonly NDArray[], expected: readonly NDArray[]): void {
  for (const [k, { data }] of expected.entries()) {
    const scale = data.reduce((most, x) => (Number.isFinite(x) ? Math.max(most, Math.abs(x)) : most), 0);
    const other = actual[k]!.data;
    if (scale > 1e10) continue;
    for (const [i, x] of data.entries()) {
      const y = other[i]!;
      if (Object.is(x, y) || Math.abs(x - y) <= 1e-9 * scale + 1e-12) continue;
      throw new Error(`gradient ${k}: element ${i} is ${y} of a shared plan and ${x} of its own`);
    }
  }
}

function at<T>(n: readonly number[], i: number, f: () => T): T {
  try {
    return f();
  } catch (error) {
    (error as Error).message = `run ${i}, size ${n}: ${(error as Error).message}`;
    throw error;
  }
}
