/** What `neighbours.ts` compares at neighbouring sizes: arithmetic, reductions, products, convolutions, each over one axis whose length changes. */
import {
  add,
  avgPool2d,
  contiguous,
  conv2d,
  cumSum,
  type DType,
  depthwiseConv2d,
  gelu,
  layerNorm,
  matmul,
  max,
  maxPool2d,
  permute,
  scope,
  softmax,
  sort,
  sum,
  type Tensor,
  take,
  transpose,
} from '@polygrad/core';

export interface Family {
  readonly name: string;
  /** Middles of the groups of sizes. */
  readonly centres: readonly number[];
  readonly shape: (n: number) => readonly number[];
  readonly run: (a: Tensor, b: Tensor) => Tensor;
  /** Shape of a second operand: a kernel. */
  readonly second?: (n: number) => readonly number[];
  /** Dtype of the operands; default: float32. */
  readonly dtype?: DType;
  /** The second operand holds places in the first one, in no order. */
  readonly places?: boolean;
  /** What time is taken for; default: the elements of the first operand. */
  readonly work?: (n: number) => number;
}

export const lengths: readonly number[] = [64, 256, 1024, 4096, 65536, 1048576];
export const widths: readonly number[] = [16, 64, 256, 1024, 4096];
export const rowsOf = (n: number): number[] => [Math.max(4, Math.floor(262144 / n)), n];
export const columnsOf = (n: number): number[] => [n, Math.max(4, Math.floor(262144 / n))];

export const families: readonly Family[] = [
  { name: 'add', centres: lengths, shape: (n) => [n], run: (a) => add(a, a) },
  { name: 'gelu', centres: lengths, shape: (n) => [n], run: (a) => gelu(a) },
  { name: 'sum', centres: lengths, shape: (n) => [n], run: (a) => sum(a) },
  { name: 'sum-rows', centres: widths, shape: rowsOf, run: (a) => sum(a, { axis: 1 }) },
  { name: 'max-rows', centres: widths, shape: rowsOf, run: (a) => max(a, { axis: 1 }) },
  { name: 'sum-columns-of', centres: widths, shape: columnsOf, run: (a) => sum(a, { axis: 0 }) },
  { name: 'sum-columns', centres: widths, shape: rowsOf, run: (a) => sum(a, { axis: 0 }) },
  { name: 'max-columns', centres: widths, shape: rowsOf, run: (a) => max(a, { axis: 0 }) },
  {
    name: 'sum-middle',
    centres: [16, 64, 256],
    shape: (n) => [Math.ceil(262144 / n / 64), 64, n],
    run: (a) => sum(a, { axis: 1 }),
  },
  {
    name: 'add-transposed',
    centres: [64, 256, 512, 1024, 2048],
    shape: (n) => [n, n],
    run: (a) => scope(() => add(a, transpose(a))),
  },
  {
    name: 'add-transposed-64',
    centres: [64, 256, 512, 1024],
    shape: (n) => [n, n],
    dtype: 'float64',
    run: (a) => scope(() => add(a, transpose(a))),
  },
  {
    name: 'copy-transposed',
    centres: [64, 256, 512, 1024, 2048],
    shape: (n) => [n, n],
    run: (a) => scope(() => contiguous(transpose(a))),
  },
  {
    name: 'to-nhwc',
    centres: [16, 64, 256],
    shape: (n) => [2, n, 28, 28],
    run: (a) => scope(() => contiguous(permute(a, [0, 2, 3, 1]))),
  },
  {
    name: 'to-nchw',
    centres: [16, 64, 256],
    shape: (n) => [2, 28, 28, n],
    run: (a) => scope(() => contiguous(permute(a, [0, 3, 1, 2]))),
  },
  { name: 'softmax', centres: widths, shape: rowsOf, run: (a) => softmax(a) },
  { name: 'layer-norm', centres: widths, shape: rowsOf, run: (a) => layerNorm(a) },
  { name: 'matmul', centres: [32, 64, 128, 256], shape: (n) => [n, n], run: (a) => matmul(a, a), work: (n) => n ** 3 },
  {
    name: 'matmul-narrow',
    centres: [16, 64],
    shape: (n) => [4096, n],
    second: (n) => [n, 32],
    run: (a, b) => matmul(a, b),
  },
  {
    name: 'conv-size',
    centres: [16, 32, 64],
    shape: (n) => [2, 8, n, n],
    second: () => [8, 8, 3, 3],
    run: (a, b) => conv2d(a, b, { padding: 1 }),
  },
  ...(['nchw', 'nhwc'] as const).flatMap((layout): Family[] => {
    const images = (n: number): number[] => (layout === 'nchw' ? [2, n, 28, 28] : [2, 28, 28, n]);
    return [
      {
        name: `conv-${layout}`,
        centres: [16, 32],
        shape: images,
        second: (n) => [n, n, 3, 3],
        run: (a, b) => conv2d(a, b, { padding: 1, layout }),
        work: (n) => n * n,
      },
      {
        name: `depthwise-${layout}`,
        centres: [16, 64],
        shape: images,
        second: (n) => [n, 1, 3, 3],
        run: (a, b) => depthwiseConv2d(a, b, { padding: 1, layout }),
      },
      { name: `max-pool-${layout}`, centres: [16, 64], shape: images, run: (a) => maxPool2d(a, 2, { layout }) },
      { name: `average-pool-${layout}`, centres: [16, 64], shape: images, run: (a) => avgPool2d(a, 2, { layout }) },
    ];
  }),
  { name: 'cum-sum-rows', centres: widths, shape: rowsOf, run: (a) => cumSum(a, 1) },
  {
    name: 'take-rows',
    centres: widths,
    shape: rowsOf,
    places: true,
    run: (a, b) => take(a, b, 0),
  },
  { name: 'sort-rows', centres: [64, 256, 1024], shape: (n) => [Math.ceil(32768 / n), n], run: (a) => sort(a, 1) },
];
