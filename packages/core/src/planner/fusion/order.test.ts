/** The order of kernels: unread results are computed as soon as possible, so that their inputs are freed. */
import { describe, expect, it } from 'vitest';
import { grad, matmul, mul, profile, relu, scope, setEngine, sub, sum, type Tensor, tensor } from '../../index.ts';
import { createReferenceEngine } from '@polygrad/testing';

const filled = (...shape: number[]): Tensor =>
  tensor(
    Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => Math.sin(i)),
    { shape },
  );

describe('kernels', () => {
  it('of a step update a layer before they go on to the one before it', async () => {
    await setEngine(createReferenceEngine());
    const x = filled(16, 40);
    const layers = [filled(40, 41), filled(41, 42), filled(42, 43)] as const;
    const { kernels } = await profile(() =>
      scope(() => {
        const loss = (...weights: readonly [Tensor, Tensor, Tensor]): Tensor =>
          sum(weights.reduce((y, w) => relu(matmul(y, w)), x));
        const all = grad(loss, { argnums: [0, 1, 2] })(...layers);
        // Recorded behind the whole derivative.
        for (const [i, w] of layers.entries()) w.assign(sub(w, mul(all[i]!, 0.1)));
      }),
    );
    const names = kernels.map(({ name }) => name);
    const at = (text: RegExp): number => names.findLastIndex((name) => text.test(name));
    const [first, second, third] = [at(/40x41$/), at(/41x42$/), at(/42x43$/)];
    expect(Math.min(first, second, third), names.join()).toBeGreaterThan(0);
    expect([third < second, second < first], names.join()).toEqual([true, true]);
    for (const t of [x, ...layers]) t.dispose();
  });
});
