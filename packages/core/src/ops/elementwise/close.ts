/** What is close to what: one rule, for `isClose` in graphs and for matchers on the host. */
import { checkNames } from '../../shape/options.ts';

/** Tolerances of `isClose` and `allClose`. */
export interface CloseOptions {
  /** Tolerance times the magnitude of the second operand. Default 1e-5. */
  readonly rtol?: number;
  /** Tolerance whatever the magnitude. Default 1e-8. */
  readonly atol?: number;
  /** Whether NaN is close to NaN. Default false. */
  readonly equalNaN?: boolean;
}

export type Tolerances = Required<CloseOptions>;

/** The options of the function `op`, checked, with their defaults. */
export function tolerancesOf(op: string, options: CloseOptions): Tolerances {
  checkNames(op, options, 'rtol# atol# equalNaN?');
  const { rtol = 1e-5, atol = 1e-8, equalNaN = false } = options;
  return { rtol, atol, equalNaN };
}

/** What the rule is computed with: nodes of a graph, or numbers. Conditions are 1 and 0. */
export interface Arithmetic<V> {
  readonly number: (value: number) => V;
  readonly apply: (op: 'abs' | 'add' | 'mul' | 'lt' | 'le' | 'and' | 'or' | 'isNaN', ...operands: V[]) => V;
}

/** What is compared: |x - y| and x == y come from the caller, who knows how to compute them exactly. */
export interface Compared<V> {
  readonly x: V;
  readonly y: V;
  readonly distance: V;
  readonly same: V;
}

/** Whether x is close to y, and the largest distance allowed. Source: NumPy `isclose`. */
export function closeness<V>(
  { number, apply }: Arithmetic<V>,
  { x, y, distance, same }: Compared<V>,
  { rtol, atol, equalNaN }: Tolerances,
): { readonly close: V; readonly allowed: V } {
  const size = apply('abs', y);
  const allowed = apply('add', number(atol), apply('mul', number(rtol), size));
  const near = apply('and', apply('lt', size, number(Number.POSITIVE_INFINITY)), apply('le', distance, allowed));
  const close = apply('or', near, same);
  return { close: equalNaN ? apply('or', close, apply('and', apply('isNaN', x), apply('isNaN', y))) : close, allowed };
}
