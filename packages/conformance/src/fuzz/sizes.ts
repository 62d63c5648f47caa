/**
 * Random programs at several sizes: one extent is drawn anew, everything else as before. Plans that sizes share must give what the formulas
 * say, and the bits of plans made for one size where the order of sums is not open.
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
export function drawSizes(c: Choices): number[] {
  const low = 2 ** c.pick([3, 4, 2, 5, 1, 6]);
  const within = (): number => low + c.nat(low);
  const sizes = [within(), within(), low, 2 * low - 1];
  if (c.nat(2) === 0) sizes.push(c.pick([low / 2 + 1, 2 * low, 2 * low + 3, 1, 3 * low]));
  return [...sizes, within(), sizes[0] as number];
}

/** What the rows mean at each of their sizes, which the last row gives. */
export function programsOf(rows: Rows, settings: Settings): { n: number; program: Program }[] {
  const sizes = drawSizes(new Choices(rows.at(-1) ?? []));
  const most = Math.max(...sizes);
  return sizes.map((n) => ({ n, program: generate(rows.slice(0, -1), { ...settings, size: { n, most } }) }));
}

/** The programs as TypeScript, as they are run. */
export function printSizes(programs: readonly { n: number; program: Program }[]): string {
  return programs.map(({ n, program }) => `// size ${n}\n${printProgram(program)}`).join('\n');
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

/** Runs programs at sizes, and counts. */
export class SizesFuzz {
  ran: number = 0;
  /** Programs of which a plan was bound: as a whole, and where every operation runs by itself. */
  bound: number = 0;
  boundOpByOp: number = 0;
  binds: number = 0;
  /** Programs whose derivatives differ from differences of the formulas whatever the plans are. */
  unsure: number = 0;
  readonly #settings: Settings;
  readonly #options: CheckOptions;

  constructor(settings: Settings, options: CheckOptions) {
    this.#settings = settings;
    this.#options = options;
  }

  async check(rows: Rows): Promise<void> {
    const programs = programsOf(rows, this.#settings);
    this.ran++;
    if (this.#settings.smooth) return this.#checkDerivatives(programs.map(({ program }) => program));
    const alone: (readonly Outcome[])[] = [];
    try {
      setDynamicSizes('never');
      clearPlans();
      for (const { program } of programs) alone.push(await leavingNothing(() => execute(program)));
    } finally {
      setDynamicSizes('automatic');
    }
    clearPlans();
    const shared: Outcome[][] = [];
    this.bound += await this.#counted(async () => {
      for (const { program } of programs) shared.push(await leavingNothing(() => execute(program)));
    });
    clearPlans();
    const apart: Outcome[][] = [];
    this.boundOpByOp += await this.#counted(async () => {
      for (const { program } of programs) apart.push(await opByOp(program));
    });
    for (const [i, { n, program }] of programs.entries()) {
      const runs: NamedRun[] = [
        { name: 'alone, ', outcomes: alone[i]! },
        { name: 'shared, ', outcomes: shared[i]! },
        { name: 'shared op by op, ', outcomes: apart[i]! },
      ];
      if (program.outputs.length > 0) at(n, i, () => agree(program, runs, this.#options));
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

  async #checkDerivatives(programs: readonly Program[]): Promise<void> {
    const alone: NDArray[][] = [];
    try {
      setDynamicSizes('never');
      clearPlans();
      for (const program of programs) alone.push(await gradients(program));
    } finally {
      setDynamicSizes('automatic');
    }
    clearPlans();
    this.bound += await this.#counted(async () => {
      for (const [i, program] of programs.entries()) {
        const shared = await gradients(program);
        at(i, i, () => same(shared, alone[i]!));
      }
    });
    // What the formulas say, of sizes whose plans are made by then.
    this.boundOpByOp += await this.#counted(async () => {
      for (const i of [0, 1, 3]) await this.#checkFormulas(programs[i]!);
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
        setDynamicSizes('automatic');
        clearPlans();
      }
      throw error;
    }
  }
}

/** Gradients of all outputs together. */
async function gradients(program: Program): Promise<NDArray[]> {
  const problem = new Problem(program);
  if (problem.empty) return [];
  return leavingNothing(async () => {
    const points = problem.points();
    try {
      return await arraysOf(pg.grads(problem.run)(...points) as pg.Tensor[]);
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
      const y = other[i] as number;
      if (Object.is(x, y) || Math.abs(x - y) <= 1e-9 * scale + 1e-12) continue;
      throw new Error(`gradient ${k}: element ${i} is ${y} of a shared plan and ${x} of its own`);
    }
  }
}

function at<T>(n: number, i: number, f: () => T): T {
  try {
    return f();
  } catch (error) {
    (error as Error).message = `run ${i}, size ${n}: ${(error as Error).message}`;
    throw error;
  }
}
