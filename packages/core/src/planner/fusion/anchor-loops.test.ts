/** Contractions whose results are used in another shape: right, and no more work than in their own. */
import { describe, expect, it } from 'vitest';
import { setEngine } from '../../engine/registry.ts';
import {
  conv2d,
  flush,
  matmul,
  mul,
  permute,
  profile,
  reshape,
  scope,
  type Tensor,
  tensor,
  where,
} from '../../index.ts';
import { createNullEngine, createReferenceEngine } from '@polygrad/testing';

function values(seed: number, shape: readonly number[]): Tensor {
  const size = shape.reduce((product, n) => product * n, 1);
  const data = Float32Array.from({ length: size }, (_, i) => (((i + seed) * 37) % 19) - 9);
  return tensor(data, { shape });
}

interface Case {
  readonly plain: () => Tensor;
  /** The same numbers in another shape and order, to be multiplied by numbers of its own. */
  readonly shaped: (plain: Tensor) => Tensor;
  /** Where an element of the result is in the plain one. */
  readonly from: (index: number) => number;
}

const image = (): Tensor => conv2d(values(1, [2, 8, 8, 8]), values(2, [8, 8, 3, 3]), { padding: 1 });
const grouped = (): Tensor => conv2d(values(1, [2, 8, 8, 8]), values(2, [8, 4, 3, 3]), { padding: 1, groups: 2 });
const heads = (): Tensor => matmul(values(3, [2, 4, 16, 16]), values(4, [2, 4, 16, 8]));

const cases: Readonly<Record<string, Case>> = {
  'images as vectors': { plain: image, shaped: (t) => reshape(t, [2, 512]), from: (i) => i },
  'images of groups as vectors': { plain: grouped, shaped: (t) => reshape(t, [2, 512]), from: (i) => i },
  'images as rows of channels': {
    plain: image,
    shaped: (t) => reshape(permute(t, [0, 2, 3, 1]), [2, 64, 8]),
    from: (i) => (i >> 9) * 512 + (i & 7) * 64 + ((i >> 3) & 63),
  },
  'heads side by side': {
    plain: heads,
    shaped: (t) => reshape(permute(t, [0, 2, 1, 3]), [2, 16, 32]),
    from: (i) => (i >> 9) * 512 + ((i >> 3) & 3) * 128 + ((i >> 5) & 15) * 8 + (i & 7),
  },
  'a matrix as a vector': {
    plain: () => matmul(values(5, [32, 16]), values(6, [16, 24])),
    shaped: (t) => reshape(t, [768]),
    from: (i) => i,
  },
};

/** All results positive where the other operand is, zero elsewhere. */
function masked(t: Tensor): Tensor {
  return where(values(7, t.shape).greater(0), t, 0);
}

describe.each(Object.entries(cases))('%s', (_, { plain, shaped, from }) => {
  it('have the values of the plain result', async () => {
    await setEngine(createReferenceEngine());
    const expected = Array.from((await plain().data()) as Float32Array);
    const mask = Array.from((await values(7, [expected.length]).data()) as Float32Array);
    const found = Array.from((await scope(() => masked(shaped(plain()))).data()) as Float32Array);
    expect(found).toEqual(mask.map((m, i) => (m > 0 ? (expected[from(i)] as number) : 0)));
  });

  it('cost what the plain result costs, also where that is kept', async () => {
    await setEngine(createNullEngine());
    const work = async (body: () => unknown): Promise<number> => {
      const { kernels } = await profile(() => {
        body();
        flush();
      });
      return kernels.reduce((sum, { flops }) => sum + flops, 0);
    };
    const own = await work(() => scope(() => mul(plain(), 2)));
    expect(await work(() => scope(() => masked(shaped(plain()))))).toBeLessThan(1.3 * own);
    const kept: Tensor[] = [];
    const both = await work(() => {
      kept.push(plain());
      kept.push(masked(shaped(kept[0] as Tensor)));
    });
    expect(both).toBeLessThan(1.3 * own);
    for (const t of kept) t.dispose();
  });
});
