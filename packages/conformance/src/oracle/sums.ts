/** Functions of a list of numbers, in the order of the list, in float64. */

export const total = (v: readonly number[]): number => v.reduce((a, b) => a + b, 0);

export const average = (v: readonly number[]): number => total(v) / v.length;

/** The variance, divided by so much less than there are numbers. */
export const spread = (v: readonly number[], correction: number = 0): number => {
  const m = average(v);
  return total(v.map((x) => (x - m) ** 2)) / (v.length - correction);
};

/** log(sum(exp(v))), without overflow. */
export const logSum = (v: readonly number[]): number => {
  const top = v.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  return Math.abs(top) === Number.POSITIVE_INFINITY ? top : top + Math.log(total(v.map((x) => Math.exp(x - top))));
};

/** Orders that norms and distances are checked for. */
export const normOrders: readonly number[] = [2, 1, Number.POSITIVE_INFINITY, 3, 1.5];

/** The p-norm of a vector. */
export function length(v: readonly number[], p: number): number {
  const sizes = v.map(Math.abs);
  if (p === Number.POSITIVE_INFINITY) return Math.max(0, ...sizes);
  if (p === Number.NEGATIVE_INFINITY) return Math.min(...sizes);
  return total(sizes.map((x) => x ** p)) ** (1 / p);
}
