/** What layouts cost, on an engine without a device: images with their channels last are read where they lie, not copied into the other order. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { Command } from '../../engine/engine.ts';
import * as pg from '../../index.ts';
import { createNullEngine, type NullEngine } from '@polygrad/testing';

let engine: NullEngine;
let commands: Command[];

beforeEach(async () => {
  const made = createNullEngine();
  commands = [];
  engine = {
    ...made,
    submit: (list) => {
      commands.push(...list);
      return made.submit(list);
    },
  };
  await pg.setEngine(engine);
});

interface Cost {
  readonly kernels: readonly string[];
  /** Bytes that loads and stores move, memory that caches answer included: many more where no tiles serve. */
  readonly moved: number;
  readonly peak: number;
}

function costOf(f: () => unknown): Cost {
  pg.flush();
  commands.length = 0;
  engine.reset();
  const before = engine.memory().bytes;
  f();
  pg.flush();
  let moved = 0;
  for (const command of commands) {
    if (command.kind !== 'dispatch') continue;
    const { cost, grid } = command.kernel.program;
    moved += cost.bytes * grid.reduce((a, b) => a * b, 1);
  }
  return { kernels: engine.counts().kernels, moved, peak: engine.counts().peakBytes - before };
}

const cases: readonly (readonly [readonly [number, number, number, number], readonly number[], pg.ConvOptions])[] = [
  [[8, 32, 28, 28], [64, 32, 3, 3], { padding: 1 }],
  [[2, 64, 56, 56], [64, 64, 3, 3], { padding: 'same' }],
  [[8, 32, 28, 28], [64, 32, 3, 3], { stride: 2 }],
  [[8, 64, 28, 28], [128, 64, 1, 1], {}],
  [[8, 32, 28, 28], [64, 8, 3, 3], { padding: 1, groups: 4 }],
];

describe('conv2d', () => {
  for (const [shape, kernel, options] of cases) {
    const label = `[${shape}] by [${kernel}] ${JSON.stringify(options)}`;
    const [n, c, h, w] = shape;
    const run = (layout: pg.Layout, f: (x: pg.Tensor, k: pg.Tensor) => unknown): Cost => {
      const x = pg.rand(layout === 'nhwc' ? [n, h, w, c] : shape, { key: 1 });
      const k = pg.rand(kernel, { key: 2 });
      return costOf(() => f(x, k));
    };

    it(`${label} takes as much in both layouts`, () => {
      const forward = (layout: pg.Layout) => (x: pg.Tensor, k: pg.Tensor) => pg.conv2d(x, k, { ...options, layout });
      const [first, last] = [run('nchw', forward('nchw')), run('nhwc', forward('nhwc'))];
      expect(last.kernels.filter((name) => !name.startsWith('conv'))).toEqual([]);
      expect(last.kernels.length).toBeLessThanOrEqual(first.kernels.length + 1);
      expect(last.moved).toBeLessThan(1.25 * first.moved);
      expect(last.peak).toBeLessThan(1.25 * first.peak);
    });

    it(`${label} and its gradients too`, () => {
      const gradients = (layout: pg.Layout) => (x: pg.Tensor, k: pg.Tensor) =>
        pg.grads((a: pg.Tensor, b: pg.Tensor) => pg.sum(pg.square(pg.conv2d(a, b, { ...options, layout }))))(x, k);
      const [first, last] = [run('nchw', gradients('nchw')), run('nhwc', gradients('nhwc'))];
      expect(last.moved).toBeLessThan(1.5 * first.moved);
      // A product of matrices needs one of them turned in one layout and none in the other.
      expect(last.peak).toBeLessThan(2 * first.peak);
    });
  }
});
