/** The commands of a plan's runs: when a run takes those of the run before, and that what was submitted never changes. */
import * as p from '../graph/primitives.ts';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Command, DispatchCommand, IEngine } from '../engine/engine.ts';
import { setEngine } from '../engine/registry.ts';
import { type Node, release, retain } from '../graph/node.ts';
import { trackHandle } from '../graph/recorder.ts';
import { createReferenceEngine } from '@polygrad/testing';
import { readNodeSync } from './reading.ts';
import { clearPlans, flush } from './runtime.ts';
import { uploadNode } from './upload.ts';
import { matmul } from './fixtures/models.ts';

/** Lists as they were submitted, and copies of what they said then. */
let lists: { readonly list: readonly Command[]; readonly copy: unknown }[];
/** Called before a batch goes to the engine. */
let before: () => void;

const copyOf = (list: readonly Command[]): unknown =>
  (list as readonly DispatchCommand[]).map(({ kernel, bindings, scalars }) => ({
    kernel,
    bindings: bindings.map(({ buffer, offset, bytes }) => ({ buffer, offset, bytes })),
    scalars: [...scalars],
  }));

beforeEach(async () => {
  lists = [];
  before = () => {};
  const inner = createReferenceEngine();
  const engine: IEngine = {
    ...inner,
    submit(commands) {
      before();
      lists.push({ list: commands, copy: copyOf(commands) });
      inner.submit(commands);
    },
  };
  await setEngine(engine);
});

function hold(node: Node): { readonly node: Node; dispose(): void } {
  retain(node);
  const handle = {
    node,
    disposed: false,
    watched: { node },
    kept: false,
    stamp: 0,
    dispose() {
      handle.disposed = true;
      release(node);
    },
  };
  trackHandle(handle);
  return handle;
}

const leaf = (...values: number[]): Node =>
  hold(uploadNode(Float32Array.from(values), [values.length], 'float32')).node;
const number = (x: number): Node => p.scalar(x, 'float32');

/** Computes a node, reads it and gives it back. */
function valuesOf(node: Node): number[] {
  const y = hold(node);
  flush();
  const values = Array.from(readNodeSync(node) as Float32Array);
  y.dispose();
  return values;
}

describe('commands of a plan', () => {
  it('are taken again where memory and numbers are the same', () => {
    const [a, b] = [leaf(1, 2), leaf(3, 4)];
    for (let i = 0; i < 3; i++) expect(valuesOf(p.add(a, b))).toEqual([4, 6]);
    expect(lists.length).toBe(3);
    expect(new Set(lists.map(({ list }) => list)).size).toBe(1);
  });

  it('are made anew for other memory, and the old ones stay what they were', () => {
    const [a, b, c] = [leaf(1, 2), leaf(3, 4), leaf(50, 60)];
    expect(valuesOf(p.add(a, b))).toEqual([4, 6]);
    const kept = hold(p.add(a, b));
    expect(valuesOf(p.add(a, b))).toEqual([4, 6]);
    expect(valuesOf(p.add(c, b))).toEqual([53, 64]);
    expect(valuesOf(p.add(b, c))).toEqual([53, 64]);
    expect(Array.from(readNodeSync(kept.node) as Float32Array)).toEqual([4, 6]);
    for (const { list, copy } of lists) expect(copyOf(list)).toEqual(copy);
  });

  it('are made anew for another part of the same buffer', () => {
    const a = leaf(1, 2, 3, 4, 5, 6, 7, 8);
    const part = (start: number): Node => p.slice(a, [start], [4], [1]);
    expect(valuesOf(p.add(part(0), number(1)))).toEqual([2, 3, 4, 5]);
    expect(valuesOf(p.add(part(4), number(1)))).toEqual([6, 7, 8, 9]);
    expect(valuesOf(p.add(part(0), number(1)))).toEqual([2, 3, 4, 5]);
  });

  it('are made anew for other numbers: 0 is not -0, and NaN is NaN', () => {
    const a = leaf(1, -1);
    const infinity = Number.POSITIVE_INFINITY;
    const quotients: [number, number[]][] = [
      [2, [0.5, -0.5]],
      [0, [infinity, -infinity]],
      [-0, [-infinity, infinity]],
      [Number.NaN, [Number.NaN, Number.NaN]],
      [0, [infinity, -infinity]],
    ];
    for (const [x, values] of quotients) expect(valuesOf(p.div(a, number(x)))).toEqual(values);
    const different = lists.length;
    expect(valuesOf(p.div(a, number(0)))).toEqual([infinity, -infinity]);
    expect(lists[different]!.list).toBe(lists[different - 1]!.list);
    expect(new Set(lists.map(({ list }) => list)).size).toBe(different);
  });

  it('are made anew one by one', () => {
    const [a, b, c] = [
      [1, 2, 3, 4],
      [0, 1, 1, 0],
      [2, 0, 0, 2],
    ].map((values) => hold(uploadNode(Float32Array.from(values), [2, 2], 'float32')).node);
    const product = (x: number): Node => p.add(matmul(matmul(a!, b!), c!), number(x));
    expect(valuesOf(product(1))).toEqual([5, 3, 9, 7]);
    expect(valuesOf(product(2))).toEqual([6, 4, 10, 8]);
    const [first, second] = lists.map(({ list }) => list);
    expect(first!.length).toBe(2);
    expect(second!.filter((command, i) => command === first![i]).length).toBe(1);
  });

  it('are the same after a batch that the engine refused', () => {
    const [a, b] = [leaf(1, 2), leaf(3, 4)];
    expect(valuesOf(p.add(a, b))).toEqual([4, 6]);
    before = () => {
      before = () => {};
      throw new Error('not now');
    };
    const y = hold(p.add(a, b));
    expect(flush).toThrow('was not started: not now');
    expect(Array.from(readNodeSync(y.node) as Float32Array)).toEqual([4, 6]);
    y.dispose();
    expect(valuesOf(p.add(a, b))).toEqual([4, 6]);
  });

  it('go with their plan', () => {
    const [a, b] = [leaf(1, 2), leaf(3, 4)];
    expect(valuesOf(p.add(a, b))).toEqual([4, 6]);
    clearPlans();
    expect(valuesOf(p.add(a, b))).toEqual([4, 6]);
    expect((lists[1]!.list[0] as DispatchCommand).kernel).not.toBe((lists[0]!.list[0] as DispatchCommand).kernel);
  });
});
