/** Products and convolutions of 16-bit floats that are large enough for tiles, with edges of all kinds, against float64: they run in float32 and round once. */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import { assertClose, defaultTolerances, gamma } from '../../compare.ts';
import { elementsOf } from '../../host.ts';
import { nearest } from '../../oracle/formats.ts';
import { count, map, nd, type NDArray, unravel } from '../../oracle/ndarray.ts';
import { makeRandom, sample, seedOf, uniform } from '../../oracle/random.ts';

type Half = 'float16' | 'bfloat16';
/** Where an element is, or -1: zero. */
type Place = number;

interface ProductCase {
  readonly shapes: readonly (readonly number[])[];
  readonly shape: readonly number[];
  /** Products of a sum. */
  readonly terms: number;
  readonly run: (x: readonly Tensor[]) => Tensor;
  /** Which inputs are multiplied, and where the factors of a product of an element lie in them. */
  readonly of: readonly [number, number];
  readonly places: (index: number, term: number) => readonly [Place, Place];
  /** What becomes of a sum. */
  readonly after?: (x: readonly NDArray[], sum: number, index: number) => number;
}

const turned = (x: Tensor): Tensor =>
  pg.permute(x, [...x.shape.slice(0, -2).keys(), x.shape.length - 1, x.shape.length - 2]);

/** Of a product with rows, columns and sum of these lengths, either factor turned; `batch` of both, or of the first and one of the second. */
function product(m: number, k: number, n: number, ta: boolean, tb: boolean, batch = 1, shared = false): ProductCase {
  const lead = batch === 1 ? [] : [batch];
  return {
    shapes: [
      [...lead, ...(ta ? [k, m] : [m, k])],
      [...(shared ? [] : lead), ...(tb ? [n, k] : [k, n])],
    ],
    shape: [...lead, m, n],
    terms: k,
    run: ([a, b]) => pg.matmul(ta ? turned(a!) : a!, tb ? turned(b!) : b!),
    of: [0, 1],
    places: (index, p) => {
      const [j, i, q] = [index % n, Math.floor(index / n) % m, Math.floor(index / n / m)];
      return [q * m * k + (ta ? p * m + i : i * k + p), (shared ? 0 : q) * k * n + (tb ? j * k + p : p * n + j)];
    },
  };
}

/** A convolution of images of `size` squared, or the gradient of its kernel. */
function convolution(
  [images, depth, size]: readonly [number, number, number],
  [features, window]: readonly [number, number],
  { padding = 0, stride = 1 },
  ofKernel = false,
): ProductCase {
  const out = Math.floor((size + 2 * padding - window) / stride) + 1;
  const shapes = [
    [images, depth, size, size],
    [features, depth, window, window],
    [images, features, out, out],
  ];
  const row = (image: number, channel: number, y: number, x: number): Place =>
    y < 0 || x < 0 || y >= size || x >= size ? -1 : ((image * depth + channel) * size + y) * size + x;
  const split = (at: number, ...sizes: readonly number[]): number[] => unravel(at, sizes);
  const conv = (x: Tensor, w: Tensor): Tensor => pg.conv2d(x, w, { padding, stride });
  return ofKernel
    ? {
        shapes,
        shape: shapes[1]!,
        terms: images * out * out,
        run: ([x, w, g]) => pg.grad((v: Tensor) => pg.sum(pg.mul(conv(x!, v), g!)))(w!),
        of: [0, 2],
        places: (index, term) => {
          const [f, c, a, b] = split(index, features, depth, window, window) as [number, number, number, number];
          const [n, y, x] = split(term, images, out, out) as [number, number, number];
          return [
            row(n, c, y * stride + a - padding, x * stride + b - padding),
            ((n * features + f) * out + y) * out + x,
          ];
        },
      }
    : {
        shapes: shapes.slice(0, 2),
        shape: shapes[2]!,
        terms: depth * window * window,
        run: ([x, w]) => conv(x!, w!),
        of: [0, 1],
        places: (index, term) => {
          const [n, f, y, x] = split(index, images, features, out, out) as [number, number, number, number];
          const [c, a, b] = split(term, depth, window, window) as [number, number, number];
          return [
            row(n, c, y * stride + a - padding, x * stride + b - padding),
            ((f * depth + c) * window + a) * window + b,
          ];
        },
      };
}

const cases: Readonly<Record<string, ProductCase>> = {
  'whole tiles': product(32, 32, 32, false, false),
  'odd sizes': product(37, 45, 29, false, false),
  'sizes of whole vectors': product(40, 24, 56, false, false),
  'the first factor turned': product(33, 48, 40, true, false),
  'the second factor turned': product(24, 40, 33, false, true),
  'both factors turned': product(21, 34, 23, true, true),
  'a long sum': product(16, 1100, 17, false, true),
  batches: product(24, 17, 40, false, false, 3),
  'one factor for all of a batch': product(24, 24, 24, false, true, 2, true),
  'bias and relu': {
    ...product(40, 24, 17, false, false),
    shapes: [[40, 24], [24, 17], [17]],
    run: ([a, b, c]) => pg.relu(pg.gemm(a!, b!, { c: c! })),
    after: ([, , c], sum, index) => Math.max(0, sum + c!.data[index % 17]!),
  },
  'the gradient of a factor': {
    ...product(33, 40, 24, false, true),
    shapes: [
      [33, 24],
      [24, 40],
      [33, 40],
    ],
    run: ([a, b, g]) => pg.grad((x: Tensor) => pg.sum(pg.mul(pg.matmul(x, b!), g!)))(a!),
    of: [2, 1],
  },
  'a convolution with padding': convolution([2, 5, 9], [12, 3], { padding: 1 }),
  'a convolution with steps': convolution([2, 8, 12], [16, 3], { stride: 2 }),
  'the gradient of a kernel': convolution([2, 4, 8], [8, 3], {}, true),
};

/** The sums in float64, and the sums of magnitudes that their errors are bounded by. */
function sums(
  { shape, terms, of, places, after }: ProductCase,
  x: readonly NDArray[],
): [values: NDArray, sizes: NDArray] {
  const [a, b] = of.map((i) => x[i]!.data) as [readonly number[], readonly number[]];
  const [values, sizes] = [new Array<number>(count(shape)), new Array<number>(count(shape))];
  for (let index = 0; index < values.length; index++) {
    let [sum, size] = [0, 0];
    for (let term = 0; term < terms; term++) {
      const [p, q] = places(index, term);
      const v = p < 0 || q < 0 ? 0 : a[p]! * b[q]!;
      sum += v;
      size += Math.abs(v);
    }
    values[index] = after === undefined ? sum : after(x, sum, index);
    sizes[index] = size;
  }
  return [nd(shape, values), nd(shape, sizes)];
}

export async function checkHalfProducts(dtype: Half): Promise<void> {
  for (const [name, c] of Object.entries(cases)) {
    const random = makeRandom(seedOf(`${dtype}/${name}`));
    const data = c.shapes.map((shape) => map(sample(random, shape, uniform(-1, 1)), (v) => nearest(dtype, v)));
    const x = data.map((d) => pg.tensor(d.data, { shape: d.shape, dtype }));
    // In memory, as they come from layers before.
    pg.flush();
    const y = pg.scope(() => c.run(x));
    const [values, sizes] = sums(c, data);
    const slack = map(sizes, (v) => gamma(c.terms + 1) * (v + 1));
    const tolerance = defaultTolerances.forward[dtype]!;
    assertClose(`${name} of ${dtype}`, await elementsOf(y), y.shape, values, tolerance, slack);
    for (const t of [y, ...x]) t.dispose();
  }
}
