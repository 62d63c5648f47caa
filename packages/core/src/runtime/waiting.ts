/**
 * Waiting for what an attempt lacks: the device's answer about memory, which has a time limit, and values, which have none.
 */
import { getEngine } from '../engine/registry.ts';
import { noticed } from '../engine/recovery.ts';
import { inTime } from './late.ts';
import { runs, stateOf } from './run.ts';

/** True for the promise of an engine in use to say whether it has the requested memory. */
export function isAnswerOnMemory(promise: Promise<void>): boolean {
  if (promise === getEngine().confirming?.()) return true;
  return runs.placer?.others().some(({ engine }) => promise === engine.confirming?.()) === true;
}

/** Waits for an attempt's promise; for the device's answer about memory no longer than the time limit of answers. */
export async function untilAnswered(arrival: Promise<void> | null | undefined): Promise<void> {
  if (!arrival || !isAnswerOnMemory(arrival)) return arrival ?? undefined;
  const state = stateOf(getEngine());
  try {
    await inTime(state, arrival, 'a request for memory');
  } catch (error) {
    throw noticed(state.engine, error);
  }
}
