/** Lifetimes: scopes, disposal, and loops that must hold memory flat without a word from the user. */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import type { ConformanceCase } from '../case.ts';

function equal(what: string, actual: number, expected: number): void {
  if (actual !== expected) throw new Error(`${what} is ${actual} where ${expected} is expected`);
}

export function memoryCases(): ConformanceCase[] {
  return [
    {
      name: 'memory / a scope releases what it does not return',
      run: async () => {
        const before = pg.memory().numBuffers;
        const kept = pg.scope(() => {
          const x = pg.ones([64]);
          return { y: x.add(1).mul(2), list: [x.sub(1)] };
        });
        await kept.y.data();
        await kept.list[0]!.data();
        equal('buffers with two results alive', pg.memory().numBuffers - before, 2);
        kept.y.dispose();
        kept.list[0]!.dispose();
        equal('buffers at the end', pg.memory().numBuffers - before, 0);
        return undefined;
      },
    },
    {
      name: 'memory / an operand disposed before the flush still counts',
      run: async () => {
        const before = pg.memory().numBuffers;
        const a = pg.tensor([1, 2, 3]);
        const b = a.add(1);
        a.dispose();
        const data = Array.from((await b.data()) as ArrayLike<number>);
        if (data.join() !== '2,3,4') throw new Error(`value ${data}`);
        b.dispose();
        equal('buffers at the end', pg.memory().numBuffers - before, 0);
        return undefined;
      },
    },
    {
      name: 'memory / a scope that throws leaves nothing',
      run: async () => {
        const before = pg.memory().numBuffers;
        let thrown = false;
        try {
          pg.scope(() => {
            const x = pg.tensor([1, 2]);
            x.add(1);
            throw new Error('on purpose');
          });
        } catch {
          thrown = true;
        }
        if (!thrown) throw new Error('the error was swallowed');
        equal('buffers at the end', pg.memory().numBuffers - before, 0);
        return undefined;
      },
    },
    {
      name: 'memory / assignment in a loop holds buffers and bytes flat',
      run: async () => {
        const before = pg.memory();
        const w = pg.ones([33, 17]);
        const step = (): void => {
          pg.scope(() => {
            const gradient = pg.grad((p: Tensor) => pg.sum(pg.square(p)))(w);
            w.assign(w.sub(gradient.mul(0.01)));
          });
        };
        for (let i = 0; i < 5; i++) step();
        await w.data();
        const early = pg.memory();
        for (let i = 0; i < 50; i++) step();
        const data = (await w.data()) as Float32Array;
        const late = pg.memory();
        equal('buffers after 55 steps', late.numBuffers, early.numBuffers);
        equal('bytes after 55 steps', late.bytes, early.bytes);
        const expected = 0.98 ** 55;
        if (Math.abs(data[0]! - expected) > 1e-5) throw new Error(`value ${data[0]} where ${expected} is expected`);
        w.dispose();
        equal('buffers at the end', pg.memory().numBuffers, before.numBuffers);
        return undefined;
      },
    },
    {
      name: 'memory / a training loop of 2000 steps holds bytes and the JavaScript heap flat',
      run: trainNaively,
    },
  ];
}

/** Gradient descent whose user disposes only what gradient functions returned; everything recorded on the way is the library's to release. */
async function trainNaively(): Promise<undefined> {
  const start = pg.memory().numBuffers;
  const x = pg.rand([16, 8], { key: 1 });
  const y = pg.rand([16, 1], { key: 2 });
  const w1 = pg.randn([8, 16], { key: 3 });
  const w2 = pg.randn([16, 1], { key: 4 });
  const step = pg.valueAndGrad((a: Tensor, b: Tensor) => pg.mseLoss(pg.tanh(x.matmul(a)).matmul(b), y), {
    argnums: [0, 1],
  });
  const train = async (count: number): Promise<number> => {
    let last = Number.NaN;
    for (let i = 0; i < count; i++) {
      const [loss, gradients] = step(w1, w2);
      pg.scope(() => {
        [w1, w2].forEach((w, k) => {
          w.assign(w.sub(gradients[k]!.mul(0.05)));
        });
      });
      if (i % 10 === 9) last = Number(await loss.item());
      for (const t of [loss, ...gradients]) t.dispose();
    }
    return last;
  };
  const before = await train(200);
  const early = pg.memory();
  const heapEarly = heapUsed();
  const after = await train(1800);
  const late = pg.memory();
  const grown = heapUsed() - heapEarly;
  equal('buffers after 2000 steps', late.numBuffers, early.numBuffers);
  equal('bytes after 2000 steps', late.bytes, early.bytes);
  equal('tensors after 2000 steps', late.numTensors, early.numTensors);
  if (!(after < before)) throw new Error(`the loss went from ${before} to ${after}`);
  // Without a forced collection the heap is only bounded by what a leak of one node per step would far exceed.
  if (grown > 64 * 2 ** 20) throw new Error(`the JavaScript heap grew by ${grown} bytes`);
  for (const t of [x, y, w1, w2]) t.dispose();
  pg.flush();
  equal('buffers at the end', pg.memory().numBuffers, start);
  return undefined;
}

function heapUsed(): number {
  const { gc } = globalThis as { gc?: () => void };
  gc?.();
  const { process } = globalThis as { process?: { memoryUsage(): { heapUsed: number } } };
  return process?.memoryUsage().heapUsed ?? 0;
}
