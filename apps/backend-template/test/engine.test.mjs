/** What the conformance suite does not ask: the emitter alone, and how the engine refuses, ends and is replaced. Run by `node --test`. */
import '@polygrad/backend-cpu';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { flush, getEngine, protect, setEngine, tensor } from '@polygrad/core';
import { CompileError, listBackends, OutOfMemoryError } from '@polygrad/core/engine';
import { ProgramBuilder } from '@polygrad/core/kernel/ir';
import { createJavaScriptEngine } from '../dist/index.js';
import { emit } from '../dist/emit.js';

/** y[i] = x[i] + 1 for the first four elements. */
function increment() {
  const p = new ProgramBuilder();
  const [x, y] = [p.e.param(0, 'float32', 'read', 4), p.e.param(1, 'float32', 'write', 4)];
  p.loop(4, (i) => p.store(y, i, p.e.add(p.load(x, i), p.e.constant('float32', 1))));
  return p.build({ name: 'increment' });
}

test('the emitter prints a line for each node', () => {
  const lines = emit(increment()).split('\n');
  assert.equal(lines[0], '(p0, p1, gx, gy, gz) => {');
  assert.match(lines.join('\n'), /for \(let i\d+ = 0; i\d+ < \(4\); i\d+\+\+\) \{\nconst v\d+_0 = p0\[i\d+ \+ 0\];/);
  assert.match(lines.join('\n'), /= Math\.fround\(v\d+_0 \+ \(1\)\);/);
});

test('importing the package registers the backend', async () => {
  assert.ok(listBackends().includes('javascript'));
  await setEngine('javascript');
  assert.equal(getEngine().device, 'JavaScript');
  assert.deepEqual(await tensor([1, 2, 3]).mul(2).add(1).array(), [3, 5, 7]);
});

test('a program that cannot be emitted is refused, with its text', () => {
  const program = increment();
  const odd = { ...program, body: program.body.map((n) => (n.op === 'ADD' ? { ...n, op: 'ERF' } : n)) };
  const refused = (error) =>
    error instanceof CompileError && /no ERF/.test(error.message) && /STORE/.test(error.message);
  assert.throws(() => createJavaScriptEngine().compile([odd]), refused);
});

test('memory is counted, limited and given back', () => {
  const engine = createJavaScriptEngine();
  const buffer = engine.alloc(100);
  assert.deepEqual(engine.memory(), { bytes: 100, buffers: 1, reservedBytes: 100 });
  assert.throws(() => engine.alloc(2 ** 40), OutOfMemoryError);
  engine.free(buffer);
  assert.equal(engine.memory().bytes, 0);
  const whole = { buffer, offset: 0, bytes: 100 };
  assert.throws(() => engine.upload(whole, new Uint8Array(100)), /freed/);
});

test('a disposed engine says so', async () => {
  const engine = createJavaScriptEngine();
  engine.dispose();
  assert.throws(() => engine.alloc(4), { name: 'EngineDisposedError' });
  assert.equal((await engine.lost).reason, 'disposed');
});

test('a lost device is replaced, and protected tensors live on', async () => {
  const engine = createJavaScriptEngine();
  await setEngine(engine);
  const [kept, gone] = [tensor([1, 2]).mul(2), tensor([3, 4]).mul(2)];
  protect([kept]);
  flush();
  // Copies are made behind the work, in a later turn.
  await setTimeout(10);
  engine.lose('somebody pulled the plug');
  assert.throws(() => engine.submit([]), { name: 'DeviceLostError' });
  assert.deepEqual(await kept.add(1).array(), [3, 5]);
  assert.notEqual(getEngine(), engine);
  await assert.rejects(gone.add(1).array(), { name: 'DeviceLostError' });
});
