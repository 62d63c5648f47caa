/** Contractions with loops that end at a size given at dispatch: rows, sums and batches, for many sizes of one lowering. */
import { describe, expect, it } from 'vitest';
import type { EngineCaps } from '../engine/engine.ts';
import type { KNode } from '../ir/ir.ts';
import type { DType } from '../shape/dtype.ts';
import { type ContractionTemplate, worthwhile } from './contraction.ts';
import {
  checkSizes,
  makeCase,
  type Making,
  type Parts,
  processorCaps,
  threadCaps,
  vectorCaps,
} from './fixtures/cases.ts';
import { base, convolution, type Geometry, type Kind, zeros } from './fixtures/convolutions.ts';
import { candidateTiles } from './simt/choose.ts';
import { lowerSimt } from './simt/gemm.ts';

const bothCaps: readonly EngineCaps[] = [vectorCaps, { ...vectorCaps, vectorBytes: 32 }];
const allCaps: readonly EngineCaps[] = [...bothCaps, threadCaps, processorCaps];

/** Which loops of a product end at the size; the others are of fixed length. */
interface Product {
  /** Least and greatest size. */
  readonly sizes: readonly [number, number];
  /** Lengths of loops; `times` the size where an entry is negative. */
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly batch?: number;
  readonly transposeA?: boolean;
  readonly transposeB?: boolean;
  /** Batches are the second axis of both factors and of the result, rows (or the sum) the first. */
  readonly heads?: boolean;
  readonly epilogue?: 'relu' | 'add' | 'mask' | 'sign' | undefined;
}

/** A product of matrices whose strides are those of the greatest size. */
function product(p: Product) {
  return (making: Making): Parts => {
    const { e, at, param } = making;
    const [least, most] = p.sizes;
    const size = making.size(least, most);
    const extent = (x: number): number => (x < 0 ? -x * most : x);
    const range = (x: number): ReturnType<Making['range']> =>
      making.range(extent(x), x < 0 ? e.mul(size, -x) : undefined);
    const [z, i, j, k] = [p.batch ?? 1, p.m, p.n, p.k].map(range) as ReturnType<typeof range>[] as [
      never,
      never,
      never,
      never,
    ];
    const [Z, M, N, K] = [p.batch ?? 1, p.m, p.n, p.k].map(extent) as [number, number, number, number];
    const matrix = (down: KNode, across: KNode, rows: number, columns: number): KNode =>
      p.heads
        ? at([down, Z * columns], [z, columns], [across, 1])
        : at([z, rows * columns], [down, columns], [across, 1]);
    const [a, b] = [param(Z * M * K), param(Z * K * N)];
    const y = param(Z * M * N, p.epilogue === 'add' ? 'readwrite' : 'write');
    const bias = param(N);
    const out = matrix(i, j, M, N);
    const last = (sum: KNode): KNode => {
      if (p.epilogue === 'relu') return e.max(e.add(sum, e.load(bias, j)), e.constant(making.dtype, 0));
      return p.epilogue === 'add' ? e.add(sum, e.load(y, out)) : sum;
    };
    return {
      a: e.load(a, p.transposeA ? matrix(k, i, K, M) : matrix(i, k, M, K)),
      b: e.load(b, p.transposeB ? matrix(j, k, N, K) : matrix(k, j, K, N)),
      k: [k],
      loops: [z, i, j],
      stores: (sum) => {
        if (p.epilogue !== 'mask' && p.epilogue !== 'sign') return [[y, out, last(sum)]];
        const isLarge = e.lt(e.constant(making.dtype, 1e3), sum);
        const [dtype, value] = p.epilogue === 'mask' ? (['bool', isLarge] as const) : signOf(e, isLarge);
        return [
          [y, out, sum],
          [param(Z * M * N, 'write', dtype), out, value],
        ];
      },
    };
  };
}

/** A number smaller than those of the product: it is computed in a dispatch of its own. */
function signOf(e: Making['e'], isLarge: KNode): readonly ['float32', KNode] {
  return ['float32', e.where(isLarge, e.f32(1), e.f32(-1))];
}

/** Random integers, the same for every run. */
function dice(seed: number): (low: number, high: number) => number {
  let state = (seed * 2654435761 + 99991) >>> 0;
  return (low, high) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return low + Math.floor((state / 2 ** 32) * (high - low + 1));
  };
}

/** Sizes to try: the ends, and some between. Threads are interpreted one by one: of large classes an end and some other size. */
function sizesOf(
  [low, high]: readonly [number, number],
  roll: (low: number, high: number) => number,
  { simt }: EngineCaps,
): number[] {
  const between = Math.min(high, roll(low, high) | 1);
  return simt && high > 40 ? [roll(0, 1) === 0 ? low : high, between] : [low, between, high];
}

function check(p: Product, roll = dice(1), dtype: DType = 'float32'): void {
  for (const caps of allCaps) {
    const { lowered, worst } = checkSizes(dtype, product(p), sizesOf(p.sizes, roll, caps), caps);
    expect(worst, JSON.stringify(p)).toBeLessThanOrEqual(1);
    expect(lowered, JSON.stringify(p)).not.toBeNull();
  }
}

const classes: readonly (readonly [number, number])[] = [
  [4, 7],
  [8, 17],
  [32, 67],
];

describe('sizes given at dispatch', () => {
  const transposes = [
    [false, false],
    [true, false],
    [false, true],
    [true, true],
  ] as const;

  for (const [transposeA, transposeB] of transposes) {
    const name = `${transposeA ? 'A^T' : 'A'} ${transposeB ? 'B^T' : 'B'}`;

    it(`rows, ${name}`, () => {
      const roll = dice(3);
      for (const sizes of classes) {
        for (const epilogue of [undefined, 'relu', 'add', 'mask'] as const) {
          const [n, k] = [roll(8, 40), roll(8, 60)];
          check(
            { sizes, m: -1, n, k: Math.max(k, Math.ceil(4096 / (sizes[1] * n))), transposeA, transposeB, epilogue },
            roll,
          );
        }
      }
    });

    it(`sum, ${name}`, () => {
      const roll = dice(4);
      for (const sizes of classes) {
        const [n, m] = [roll(10, 40), roll(7, 40)];
        check({ sizes, m: Math.max(m, Math.ceil(4096 / (sizes[1] * n))), n, k: -1, transposeA, transposeB }, roll);
        check({ sizes, m: 9, n: 70, k: -roll(2, 5), transposeA, transposeB }, roll);
      }
    });

    it(`batches, ${name}`, () => {
      const roll = dice(5);
      for (const sizes of classes) {
        const [m, n, k] = [roll(5, 12), roll(8, 20), roll(5, 20)];
        const all = Math.max(k, Math.ceil(4096 / (sizes[1] * n * m)));
        check({ sizes, batch: -1, m, n, k: all, transposeA, transposeB }, roll);
        check({ sizes, batch: -3, m: 2, n, k: all, transposeA, transposeB, heads: true }, roll);
      }
    });

    it(`rows and sum, ${name}`, () => {
      const roll = dice(6);
      for (const sizes of classes) {
        const [n, c] = [roll(10, 40), roll(2, 4)];
        const k = -Math.ceil(4096 / (sizes[1] * sizes[1] * n));
        check({ sizes, m: -1, n, k, transposeA, transposeB, epilogue: 'relu' }, roll);
        check({ sizes, m: -c, n: 36, k, transposeA, transposeB }, roll);
      }
      check({ sizes: [16, 31], batch: 3, m: -1, n: 32, k: -1, transposeA, transposeB, heads: true }, roll);
    });
  }

  it('rows and batches at once', () => {
    const roll = dice(7);
    for (const sizes of classes) check({ sizes, batch: -1, m: -1, n: 24, k: 19 }, roll);
  });

  it('large enough for panels, copies by groups, domains and parts of sums', () => {
    const roll = dice(8);
    check({ sizes: [64, 131], m: -1, n: 90, k: 290 }, roll);
    check({ sizes: [64, 131], m: -1, n: 128, k: 64 }, roll);
    check({ sizes: [64, 131], m: 64, n: 128, k: -1, transposeA: true }, roll);
    check({ sizes: [8, 17], m: -1, n: 530, k: 40 }, roll);
    check({ sizes: [8, 17], m: 12, n: 530, k: -3, transposeB: true }, roll);
    check({ sizes: [128, 257], m: 9, n: 16, k: -4, transposeA: true }, roll);
    check({ sizes: [32, 67], m: -1, n: 65, k: 48 }, roll);
  });

  it('float64', () => {
    const roll = dice(9);
    check({ sizes: [16, 31], m: -1, n: 21, k: 33, epilogue: 'relu' }, roll, 'float64');
    check({ sizes: [16, 31], m: -1, n: 21, k: 33, epilogue: 'sign' }, roll, 'float64');
    check({ sizes: [16, 31], m: 13, n: 21, k: -2, transposeA: true }, roll, 'float64');
    check({ sizes: [16, 31], batch: -1, m: 13, n: 21, k: 7 }, roll, 'float64');
  });

  it('random products', () => {
    const roll = dice(10);
    for (let i = 0; i < 40; i++) {
      const low = roll(1, 40);
      const sizes = [low, low + roll(1, 40)] as const;
      const pick = (low: number, high: number): number => (roll(0, 2) === 0 ? -roll(1, 2) : roll(low, high));
      const p: Product = {
        sizes,
        m: pick(1, 30),
        n: roll(8, 70),
        k: pick(8, 90),
        batch: roll(0, 1) === 0 ? 1 : pick(1, 5),
        transposeA: roll(0, 1) === 1,
        transposeB: roll(0, 1) === 1,
        heads: roll(0, 1) === 1,
        epilogue: ([undefined, 'relu', 'add', 'mask'] as const)[roll(0, 3)],
      };
      const products = [p.m, p.n, p.k, p.batch as number].reduce((n, x) => n * (x < 0 ? -x * sizes[1] : x), 1);
      if (products >= 4096 && products < 300_000) check(p, roll);
    }
  });

  it('every tile of threads', () => {
    const products: readonly Product[] = [
      { sizes: [8, 15], m: -1, n: 40, k: 20, epilogue: 'relu' },
      { sizes: [8, 15], m: 12, n: 36, k: -3, transposeA: true },
      { sizes: [16, 31], batch: 2, m: -1, n: 8, k: -1, heads: true, epilogue: 'add' },
      { sizes: [64, 127], m: 2, n: -2, k: 33, transposeB: true },
      { sizes: [64, 127], m: 3, n: 2, k: -9 },
    ];
    for (const caps of [threadCaps, processorCaps]) {
      for (const p of products) {
        const { kernel, e } = makeCase('float32', product(p));
        const count = candidateTiles(worthwhile(kernel, e, caps)!, caps).length;
        expect(count).toBeGreaterThan(3);
        for (let i = 0; i < count; i++) {
          const byTile: ContractionTemplate = (given, factory) => {
            const c = worthwhile(given, factory, caps)!;
            return lowerSimt(c, factory, caps, candidateTiles(c, caps)[i]!);
          };
          const { worst } = checkSizes('float32', product(p), sizesOf(p.sizes, dice(i), caps), caps, byTile);
          expect(worst, `${JSON.stringify(p)} ${i}`).toBeLessThanOrEqual(1);
        }
      }
    }
  });

  it('lanes run along a fixed loop of a sum whose other loop ends at the size', () => {
    const build = (making: Making): Parts => {
      const { e, at, param } = making;
      const size = making.size(4, 11);
      const [i, j, k, s] = [making.range(16), making.range(18), making.range(64), making.range(11, size)];
      const [a, b, y] = [param(16 * 11 * 64), param(18 * 11 * 64), param(16 * 18, 'write')];
      return {
        a: e.load(a, at([i, 11 * 64], [s, 64], [k, 1])),
        b: e.load(b, at([j, 11 * 64], [s, 64], [k, 1])),
        k: [k, s],
        loops: [i, j],
        stores: (sum) => [[y, at([i, 18], [j, 1]), sum]],
      };
    };
    for (const caps of allCaps) {
      const { lowered, worst } = checkSizes('float32', build, [4, 7, 11], caps);
      expect(lowered).not.toBeNull();
      expect(worst).toBeLessThanOrEqual(1);
    }
  });

  it('lanes never run along such a loop', () => {
    for (const caps of bothCaps) {
      const rows: Product = { sizes: [32, 67], m: 1, n: -1, k: -1 };
      expect(checkSizes('float32', product(rows), [40], caps).lowered).toBeNull();
    }
  });
});

/** Convolutions of `images` at most, `least` at least. */
function checkConvolution(g: Geometry & { least: number }, kind: Kind, relu = false): void {
  const roll = dice(11);
  for (const caps of allCaps) {
    const { lowered, worst } = checkSizes(
      'float32',
      convolution(g, kind, relu),
      sizesOf([g.least, g.images], roll, caps),
      caps,
    );
    expect(worst, `${kind} ${JSON.stringify(g)}`).toBeLessThanOrEqual(1);
    expect(lowered).not.toBeNull();
  }
}

const geometries: Record<string, Partial<Geometry>> = {
  'same padding': {},
  'no padding': { low: zeros, high: zeros },
  'stride 2': { stride: [2, 2], size: [5, 17] },
  // The gradient of the input of a convolution with stride 2.
  'transposed by 2': { lhsDilation: [2, 2], low: [2, 2], high: [1, 1], size: [4, 8] },
  dilation: { dilation: [2, 1], size: [8, 9] },
  groups: { groups: 2, inputs: 2, outputs: 8 },
  'kernel of one position': { kernel: [1, 1], low: zeros, high: zeros, inputs: 20 },
  'channels last': { last: true, inputs: 5, outputs: 9 },
};

describe('convolutions of a batch given at dispatch', () => {
  for (const [name, change] of Object.entries(geometries)) {
    it(name, () => {
      const g = { ...base, outputs: 9, size: [6, 10], ...change } as const;
      checkConvolution({ ...g, least: 4, images: 7 }, 'forward', true);
      checkConvolution({ ...g, least: 8, images: 11 }, 'kernelGradient');
    });
  }

  it('depthwise', () => {
    const g = { ...base, groups: 9, inputs: 1, outputs: 1, last: true, size: [5, 6], least: 4, images: 7 } as const;
    checkConvolution(g, 'forward', true);
    checkConvolution(g, 'kernelGradient');
  });
});
