/** What flushes keep, give back and write over; what happens when something throws in the middle. */
import * as p from '../graph/primitives.ts';
import { beforeEach, describe, expect, it } from 'vitest';
import type { IEngine } from '../engine/engine.ts';
import { OutOfMemoryError } from '../engine/errors.ts';
import { type PoolBuffer, poolOf } from '../engine/pool.ts';
import { getEngine, registerBackend, setEngine } from '../engine/registry.ts';
import { makeNode } from '../graph/primitives.ts';
import { type Node, release, retain, type TrackedHandle } from '../graph/node.ts';
import { trackHandle } from '../graph/recorder.ts';
import { createReferenceEngine } from '@polygrad/testing';
import { readNode, readNodeSync } from './reading.ts';
import { flush, stats } from './runtime.ts';
import { uploadNode } from './upload.ts';
import { matmul } from './fixtures/models.ts';

let engine: IEngine;

beforeEach(async () => {
  engine = { ...createReferenceEngine() };
  await setEngine(engine);
});

/** A tensor as far as the runtime sees it. */
function hold(node: Node): TrackedHandle {
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

function leaf(values: readonly number[], shape: readonly number[] = [values.length]): TrackedHandle {
  return hold(uploadNode(Float32Array.from(values), shape, 'float32'));
}

async function values(node: Node): Promise<number[]> {
  return Array.from((await readNode(node)) as Float32Array);
}

const bufferOf = (node: Node): PoolBuffer => node.storage?.buffer as PoolBuffer;
const number = (x: number): Node => p.scalar(x, 'float32');
const live = (): number => poolOf(getEngine()).memory().numBuffers;

describe('donation', () => {
  it('writes an output over an input nobody can name', async () => {
    const x = leaf([1, 2, 3, 4]);
    const before = bufferOf(x.node);
    const y = hold(p.mul(x.node, number(2)));
    x.dispose();
    flush();
    expect(bufferOf(y.node)).toBe(before);
    expect(live()).toBe(1);
    expect(await values(y.node)).toEqual([2, 4, 6, 8]);
    y.dispose();
    expect(live()).toBe(0);
  });

  it('keeps its hands off inputs that are held, shared, or needed elsewhere', async () => {
    const held = leaf([1, 2, 3, 4]);
    const a = hold(p.mul(held.node, number(2)));
    flush();
    expect(bufferOf(a.node)).not.toBe(bufferOf(held.node));

    const shared = leaf([1, 2, 3, 4]);
    const view = hold(p.slice(shared.node, [1], [2], [1]));
    const b = hold(p.mul(shared.node, number(3)));
    shared.dispose();
    flush();
    expect(await values(view.node)).toEqual([2, 3]);
    expect(await values(b.node)).toEqual([3, 6, 9, 12]);

    const flipped = leaf([1, 2, 3, 4]);
    const c = hold(p.add(flipped.node, p.flip(flipped.node, [0])));
    flipped.dispose();
    flush();
    expect(await values(c.node)).toEqual([5, 5, 5, 5]);
  });

  it('does not happen where another kernel of the flush still reads the input', async () => {
    const x = leaf([1, 2, 3, 4], [2, 2]);
    const w = leaf([1, 1, 1, -1], [2, 2]);
    const y = hold(p.mul(x.node, number(10)));
    const z = hold(matmul(x.node, w.node));
    x.dispose();
    flush();
    expect(await values(y.node)).toEqual([10, 20, 30, 40]);
    expect(await values(z.node)).toEqual([3, -1, 7, -1]);
  });

  it('serves several outputs of one kernel, each with one input', async () => {
    const a = leaf([1, 2, 3]);
    const b = leaf([10, 20, 30]);
    const sum = hold(p.add(a.node, b.node));
    const difference = hold(p.sub(a.node, b.node));
    a.dispose();
    b.dispose();
    flush();
    expect(live()).toBe(2);
    expect(await values(sum.node)).toEqual([11, 22, 33]);
    expect(await values(difference.node)).toEqual([-9, -18, -27]);
  });

  it('is for whole buffers: part of one is left alone, also by a plan made for a whole one', async () => {
    for (const start of [0, 0, 2]) {
      const big = leaf([1, 2, 3, 4]);
      const part = hold(p.slice(big.node, [start], [2], [1]));
      big.dispose();
      const y = hold(p.mul(part.node, number(10)));
      part.dispose();
      flush();
      expect(await values(y.node)).toEqual([(start + 1) * 10, (start + 2) * 10]);
      const whole = leaf([5, 6]);
      const z = hold(p.mul(whole.node, number(10)));
      whole.dispose();
      flush();
      expect(await values(z.node)).toEqual([50, 60]);
    }
  });

  it('waits while a node kept for its history still needs the input', async () => {
    const x = leaf([1, 2, 3]);
    const inner = p.mul(x.node, number(2));
    inner.requiresGrad = true;
    const y = makeNode('neg', [inner], null);
    const held = hold(y);
    x.dispose();
    flush();
    expect(await values(held.node)).toEqual([-2, -4, -6]);
    expect(await values(inner)).toEqual([2, 4, 6]);
    held.dispose();
  });
});

describe('views and aliases', () => {
  it('tell plans apart by which inputs are one buffer', async () => {
    const x = leaf([1, 2, 3]);
    const y = leaf([10, 20, 30]);
    const xy = hold(p.sub(p.mul(x.node, y.node), x.node));
    const xx = hold(p.sub(p.mul(y.node, y.node), y.node));
    expect(await values(xy.node)).toEqual([9, 38, 87]);
    expect(await values(xx.node)).toEqual([90, 380, 870]);
    expect(stats().planMisses).toBe(2);
  });

  it('move along a data set without new plans', async () => {
    const data = leaf(
      Array.from({ length: 40 }, (_, i) => i),
      [10, 4],
    );
    for (let i = 0; i < 10; i++) {
      const row = hold(p.mul(p.slice(data.node, [i, 0], [1, 4], [1, 1]), number(2)));
      expect((await values(row.node))[1]).toBe((i * 4 + 1) * 2);
      row.dispose();
    }
    // Offsets of 16 bytes: at most as many plans as alignments.
    expect(stats().planMisses).toBe(1);
  });

  it('outlive what they are views of', async () => {
    const x = leaf([1, 2, 3, 4, 5, 6], [2, 3]);
    const sum = hold(p.add(x.node, number(1)));
    const turned = hold(p.permute(sum.node, [1, 0]));
    flush();
    expect(bufferOf(turned.node)).toBe(bufferOf(sum.node));
    sum.dispose();
    x.dispose();
    expect(await values(turned.node)).toEqual([2, 5, 3, 6, 4, 7]);
    turned.dispose();
    expect(live()).toBe(0);
  });
});

describe('reading one of several', () => {
  it('leaves what was not asked for pending, but never computes a contraction twice', async () => {
    const x = leaf([1, 2, 3, 4], [2, 2]);
    const product = matmul(x.node, x.node);
    const handle = hold(product);
    const cheap = hold(p.add(product, number(1)));
    const total = hold(p.reduce(cheap.node, 'sum', [0, 1]));
    expect(await values(total.node)).toEqual([58]);
    expect(product.storage).not.toBeNull();
    expect(cheap.node.storage).toBeNull();
    expect(await values(cheap.node)).toEqual([8, 11, 16, 23]);
    for (const h of [handle, cheap, total, x]) h.dispose();
    expect(live()).toBe(0);
  });
});

describe('what nobody holds', () => {
  it('is not computed, and gives its inputs back', () => {
    const x = leaf([1, 2, 3]);
    const y = hold(p.mul(x.node, number(2)));
    x.dispose();
    y.dispose();
    expect(live()).toBe(0);
    const before = stats().kernels;
    flush();
    expect(stats().kernels).toBe(before);
  });
});

describe('small and odd outputs', () => {
  it('are numbers, constants, positions and nothing', async () => {
    const list = [
      number(3),
      p.constant(2, 'float32', [2, 2]),
      p.constant(5, 'float32', [0, 3]),
      p.reshape(number(4), [1, 1]),
    ].map(hold);
    const positions = hold(p.iota(4));
    flush();
    expect(await Promise.all(list.map((h) => values(h.node)))).toEqual([[3], [2, 2, 2, 2], [], [4]]);
    expect(Array.from(readNodeSync(positions.node) as Int32Array)).toEqual([0, 1, 2, 3]);
    for (const h of [...list, positions]) h.dispose();
    expect(live()).toBe(0);
  });

  it('sum nothing to zero', async () => {
    const nothing = hold(p.constant(1, 'float32', [0, 3]));
    const sum = hold(p.reduce(nothing.node, 'sum', [0]));
    expect(await values(sum.node)).toEqual([0, 0, 0]);
    for (const h of [nothing, sum]) h.dispose();
  });
});

describe('errors', () => {
  it.each(['compile', 'submit'] as const)('in %s leave the graph as it was: the next try succeeds', async (member) => {
    const x = leaf([1, 2, 3]);
    const y = hold(p.mul(x.node, number(2)));
    const before = live();
    const working = engine[member];
    (engine as { -readonly [K in keyof IEngine]: unknown })[member] = () => {
      throw new Error('device says no');
    };
    expect(() => flush()).toThrow('device says no');
    expect(y.node.storage).toBeNull();
    expect(live()).toBe(before);
    (engine as { -readonly [K in keyof IEngine]: unknown })[member] = working;
    flush();
    expect(await values(y.node)).toEqual([2, 4, 6]);
  });

  it('of memory give buffers back and leave the graph as it was', async () => {
    const x = leaf([1, 2, 3]);
    const y = hold(p.mul(x.node, number(2)));
    const { alloc } = engine;
    let failures = 2;
    (engine as { alloc: IEngine['alloc'] }).alloc = (bytes) => {
      if (failures-- > 0) throw new OutOfMemoryError('test', { requested: bytes, live: 0, reserved: 0, limit: 0 });
      return alloc(bytes);
    };
    expect(() => flush()).toThrow(OutOfMemoryError);
    expect(live()).toBe(1);
    flush();
    expect(await values(y.node)).toEqual([2, 4, 6]);
  });

  it('name the way out where an engine cannot read at once', async () => {
    const { downloadSync, ...rest } = createReferenceEngine();
    expect(downloadSync).toBeDefined();
    await setEngine(rest as IEngine);
    const x = leaf([1, 2]);
    expect(() => readNodeSync(x.node)).toThrow(/await t\.data\(\)/);
    expect(await values(x.node)).toEqual([1, 2]);
  });
});

describe('several engines', () => {
  it('share tensors: leaves move to where they are used', async () => {
    const x = leaf([1, 2, 3, 4], [2, 2]);
    const turned = hold(p.flip(x.node, [0]));
    const other = createReferenceEngine();
    await setEngine(other);
    const y = hold(p.mul(turned.node, number(2)));
    expect(await values(y.node)).toEqual([6, 8, 2, 4]);
    expect(bufferOf(y.node).pool.engine).toBe(other);
    for (const h of [x, turned, y]) h.dispose();
    expect(live()).toBe(0);
  });

  it('go on at once with a view of what both of them have', async () => {
    // Cannot read at once, and holds no float64: that is computed on the CPU engine.
    const { downloadSync, ...rest } = engine;
    const { caps } = rest as IEngine;
    const here = {
      ...rest,
      caps: { ...caps, dtypes: new Set([...caps.dtypes].filter((d) => d !== 'float64')) },
    } as IEngine;
    registerBackend({
      name: 'cpu',
      probe: async () => ({ score: 1, reason: 'for tests', device: 'none' }),
      create: () => ({ ...createReferenceEngine(), name: 'cpu' }),
    });
    await setEngine(here);
    const a = leaf(
      Array.from({ length: 1024 }, (_, i) => i % 3),
      [32, 32],
    );
    const asked = hold(p.eq(a.node, number(1)));
    const wide = (node: Node): TrackedHandle => hold(p.mul(p.cast(node, 'float64'), p.cast(number(3), 'float64')));
    const view = p.reshape(asked.node, [1024]);
    const first = wide(asked.node);
    const expected = Array.from({ length: 1024 }, (_, i) => (i % 3 === 1 ? 3 : 0));
    expect(await values(first.node)).toEqual(expected);
    // The data of `asked` has been brought over; what reads a view of it, made in this flush, needs to wait for nothing.
    const second = wide(view);
    expect(await values(second.node)).toEqual(expected);
  });
});
