/** The oracle of log gamma against values in closed form: random programs compare float64 with it, and jump where it should be 0. */
import { expect, it } from 'vitest';
import { lgamma } from './special.ts';

it('log gamma is 0 at 1 and 2, and right to 14 digits beside them', () => {
  expect([lgamma(1), lgamma(2)]).toEqual([0, 0]);
  const known: readonly (readonly [number, number])[] = [
    [0.5, 0.5 * Math.log(Math.PI)],
    [1.5, 0.5 * Math.log(Math.PI) - Math.LN2],
    [3, Math.LN2],
    [11, Math.log(3_628_800)],
    [-0.5, Math.log(2 * Math.sqrt(Math.PI))],
  ];
  for (const [x, value] of known) expect(Math.abs(lgamma(x) - value), `of ${x}`).toBeLessThan(4e-14);
});
