/** Maxima and minima by parts: NaN of both signs, zeros of both signs and infinities, bit for bit what MAX and MIN give. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { EngineCaps } from '@polygrad/core/engine';
import { optimize } from '../loops/optimize.ts';
import { interpret } from '../../interpreter/interpret.ts';
import type { Program } from '../../ir/ir.ts';
import type { ReduceOp } from '../../ir/operations.ts';
import { linearize } from './linearize.ts';
import { reduction, simdCaps } from '../fixtures/nests.ts';
import { verifyProgram } from '../../ir/verify/verify.ts';
import { draws } from '../../fixtures/draws.ts';

function programOf(op: ReduceOp, shape: readonly number[], axes: readonly number[], changed: Partial<EngineCaps> = {}) {
  const engine = { ...simdCaps, ...changed };
  const program = linearize(optimize(reduction(op, shape, axes), engine), engine);
  verifyProgram(program);
  return program;
}

function goesByParts(p: Program): boolean {
  return p.body.some((n) => n.op === 'MAX' && n.dtype === 'uint32');
}

/** NaN with the sign bit set, as x86 makes it, and with other payloads. */
const nans = [0xffc00000, 0x7fc00000, 0x7f800001, 0xff800001, 0xffffffff, 0x7fffffff];
const numbers = [0, -0, 1, -1, 1e-45, -1e-45, 3e38, -3e38, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];

const element = fc.oneof(
  { weight: 20, arbitrary: fc.constantFrom(0, -0) },
  { weight: 4, arbitrary: fc.constantFrom(...numbers) },
);

/** Each row or column is of its own kind, so that zeros and NaN meet all neighbours there are. */
function check(op: 'max' | 'min', shape: readonly [number, number], axis: 0 | 1, numRuns = 40): void {
  const program = programOf(op, shape, [axis]);
  expect(goesByParts(program)).toBe(true);
  const [rows, columns] = shape;
  const kept = axis === 1 ? rows : columns;
  const reduced = axis === 1 ? columns : rows;
  const special = fc.record({
    sign: fc.constantFrom(0, 1, -1),
    values: fc.array(element, { minLength: 5, maxLength: 5 }),
    nan: fc.option(fc.tuple(fc.constantFrom(...nans), fc.nat(reduced - 1)), { freq: 3 }),
    odd: fc.nat(reduced - 1),
  });
  fc.assert(
    fc.property(fc.array(special, { minLength: 6, maxLength: 6 }), (kinds) => {
      const x = new Float32Array(rows * columns);
      const bits = new Uint32Array(x.buffer);
      const want = new Float32Array(kept);
      for (let k = 0; k < kept; k++) {
        const { sign, values, nan, odd } = kinds[k % kinds.length] as (typeof kinds)[number];
        let best: number = op === 'max' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
        for (let r = 0; r < reduced; r++) {
          const plain = values[(r + k) % values.length]!;
          // All zeros and numbers of one sign, but for one element.
          const value = sign === 0 || r === odd ? plain : sign * Math.abs(plain);
          const at = axis === 1 ? k * columns + r : r * columns + k;
          x[at] = value;
          if (nan !== null && nan[1] === r) bits[at] = nan[0];
          best = op === 'max' ? Math.max(best, x[at]!) : Math.min(best, x[at]!);
        }
        want[k] = best;
      }
      const got = new Float32Array(kept);
      interpret(program, [got, x], []);
      want.forEach((w, k) => {
        if (!Object.is(w, got[k])) throw new Error(`${op} ${k}: ${w}, got ${got[k]}`);
      });
    }),
    { numRuns, ...draws },
  );
}

describe('extrema by parts', () => {
  test.each(['max', 'min'] as const)('%s of rows, whole vectors and rests', (op) => {
    for (const columns of [12, 13, 31, 64, 67]) check(op, [7, columns], 1);
  });

  test.each(['max', 'min'] as const)('%s of columns in registers and in memory', (op) => {
    check(op, [12, 37], 0, 20);
    check(op, [64, 1030], 0, 4);
  });

  test('short ones, other dtypes and GPUs go by MAX', () => {
    expect(goesByParts(programOf('max', [9, 7], [1]))).toBe(false);
    expect(goesByParts(programOf('sum', [9, 64], [1]))).toBe(false);
    expect(goesByParts(programOf('argmax', [9, 64], [1]))).toBe(false);
    expect(goesByParts(programOf('max', [9, 64], [1], { simt: true, maxGroup: 32, vectorBytes: 16 }))).toBe(false);
  });
});
