/**
 * Saved states of optimizers: what one holds, and the check that it is whole and of as many parameters. Each optimizer takes its own over
 * (`prepareState` of optimizer.ts, groups.ts, averages.ts and lbfgs.ts).
 */
import { checkFits, checkInteger, checkList, NnError } from '../errors.ts';
import { checkState, type StateArray, type StateValues } from '../module/state.ts';

/** The state of an optimizer in host memory: arrays by name, and the number of steps asked for. */
export interface OptimizerState {
  readonly steps: number;
  /** How many of them were skipped; absent if none can have been. */
  readonly skipped?: number;
  /** Steps that each parameter had no gradient in; left out where there were none. */
  readonly missed?: readonly number[];
  /** `'<index of the parameter>.<slot>'` to array. */
  readonly slots: Readonly<Record<string, StateArray>>;
}

/** A state to go on from, whose slots may come from a file. */
export type LoadedState = Omit<OptimizerState, 'slots'> & { readonly slots: StateValues };

/** Checks a state of all parameters completely. Throws if it cannot be loaded. */
export function checkedState(
  state: LoadedState,
  count: number,
): { steps: number; skipped: number; missed: number[]; slots: StateValues } {
  const op = 'loadState';
  checkFits(op, 'state', state, typeof state === 'object' && state !== null, 'an object with steps and slots');
  const { steps, skipped = 0, missed = new Array<number>(count).fill(0), slots } = state;
  checkInteger(op, 'steps', steps, 0);
  checkInteger(op, 'skipped', skipped, 0, steps);
  checkList(op, 'missed', missed);
  if (missed.length !== count)
    throw new NnError(
      op,
      `missed has ${missed.length} entries and the optimizer ${count} parameters; the state is of other parameters`,
      ['missed'],
    );
  for (const one of missed) checkInteger(op, 'missed', one, 0, steps);
  checkState(op, slots);
  return { steps, skipped, missed: [...missed], slots };
}
