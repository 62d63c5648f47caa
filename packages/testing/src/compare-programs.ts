/** Cases run on an engine and on the interpreter, and what differs. */
import type { IEngine } from '@polygrad/core/functions';
import { printProgram } from '@polygrad/core/kernel';
import { type ProgramCase, type ProgramTolerance, programDifference, runProgramCases } from './program-case.ts';
import { createReferenceEngine } from './reference-engine.ts';

/** How many cases are compiled together. */
const batch = 64;

/**
 * Runs the cases on an engine and says where it differs from the interpreter: one text for each case that does, with its
 * program. Nothing is expected of cases that the engine cannot hold: leave them out.
 *
 * @example
 * const engine = createReferenceEngine();
 * await comparePrograms(engine, everyNth(operationCases(['float32'], [1]), 40)); // []
 */
export async function comparePrograms(
  engine: IEngine,
  cases: readonly ProgramCase[],
  tolerance: ProgramTolerance = {},
): Promise<readonly string[]> {
  const reference = createReferenceEngine();
  const problems: string[] = [];
  for (let at = 0; at < cases.length; at += batch) {
    const some = cases.slice(at, at + batch);
    const results = await runProgramCases(engine, some);
    for (const [i, c] of some.entries()) {
      const want = c.expected ?? (await runProgramCases(reference, [c]))[0];
      const wrong = programDifference(c, results[i]!, want!, tolerance);
      if (wrong !== null) problems.push(`${c.name}: ${wrong}\n${printProgram(c.program)}`);
    }
  }
  reference.dispose();
  return problems;
}

/**
 * Every n-th case, by its place among the others: for engines that compile slowly.
 *
 * @example
 * const cases = [1, 2, 3, 4].map((seed) => randomProgram(seed));
 * everyNth(cases, 2).length; // 2
 */
export function everyNth(cases: Iterable<ProgramCase>, n: number): readonly ProgramCase[] {
  return [...cases].filter((_, i) => i % n === 0);
}
