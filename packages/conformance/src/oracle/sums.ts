/** Functions of a list of numbers, in the order of the list, in float64. */

export const total = (v: readonly number[]): number => v.reduce((a, b) => a + b, 0);

export const average = (v: readonly number[]): number => total(v) / v.length;

/** The variance, divided by so much less than there are numbers. */
export const spread = (v: readonly number[], correction: number = 0): number => {
  const m = average(v);
  return total(v.map((x) => (x - m) ** 2)) / (v.length - correction);
};
