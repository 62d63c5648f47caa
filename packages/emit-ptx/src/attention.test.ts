/** Registers, spills and warps of attention in one kernel, forward and backward, on cards of two generations; on all of them in the long tests. */
import {
  type DType,
  flush,
  grads,
  scaledDotProductAttention,
  setEngine,
  sum,
  type Tensor,
  tensor,
} from '@polygrad/core';
import { matrixLowering } from '@polygrad/core/engine/threads';
import { createNullEngine } from '@polygrad/testing';
import { expect, it } from 'vitest';
import { assemble, ptxas, sampledTargets, warpsOf } from './fixtures/ptxas.ts';
import { emitPtx, type PtxKernel, ptxCaps } from './index.ts';

function filled(dtype: DType, shape: readonly number[]): Tensor {
  const length = shape.reduce((a, b) => a * b);
  const data =
    dtype === 'float64'
      ? new Float64Array(length)
      : dtype === 'float32'
        ? new Float32Array(length)
        : new Uint16Array(length);
  return tensor(data, { dtype, shape: [...shape] });
}

/** Operands and heads; by tiles of matrices where the target has those. */
const cases: readonly (readonly [name: string, dtype: DType, width: number, precision: 'highest' | 'high'])[] = [
  ['float32', 'float32', 64, 'highest'],
  ['float32', 'float32', 128, 'highest'],
  ['float32', 'float32', 20, 'highest'],
  ['float64', 'float64', 64, 'highest'],
  ['float16', 'float16', 64, 'highest'],
  ['float16', 'float16', 128, 'highest'],
  ['bfloat16', 'bfloat16', 64, 'highest'],
  ['TF32', 'float32', 64, 'high'],
  ['TF32', 'float32', 128, 'high'],
];

for (const target of sampledTargets)
  it.skipIf(ptxas() === null)(`sm_${target.computeCapability}: no kernel of attention spills`, async () => {
    const { computeCapability } = target;
    const kernels: PtxKernel[] = [];
    const names: string[] = [];
    for (const [name, dtype, width, float32MatmulPrecision] of cases) {
      const caps = ptxCaps(computeCapability, { multiprocessors: 108, float32MatmulPrecision });
      const engine = createNullEngine({ ...caps, bindAlign: 16, lowering: matrixLowering });
      const compile = engine.compile.bind(engine);
      const before = kernels.length;
      engine.compile = (programs) => {
        for (const p of programs) if (/^attention(?!.*_wide)/.test(p.name)) kernels.push(emitPtx(p, target));
        return compile(programs);
      };
      await setEngine(engine);
      const [q, k, v] = [0, 1, 2].map(() => filled(dtype, [4, 8, 512, width])) as [Tensor, Tensor, Tensor];
      grads((...xs: Tensor[]) =>
        sum(scaledDotProductAttention(xs[0]!, xs[1]!, xs[2]!, { form: 'kernel', causal: true })),
      )(q, k, v);
      flush();
      const own = kernels.slice(before);
      expect(own.length, name).toBe(3);
      const isByTiles = computeCapability >= 80 ? name !== 'float32' && name !== 'float64' : name === 'float16';
      for (const { text, entry } of own) {
        // Keys and values of wide heads do not fit in registers beside factors of four bytes.
        const fits = name !== 'TF32' || width < 128 || !entry.endsWith('_keys');
        expect(text.includes('mma.sync'), `${name} ${entry}`).toBe(isByTiles && fits);
        names.push(`${name} ${width} ${entry}`);
      }
    }
    assemble(kernels, target).forEach((found, i) => {
      expect(found.spilled, names[i]).toBe(0);
      expect(found.registers, names[i]).toBeLessThanOrEqual(224);
      expect(found.sharedBytes, names[i]).toBeLessThanOrEqual(48 * 1024);
      expect(warpsOf(found, kernels[i]!), names[i]).toBeGreaterThanOrEqual(4);
    });
  });
