import * as p from '../../graph/primitives.ts';
import { beforeEach, describe, expect, it } from 'vitest';
import type { IEngine } from '../../engine/engine.ts';
import { getEngine, setEngine } from '../../engine/registry.ts';
import { makeNode } from '../../graph/primitives.ts';
import { type Node, retain } from '../../graph/node.ts';
import { gatherPrimitive } from '../../primitives/indexing.ts';
import { createReferenceEngine } from '@polygrad/testing';
import { flushNodes } from '../../runtime/fixtures/flush-nodes.ts';
import { readNode } from '../../runtime/reading.ts';
import { stateOf } from '../../runtime/run.ts';
import { clearPlans, stats } from '../../runtime/runtime.ts';
import { uploadNode } from '../../runtime/upload.ts';

let compiled = 0;
let released = 0;

beforeEach(async () => {
  compiled = 0;
  released = 0;
  const engine = createReferenceEngine();
  const counting: IEngine = {
    ...engine,
    compile(programs) {
      compiled += programs.length;
      return engine.compile(programs);
    },
    release(kernels) {
      released += kernels.length;
      engine.release(kernels);
    },
  };
  await setEngine(counting);
});

function leaf(values: readonly number[]): Node {
  const node = uploadNode(Float32Array.from(values), [values.length], 'float32');
  retain(node);
  return node;
}

async function values(node: Node): Promise<number[]> {
  retain(node);
  return Array.from((await readNode(node)) as Float32Array);
}

describe('compiled kernels', () => {
  it('are counted as often as plans use them', async () => {
    const { kernelCache } = stateOf(getEngine());
    const [x, y] = [leaf([1, 2, 3]), leaf([4, 5, 6])];
    await values(p.add(x, y));
    expect(kernelCache.held).toBe(1);
    await values(p.add(y, x));
    await values(p.add(p.add(x, y), y));
    expect(kernelCache.held).toBe(stats().plans);
    clearPlans();
    expect(kernelCache.held).toBe(0);
  });

  it('are shared by plans and released with the last of them', async () => {
    const x = leaf([1, 2, 3]);
    const y = leaf([4, 5, 6]);
    expect(await values(p.add(x, y))).toEqual([5, 7, 9]);
    const sums = [p.add(y, x), p.reshape(p.add(y, x), [3, 1])];
    for (const sum of sums) retain(sum);
    flushNodes(sums);
    expect(await values(sums[1] as Node)).toEqual([5, 7, 9]);
    expect(stats().planMisses).toBe(2);
    expect(compiled).toBe(1);
    clearPlans();
    expect(released).toBe(1);
  });

  it('are not shared where slots differ, even if no element is read from them', async () => {
    const x = leaf([7]);
    for (const n of [2, 5]) {
      // The only position there is needs no look at the indices.
      const which = uploadNode(new Int32Array(n), [n], 'int32');
      retain(which);
      expect(await values(makeNode(gatherPrimitive, [x, which], { axis: 0 }))).toEqual(new Array<number>(n).fill(7));
      const apart = p.reduce(makeNode(gatherPrimitive, [x, which], { axis: 0 }), 'sum', [0]);
      expect(await values(apart)).toEqual([7 * n]);
    }
  });
});
