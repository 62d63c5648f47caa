/** What a training step asks of the driver once it has run a few times: no bind group, no pipeline and no buffer that is new. */
import { grads, keep, scope, setEngine, type Tensor, tensor } from '@polygrad/core';
import { afterAll, describe, expect, it } from 'vitest';
import { openDevice } from '../device/device.ts';
import type { WebGpuEngine } from '../gpu-engine.ts';
import { engineOn, testAdapter, testEngine } from '../fixtures/device.ts';

const there = await testEngine();
const engines: WebGpuEngine[] = [];
afterAll(() => {
  there?.dispose();
  for (const engine of engines) engine.dispose();
});

/** Calls of a device that make something. */
const makers = [
  'createBindGroup',
  'createBuffer',
  'createComputePipeline',
  'createComputePipelineAsync',
  'createShaderModule',
  'createPipelineLayout',
  'createBindGroupLayout',
] as const;
type Counts = Record<(typeof makers)[number] | 'setBindGroup', number>;

/** An engine, and what was made on its device and bound so far. */
async function counted(): Promise<{ engine: WebGpuEngine; counts: Counts }> {
  const found = await testAdapter();
  const gpu = await openDevice(found);
  const counts = Object.fromEntries([...makers, 'setBindGroup'].map((name) => [name, 0])) as Counts;
  for (const name of makers) {
    const make = gpu[name].bind(gpu) as (...args: unknown[]) => unknown;
    Object.defineProperty(gpu, name, {
      value: (...args: unknown[]) => {
        counts[name]++;
        return make(...args);
      },
    });
  }
  const begin = gpu.createCommandEncoder.bind(gpu);
  gpu.createCommandEncoder = (...args) => {
    const encoder = begin(...args);
    const open = encoder.beginComputePass.bind(encoder);
    encoder.beginComputePass = (...options) => {
      const pass = open(...options);
      const bind = pass.setBindGroup.bind(pass) as (...values: unknown[]) => undefined;
      pass.setBindGroup = (...values: unknown[]) => {
        // Group 1 is the numbers'.
        if (values[0] === 0) counts.setBindGroup++;
        return bind(...values);
      };
      return pass;
    };
    return encoder;
  };
  const engine = engineOn(gpu, found, { tuning: false });
  engines.push(engine);
  return { engine, counts };
}

const fractions = (shape: readonly number[], seed: number): Tensor =>
  tensor(
    Float32Array.from({ length: shape.reduce((n, x) => n * x, 1) }, (_, i) => Math.sin(seed * (i + 1)) / 3),
    { shape },
  );

/** Two layers by gradient descent with momentum; new data in every step, as from a loader. */
function training(): (i: number) => Tensor {
  const weights = [fractions([12, 20], 0.3), fractions([20, 4], 0.7)] as const;
  const speeds = weights.map((w) => keep(w.mul(0)));
  return (i) =>
    scope(() => {
      const [x, y] = [fractions([16, 12], 0.1 + i), fractions([16, 4], 0.2 + i)];
      const loss = (a: Tensor, b: Tensor): Tensor => x.matmul(a).tanh().matmul(b).sub(y).square().mean();
      const now = loss(...weights);
      const slopes = grads(loss)(...weights) as readonly Tensor[];
      for (const [j, w] of weights.entries()) {
        const speed = speeds[j]!;
        speed.assign(speed.mul(0.9).add(slopes[j]!));
        w.assign(w.sub(speed.mul(0.05)));
      }
      return now;
    });
}

describe.skipIf(there === null)('caches of WebGPU', () => {
  it.each([1, 7])('a training step makes nothing new after the first few, losses read every %i', async (every) => {
    const { engine, counts } = await counted();
    await setEngine(engine);
    const step = training();
    const history: Counts[] = [];
    const losses: Tensor[] = [];
    for (let i = 0; i < 40; i++) {
      losses.push(step(i));
      if (i % every === every - 1)
        for (const loss of losses.splice(0)) {
          expect(Number.isFinite(await loss.item())).toBe(true);
          loss.dispose();
        }
      history.push({ ...counts });
    }
    const [early, last] = [history[24], history[39]] as [Counts, Counts];
    // Fifteen steps bind a group for each of their kernels, all of them found.
    const kernels = (last.setBindGroup - early.setBindGroup) / 15;
    expect(kernels).toBeGreaterThan(4);
    expect({ ...last, setBindGroup: 0 }).toEqual({ ...early, setBindGroup: 0 });
    expect(last.createBindGroup).toBeLessThan(last.setBindGroup / 4);
    expect(last.createComputePipelineAsync).toBeLessThan(2 * kernels);
  });
});
