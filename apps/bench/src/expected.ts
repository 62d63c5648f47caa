/**
 * What the results must be, in float64 and without any participant's code: a fast wrong answer is no figure. Training steps are
 * compared among participants instead.
 */
import type { Work } from './cases.ts';
import { element, probePositions } from './inputs.ts';

/** Additions in the chain whose result is checked, where recording is measured. */
export const longestProbe = 10;

const signed = (seed: number, i: number): number => element(seed, i, -1, 1);

/** Expected values of a probe, and by how much each may differ. Null for training: participants are compared. */
export function expectedProbe(work: Work): { readonly values: readonly number[]; readonly atol: number } | null {
  switch (work.kind) {
    case 'gemm': {
      const { m, n, k } = work;
      const values = probePositions(m * n).map((at) => {
        const [row, column] = [Math.floor(at / n), at % n];
        let sum = 0;
        for (let i = 0; i < k; i++) sum += signed(1, row * k + i) * signed(2, i * n + column);
        return sum;
      });
      return { values, atol: 1e-5 + k * 2 ** -24 * (k / 4 + 1) };
    }
    case 'add':
    case 'small-add':
    case 'round-trip':
      return { values: probePositions(work.n).map((i) => signed(1, i) + signed(2, i)), atol: 1e-6 };
    case 'plan-hit':
    case 'record': {
      const ops = Math.min(work.ops, longestProbe);
      return { values: probePositions(work.n).map((i) => signed(1, i) + ops * signed(2, i)), atol: 1e-4 };
    }
    case 'chain':
      return {
        values: probePositions(work.n).map((i) => {
          const [a, b] = [signed(1, i), signed(2, i)];
          return Math.max(a * b + a, 0) * 0.5 - b;
        }),
        atol: 1e-6,
      };
    case 'sum': {
      let sum = 0;
      for (let i = 0; i < work.n; i++) sum += element(3, i, 0, 1);
      return { values: [sum], atol: 1e-4 * sum };
    }
    case 'mlp':
    case 'cnn':
      return null;
  }
  return work satisfies never;
}

/** Losses of training steps may drift apart by this part of their size. */
export const lossTolerance = 1e-3;

/** The first difference beyond `atol`, in words, or null. */
export function difference(actual: readonly number[], expected: readonly number[], atol: number): string | null {
  if (actual.length !== expected.length) return `${actual.length} values where ${expected.length} are expected`;
  for (let i = 0; i < expected.length; i++) {
    const [a, e] = [actual[i] as number, expected[i] as number];
    if (!(Math.abs(a - e) <= atol)) return `value ${i} is ${a}, expected ${e} within ${atol.toExponential(1)}`;
  }
  return null;
}
