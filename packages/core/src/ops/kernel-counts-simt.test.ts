/** What stays one kernel on engines with groups of threads: counted on an engine without a device. */
import { describe, expect, it } from 'vitest';
import * as pg from '../index.ts';
import type { Tensor } from '../index.ts';
import { createNullEngine } from '@polygrad/testing';

const devices = {
  GPU: createNullEngine({ simt: true, maxGroup: 256, sharedBytes: 16384, maxBindings: 8 }),
  'software device': createNullEngine({ simt: true, maxGroup: 256, sharedBytes: 16384, sharedIsMemory: true }),
};

for (const [name, engine] of Object.entries(devices)) {
  describe(`one kernel on a ${name} for`, () => {
    const make = (...shape: number[]): Tensor => {
      const t = pg.rand(shape);
      pg.flush();
      return t;
    };
    const body: Readonly<Record<string, () => () => Tensor>> = {
      'a product with bias and relu': () => {
        const [a, b, bias] = [make(64, 96), make(96, 80), make(80)];
        return () => pg.relu(pg.add(pg.matmul(a, b), bias));
      },
      'a product whose bias and gelu follow, odd sizes': () => {
        const [a, b, bias] = [make(63, 97), make(97, 81), make(81)];
        return () => pg.gelu(pg.add(pg.matmul(a, b), bias));
      },
      'a batch of products of a transposed factor, scaled': () => {
        const [a, b] = [make(3, 64, 32), make(3, 64, 32)];
        return () => pg.mul(pg.matmul(a, pg.transpose(b, -1, -2)), 0.125);
      },
      'a convolution of one position with relu': () => {
        const [x, w] = [make(2, 16, 20, 20), make(32, 16, 1, 1)];
        return () => pg.relu(pg.conv2d(x, w));
      },
      softmax: () => {
        const x = make(64, 100);
        return () => pg.softmax(x);
      },
      'layer norm': () => {
        const x = make(64, 100);
        return () => pg.layerNorm(x, { normalizedShape: [100] });
      },
      'a transpose with arithmetic': () => {
        const x = make(70, 90);
        return () => pg.add(pg.mul(pg.transpose(x), 2), 1);
      },
    };
    for (const [what, prepare] of Object.entries(body)) {
      it(what, async () => {
        await pg.setEngine(engine);
        const run = prepare();
        engine.reset();
        const result = run();
        pg.flush();
        expect(engine.counts().dispatches).toBe(1);
        result.dispose();
      });
    }
  });
}
