import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { beforeAll, describe, expect, it } from 'vitest';
import { hintCollector } from '../engine/pool.ts';
import { setEngine } from '../engine/registry.ts';
import { createReferenceEngine } from '@polygrad/testing';
import { flush, memory, ones, tensor, throttle } from '../index.ts';
import { createRuntime, useRuntime } from './runtime.ts';

beforeAll(() => setEngine(createReferenceEngine()));

/** Runs a loop of steps until something else has happened, at most so many times; whether it has. */
async function until(happened: () => boolean, step: () => Promise<unknown>, most = 1_000_000): Promise<boolean> {
  for (let i = 0; i < most && !happened(); i++) await step();
  return happened();
}

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Whether a loop gives the memory of tensors back that it makes and drops. */
function areForgotten(): Promise<boolean> {
  const before = memory().numTensors;
  let made = 0;
  const step = async () => {
    await tensor([made, 1]).mul(2).sum().data();
    made += 3;
    if (made % 600 === 0) collect();
  };
  return until(() => made > 600 && memory().numTensors - before < made / 2, step, 20_000);
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
    expect(await areForgotten()).toBe(true);
  });

  it('do so after a runtime was collected whose tensors were about to be forgotten', async () => {
    const turns = async () => {
      for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
    };
    /** A runtime that nothing names any more once this has returned. */
    const forgetOne = async () => {
      const runtime = createRuntime();
      const before = useRuntime(runtime);
      try {
        await setEngine(createReferenceEngine());
        tensor([1, 2]).mul(2);
        flush();
      } finally {
        useRuntime(before);
      }
      await turns();
      // This collection finds the tensors, and the next one the runtime: before the event loop has had a turn.
      collect();
      return runtime.graph.live.tensors;
    };
    for (let i = 0; i < 5; i++) {
      expect(await forgetOne()).toBe(2);
      collect();
      await turns();
    }
    expect(await areForgotten()).toBe(true);
  });
});
