/** The C baseline with relaxed SIMD: multiply and add in one rounding where the processor has it. */
import { createBaseline } from './c-wasm.ts';
import type { Runner, RunnerOptions } from './runner.ts';

export function createRunner(options: RunnerOptions): Promise<Runner> {
  return createBaseline(options, true);
}
