/** Decays of running means, as options of optimizers: numbers at least 0 and below 1, and momenta that change from step to step. */
import { checkFits, checkFraction } from '../errors.ts';
import type { Schedule } from './schedule.ts';

/** Throws unless they are two numbers, each at least 0 and below 1; where that is said, the first may be a schedule. */
export function checkBetas(op: string, betas: unknown, isScheduled = false): void {
  checkFits(op, 'betas', betas, Array.isArray(betas) && betas.length === 2, 'a list of two numbers');
  for (const [i, beta] of (betas as readonly number[]).entries())
    if (!isScheduled || i > 0 || typeof beta !== 'function') checkFraction(op, 'betas', beta);
}

/** Throws unless it is a momentum: a number at least 0 and below 1, or a schedule of such. */
export function checkMomentum(op: string, name: string, momentum: number | Schedule): void {
  if (typeof momentum !== 'function') checkFraction(op, name, momentum);
}

/** The momentum of the step after `steps` steps. Throws where a schedule gives none. */
export function momentumAt(op: string, name: string, momentum: number | Schedule, steps: number): number {
  if (typeof momentum !== 'function') return momentum;
  const value = momentum(steps);
  checkFraction(op, `${name} of step ${steps}`, value);
  return value;
}
