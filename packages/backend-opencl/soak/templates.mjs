/**
 * Every template and kind of kernel once, in both modes, against the CPU engine: for Oclgrind, which watches each access for races and
 * bounds, so sizes are just large enough for the templates to be chosen.
 *
 *   node templates.mjs [simt|threads]       default both
 *   OCLGRIND_DATA_RACES=1 OCLGRIND_BUILD_OPTIONS=-cl-opt-disable OCL_ICD_VENDORS=/usr/lib/oclgrind/liboclgrind-rt-icd.so node templates.mjs
 */
import { createCpuEngine } from '@polygrad/backend-cpu';
import { createOpenClEngine } from '@polygrad/backend-opencl';
import * as pg from '@polygrad/core';

const x = (shape, key) => pg.randn(shape, { key });
const ints = (shape, high, key) => pg.randint(0, high, shape, { key });

/** Each gives one tensor or a list of them. */
const kernels = {
  'element by element': () => pg.tanh(pg.add(x([17, 33], 1), x([33], 2))),
  transpose: () => pg.add(pg.permute(x([33, 65], 1), [1, 0]), 1),
  'sum of all': () => pg.sum(x([5000], 1)),
  'sums of rows': () => pg.sum(x([7, 600], 1), 1),
  'sums of columns': () => pg.sum(x([600, 7], 1), 0),
  softmax: () => pg.softmax(x([9, 100], 1), 1),
  variance: () => pg.variance(x([9, 100], 1), 1),
  argmax: () => pg.argMax(x([9, 300], 1), 1),
  matmul: () => pg.matmul(x([37, 41], 1), x([41, 35], 2)),
  'matmul transposed': () => pg.matmul(pg.permute(x([40, 33], 1), [1, 0]), pg.permute(x([36, 40], 2), [1, 0])),
  'matmul of batches': () => pg.matmul(x([3, 16, 24], 1), x([3, 24, 20], 2)),
  'matmul, long sum': () => pg.matmul(x([4, 2000], 1), x([2000, 3], 2)),
  'matrix times vector': () => pg.matmul(x([70, 90], 1), x([90], 2)),
  'product in parts of a long sum': () => pg.matmul(pg.permute(x([3000, 6], 1), [1, 0]), x([3000, 5], 2)),
  'product with an epilogue': () => pg.relu(pg.add(pg.matmul(x([33, 40], 1), x([40, 34], 2)), x([34], 3))),
  'product of integers': () => pg.matmul(ints([9, 17], 50, 1), ints([17, 11], 50, 2)),
  convolution: () => pg.conv2d(x([2, 4, 12, 12], 1), x([6, 4, 3, 3], 2), { padding: 1 }),
  'gradients of a convolution': () =>
    pg.grad((a, w) => pg.sum(pg.square(pg.conv2d(a, w, { stride: 2 }))), { argnums: [0, 1] })(
      x([2, 3, 11, 11], 1),
      x([4, 3, 3, 3], 2),
    ),
  'convolution, channels last': () =>
    pg.conv2d(x([2, 10, 11, 4], 1), x([6, 4, 3, 3], 2), { padding: 1, layout: 'nhwc' }),
  'convolution of groups, dilated': () =>
    pg.conv2d(x([2, 4, 12, 12], 1), x([8, 2, 3, 3], 2), { groups: 2, dilation: 2 }),
  'convolution of each channel': () => pg.depthwiseConv2d(x([2, 5, 9, 9], 1), x([5, 1, 3, 3], 2)),
  'convolution turned round': () => pg.convTranspose2d(x([2, 4, 6, 6], 1), x([4, 3, 3, 3], 2), { stride: 2 }),
  'batch norm': () => pg.batchNorm(x([6, 4, 5, 5], 1), { training: true }),
  attention: () => pg.scaledDotProductAttention(x([2, 2, 20, 8], 1), x([2, 2, 24, 8], 2), x([2, 2, 24, 8], 3)),
  pooling: () => pg.maxPool2d(x([2, 3, 12, 12], 1), 2),
  'running sums': () => pg.cumSum(x([5, 300], 1), 1),
  'running sums, long': () => pg.cumSum(x([6000], 1), 0),
  'running sums in segments': () => pg.cumSum(x([40_000], 1), 0),
  'running maxima of many lines': () => pg.cumMax(x([130, 70], 1), 0),
  'running products, turned': () => pg.grad((t) => pg.sum(pg.cumProd(t, 1)))(pg.add(pg.mul(x([3, 80], 1), 0.1), 1)),
  'sort of short lines': () => pg.sort(x([20, 16], 1), { axis: 1 }),
  'sort of a long line': () => pg.sort(x([3000], 1)),
  'sort of a line of several blocks': () => pg.sort(x([20_000], 1)),
  'order of lines': () => pg.argSort(ints([3, 200], 50, 1), { axis: 1 }),
  'the largest few of a very long line': () => pg.topK(x([40_000], 1), 3)[0],
  'the largest few': () => pg.topK(x([2, 2000], 1), 5)[0],
  gather: () => pg.gather(x([40, 8], 1), ints([25, 8], 40, 2), 0),
  'gradient of a gather': () => pg.grad((t) => pg.sum(pg.square(pg.gather(t, ints([60, 8], 40, 2), 0))))(x([40, 8], 1)),
  'gradient of a gather, many rows': () =>
    pg.grad((t) => pg.sum(pg.square(pg.gather(t, ints([700, 8], 40, 2), 0))))(x([40, 8], 1)),
  'scatter, the last one wins': () => pg.scatter(x([30, 6], 1), ints([90, 6], 30, 2), x([90, 6], 3), 0),
  'scatter of products': () =>
    pg.scatterReduce(x([30, 6], 1), ints([500, 6], 30, 2), x([500, 6], 3), 'prod', { axis: 0 }),
  'random numbers': () => pg.rand([1000], { key: 5 }),
  'integers of 64 bits': () => pg.cast(pg.mul(ints([300], 1000, 1), 3), 'int64'),
  'small floats': () => pg.add(pg.cast(x([300], 1), 'float16'), 1),
};

async function valuesOf(engine, build) {
  await pg.setEngine(engine);
  // What is forgotten on the way would be computed by a later flush, when this engine is gone: by whether it was collected.
  const made = pg.scope(build);
  const list = Array.isArray(made) ? made : [made];
  const values = [];
  for (const t of list) values.push(Array.from(await t.data(), Number));
  for (const t of list) t.dispose();
  return values;
}

const wanted = process.argv[2];
const cpu = createCpuEngine({ threads: 1 });
let wrong = 0;
for (const simt of [false, true]) {
  if (wanted !== undefined && (wanted === 'simt') !== simt) continue;
  const engine = createOpenClEngine({ simt, cache: false });
  console.log(`${engine.device}, ${simt ? 'groups of threads' : 'one thread per group'}`);
  for (const [name, build] of Object.entries(kernels)) {
    const want = await valuesOf(cpu, build);
    const got = await valuesOf(engine, build);
    const close = want.every((list, k) =>
      list.every(
        (value, i) => Math.abs(value - got[k][i]) <= 1e-4 * (1 + Math.abs(value)) || Object.is(value, got[k][i]),
      ),
    );
    if (!close) wrong++;
    console.log(`${close ? 'right' : 'WRONG'} ${name}`);
  }
  if (simt) {
    // Every tile that the tuner may choose, at the edges of sizes that fit none; right or wrong is for the tests of contraction/.
    await pg.setEngine(engine);
    const sizes = [
      { m: 37, n: 35, k: 41 },
      { m: 37, n: 35, k: 41, transposeA: true },
      { m: 37, n: 35, k: 41, transposeB: true },
    ];
    const results = await pg.tune(engine, { products: sizes, budget: Number.POSITIVE_INFINITY, again: true });
    for (const { key, measured } of results) console.log(`ran ${measured.length} tiles of ${key}`);
  }
  engine.dispose();
}
cpu.dispose();
if (wrong > 0) throw new Error(`${wrong} kernels are wrong`);
