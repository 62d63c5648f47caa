/** Registers, spills and warps of attention in one kernel, forward and backward, on every card. */
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
import { assemble, ptxas, targets } from './fixtures/ptxas.ts';
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

for (const target of targets)
  it.skipIf(ptxas() === null)(`sm_${target.computeCapability}: no kernel of attention spills`, async () => {
    const kernels: PtxKernel[] = [];
    const caps = ptxCaps(target.computeCapability, { multiprocessors: 108 });
    const engine = createNullEngine({ ...caps, bindAlign: 16, lowering: matrixLowering });
    const compile = engine.compile.bind(engine);
    engine.compile = (programs) => {
      for (const p of programs) if (p.name.startsWith('attention')) kernels.push(emitPtx(p, target));
      return compile(programs);
    };
    await setEngine(engine);
    const names: string[] = [];
    for (const [dtype, width] of [
      ['float32', 64],
      ['float32', 128],
      ['bfloat16', 64],
      ['float64', 64],
      ['float32', 20],
    ] as const) {
      const [q, k, v] = [0, 1, 2].map(() => filled(dtype, [4, 8, 512, width])) as [Tensor, Tensor, Tensor];
      const before = kernels.length;
      grads((...xs: Tensor[]) =>
        sum(scaledDotProductAttention(xs[0]!, xs[1]!, xs[2]!, { form: 'kernel', causal: true })),
      )(q, k, v);
      flush();
      for (let i = before; i < kernels.length; i++) names.push(`${dtype} ${width} ${kernels[i]!.entry}`);
    }
    const found = assemble(kernels, target);
    expect(found.length).toBe(12);
    found.forEach(({ registers, spilled, sharedBytes }, i) => {
      expect(spilled, names[i]).toBe(0);
      expect(registers, names[i]).toBeLessThanOrEqual(192);
      expect(sharedBytes, names[i]).toBeLessThanOrEqual(48 * 1024);
    });
  });
