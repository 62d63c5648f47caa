import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { beforeAll, describe, expect, it } from 'vitest';
import { hintCollector } from '../engine/pool.ts';
import { setEngine } from '../engine/registry.ts';
import { createReferenceEngine } from '@polygrad/testing';
import { memory, ones, tensor, throttle } from '../index.ts';

beforeAll(() => setEngine(createReferenceEngine()));

/** Runs a loop of steps until something else has happened, at most so many times; whether it has. */
async function until(happened: () => boolean, step: () => Promise<unknown>, most = 1_000_000): Promise<boolean> {
  for (let i = 0; i < most && !happened(); i++) await step();
  return happened();
}

describe('loops that only await the library', () => {
  const x = ones([2]);
  it.each([
    ['data', () => x.data()],
    ['array', () => x.array()],
    ['item', () => x.sum().item()],
    ['throttle', () => throttle()],
  ])('let timers have their turn: %s', async (_, step) => {
    let fired = false;
    setTimeout(() => {
      fired = true;
    }, 1);
    expect(await until(() => fired, step)).toBe(true);
  });

  it('have several turns, read by read, when the collector was told to look', async () => {
    const order: string[] = [];
    await x.data();
    hintCollector();
    for (let i = 0; i < 3; i++) {
      setImmediate(() => order.push('turn'));
      await x.data();
      order.push('read');
    }
    expect(order).toEqual(['turn', 'read', 'turn', 'read', 'turn', 'read']);
  });

  it('give the memory of forgotten tensors back', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const before = memory().numTensors;
    let made = 0;
    const step = async () => {
      await tensor([made, 1]).mul(2).sum().data();
      made += 3;
      if (made % 600 === 0) collect();
    };
    expect(await until(() => made > 600 && memory().numTensors - before < made / 2, step)).toBe(true);
  });
});
