import { beforeEach, describe, expect, it } from 'vitest';
import { setEngine } from '../engine/registry.ts';
import {
  add,
  binary,
  constant,
  expand,
  makeNode,
  mul,
  permute,
  reduce,
  reshape,
  scalar,
  unary,
} from '../graph/primitives.ts';
import { type Node, release, retain } from '../graph/node.ts';
import { createReferenceEngine } from '@polygrad/testing';
import { flushNodes } from './fixtures/flush-nodes.ts';
import { readNode } from './reading.ts';
import { stats } from './runtime.ts';
import { uploadNode } from './upload.ts';

function leaf(values: readonly number[], shape: readonly number[]): Node {
  const node = uploadNode(Float32Array.from(values), shape, 'float32');
  retain(node);
  return node;
}

function held(node: Node): Node {
  retain(node);
  return node;
}

async function read(node: Node): Promise<number[]> {
  return Array.from((await readNode(node)) as Float32Array);
}

beforeEach(async () => {
  await setEngine(createReferenceEngine());
});

describe('runtime', () => {
  it('computes elementwise chains with bound scalars and reuses the plan', async () => {
    const x = leaf([1, 2, 3, 4], [2, 2]);
    const first = held(add(mul(x, scalar(3, 'float32')), constant(1, 'float32')));
    expect(await read(first)).toEqual([4, 7, 10, 13]);
    const second = held(add(mul(x, scalar(5, 'float32')), constant(1, 'float32')));
    expect(await read(second)).toEqual([6, 11, 16, 21]);
    expect(stats()).toMatchObject({ planHits: 1, planMisses: 1, kernels: 2 });
  });

  it('reduces and broadcasts: softmax is one kernel', async () => {
    const x = leaf([1, 2, 3, 1, 1, 1], [2, 3]);
    const m = expand(reshape(reduce(x, 'max', [1]), [2, 1]), [2, 3]);
    const e = unary('exp', binary('sub', x, m));
    const s = expand(reshape(reduce(e, 'sum', [1]), [2, 1]), [2, 3]);
    const y = held(binary('div', e, s));
    const got = await read(y);
    const z = Math.exp(-2) + Math.exp(-1) + 1;
    const want = [Math.exp(-2) / z, Math.exp(-1) / z, 1 / z, 1 / 3, 1 / 3, 1 / 3];
    for (const [i, v] of want.entries()) expect(got[i]).toBeCloseTo(v, 6);
    expect(stats().kernels).toBe(1);
  });

  it('multiplies matrices with bias and relu in one kernel', async () => {
    const a = leaf([1, 2, 3, 4, 5, 6], [2, 3]);
    const b = leaf([1, 0, 0, 1, 1, 1], [3, 2]);
    const bias = leaf([-10, 1], [2]);
    const dot = makeNode('dotGeneral', [a, b], { lhsBatch: [], rhsBatch: [], lhsContract: [1], rhsContract: [0] });
    const y = held(binary('maximum', add(dot, bias), constant(0, 'float32')));
    expect(await read(y)).toEqual([0, 6, 0, 12]);
    expect(stats().kernels).toBe(1);
  });

  it('keeps nothing it need not', async () => {
    const x = leaf([1, 2, 3, 4], [2, 2]);
    const y = held(permute(add(x, x), [1, 0]));
    flushNodes([y]);
    release(x);
    expect(await read(y)).toEqual([2, 6, 4, 8]);
    release(y);
    expect(stats().bytes).toBe(0);
  });
});
