/**
 * Plans for several sizes through the libraries of the simulated driver: one measurement decides for a class. Every size is given to the library with its own
 * numbers, and what it decided for a size is kept.
 */
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cublasLtVariable } from './cublaslt.ts';
import { cudnnVariable } from './cudnn.ts';
import { hasSimulator, simulator } from './fixtures/device.ts';
import { ask } from './fixtures/process.ts';

const besides = (name: string): string => (simulator === null ? '' : join(dirname(simulator), name));
const env = {
  POLYGRAD_CUDA_DRIVER: simulator ?? '',
  [cublasLtVariable]: besides('libcublaslt-sim.so'),
  [cudnnVariable]: besides('libcudnn-sim.so'),
};

/** Tensors of eighths, whose sums are exact in float32, and an engine on whose clock libraries win. `learn`: a class is seen, measured, and planned anew. */
const tools = `
  const made = (shape, seed) =>
    core.tensor(Array.from({ length: shape.reduce((n, x) => n * x, 1) }, (_, i) => (((i * 7 + seed * 13) % 23) - 11) / 8), { shape });
  const engine = cuda.createCudaEngine({ tuning: false });
  await core.setEngine(engine);
  let given = 0;
  const { submit, submitTimed } = engine;
  const isOne = (command) => command.kernel?.program.product !== undefined;
  engine.submit = (commands) => { given += commands.filter(isOne).length; return submit.call(engine, commands); };
  engine.submitTimed = async (commands) => {
    const times = await submitTimed.call(engine, commands);
    return times.map(() => (commands.some(isOne) ? 1 : 1e9));
  };
  const since = () => { const now = given; given = 0; return now; };
  const learn = async (run) => {
    for (const n of [33, 41]) await run(n);
    const tuned = await core.tune(engine, { budget: 0 });
    for (const n of [33, 41]) await run(n);
    return tuned.filter(({ key }) => key.split(' ')[1].includes('-')).map(({ tile }) => tile);
  };
  const difference = (got, want) =>
    got.length === want.length ? Math.max(...got.map((v, i) => Math.abs(v - want[i]) / Math.max(1, Math.abs(want[i])))) : 1e9;
  const lists = async (tensors) => { const all = []; for (const t of tensors) all.push(...await t.data()); return all; };`;

/** A layer and its gradients by plain loops, and by the engine: the batch is the size. */
const layer = `
  ${tools}
  const [inputs, outputs] = [24, 20];
  const w = made([inputs, outputs], 2);
  const wList = [...await w.data()];
  const step = (x, g) => [core.relu(core.matmul(x, w)), ...core.vjp((a, b) => core.matmul(a, b), [x, w], g)[1]];
  const plain = (x, g, n) => {
    const [y, dx, dw] = [n * outputs, n * inputs, inputs * outputs].map((size) => new Float64Array(size));
    for (let i = 0; i < n; i++) for (let j = 0; j < outputs; j++) {
      for (let k = 0; k < inputs; k++) y[i * outputs + j] += x[i * inputs + k] * wList[k * outputs + j];
      for (let k = 0; k < inputs; k++) {
        dx[i * inputs + k] += g[i * outputs + j] * wList[k * outputs + j];
        dw[k * outputs + j] += x[i * inputs + k] * g[i * outputs + j];
      }
    }
    return [...y.map((v) => Math.max(0, v)), ...dx, ...dw];
  };
  const worst = async (n) => {
    const [x, g] = [made([n, inputs], n), made([n, outputs], n + 1)];
    const want = plain(await x.data(), await g.data(), n);
    const got = await lists(step(x, g));
    return difference(got, want);
  };`;

describe.skipIf(!hasSimulator())('plans for several sizes, on the simulated driver', () => {
  it('give products of every size of a class to cuBLASLt, which is asked once for each', () => {
    const said = ask<Readonly<Record<string, unknown>>>(
      `${layer}
       const before = [await worst(33), await worst(41), await worst(50)];
       const unmeasured = since();
       const chosen = await learn(worst);
       const sizes = [];
       for (const n of [64, 77, 50, 101]) { since(); sizes.push([n, await worst(n), since()]); }
       // What it decided is kept: to be asked again would be a failure.
       process.env.POLYGRAD_CUDA_SIM_FAIL = 'cublasLtMatmulAlgoGetHeuristic@1+=14';
       const again = [];
       for (const n of [101, 64, 77]) { since(); again.push([n, await worst(n), since()]); }
       const kept = engine.cublasLtMissing;
       const lost = [await worst(90), engine.cublasLtMissing];
       say({ before, unmeasured, chosen, sizes, again, kept, lost });`,
      env,
    );
    const products = said as unknown as Record<string, number[]> & Record<'sizes' | 'again', number[][]>;
    expect(said.unmeasured).toBe(0);
    expect(said.chosen).toEqual(['library', 'library', 'library']);
    for (const [n, error, given] of [...products.sizes!, ...products.again!]) {
      expect(error, String(n)).toBeLessThan(1e-5);
      expect(given, String(n)).toBe(3);
    }
    for (const error of products.before!) expect(error).toBeLessThan(1e-5);
    expect(said.kept).toBeNull();
    const [error, missing] = said.lost as [number, string];
    expect(error).toBeLessThan(1e-5);
    expect(missing).toMatch(/failed with CUDA error 14/);
  });

  it('leave one size to kernels where cuBLASLt has no way for it', () => {
    const [refused, others, missing] = ask<[number[], number[], string | null]>(
      `${layer}
       await learn(worst);
       await worst(64);
       since();
       process.env.POLYGRAD_CUDA_SIM_FAIL = 'cublasLtMatmulAlgoGetHeuristic@1+=15';
       const refused = [await worst(77), since()];
       process.env.POLYGRAD_CUDA_SIM_FAIL = '';
       const others = [await worst(64), since(), await worst(99), since()];
       say([refused, others, engine.cublasLtMissing]);`,
      env,
    );
    expect(refused[0]).toBeLessThan(1e-5);
    expect([others[1], others[3]]).toEqual([3, 3]);
    for (const error of [others[0], others[2]]) expect(error).toBeLessThan(1e-5);
    expect(missing).toBeNull();
  });

  it('give convolutions of any number of images to cuDNN', () => {
    const said = ask<[number[][], string[], string | null]>(
      `${tools}
       const w = made([6, 4, 3, 3], 2);
       const options = { padding: 1 };
       const passes = (x, g) => [core.conv2d(x, w, options), ...core.vjp((a, b) => core.conv2d(a, b, options), [x, w], g)[1]];
       const worst = async (n) => {
         const [x, g] = [made([n, 4, 5, 5], n), made([n, 6, 5, 5], n + 1)];
         const [xs, ws, gs] = [await x.data(), await w.data(), await g.data()];
         // Of each triple of elements that meet, each takes the product of the other two.
         const [y, dx, dw] = [gs, xs, ws].map((list) => new Float64Array(list.length));
         for (let a = 0; a < n; a++) for (let f = 0; f < 6; f++) for (let i = 0; i < 5; i++) for (let j = 0; j < 5; j++)
           for (let c = 0; c < 4; c++) for (let r = 0; r < 3; r++) for (let s = 0; s < 3; s++) {
             const [row, column] = [i + r - 1, j + s - 1];
             if (row < 0 || row >= 5 || column < 0 || column >= 5) continue;
             const from = ((a * 4 + c) * 5 + row) * 5 + column;
             const [by, to] = [((f * 4 + c) * 3 + r) * 3 + s, ((a * 6 + f) * 5 + i) * 5 + j];
             y[to] += xs[from] * ws[by];
             dx[from] += gs[to] * ws[by];
             dw[by] += gs[to] * xs[from];
           }
         return difference(await lists(passes(x, g)), [...y, ...dx, ...dw]);
       };
       const tiles = await learn(worst);
       const said = [];
       for (const n of [50, 64, 99]) { since(); said.push([n, await worst(n), since()]); }
       say([said, tiles, engine.cudnnMissing]);`,
      env,
    );
    const [sizes, tiles, missing] = said;
    expect(missing).toBeNull();
    expect(tiles).toEqual(['library', 'library', 'library']);
    for (const [n, error, given] of sizes) {
      expect(error, String(n)).toBeLessThan(1e-5);
      expect(given, String(n)).toBe(3);
    }
  });
});
