/** Functions of functions on whole models, where single operations say little: checkpoints, gradients per example, Hessians. */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import type { ConformanceCase } from '../case.ts';
import { assertClose } from '../compare.ts';
import { arrayOf } from '../host.ts';

const draw = (shape: readonly number[], key: number): Tensor => pg.randn([...shape], { key });

/** Two dense layers with dropout between them; the key makes the mask the same wherever it is drawn. */
function block(x: Tensor, a: Tensor, b: Tensor): Tensor {
  return x.add(pg.matmul(pg.dropout(pg.gelu(pg.matmul(pg.layerNorm(x), a)), { p: 0.3, key: 4 }), b));
}

async function same(what: string, actual: Tensor, expected: Tensor): Promise<void> {
  const [x, y] = [await arrayOf(actual), await arrayOf(expected)];
  // As for gradients in float32: sums may be taken in another order.
  const largest = y.data.reduce((m, v) => Math.max(m, Math.abs(v)), 0);
  assertClose(what, x.data, x.shape, y, { rtol: 1.3e-5, atol: 1e-4 * largest });
}

export function transformCases(): ConformanceCase[] {
  return [
    {
      name: 'transforms / a chain of checkpoints has the gradients of the chain',
      run: async () => {
        const inputs = [draw([6, 16], 1), draw([16, 24], 2), draw([24, 16], 3)] as const;
        const chain =
          (run: (x: Tensor, a: Tensor, b: Tensor) => Tensor) =>
          (x: Tensor, a: Tensor, b: Tensor): Tensor =>
            run(run(run(x, a, b), a, b), a, b)
              .square()
              .sum();
        const direct = pg.grads(chain(block))(...inputs);
        const saved = pg.grads(chain((...args) => pg.checkpoint(block, ...args)))(...inputs);
        for (const [i, expected] of direct.entries()) await same(`gradient ${i}`, saved[i]!, expected);
        pg.dispose(inputs);
        return undefined;
      },
    },
    {
      name: 'transforms / gradients per example are those of single calls',
      run: async () => {
        const [x, a, b] = [draw([3, 5, 16], 1), draw([16, 24], 2), draw([24, 16], 3)];
        const slope = pg.grad((w: Tensor, example: Tensor) => block(example, w, b).square().mean());
        const all = pg.vmap(slope, { inAxes: [null, 0] })(a, x);
        const single = pg.scope(() => pg.stack(pg.unbind(x, 0).map((example) => slope(a, example))));
        await same('gradients', all, single);
        pg.dispose([x, a, b]);
        return undefined;
      },
    },
    {
      name: 'transforms / a Hessian times a vector is the product with the vector',
      run: async () => {
        const [x, w, v] = [draw([7, 4], 1), draw([4], 2), draw([4], 3)];
        const loss = (p: Tensor): Tensor => pg.softplus(pg.matmul(x, p)).square().sum();
        const [product] = pg.hvp(loss, [w], [v]);
        const whole = pg.scope(() => pg.matmul(pg.hessian(loss)(w), v));
        await same('product', product, whole);
        pg.dispose([x, w, v]);
        return undefined;
      },
    },
  ];
}
