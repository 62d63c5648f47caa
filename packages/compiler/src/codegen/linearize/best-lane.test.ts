/** Positions of extrema whose lanes are brought together at once: the first of equal elements, of zeros of both signs, and of NaN. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { draws } from '../../fixtures/draws.ts';
import { reduction, simdCaps } from '../fixtures/nests.ts';
import { interpret } from '../../interpreter/interpret.ts';
import { verifyProgram } from '../../ir/verify/verify.ts';
import { optimize } from '../loops/optimize.ts';
import { bestLane } from './best-lane.ts';
import { linearize } from './linearize.ts';

const caps = { ...simdCaps, vectorBytes: 32, lowering: { ...simdCaps.lowering, bestLane } };
const rows = 3;

/** The first position of NaN, else of the best number. */
function firstBest(op: 'argmax' | 'argmin', x: Float32Array): number {
  let at = 0;
  for (const [i, v] of x.entries()) {
    if (Number.isNaN(x[at]!)) return at;
    if (Number.isNaN(v) || (op === 'argmax' ? v > x[at]! : v < x[at]!)) at = i;
  }
  return at;
}

const element = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom(0, -0, 1, -1) },
  { weight: 2, arbitrary: fc.constantFrom(Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY) },
  { weight: 1, arbitrary: fc.constant(Number.NaN) },
);

test.each(['argmax', 'argmin'] as const)('%s of rows of whole vectors, and with elements left', (op) => {
  for (const columns of [128, 131, 136, 143]) {
    const program = linearize(optimize(reduction(op, [rows, columns], [1]), caps), caps);
    verifyProgram(program);
    // The lanes are reduced, not compared by pairs with each other.
    expect(program.body.filter((n) => n.op === 'MIN' && n.dtype === 'int32' && n.lanes === 1).length).toBeGreaterThan(
      6,
    );
    fc.assert(
      fc.property(
        fc.array(element, { minLength: rows * columns, maxLength: rows * columns }),
        fc.array(fc.constantFrom(0, 1, 2), { minLength: rows, maxLength: rows }),
        (values, kinds) => {
          // Rows of one kind of number, so that all lanes are equal, or nearly.
          const x = Float32Array.from(values, (v, i) => {
            const kind = kinds[Math.floor(i / columns)]!;
            return kind === 0 ? v : kind === 1 && i % columns !== 77 ? Number.NEGATIVE_INFINITY : v === 1 ? -0 : 0;
          });
          const got = new Int32Array(rows);
          interpret(program, [got, x], []);
          const want = Array.from(got, (_, r) => firstBest(op, x.subarray(r * columns, (r + 1) * columns)));
          expect(Array.from(got)).toEqual(want);
        },
      ),
      { numRuns: 30, ...draws },
    );
  }
});
