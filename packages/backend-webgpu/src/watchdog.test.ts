/**
 * How long dispatches are by the cost counted for them, of every template and kind of nest at sizes that fill a buffer: compared with
 * the work that the operation takes by definition, and with what one dispatch and one thread may do. Plans only: nothing runs.
 */
import {
  conv2d,
  depthwiseConv2d,
  type DType,
  einsum,
  flush,
  grads,
  maxPool2d,
  rand,
  randn,
  setEngine,
  setPendingLimits,
  type Shape,
  take,
  type Tensor,
  variance,
  zeros,
} from '@polygrad/core';
import { threadLowering } from '@polygrad/core/engine/threads';
import type { Program } from '@polygrad/core/kernel';
import { createNullEngine } from '@polygrad/testing';
import { wgslNativeOps } from '@polygrad/emit-c';
import { afterAll, describe, expect, it } from 'vitest';
import { needsPieces, piecesOf, secondsOf } from './kernels/pieces.ts';

const dtypes = new Set<DType>(['float32', 'int32', 'uint32', 'bool']);
let programs: Program[] = [];
/** The caps of a GPU with the limits that every adapter has; memory is a number. */
function pretended(subgroups: boolean) {
  const base = createNullEngine({
    dtypes,
    computes: dtypes,
    storageBytes: { bool: 4 },
    nativeOps: wgslNativeOps,
    simt: true,
    lowering: threadLowering,
    sharedBytes: 16384,
    maxGroup: 256,
    maxBindings: 8,
    maxBufferBytes: 2 ** 31 - 4,
    bindAlign: 256,
    arena: false,
    parallelism: 32,
    ...(subgroups ? { subgroups: { least: 32, most: 32, numbered: true } } : {}),
  });
  return {
    ...base,
    alloc: (bytes: number) => ({ bytes }),
    free: () => {},
    submit: (commands: Parameters<typeof base.submit>[0]) => {
      for (const c of commands) if (c.kind === 'dispatch') programs.push(c.kernel.program);
    },
  };
}

const leaf = (shape: Shape, dtype: DType = 'float32'): Tensor => {
  const t = zeros(shape, { dtype }).contiguous();
  flush();
  return t;
};

const M = 2 ** 20;
/** An operation, and the arithmetic it takes and the bytes it moves at least, by definition. */
type Case = readonly [name: string, work: { flops?: number; bytes?: number }, () => Tensor];
const product = (m: number, k: number, n: number): Case => [
  `product ${m} x ${k} x ${n}`,
  { flops: 2 * m * n * k },
  () => leaf([m, k]).matmul(leaf([k, n])),
];
const cases: readonly Case[] = [
  product(4096, 4096, 4096),
  product(16384, 16384, 16384),
  product(1, 16384, 16384),
  product(1, 256 * M, 1),
  product(24, 20 * M, 24),
  product(128, 4 * M, 128),
  product(8, 64 * M, 4),
  ['batched products', { flops: 2 * 4096 * 64 ** 3 }, () => leaf([4096, 64, 64]).matmul(leaf([4096, 64, 64]))],
  [
    'a contraction of three',
    { flops: 2 * 64 * 8 * 4 * M },
    () => einsum('ab,cb,db->acd', leaf([64, M]), leaf([8, M]), leaf([4, M])),
  ],
  [
    'a convolution',
    { flops: 2 * 64 * 512 * 256 * 9 * 126 ** 2 },
    () => conv2d(leaf([64, 256, 128, 128]), leaf([512, 256, 3, 3])),
  ],
  [
    'a convolution with wide filters',
    { flops: 2 * 64 * 64 * 31 ** 2 * 994 ** 2 },
    () => conv2d(leaf([1, 64, 1024, 1024]), leaf([64, 64, 31, 31])),
  ],
  [
    'a depthwise convolution',
    { flops: 2 * 16 * 64 * 49 * 506 ** 2 },
    () => depthwiseConv2d(leaf([16, 64, 512, 512]), leaf([64, 1, 7, 7])),
  ],
  [
    'gradients of filters',
    { flops: 2 * 64 * 64 * 4 * 9 * 254 ** 2 },
    () => {
      const [x, w, g] = [leaf([64, 64, 256, 256]), leaf([4, 64, 3, 3]), leaf([64, 4, 254, 254])];
      return grads((f: Tensor) => conv2d(x, f).mul(g).sum())(w)[0]!;
    },
  ],
  ['a sum', { flops: 400 * M, bytes: 1600 * M }, () => leaf([400 * M]).sum()],
  ['sums of rows', { flops: 400 * M, bytes: 1600 * M }, () => leaf([4, 100 * M]).sum(1)],
  ['sums of columns', { flops: 400 * M, bytes: 1600 * M }, () => leaf([100 * M, 4]).sum(0)],
  ['variances of columns', { flops: 3 * 400 * M, bytes: 3200 * M }, () => variance(leaf([25 * M, 16]), 0)],
  ['variances of rows', { flops: 3 * 400 * M, bytes: 3200 * M }, () => variance(leaf([16, 25 * M]), 1)],
  ['positions of maxima', { flops: 400 * M, bytes: 1600 * M }, () => leaf([400 * M]).argMax(0)],
  ['softmax of a row', { flops: 400 * M, bytes: 3200 * M }, () => leaf([1, 400 * M]).softmax()],
  ['softmax of rows', { flops: 400 * M, bytes: 3200 * M }, () => leaf([4 * M, 100]).softmax()],
  ['running sums', { flops: 400 * M, bytes: 3200 * M }, () => leaf([400 * M]).cumSum(0)],
  ['running sums of columns', { flops: 400 * M, bytes: 3200 * M }, () => leaf([100 * M, 4]).cumSum(0)],
  ['running maxima', { flops: 100 * M, bytes: 800 * M }, () => leaf([100 * M]).cumMax(0)],
  // Comparisons: no sort has fewer than log2(n!) of them.
  ['a sort', { flops: 100 * M * 24, bytes: 800 * M }, () => leaf([100 * M]).sort()],
  ['sorts of rows', { flops: 100 * M * 5, bytes: 800 * M }, () => leaf([M, 100]).sort()],
  ['the greatest ten', { flops: 100 * M, bytes: 400 * M }, () => leaf([100 * M]).topK(10)[0]!],
  [
    'additions to few places',
    { flops: 100 * M, bytes: 800 * M },
    () => leaf([10]).scatterAdd(leaf([100 * M], 'int32'), leaf([100 * M])),
  ],
  [
    'additions to many places',
    { flops: 100 * M, bytes: 1200 * M },
    () => leaf([100 * M]).scatterAdd(leaf([100 * M], 'int32'), leaf([100 * M])),
  ],
  ['rows taken by number', { bytes: 4 * 64 * 8 * M }, () => take(leaf([1000, 64]), leaf([4 * M], 'int32'), 0)],
  ['random numbers', { flops: 20 * 400 * M, bytes: 1600 * M }, () => rand([400 * M])],
  ['normal random numbers', { flops: 20 * 400 * M, bytes: 1600 * M }, () => randn([400 * M])],
  ['a transpose', { bytes: 3200 * M * 0.95 }, () => leaf([20000, 20000]).transpose().contiguous()],
  ['an elementwise function', { flops: 400 * M, bytes: 3200 * M }, () => leaf([400 * M]).exp()],
  ['a pooling', { flops: 0.75 * 400 * M, bytes: 1600 * M }, () => maxPool2d(leaf([100, 64, 256, 256]), 2)],
];

/** Arithmetic and bytes that one thread has to itself: GPUs run one thread at some hundred million operations a second. */
const mostOfThread = { flops: 1e8, bytes: 5e7 };

/** Kernels that differ where the device has subgroups. */
const reducing = /^(sum|variance|softmax|positions|a pooling|product 1 )/;

describe('dispatches of large operations', () => {
  afterAll(() => setPendingLimits({ nodes: 4096, bytes: 2 ** 29 }));

  const every = cases.flatMap((c) =>
    reducing.test(c[0]) ? [[...c, true] as const, [...c, false] as const] : [[...c, false] as const],
  );
  it.each(every)('%s', async (_, work, make, subgroups) => {
    await setEngine(pretended(subgroups));
    setPendingLimits({ nodes: 1e6, bytes: 2 ** 50 });
    programs = [];
    const result = make();
    programs = [];
    flush();
    result.dispose();
    const ran = programs;
    expect(ran.length).toBeGreaterThan(0);
    const groups = ({ grid }: Program): number => grid[0] * grid[1] * grid[2];
    const total = { flops: 0, bytes: 0 };
    for (const p of ran) {
      total.flops += p.cost.flops * groups(p);
      total.bytes += p.cost.bytes * groups(p);
      const pieces = needsPieces(p) ? piecesOf(p).map(({ count }) => count[0] * count[1] * count[2]) : [groups(p)];
      expect((Math.max(...pieces) * secondsOf(p)) / groups(p), p.name).toBeLessThanOrEqual(0.5);
      const threads = p.group[0] * p.group[1] * p.group[2];
      expect(p.cost.flops / threads, p.name).toBeLessThan(mostOfThread.flops);
      expect(p.cost.bytes / threads, p.name).toBeLessThan(mostOfThread.bytes);
    }
    for (const kind of ['flops', 'bytes'] as const) {
      const least = work[kind];
      if (least === undefined) continue;
      expect(total[kind] / least, kind).toBeGreaterThan(0.99);
    }
  });
});
