/** Copies on disposed engines are useless: values that a lost device left only there are lost. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createFaultyEngine, createReferenceEngine } from '@polygrad/testing';
import { registerBackend, setEngine } from '../engine/registry.ts';
import { DeviceLostError, EngineDisposedError } from '../engine/errors.ts';
import { setRecovery, shadowed } from './shadow.ts';
import { flush, idle, ones, protect, tensor, unprotect } from '../index.ts';

const key = Symbol.for('polygrad.registry');
const globals = globalThis as { [key]?: unknown };
let before: unknown;
beforeEach(async () => {
  before = globals[key];
  globals[key] = undefined;
  const cpu = createReferenceEngine({ name: 'cpu' });
  registerBackend({
    name: 'cpu',
    probe: async () => ({ score: 1, reason: 'for tests', device: 'none' }),
    create: () => cpu,
  });
});
afterEach(() => {
  setRecovery({});
  globals[key] = before;
});

describe.each([true, false])('an engine with a copy is disposed before another is lost; known: %s', (known) => {
  async function lose(protecting: boolean) {
    const device = createFaultyEngine(createReferenceEngine({ name: 'gpu' }));
    const other = createReferenceEngine({ name: 'other' });
    await setEngine(device);
    const x = tensor([1, 2, 3]);
    if (protecting) protect([x]);
    flush();
    await shadowed();
    await setEngine(other);
    const y = x.add(1);
    expect(await y.array()).toEqual([2, 3, 4]);
    y.dispose();
    await setEngine(device);
    other.dispose();
    if (known) await Promise.resolve();
    device.lose();
    if (known) await idle();
    return x;
  }

  it('reads and computations are told of the loss', async () => {
    using x = await lose(false);
    const computed = x.add(1);
    await expect(computed.data()).rejects.toThrow(DeviceLostError);
    await expect(x.data()).rejects.toThrow(DeviceLostError);
    using z = x.mul(2);
    await expect(z.data()).rejects.toThrow(/made from data lived only there/);
    computed.dispose();
  });

  it('what is protected comes back', async () => {
    using x = await lose(true);
    using y = x.add(1);
    const first = await y.array().catch((error: Error) => error);
    if (first instanceof Error) expect(first).toBeInstanceOf(DeviceLostError);
    else expect(first).toEqual([2, 3, 4]);
    using z = x.add(2);
    expect(await z.array()).toEqual([3, 4, 5]);
    unprotect([x]);
  });
});

it('what lived on a disposed engine alone is told so', async () => {
  const other = createReferenceEngine({ name: 'other' });
  await setEngine(other);
  using x = ones([2]).contiguous();
  await x.data();
  await setEngine('cpu');
  other.dispose();
  using y = x.add(1);
  await expect(y.data()).rejects.toThrow(EngineDisposedError);
});
