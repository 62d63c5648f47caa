/**
 * What the results must be, in float64 and without any participant's code: a fast wrong answer is no figure. Training steps are
 * compared among participants instead.
 */
import { isOrderWork, type LayoutWork, type Work } from './cases.ts';
import { expectedOrder } from './expected-order.ts';
import { element, probePositions } from './inputs.ts';

/** Additions in the chain whose result is checked, where recording is measured. */
export const longestProbe = 10;

const signed = (seed: number, i: number): number => element(seed, i, -1, 1);

/** Expected values of a probe, and by how much each may differ. Null for training: participants are compared. */
export function expectedProbe(work: Work): { readonly values: readonly number[]; readonly atol: number } | null {
  if (isOrderWork(work)) return expectedOrder(work);
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
    case 'conv': {
      const { batch, channels, side, filters } = work;
      const at = (n: number, c: number, y: number, x: number): number =>
        y < 0 || x < 0 || y >= side || x >= side ? 0 : signed(1, ((n * channels + c) * side + y) * side + x);
      const values = probePositions(batch * filters * side * side).map((p) => {
        const [x, y, f, n] = [
          p % side,
          Math.floor(p / side) % side,
          Math.floor(p / side ** 2) % filters,
          Math.floor(p / side ** 2 / filters),
        ];
        let sum = 0;
        for (let c = 0; c < channels; c++)
          for (let i = 0; i < 9; i++)
            sum += at(n, c, y + Math.floor(i / 3) - 1, x + (i % 3) - 1) * signed(2, (f * channels + c) * 9 + i);
        return sum;
      });
      return { values, atol: 1e-5 + 9 * channels * 2 ** -22 };
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
    case 'network':
    case 'sizes':
    case 'operation':
      return null;
    default:
      return expectedLayout(work);
  }
}

function normalDistribution(x: number): number {
  // The normal distribution function by the series of erf (Abramowitz and Stegun 7.1.5), exact enough for |x| <= 1.
  let [term, total] = [x / Math.SQRT2, x / Math.SQRT2];
  for (let k = 1; k < 20; k++) {
    term *= -(x * x) / 2 / k;
    total += term / (2 * k + 1);
  }
  return 0.5 + total / Math.sqrt(Math.PI);
}

/** Element `at` of the result, from elements of the inputs. */
function layoutElement(kind: LayoutWork['kind'], n: number, at: number): number {
  const side = Math.round(Math.sqrt(n));
  const [i, j] = [Math.floor(at / side), at % side];
  const a = (row: number, column: number): number => signed(1, row * side + column);
  const fold = (f: (k: number) => number, of: (x: number, y: number) => number, count = side): number => {
    let total = f(0);
    for (let k = 1; k < count; k++) total = of(total, f(k));
    return total;
  };
  const plus = (x: number, y: number): number => x + y;
  const s = (index: number): number => element(3, index, 0, 1);
  switch (kind) {
    case 'add-row':
      return a(i, j) + signed(2, j);
    case 'add-column':
      return a(i, j) + signed(2, i);
    case 'add-transposed':
      return a(i, j) + signed(2, j * side + i);
    case 'add-strided': {
      const [row, column] = [Math.floor(at / (side / 2)), 2 * (at % (side / 2))];
      return a(row, column) + signed(2, row * side + column);
    }
    case 'add-flipped':
      return a(i, j) + signed(2, n - 1 - at);
    case 'sum-rows':
      return fold((k) => s(at * side + k), plus);
    case 'max-rows':
      return fold((k) => a(at, k), Math.max);
    case 'sum-columns':
      return fold((k) => s(k * side + at), plus);
    case 'max-columns':
      return fold((k) => a(k, at), Math.max);
    case 'sum-middle': {
      const cube = Math.round(Math.cbrt(n));
      const [slab, depth] = [Math.floor(at / cube), at % cube];
      return fold((k) => s((slab * cube + k) * cube + depth), plus, cube);
    }
    case 'softmax':
      return Math.exp(a(i, j)) / fold((k) => Math.exp(a(i, k)), plus);
    case 'layer-norm': {
      const mean = fold((k) => a(i, k), plus) / side;
      const variance = fold((k) => (a(i, k) - mean) ** 2, plus) / side;
      return (a(i, j) - mean) / Math.sqrt(variance + 1e-5);
    }
    case 'gelu':
      return signed(1, at) * normalDistribution(signed(1, at));
  }
  return kind satisfies never;
}

/** Elements of the result. */
function layoutSize({ kind, n }: LayoutWork): number {
  if (kind === 'add-strided') return n / 2;
  if (kind === 'sum-middle') return Math.round(Math.cbrt(n)) ** 2;
  return kind.startsWith('sum') || kind.startsWith('max') ? Math.round(Math.sqrt(n)) : n;
}

function expectedLayout(work: LayoutWork): { readonly values: readonly number[]; readonly atol: number } {
  const values = probePositions(layoutSize(work)).map((at) => layoutElement(work.kind, work.n, at));
  return { values, atol: work.kind.startsWith('sum') ? 2e-2 : work.kind === 'softmax' ? 1e-8 : 4e-6 };
}

/** Losses of training steps may drift apart by this part of their size. */
export const lossTolerance = 1e-3;

/** The first difference beyond `atol`, in words, or null. */
export function difference(actual: readonly number[], expected: readonly number[], atol: number): string | null {
  if (actual.length !== expected.length) return `${actual.length} values where ${expected.length} are expected`;
  for (let i = 0; i < expected.length; i++) {
    const [a, e] = [actual[i]!, expected[i]!];
    if (!(Math.abs(a - e) <= atol)) return `value ${i} is ${a}, expected ${e} within ${atol.toExponential(1)}`;
  }
  return null;
}
