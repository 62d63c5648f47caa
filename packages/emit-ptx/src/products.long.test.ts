/**
 * Products by tiles of matrices: random sizes with the bits of the reference, large ones as the CPU engine has them, which takes other ways; every
 * kernel is assembled for its card.
 */
import { createCpuEngine } from '@polygrad/backend-cpu';
import { conv2d, type DType, relu, setDynamicSizes, type Tensor } from '@polygrad/core';
import type { Program } from '@polygrad/core/kernel';
import { afterEach, describe, expect, it } from 'vitest';
import { product, type ProductCase, referenceFor, tiled, valuesOn } from './fixtures/products.ts';
import { assemble, ptxas, targets } from './fixtures/ptxas.ts';
import { ptxRun } from './fixtures/ptx-run.ts';
import { createSimulatedEngine } from './fixtures/simulated-engine.ts';
import type { PtxKernel } from './index.ts';

afterEach(() => setDynamicSizes('automatic'));

function convolution(dtype: DType, x: readonly number[], w: readonly number[], padding: number): ProductCase {
  const name = `${dtype} convolution of ${x} by ${w}`;
  return { name, dtype, shapes: [x, w], run: ([a, b]) => relu(conv2d(a as Tensor, b as Tensor, { padding })) };
}

const large: readonly ProductCase[] = [
  product('float16', 1024, 96, 1024),
  product('float16', 1024, 96, 1024, 'a'),
  product('float16', 1024, 96, 1024, 'b'),
  product('bfloat16', 1024, 96, 1024, 'ab'),
  product('bfloat16', 1019, 77, 1021),
  product('float16', 1016, 88, 1032),
  product('bfloat16', 520, 264, 504),
  product('float16', 128, 4096, 136, 'b'),
  convolution('float16', [4, 64, 28, 28], [64, 64, 3, 3], 1),
  convolution('bfloat16', [8, 32, 56, 56], [128, 32, 3, 3], 1),
  convolution('bfloat16', [8, 64, 28, 28], [128, 64, 1, 1], 0),
];

describe.skipIf(ptxRun() === null).each(targets.slice(0, 2))('on sm_$computeCapability', (target) => {
  const kernels: [PtxKernel, Program][] = [];
  const engine = createSimulatedEngine(target, (kernel, program) => kernels.push([kernel, program]));
  const assembled = (): void => {
    const some = tiled(kernels.splice(0));
    if (ptxas() === null) return;
    for (const { spilled, registers } of assemble(some, target)) {
      expect(spilled).toBe(0);
      expect(registers).toBeLessThanOrEqual(128);
    }
  };

  it.each(large)('$name', async (c) => {
    const found = await valuesOn(engine, c);
    const cpu = await createCpuEngine();
    const wanted = await valuesOn(cpu, c);
    cpu.dispose();
    const most = wanted.reduce((m, v) => Math.max(m, Math.abs(v)), 0);
    const share = c.dtype === 'float16' ? 1e-3 : 8e-3;
    const worst = found.reduce((m, v, i) => Math.max(m, Math.abs(v - wanted[i]!)), 0);
    expect(worst / most).toBeLessThan(share);
    assembled();
  });

  it.each(['never', 'always'] as const)('of random sizes, sizes %s shared', async (mode) => {
    setDynamicSizes(mode);
    let seed = 7;
    const pick = <T>(xs: readonly T[]): T => {
      seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
      return xs[Math.floor((seed / 2 ** 32) * xs.length)]!;
    };
    const size = (): number => pick([7, 8, 12, 16, 17, 24, 31, 32, 33, 40, 48, 63, 64, 65]);
    for (let turn = 0; turn < 20; turn++) {
      const c = product(pick(['float16', 'bfloat16']), size(), size(), size(), pick(['', 'a', 'b', 'ab']));
      expect(await valuesOn(engine, c), c.name).toEqual(await valuesOn(referenceFor(target), c));
    }
    assembled();
  });
});
