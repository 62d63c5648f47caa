/** A queue of its own, made for each test: what state an entry has, and what follows from what happens to it. */
import * as p from '../graph/primitives.ts';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { IEngine } from '../engine/engine.ts';
import { OutOfMemoryError } from '../engine/errors.ts';
import { poolOf } from '../engine/pool.ts';
import { setEngine } from '../engine/registry.ts';
import { release, retain, type Node, type TrackedHandle } from '../graph/node.ts';
import { TransactionLog } from '../graph/transactions.ts';
import { forget, gpu, start } from '../tensor/fixtures/placement.ts';
import { type Late, lateEngine } from '../tensor/fixtures/late-engine.ts';
import { limited } from '../tensor/fixtures/limited.ts';
import { createFaultyEngine, createReferenceEngine } from '@polygrad/testing';
import { FlushQueue, queue as queueOfProgram } from './queue.ts';
import { uploadNode } from './upload.ts';

let log: TransactionLog;
let queue: FlushQueue;
let handles: TrackedHandle[];

beforeEach(() => {
  log = new TransactionLog();
  queue = new FlushQueue(log);
  handles = [];
});

afterEach(async () => {
  for (const handle of handles) handle.dispose();
  await queue.settle();
  expect(queue.states).toEqual([]);
  expect(queueOfProgram.states).toEqual([]);
});

/** A tensor that only these tests know. */
function hold(node: Node): TrackedHandle {
  retain(node);
  const handle = {
    node,
    disposed: false,
    watched: null,
    kept: false,
    stamp: 0,
    assigned: false,
    dispose() {
      if (handle.disposed) return;
      handle.disposed = true;
      log.forget(handle);
      release(handle.node);
    },
  };
  handles.push(handle);
  return handle;
}

const leaf = (size: number): Node => hold(uploadNode(new Float32Array(size).fill(1), [size], 'float32')).node;
const plus = (node: Node, x: number): Node => p.add(node, p.scalar(x, 'float32'));
/** A new value of so many elements. */
const made = (size: number): Node => hold(plus(leaf(size), 1)).node;

function assign(handle: TrackedHandle, next: Node): void {
  log.assign(handle, next);
  retain(next);
  const before = handle.node;
  handle.node = next;
  release(before);
}

describe('an entry on an engine that answers at once', () => {
  it('is done by the first attempt', async () => {
    await setEngine(createReferenceEngine());
    const y = made(10);
    expect(queue.add([y])).toBe(null);
    expect(queue.states).toEqual([]);
    expect(y.storage).not.toBe(null);
  });

  it('is split where it fails, and fails with its oldest part; the others are done', async () => {
    const engine = limited(1e9);
    await setEngine(engine);
    const [a, big, b] = [made(10), made(2000), made(20)];
    engine.limit = 12_000;
    expect(queue.add([a, big, b])?.error).toBeInstanceOf(OutOfMemoryError);
    expect(queue.states).toEqual([]);
    expect([a, big, b].map(({ storage }) => storage !== null)).toEqual([true, false, true]);
    // Told once, to whoever has asked.
    expect(queue.takeLate()).toBe(null);
  });

  it('rolls its assignments back if they are among what failed', async () => {
    const engine = limited(1e9);
    await setEngine(engine);
    const w = hold(leaf(2000));
    const [before, next] = [w.node, plus(w.node, 1)];
    const undone: string[] = [];
    log.current.undoers.push(() => undone.push('w'));
    const kept = hold(before);
    assign(w, next);
    engine.limit = 9_000;
    const failure = queue.add([next]);
    expect(String(failure?.error)).toContain('have the values they had before');
    expect(w.node).toBe(before);
    expect(undone).toEqual(['w']);
    kept.dispose();
  });
});

describe('an entry on a device that says late whether it has memory', () => {
  let engine: Late;

  beforeEach(async () => {
    engine = lateEngine(1e9);
    await setEngine(engine);
  });

  const answer = async (): Promise<void> => {
    engine.answer();
    await new Promise((resolve) => setTimeout(resolve, 0));
  };

  it('waits for memory, those behind it for it, and all are done in order', async () => {
    const x = leaf(1000);
    await answer();
    const first = hold(plus(x, 1)).node;
    const second = hold(plus(first, 1)).node;
    expect(queue.add([first])).toBe(null);
    expect(queue.add([second])).toBe(null);
    expect(queue.states).toEqual(['memory', 'recorded']);
    expect([first.storage, second.storage]).toEqual([null, null]);
    await queue.settlePutOff();
    expect(queue.states).toEqual([]);
    expect(second.storage).not.toBe(null);
  });

  it('does not wait any more when eight do', async () => {
    const x = leaf(1000);
    await answer();
    const nodes = Array.from({ length: 9 }, (_, i) => hold(plus(x, i)).node);
    for (const node of nodes.slice(0, 8)) queue.add([node]);
    expect(queue.states).toEqual(['memory', ...new Array(7).fill('recorded')]);
    queue.advance();
    expect(queue.states).toEqual([]);
    expect(nodes[7]?.storage).not.toBe(null);
  });

  it('is split when the device refuses, waits as such, and tells late; what was assigned after it goes back with it', async () => {
    const x = leaf(1000);
    const w = hold(leaf(1000));
    const before = w.node;
    await answer();
    const kept = hold(before);
    const big = hold(p.add(p.broadcastTo(x, [20, 1000]), p.scalar(1, 'float32'))).node;
    const small = hold(plus(x, 1)).node;
    assign(w, p.add(before, p.reshape(p.sumTo(big, [1, 1000]), [1000])));
    queue.add([big, small, w.node]);
    assign(w, plus(w.node, 5));
    queue.add([w.node]);
    engine.limit = poolOf(engine).memory().bytes + 20_000;
    expect(queue.states).toEqual(['memory', 'recorded']);
    const seen = new Set<string>();
    for (let i = 0; i < 20 && queue.states.length > 0; i++) {
      engine.answer();
      await Promise.resolve();
      await Promise.resolve();
      seen.add(queue.states.join());
      await answer();
    }
    expect([...seen].some((states) => states.includes('split'))).toBe(true);
    expect(queue.takeLate()?.error).toBeInstanceOf(OutOfMemoryError);
    expect(queue.takeLate()).toBe(null);
    expect(w.node).toBe(before);
    expect(small.storage).not.toBe(null);
    expect(big.storage).toBe(null);
    kept.dispose();
    engine.limit = 1e9;
  });
});

describe('an entry that needs another engine', () => {
  beforeEach(async () => {
    await start(false);
    expect(gpu.caps.dtypes.has('float64')).toBe(false);
  });

  afterEach(() => {
    forget();
  });

  it('waits for data with its assignments committed, and holds up no other flush', async () => {
    const w = hold(leaf(4));
    const before = w.node;
    const far = hold(p.cast(p.add(p.cast(before, 'float64'), p.cast(before, 'float64')), 'float32')).node;
    assign(w, far);
    expect(queue.add([far])).toBe(null);
    expect(queue.states).toEqual(['data']);
    expect(log.current.entries.size).toBe(0);
    const near = made(4);
    expect(queue.add([near])).toBe(null);
    expect(near.storage).not.toBe(null);
    await queue.settle();
    expect(far.storage).not.toBe(null);
  });

  /** Two flushes, the second of which builds on the first: how many commands each batch had. The device refuses the first `refused`. */
  async function batches(refused: number): Promise<readonly number[]> {
    const sizes: number[] = [];
    let left = refused;
    const { submit } = gpu;
    (gpu as { submit: IEngine['submit'] }).submit = (commands) => {
      if (left-- > 0) throw new Error('the device says no');
      sizes.push(commands.length);
      submit(commands);
    };
    const wide = p.cast(leaf(4), 'float64');
    const first = hold(plus(p.cast(p.add(wide, wide), 'float32'), 1)).node;
    queue.add([first]);
    const second = hold(plus(p.sumTo(first, [1]), 1)).node;
    queue.add([second]);
    expect(queue.states).toEqual(['data', 'data']);
    await queue.settle();
    while (second.storage === null) await queue.realiseFor(second, 'none');
    expect(first.storage).not.toBe(null);
    return sizes;
  }

  it('and fails is done by itself before what builds on it', async () => {
    const undisturbed = await batches(0);
    forget();
    await start(false);
    expect(await batches(1)).toEqual(undisturbed);
  });
});

describe('a flush that failed', () => {
  it('is computed as a whole by whoever reads one of its nodes', async () => {
    const engine = createFaultyEngine(createReferenceEngine());
    await setEngine(engine);
    const source = leaf(4);
    const first = hold(plus(source, 1)).node;
    const second = hold(plus(first, 1)).node;
    engine.arm({ member: 'submit', at: 1, kind: 'launch', times: 2 });
    expect(queue.add([first, second])?.error).toBeInstanceOf(Error);
    expect([first.storage, second.storage]).toEqual([null, null]);
    engine.arm(null);
    expect(queue.realiseFor(first, 'none')).toBeNull();
    expect(second.storage).not.toBeNull();
  });

  it('is computed alone where the others cannot be', async () => {
    const engine = createFaultyEngine(createReferenceEngine());
    await setEngine(engine);
    const [first, second] = [made(4), made(8)];
    engine.arm({ member: 'submit', at: 1, kind: 'launch', times: 3 });
    expect(queue.add([first, second])?.error).toBeInstanceOf(Error);
    engine.arm({ member: 'submit', at: 1, kind: 'launch' });
    expect(queue.realiseFor(first, 'none')).toBeNull();
    expect([first.storage === null, second.storage === null]).toEqual([false, true]);
  });
});
