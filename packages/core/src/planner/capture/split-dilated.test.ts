/** Convolutions of inputs with holes are computed without the holes: the values, where a NaN goes, and the work that is left. */
import { beforeAll, describe, expect, it } from 'vitest';
import {
  conv2d,
  convTranspose2d,
  flush,
  grad,
  mul,
  profile,
  setEngine,
  sum,
  tensor,
  type Tensor,
} from '../../index.ts';
import type { IEngine } from '../../engine/engine.ts';
import { createNullEngine, createReferenceEngine } from '@polygrad/testing';
import { phasesAsFeatures } from './phases-as-features.ts';

type Pair = readonly [number, number];

const values = (n: number, seed: number): Float32Array =>
  Float32Array.from({ length: n }, (_, i) => (((i * 37 + seed * 11) % 19) - 9) / 8);

interface Case {
  readonly x: readonly [number, number, number, number];
  readonly kernel: readonly [number, number, number, number];
  readonly stride: Pair;
  readonly padding: Pair;
  readonly dilation: Pair;
}

const made = (data: Float32Array, shape: readonly number[]): Tensor => tensor(data, { shape });

/** The gradient by x of sum(conv(x, w) * g): every product of an element of g and one of w goes where it came from. */
function scattered(c: Case, w: Float32Array, g: Float32Array, out: Pair): Float64Array {
  const [batch, channels, height, width] = c.x;
  const [features, , rows, columns] = c.kernel;
  const dx = new Float64Array(batch * channels * height * width);
  for (let n = 0; n < batch; n++)
    for (let o = 0; o < features; o++)
      for (let p = 0; p < out[0]; p++)
        for (let q = 0; q < out[1]; q++)
          for (let f = 0; f < channels; f++)
            for (let r = 0; r < rows; r++)
              for (let s = 0; s < columns; s++) {
                const y = p * c.stride[0] + r * c.dilation[0] - c.padding[0];
                const x = q * c.stride[1] + s * c.dilation[1] - c.padding[1];
                if (y < 0 || y >= height || x < 0 || x >= width) continue;
                const from = ((n * features + o) * out[0] + p) * out[1] + q;
                const tap = ((o * channels + f) * rows + r) * columns + s;
                dx[((n * channels + f) * height + y) * width + x]! += g[from]! * w[tap]!;
              }
  return dx;
}

const cases: Record<string, Case> = {
  'three by three in steps of two': {
    x: [2, 8, 21, 20],
    kernel: [8, 8, 3, 3],
    stride: [2, 2],
    padding: [1, 1],
    dilation: [1, 1],
  },
  'steps longer than the kernel': {
    x: [1, 16, 33, 31],
    kernel: [16, 16, 2, 1],
    stride: [3, 4],
    padding: [0, 0],
    dilation: [1, 1],
  },
  'steps and gaps that share a factor, and ones that do not': {
    x: [1, 6, 30, 33],
    kernel: [6, 6, 3, 4],
    stride: [4, 3],
    padding: [3, 2],
    dilation: [2, 2],
  },
  'patches, which do not overlap': {
    x: [2, 3, 48, 64],
    kernel: [6, 3, 8, 8],
    stride: [8, 8],
    padding: [0, 0],
    dilation: [1, 1],
  },
  'kernels of two and three steps, with parts of a phase at both ends': {
    x: [2, 4, 29, 28],
    kernel: [16, 4, 4, 9],
    stride: [2, 3],
    padding: [1, 5],
    dilation: [1, 1],
  },
  'steps along one axis, and more of it than the kernel has': {
    x: [1, 8, 61, 20],
    kernel: [16, 8, 20, 3],
    stride: [20, 1],
    padding: [0, 1],
    dilation: [1, 1],
  },
  'padding wider than the kernel': {
    x: [1, 16, 22, 24],
    kernel: [8, 16, 3, 3],
    stride: [2, 2],
    padding: [4, 5],
    dilation: [1, 1],
  },
};

/** An engine that has phases as features of one convolution. */
function withPhases<E extends IEngine>(engine: E): E {
  const { lowering } = engine.caps;
  const caps = {
    ...engine.caps,
    lowering: { ...lowering, planner: { ...lowering.planner, phases: phasesAsFeatures } },
  };
  return Object.defineProperty(engine, 'caps', { value: caps });
}

describe.each([
  ['each phase by itself', (engine: IEngine) => engine],
  ['phases as features', withPhases],
] as const)('the gradient by the input of a convolution with steps, %s', (_, prepared) => {
  beforeAll(async () => {
    await setEngine(prepared(createReferenceEngine()));
  });

  for (const [name, c] of Object.entries(cases)) {
    it(`is that of the definition: ${name}`, async () => {
      const size = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);
      const w = values(size(c.kernel), 1);
      const x = made(values(size(c.x), 2), c.x);
      const options = { stride: c.stride, padding: c.padding, dilation: c.dilation };
      const { shape } = conv2d(x, made(w, c.kernel), options);
      const g = values(size(shape), 3);
      const got = await grad((t: Tensor) => sum(mul(conv2d(t, made(w, c.kernel), options), made(g, shape))))(x).data();
      const wanted = scattered(c, w, g, [shape[2]!, shape[3]!]);
      let worst = 0;
      for (let i = 0; i < wanted.length; i++) worst = Math.max(worst, Math.abs(Number(got[i]) - wanted[i]!));
      expect(worst).toBeLessThan(1e-4);
    });
  }

  it('is that of the definition for groups of features', async () => {
    const [w, x] = [values(12 * 5 * 4 * 4, 1), values(2 * 12 * 81, 2)];
    const whole = convTranspose2d(made(x, [2, 12, 9, 9]), made(w, [12, 5, 4, 4]), {
      groups: 3,
      stride: 4,
      padding: 1,
      outputPadding: 2,
    });
    const y = new Float64Array(2 * 15 * 36 * 36);
    for (let n = 0; n < 2; n++)
      for (let c = 0; c < 12; c++)
        for (let o = 0; o < 5; o++)
          for (let at = 0; at < 81; at++)
            for (let tap = 0; tap < 16; tap++) {
              const row = Math.floor(at / 9) * 4 + Math.floor(tap / 4) - 1;
              const column = (at % 9) * 4 + (tap % 4) - 1;
              if (row < 0 || row >= 36 || column < 0 || column >= 36) continue;
              const to = ((n * 15 + Math.floor(c / 4) * 5 + o) * 36 + row) * 36 + column;
              y[to]! += x[(n * 12 + c) * 81 + at]! * w[(c * 5 + o) * 16 + tap]!;
            }
    expect(whole.shape).toEqual([2, 15, 36, 36]);
    const got = await whole.data();
    expect(Math.max(...y.map((v, i) => Math.abs(Number(got[i]) - v)))).toBeLessThan(1e-4);
  });

  it('has a NaN of the kernel only where that element goes', async () => {
    const w = new Float32Array(16 * 16 * 2 * 2).fill(1);
    w.fill(Number.NaN, 0, 1);
    const y = await convTranspose2d(
      made(new Float32Array(16 * 196).fill(1), [1, 16, 14, 14]),
      made(w, [16, 16, 2, 2]),
      {
        stride: 2,
      },
    ).data();
    // Element (0, 0) of the kernel of feature 0 meets the even rows and columns.
    const expected = Array.from(
      { length: y.length },
      (_, i) => i < 784 && (i % 28) % 2 === 0 && Math.floor(i / 28) % 2 === 0,
    );
    expect([...(y as Float32Array)].map(Number.isNaN).join()).toBe(expected.join());
  });
});

describe('the work', () => {
  const products = 16 * 8 * 8 * 32 * 64 * 9;

  async function flops(make: (x: Tensor, w: Tensor, y: Tensor) => Tensor): Promise<number> {
    await setEngine(createNullEngine());
    const x = made(new Float32Array(16 * 32 * 256), [16, 32, 16, 16]);
    const y = made(new Float32Array(16 * 64 * 64), [16, 64, 8, 8]);
    const w = made(new Float32Array(64 * 32 * 9), [64, 32, 3, 3]);
    const { kernels } = await profile(() => {
      make(x, w, y);
      flush();
    });
    return kernels.reduce((all, kernel) => all + kernel.flops, 0);
  }

  it('of a convolution with steps, turned round, is that of the convolution', async () => {
    const there = await flops((x, w) => conv2d(x, w, { stride: 2, padding: 1 }));
    const back = await flops((_, w, y) => convTranspose2d(y, w, { stride: 2, padding: 1, outputPadding: 1 }));
    expect(there).toBeGreaterThan(2 * products);
    expect(back).toBeLessThan(1.5 * there);
  });

  it('of gradients of patches is that of the patches', async () => {
    await setEngine(withPhases(createNullEngine()));
    const x = made(new Float32Array(3 * 64 * 64), [1, 3, 64, 64]);
    const w = made(new Float32Array(32 * 3 * 256), [32, 3, 16, 16]);
    const { kernels } = await profile(() => {
      grad((t: Tensor) => sum(conv2d(t, w, { stride: 16 })))(x);
      flush();
    });
    const patches = 2 * 16 * 32 * 3 * 256;
    expect(kernels.reduce((all, kernel) => all + kernel.flops, 0)).toBeLessThan(2 * patches);
  });
});
