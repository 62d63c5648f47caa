/** Products in stages, by tiles of matrices and by threads, run by the interpreter of PTX, have the bits that the reference has. More: products.long.test.ts. */
import { conv2d, matmul, relu, setDynamicSizes } from '@polygrad/core';
import type { Program } from '@polygrad/core/kernel';
import { describe, expect, it } from 'vitest';
import { product, type ProductCase, referenceFor, staged, tiled, valuesOn } from './fixtures/products.ts';
import { ptxRun } from './fixtures/ptx-run.ts';
import { assemble, ptxas, targets } from './fixtures/ptxas.ts';
import { createSimulatedEngine } from './fixtures/simulated-engine.ts';
import type { PtxKernel } from './index.ts';

const cases: readonly ProductCase[] = [
  product('float16', 40, 32, 24),
  product('float16', 21, 45, 17, 'b'),
  {
    name: 'a batch, its sums after something',
    dtype: 'float16',
    shapes: [[3, 24, 33], [3, 33, 16], [16]],
    run: ([a, b, c]) => relu(matmul(a!, b!).add(c!)),
  },
  {
    name: 'a convolution',
    dtype: 'float16',
    shapes: [
      [2, 8, 9, 9],
      [12, 8, 3, 3],
    ],
    run: ([x, w]) => conv2d(x!, w!, { padding: 1 }),
  },
];

/** Without tiles of matrices. */
const single: readonly ProductCase[] = [
  product('float32', 40, 32, 24),
  product('float32', 37, 45, 21, 'ab'),
  product('float32', 33, 48, 36, 'b'),
  product('float64', 20, 40, 24),
  product('float32', 20, 4112, 24),
  {
    name: 'a batch of float32, its sums after something',
    dtype: 'float32',
    shapes: [[3, 24, 33], [3, 33, 16], [16]],
    run: ([a, b, c]) => relu(matmul(a!, b!).add(c!)),
  },
  {
    name: 'a convolution of float32',
    dtype: 'float32',
    shapes: [
      [2, 8, 9, 9],
      [12, 8, 3, 3],
    ],
    run: ([x, w]) => conv2d(x!, w!, { padding: 1 }),
  },
];

describe.skipIf(ptxRun() === null).each(targets.slice(0, 2))('on sm_$computeCapability', (target) => {
  it.each(cases)('$name', async (c) => {
    const kernels: [PtxKernel, Program][] = [];
    const engine = createSimulatedEngine(target, (kernel, program) => kernels.push([kernel, program]));
    const found = await valuesOn(engine, c);
    expect(tiled(kernels)).toHaveLength(1);
    expect(found).toEqual(await valuesOn(referenceFor(target), c));
  });

  it.each(single)('$name, by threads', async (c) => {
    const kernels: [PtxKernel, Program][] = [];
    const engine = createSimulatedEngine(target, (kernel, program) => kernels.push([kernel, program]));
    const found = await valuesOn(engine, c);
    expect(staged(kernels)).toHaveLength(1);
    const copies = kernels.some(([{ text }]) => text.includes('cp.async'));
    expect(copies).toBe(target.computeCapability >= 80);
    expect(found).toEqual(await valuesOn(referenceFor(target), c));
  });

  it.skipIf(ptxas() === null)('of any sizes fit in registers, with elements brought one by one', async () => {
    setDynamicSizes('always');
    const kernels: [PtxKernel, Program][] = [];
    const engine = createSimulatedEngine(target, (kernel, program) => kernels.push([kernel, program]));
    await valuesOn(engine, product('float16', 600, 20, 700)).finally(() => setDynamicSizes('automatic'));
    const resources = assemble(tiled(kernels), target);
    expect(resources).toHaveLength(1);
    expect(resources[0]!.spilled).toBe(0);
  });
});
