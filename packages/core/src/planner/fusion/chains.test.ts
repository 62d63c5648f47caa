/** Long chains of operations: kernels stay within what engines hold, and plans are made in reasonable time. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { setEngine } from '../../engine/registry.ts';
import { add, makeNode, mul, scalar } from '../../graph/primitives.ts';
import { type Node, release, retain } from '../../graph/node.ts';
import type { Program } from '@polygrad/compiler/ir/ir';
import { createReferenceEngine } from '@polygrad/testing';
import { mostValues } from './order.ts';
import { flushNodes } from '../../runtime/fixtures/flush-nodes.ts';
import { readNode } from '../../runtime/reading.ts';
import { stats } from '../../runtime/runtime.ts';
import { uploadNode } from '../../runtime/upload.ts';

let scalars: number[] = [];
const nodes: Node[] = [];
const held = (node: Node): Node => {
  retain(node);
  nodes.push(node);
  return node;
};

beforeEach(async () => {
  scalars = [];
  const engine = createReferenceEngine();
  const watched = Object.create(engine, {
    compile: {
      value: (programs: readonly Program[]) => {
        scalars.push(...programs.map((program) => program.scalars.length));
        return engine.compile(programs);
      },
    },
  }) as typeof engine;
  await setEngine(watched);
});
afterEach(() => {
  for (const node of nodes.splice(0)) release(node);
});

const start = (): Node => held(uploadNode(Float32Array.of(0, 0.5), [2], 'float32'));

describe('long chains', () => {
  it('become several kernels that engines have room for', async () => {
    let node = start();
    for (let i = 0; i < 3000; i++) node = add(node, scalar(1, 'float32'));
    expect(await readNode(held(node))).toEqual(Float32Array.of(3000, 3000.5));
    expect(Math.max(...scalars)).toBeLessThanOrEqual(mostValues);
    expect(stats().kernels).toBeLessThan(20);
  });

  it('with every step alive hold all values', async () => {
    const steps = [start()];
    for (let i = 0; i < 900; i++) steps.push(held(add(steps.at(-1) as Node, scalar(1, 'float32'))));
    flushNodes(steps.slice(1));
    for (const i of [1, 450, 899, 900]) expect(await readNode(steps[i] as Node)).toEqual(Float32Array.of(i, i + 0.5));
  });

  it('whose steps use the last one twice are cut, too', async () => {
    let node = start();
    for (let i = 0; i < 1500; i++) node = makeNode('sub', [mul(node, scalar(2, 'float32')), node], null);
    expect(await readNode(held(node))).toEqual(Float32Array.of(0, 0.5));
    expect(Math.max(...scalars)).toBeLessThanOrEqual(mostValues);
  });

  it('of sums of many terms are cut, too', async () => {
    const x = start();
    let total = x;
    for (let i = 0; i < 1500; i++) total = add(total, mul(x, scalar(i % 3, 'float32')));
    expect(await readNode(held(total))).toEqual(Float32Array.of(0, 0.5 * 1501));
    expect(Math.max(...scalars)).toBeLessThanOrEqual(mostValues);
  });
});
