/** What normalisations have in common: mean and variance over axes, and the scale and shift that follow. */
import { ArgumentError, ShapeError, showShape } from '../../shape/errors.ts';
import { say } from '../../shape/shown.ts';
import type { Shape } from '../../shape/view.ts';
import { given } from '../../tensor/operand.ts';
import type { Tensor } from '../../tensor/types.ts';
import { add, div, mul, square, sub } from '../elementwise/arithmetic.ts';
import { sum } from './reduction.ts';
import { reshape } from '../movement/shape.ts';

/** Scale and shift after normalising. */
export interface Affine {
  /** Scale after normalising; none if left out. */
  readonly weight?: Tensor | null;
  /** Shift after scaling; none if left out. */
  readonly bias?: Tensor | null;
  /** Added to the variance. Default 1e-5. */
  readonly eps?: number;
}

/** The number added to variances. */
export function readEps(op: string, eps: number | undefined, x: Tensor): Tensor {
  if (eps !== undefined && (typeof eps !== 'number' || !(eps >= 0)))
    throw new ArgumentError(op, say`bad eps: ${eps}; must be a number of at least 0`);
  return given(eps ?? 1e-5, x);
}

/** Mean and variance over the axes, axes kept. */
export function moments(
  x: Tensor,
  axes: readonly number[],
): { centered: Tensor; mean: Tensor; variance: Tensor; count: number } {
  const count = axes.reduce((n, axis) => n * x.shape[axis]!, 1);
  const over = { axis: axes, keepDims: true };
  const mean = div(sum(x, over), count);
  const centered = sub(x, mean);
  return { centered, mean, variance: div(sum(square(centered), over), count), count };
}

/** Normalised, scaled and shifted; weight and bias are reshaped to `shape`, which broadcasts with x. */
export function affine(normal: Tensor, { weight, bias }: Affine, shape: Shape, op: string): Tensor {
  const size = shape.reduce((a, b) => a * b, 1);
  const fit = (t: Tensor, what: string): Tensor => {
    if (t.size !== size)
      throw new ShapeError(op, say`${what} has shape ${showShape(t.shape)}: needs ${size} elements`, [t.shape]);
    return reshape(t, shape);
  };
  const scaled = weight ? mul(normal, fit(weight, 'weight')) : normal;
  return bias ? add(scaled, fit(bias, 'bias')) : scaled;
}
