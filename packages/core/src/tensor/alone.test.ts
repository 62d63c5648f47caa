/** An engine by itself on a page that loads the rest when it needs it, and cannot: nothing that one engine can do is missing. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { IEngine } from '../engine/engine.ts';
import { flush, getEngine, protect, registerBackend, setEngine, setRecovery, tensor } from '../index.ts';
import { shadowed } from '../runtime/shadow.ts';
import { createFaultyEngine, createReferenceEngine, type FaultyEngine } from '@polygrad/testing';

vi.mock('../runtime/multi-engine.ts', () => {
  throw new Error('no network');
});

const key = Symbol.for('polygrad.registry');
const globals = globalThis as { [key]?: unknown };
let before: unknown;
let gpu: FaultyEngine;

const probe = async (): Promise<{ score: number; reason: string; device: string }> => ({
  score: 1,
  reason: 'for tests',
  device: 'none',
});
const fresh = (): FaultyEngine =>
  createFaultyEngine(
    createReferenceEngine({ name: 'gpu', dtypes: ['float32', 'int32', 'uint32', 'bool'], synchronous: false }),
  );

beforeEach(async () => {
  before = globals[key];
  globals[key] = undefined;
  setRecovery({ interval: 0 });
  registerBackend({ name: 'cpu', late: true, probe, create: async () => createReferenceEngine({ name: 'cpu' }) });
  registerBackend({ name: 'gpu', probe, create: async (): Promise<IEngine> => fresh() });
  gpu = fresh();
  await setEngine(gpu);
});
afterEach(async () => {
  await shadowed();
  setRecovery({});
  globals[key] = before;
});

it('computes, and brings back what was protected when its device is lost', async () => {
  using w = tensor([1, 2]);
  using other = tensor([5, 6]);
  protect([w]);
  for (let i = 0; i < 3; i++) {
    w.assign(w.mul(2));
    flush();
    expect(await w.array()).toEqual([2 ** (i + 1), 2 ** (i + 2)]);
    await shadowed();
  }
  gpu.lose();
  await gpu.lost;
  expect(await w.array()).toEqual([8, 16]);
  expect(getEngine()).not.toBe(gpu);
  w.assign(w.add(1));
  expect(await w.array()).toEqual([9, 17]);
  await expect(other.array()).rejects.toThrow(/made from data lived only there/);
});

it('tells readers of what needs another engine, and goes on with the rest', async () => {
  using x = tensor([1, 2]);
  using wide = x.cast('float64');
  await expect(wide.array()).rejects.toThrow();
  using sum = x.add(1);
  expect(await sum.array()).toEqual([2, 3]);
});

it('stays the engine in use where a second one lacks what it needs', async () => {
  await expect(setEngine('cpu')).rejects.toThrow();
  expect(getEngine()).toBe(gpu);
  using x = tensor([1, 2]).add(1);
  expect(await x.array()).toEqual([2, 3]);
});

it('has to have it from the start where the CPU engine is there at once', async () => {
  globals[key] = undefined;
  registerBackend({ name: 'cpu', probe, create: () => createReferenceEngine({ name: 'cpu' }) });
  expect(tensor([1, 2]).add(1).arraySync()).toEqual([2, 3]);
  await expect(setEngine(fresh())).rejects.toThrow();
  expect(getEngine().name).toBe('cpu');
});
