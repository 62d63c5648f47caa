/** Decays of two running means, as options of Adam and Lion. */
import { checkFits, checkFraction } from '../errors.ts';

/** Throws unless they are two numbers, each at least 0 and below 1. */
export function checkBetas(op: string, betas: unknown): void {
  checkFits(op, 'betas', betas, Array.isArray(betas) && betas.length === 2, 'a list of two numbers');
  for (const beta of betas as readonly number[]) checkFraction(op, 'betas', beta);
}
