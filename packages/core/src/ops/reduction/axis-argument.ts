/** The axis argument of reductions: a number, several, or options - as one record. */
import { normalizeAxes, normalizeAxis } from '../../shape/axes.ts';
import { checkNames } from '../../shape/options.ts';
import { isList } from '../../shape/shown.ts';
import type { AxisArgument } from '../../tensor/types.ts';

export interface Axes {
  /** Sorted, distinct, non-negative. */
  readonly axes: number[];
  readonly keepDims: boolean;
}

/** Reads an axis argument for a tensor of `rank` axes; `more` names further options. Throws ShapeError in the name of `op`. */
export function readAxes(op: string, argument: AxisArgument | undefined, rank: number, more: string = ''): Axes {
  if (typeof argument === 'object' && argument !== null && !isList(argument)) {
    checkNames(op, argument, `axis keepDims?${more}`);
    const { axis, keepDims } = argument as { axis?: number | readonly number[]; keepDims?: boolean };
    return { axes: normalizeAxes(op, axis, rank), keepDims: keepDims ?? false };
  }
  return { axes: normalizeAxes(op, argument as number | readonly number[] | undefined, rank), keepDims: false };
}

/** Reads an argument that names one axis, by itself or as `{ axis }`; `names` are those of all options. */
export function readAxis(
  op: string,
  argument: number | { readonly axis?: number | undefined } | undefined,
  fallback: number,
  rank: number,
  names: string = 'axis',
): number {
  if (typeof argument !== 'number') checkNames(op, argument, names);
  const axis = typeof argument === 'number' ? argument : (argument?.axis ?? fallback);
  // A scalar counts as one element along one axis.
  if (rank === 0 && (axis === 0 || axis === -1)) return 0;
  return normalizeAxis(op, axis, rank);
}
