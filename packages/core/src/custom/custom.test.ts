/** Kernels of users: values, gradients, batches, errors with lines, indices of any value. */
import { createReferenceEngine } from '@polygrad/testing';
import { describe, expect, it } from 'vitest';
import { defineKernel } from '../entries/custom.ts';
import { grad, setEngine, tensor, type Tensor, vmap } from '../index.ts';

describe.each([false, true])('kernels of users, groups of several threads: %s', (simt) => {
  it('elementwise, with a gradient', async () => {
    await setEngine(createReferenceEngine({ simt }));
    const swish = defineKernel({
      name: 'swish',
      form: 'elementwise',
      inputs: { x: 'float32' },
      outputs: { y: 'x' },
      body: (k, { x }) => x.mul(x.sigmoid()),
      gradient: ({ inputs: { x }, grads }) => {
        const s = x.sigmoid();
        return { x: grads.y.mul(s.add(x.mul(s).mul(s.neg().add(1)))) };
      },
    });
    const { y } = swish({ x: tensor([0, 1, -100]) });
    expect(await y.data()).toEqual(Float32Array.of(0, Math.fround(1 / (1 + Math.exp(-1))), -0));
    const g = grad((x: Tensor) => swish({ x }).y.sum())(tensor([0, 1]));
    console.log(await g.array());
  });
  it('groups', async () => {
    await setEngine(createReferenceEngine({ simt }));
    const rowNorm = defineKernel({
      name: 'rowNorm',
      form: 'groups',
      inputs: { x: { dtype: 'float32', rank: 2 } },
      outputs: { y: 'x' },
      body: (k, { x }, { y }) => {
        const [row] = k.index;
        const n = x.shape[1]!;
        const { squares } = k.fold(n, {
          start: { squares: 0 },
          step: ({ squares }, i) => ({ squares: squares.add(x.at([row!, i]).mul(x.at([row!, i]))) }),
          combine: (a, b) => ({ squares: a.squares.add(b.squares) }),
        });
        k.each(n, (i) => y.set([row!, i], x.at([row!, i]).mul(squares.rsqrt())));
      },
    });
    console.log(
      await rowNorm({
        x: tensor([
          [3, 4],
          [6, 8],
        ]),
      }).y.array(),
    );
    const many = vmap((x: Tensor) => rowNorm({ x }).y)(tensor([[[3, 4]], [[5, 12]]]));
    console.log(await many.array());
  });
});
