/**
 * Programs of soak.long.test.ts, on the built packages: `node soak/native.mjs KIND COUNT`. Each ends with code 0 and the word `fine`.
 *
 * engines: made, used and disposed one after the other; what the process holds does not grow.
 * heap: buffers of random sizes in a memory that grows, written and read back, most of them freed at once; too much is an error.
 * workers: threads of Node at once, each with an engine of its own that computes a network's step.
 * endings: threads of Node that are ended at any moment, in the middle of kernels most of the time.
 * forks: processes forked while threads of the addon run.
 */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createNativeEngine } from '@polygrad/backend-native';
import { matmul, memory, relu, scope, setEngine, sum, tensor } from '@polygrad/core';

const file = fileURLToPath(import.meta.url);

/** A product and a sum on the current engine, checked. */
async function work(rows) {
  const x = tensor(
    Array.from({ length: rows * 64 }, (_, i) => (i % 7) - 3),
    { shape: [rows, 64] },
  );
  const w = tensor(
    Array.from({ length: 64 * 48 }, (_, i) => (i % 5) - 2),
    { shape: [64, 48] },
  );
  // Nothing is left pending on an engine that will be disposed.
  const total = scope(() => sum(relu(matmul(x, w))));
  const got = await total.item();
  let want = 0;
  for (let r = 0; r < rows; r++)
    for (let c = 0; c < 48; c++) {
      let s = 0;
      for (let k = 0; k < 64; k++) s += (((r * 64 + k) % 7) - 3) * (((k * 48 + c) % 5) - 2);
      want += Math.max(0, s);
    }
  assert.equal(got, want);
  for (const t of [x, w, total]) t.dispose();
}

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');

/** Bytes of the process without what the collector may take: it does not know how much the memory of a dropped engine is. */
async function held() {
  for (let i = 0; i < 3; i++) {
    collect();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return process.memoryUsage().rss;
}

async function engines(count) {
  let settled = 0;
  for (let i = 0; i < count; i++) {
    const engine = createNativeEngine({ threads: 1 + (i % 4) });
    await setEngine(engine);
    await work(16 + (i % 32));
    engine.dispose();
    if (i === Math.floor(count / 3)) settled = await held();
    else if (i % 25 === 0) await held();
  }
  const grown = (await held()) - settled;
  assert.ok(grown < 96 * 2 ** 20, `${Math.round(grown / 2 ** 20)} MiB more than after a third`);
}

/** Numbers that repeat. */
function numbers(seed) {
  let state = seed;
  return (n) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
}

async function heap(count) {
  const limit = 256 * 2 ** 20;
  const engine = createNativeEngine({ threads: 1, memory: limit });
  const draw = numbers(7);
  const held = [];
  let refused = 0;
  const check = ({ buffer, mark, bytes }) => {
    const got = engine.downloadSync({ buffer, offset: bytes - 4, bytes: 4 }, new Uint8Array(4));
    assert.equal(new Uint32Array(got.buffer)[0], mark);
  };
  for (let i = 0; i < count; i++) {
    const bytes = 4 * (1 + draw(draw(50) === 0 ? 4_000_000 : 4000));
    try {
      const buffer = engine.alloc(bytes);
      engine.submit([{ kind: 'fill', to: { buffer, offset: 0, bytes }, pattern: i }]);
      held.push({ buffer, mark: i, bytes });
    } catch (error) {
      assert.equal(error.name, 'OutOfMemoryError');
      refused++;
    }
    while (held.length > 200 || (refused > 0 && held.length > 100)) {
      const [one] = held.splice(draw(held.length), 1);
      check(one);
      engine.free(one.buffer);
    }
  }
  for (const one of held) {
    check(one);
    engine.free(one.buffer);
  }
  assert.deepEqual([engine.memory().bytes, engine.memory().buffers], [0, 0]);
  assert.ok(engine.memory().reservedBytes <= limit);
  assert.throws(() => engine.alloc(limit * 2), { name: 'OutOfMemoryError' });
  engine.dispose();
}

const begun = (worker) => new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject));
const make = (kind, seed) => new Worker(file, { workerData: { kind, seed } });

async function workers(count) {
  const all = Array.from({ length: count }, (_, i) => make('one', i));
  const ended = await Promise.all(all.map((w) => new Promise((resolve) => w.once('exit', resolve))));
  assert.deepEqual([...new Set(ended)], [0]);
}

async function endings(count) {
  const draw = numbers(11);
  const one = async (i) => {
    const worker = make('endless', i);
    await begun(worker);
    await new Promise((resolve) => setTimeout(resolve, draw(30)));
    await worker.terminate();
  };
  for (let at = 0; at < count; at += 4) await Promise.all([0, 1, 2, 3].map((k) => one(at + k)));
  await setEngine(createNativeEngine({ threads: 2 }));
  await work(32);
}

async function forks(count) {
  await setEngine(createNativeEngine({ threads: 3 }));
  for (let i = 0; i < count; i++) {
    const child = fork(file, ['one', String(i)], { stdio: 'ignore' });
    const ended = new Promise((resolve) => child.once('exit', resolve));
    await work(64);
    assert.equal(await ended, 0);
  }
}

async function one(seed) {
  await setEngine(createNativeEngine({ threads: 1 + (seed % 3) }));
  for (let i = 0; i < 3; i++) await work(16 + ((seed + i) % 20));
  assert.equal(memory().tensors ?? 0, 0);
}

async function endless() {
  await setEngine(createNativeEngine({ threads: 2 }));
  parentPort.postMessage('begun');
  for (;;) await work(256);
}

const kinds = { engines, heap, workers, endings, forks, one, endless };

if (isMainThread) {
  const [kind, count] = process.argv.slice(2);
  await kinds[kind](Number(count));
  process.stdout.write('fine\n', () => process.exit(0));
} else {
  await kinds[workerData.kind](workerData.seed);
  process.exit(0);
}
