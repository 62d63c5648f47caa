/**
 * warmup: a step's kernels are made before its first run.
 *
 * The function is recorded as always, but where its flushes would run a plan, the plan is only made. Results that no flush
 * computed are given back at the end, assignments are taken back, and the generator of random numbers is where it was.
 */
import type { ReadyProgress } from '../engine/engine.ts';
import { getEngine } from '../engine/registry.ts';
import { graph } from '../graph/state.ts';
import { isRehearsing, type Rehearsal, transactions } from '../graph/transactions.ts';
import { generatorState, withGenerator } from './random-key.ts';
import { ArgumentError } from '../shape/errors.ts';
import { checkFunction, checkNames } from '../shape/options.ts';
import { called } from './scope.ts';
import { stateOf, prepare } from '../runtime/run.ts';
import { flush } from '../runtime/runtime.ts';

export interface WarmupOptions {
  /** Told how many kernels are ready, where the engine knows (WebGPU): at once, and after every one. */
  readonly onCompile?: (progress: ReadyProgress) => void;
}

/**
 * Makes the kernels of a function, for instance a training step, without running it, and resolves when they are ready. On engines
 * that compile slowly (WebGPU) the first step then starts at once.
 *
 * Call it with the shapes of real steps. The function is called once: tensors it assigns keep their values, optimizers do not
 * count the step, tensors it makes are disposed; what else it changes in JavaScript stays changed. It should not read values. Steps that
 * flush several times are prepared as far as their first flush goes, and roughly after that.
 *
 * @param step a synchronous function
 * @param options onCompile: told how far it is
 * @throws ArgumentError if it returns a promise, or inside another warmup
 * @example
 * const w = zeros([4]);
 * const step = () => void w.assign(w.add(ones([4]).mul(2)));
 * await warmup(step);
 * await w.array(); // [0, 0, 0, 0]
 */
export async function warmup(step: () => unknown, options: WarmupOptions = {}): Promise<void> {
  checkNames('warmup', options, 'onCompile!');
  checkFunction('warmup', step);
  if (isRehearsing()) throw new ArgumentError('warmup', 'a warmup is running already; end it before the next one');
  flush();
  const engine = getEngine();
  const rehearsal: Rehearsal = transactions.begin();
  let missing: Promise<void> | null = null;
  // With the counts as they would be if nobody rehearsed.
  rehearsal.plan = (wanted) => {
    const state = stateOf(getEngine());
    rehearsal.letGo();
    try {
      if (wanted.length > 0) missing = prepare(state, wanted, state.global) ?? missing;
    } finally {
      rehearsal.hold();
    }
  };
  transactions.rehearsal = rehearsal;
  try {
    withGenerator(generatorState(), () => called('warmup', step));
    flush();
  } finally {
    const bound = new Set(rehearsal.entries.keys());
    transactions.rollBack(rehearsal);
    transactions.rehearsal = null;
    for (const handle of [...graph.pending]) if (!bound.has(handle) && !handle.kept) handle.dispose();
  }
  flush();
  // What is loaded now is compiled by the first step.
  await missing;
  await engine.ready?.(options.onCompile);
}
