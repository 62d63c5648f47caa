/** What several engines need is loaded when there are several, or when a lone one meets what it does not hold. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { getEngine, idle, registerBackend, setEngine, tensor } from '../index.ts';
import { createReferenceEngine } from '@polygrad/testing';

const loaded = vi.hoisted(() => ({ is: false, devices: false }));
vi.mock('../runtime/multi-engine.ts', async (original) => {
  loaded.is = true;
  return original();
});

vi.mock('../runtime/devices.ts', async (original) => {
  loaded.devices = true;
  return original();
});

const key = Symbol.for('polygrad.registry');
const globals = globalThis as { [key]?: unknown };
let before: unknown;

const probe = async (): Promise<{ score: number; reason: string; device: string }> => ({
  score: 1,
  reason: 'for tests',
  device: 'none',
});

beforeEach(() => {
  before = globals[key];
  globals[key] = undefined;
});
afterEach(() => {
  globals[key] = before;
});

it('the CPU engine by itself goes without what devices need', async () => {
  registerBackend({ name: 'cpu', probe, create: () => createReferenceEngine({ name: 'cpu' }) });
  using x = tensor([1, 2]).add(1);
  expect(x.arraySync()).toEqual([2, 3]);
  await idle();
  expect(loaded).toEqual({ is: false, devices: false });
});

it('a lone engine goes without, until it is asked for a dtype of the CPU engine, which has to start', async () => {
  registerBackend({ name: 'cpu', late: true, probe, create: async () => createReferenceEngine({ name: 'cpu' }) });
  await setEngine(createReferenceEngine({ name: 'gpu', dtypes: ['float32', 'int32'], synchronous: false }));
  expect(loaded).toEqual({ is: false, devices: true });
  using x = tensor([1, 2]);
  using y = x.add(1);
  expect(await y.array()).toEqual([2, 3]);
  expect(loaded.is).toBe(false);
  using wide = y.cast('float64');
  using result = wide.mul(2 ** -30).add(1);
  expect(await result.array()).toEqual([1 + 2 ** -29, 1 + 3 * 2 ** -30]);
  expect(loaded.is).toBe(true);
  expect(getEngine().name).toBe('gpu');
});

it('data of the engine before is read at once from the one after', async () => {
  registerBackend({ name: 'cpu', probe, create: () => createReferenceEngine({ name: 'cpu' }) });
  using x = tensor([1, 2]);
  using y = x.add(1);
  expect(y.arraySync()).toEqual([2, 3]);
  await setEngine('cpu');
  using z = y.mul(x);
  expect(z.arraySync()).toEqual([2, 6]);
});
