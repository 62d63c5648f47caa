/** Whether a program gives on the current engine what its formulas say, the same bits however it is cut, and leaves nothing behind. */
import { flush, getEngine, idle, memory, setEager } from '@polygrad/core';
import { cpuEngine } from '@polygrad/core/engine';
import { defaultTolerances } from '../compare.ts';
import type { NDArray } from '../oracle/ndarray.ts';
import { makeRandom } from '../oracle/random.ts';
import { evaluate, orderedValues, sensitivity } from '../programs/evaluate.ts';
import { execute, type Outcome } from './execute.ts';
import { observed, type Program } from '../programs/program.ts';

export interface CheckOptions {
  /** Functions and sums have IEEE rounding, so bits do not depend on what is fused. */
  readonly exact: boolean;
  /** Roundings are so many times those of float arithmetic (functions of GPUs). */
  readonly scale?: number;
}

/** Live buffers of the engine and of the CPU engine beside it, and live tensors. */
export function alive(): string {
  const cpu = cpuEngine();
  const beside = cpu === null || 'then' in cpu || cpu === getEngine() ? 0 : memory(cpu).numBuffers;
  return counted(beside);
}

/** The same without what the CPU engine holds beside another one: copies there stay with the tensors they were made of. */
export function aliveHere(): string {
  return counted(0);
}

function counted(beside: number): string {
  const { numBuffers, numTensors } = memory();
  return `${numBuffers + beside} buffers and ${numTensors} tensors`;
}

/** Resolves when everything recorded is computed. */
export async function settled(): Promise<void> {
  flush();
  await idle();
}

/** How `leavingNothing` counts what is alive, and the error it throws. */
export interface LeavingOptions {
  readonly count?: () => string;
  readonly explain?: (what: string) => Error;
}

/**
 * Throws unless the run leaves as much behind as there was before. A run that does not is repeated, twice at most. What others had forgotten may have
 * been collected during it, and what functions of the user's hold is copied once.
 */
export async function leavingNothing<T>(run: () => Promise<T>, options: LeavingOptions = {}): Promise<T> {
  const { count = alive, explain = (what) => new Error(what) } = options;
  let problem = '';
  for (let i = 0; i < 3; i++) {
    const before = count();
    const result = await run();
    await settled();
    if (count() === before) return result;
    problem = `${count()} where ${before} were before`;
  }
  throw explain(problem);
}

/** What a program gives where every operation runs by itself. */
export async function opByOp(program: Program): Promise<Outcome[]> {
  setEager(true);
  try {
    return await leavingNothing(() => execute(program));
  } finally {
    setEager(false);
  }
}

/** Throws where the current engine does not agree with the program's formulas. */
export async function check(program: Program, options: CheckOptions): Promise<void> {
  if (program.outputs.length === 0) return;
  const fused = await leavingNothing(() => execute(program));
  const eager = await opByOp(program);
  const runs = [
    { name: '', outcomes: fused },
    { name: 'op by op, ', outcomes: eager },
  ];
  agree(program, runs, options);
}

/** What a program gave, and how it ran then. */
export interface NamedRun {
  readonly name: string;
  readonly outcomes: readonly Outcome[];
}

/** Throws where a run does not agree with the program's formulas, or one that must have the bits of the first has others. */
export function agree(program: Program, runs: readonly NamedRun[], { exact, scale = 1 }: CheckOptions): void {
  const base = evaluate(program);
  const close = (outcomes: readonly Outcome[], runs: number, seed: number): string | null => {
    const moved = sensitivity(program, base, makeRandom(seed), runs, scale);
    for (const [i, id] of observed(program).entries()) {
      const problem = differs(outcomes[i]!, base.get(id) as NDArray, moved.get(id) as NDArray);
      if (problem !== null) return `t${id}: ${problem}`;
    }
    return null;
  };
  for (const { name, outcomes } of runs) {
    // Few runs are enough where all is well; a difference must stand against many.
    const problem = close(outcomes, 2, 1) === null ? null : close(outcomes, 60, 2);
    if (problem !== null) throw new Error(name + problem);
  }
  const ordered = orderedValues(program.steps);
  for (const [i, id] of observed(program).entries()) {
    if (!exact || !ordered.has(id)) continue;
    const [first, ...others] = runs.map(({ name, outcomes }) => ({ name, values: outcomes[i]!.values }));
    for (const { name, values } of others) {
      const isOther = (x: number, at: number): boolean =>
        x !== values[at] && !(Number.isNaN(x) && Number.isNaN(values[at]));
      const bad = first!.values.findIndex(isOther);
      if (bad >= 0)
        throw new Error(
          `t${id}: element ${bad} is ${first!.values[bad]} ${first!.name || 'fused, '}and ${name}${values[bad]}`,
        );
    }
  }
}

function differs(actual: Outcome, expected: NDArray, moved: NDArray): string | null {
  if (actual.shape.join() !== expected.shape.join())
    return `shape [${actual.shape}] where [${expected.shape}] is expected`;
  const { rtol, atol } = defaultTolerances.forward[actual.dtype] ?? { rtol: 0, atol: 0 };
  for (const [i, e] of expected.data.entries()) {
    const a = actual.values[i]!;
    if (a === e || (Number.isNaN(a) && Number.isNaN(e))) continue;
    const error = Math.abs(a - e);
    const allowed = atol + rtol * Math.abs(e) + 4 * moved.data[i]!;
    if (error <= allowed || allowed === Number.POSITIVE_INFINITY) continue;
    return `element ${i} of [${actual.shape}] ${actual.dtype} is ${a} where ${e} is expected (allowed ${allowed.toExponential(1)})`;
  }
  return null;
}
