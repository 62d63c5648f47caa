/** A training that is ended while it waits for data. */
import { mseLoss, ones, setEngine } from '@polygrad/core';
import { createReferenceEngine } from '@polygrad/testing';
import { beforeAll, describe, expect, it } from 'vitest';
import { Linear } from '../layers/linear.ts';
import { SGD } from '../optim/sgd.ts';
import { fit } from './fit.ts';

beforeAll(() => setEngine(createReferenceEngine()));

describe('an aborted signal', () => {
  const started = (data: AsyncIterable<never>, signal: AbortSignal) => {
    const model = new Linear(1, 1);
    const options = { optimizer: new SGD(model.parameters(), { lr: 0.1 }), loss: mseLoss, epochs: 1 };
    return fit(model, data, { ...options, signal });
  };

  it('ends the wait for a batch that never comes, and closes its source', async () => {
    let closed = 0;
    const batch = { x: ones([1, 1]), y: ones([1, 1]) };
    let given = 0;
    const stalled = {
      [Symbol.asyncIterator]: () => ({
        next: () => (given++ === 0 ? Promise.resolve({ value: batch, done: false }) : new Promise(() => undefined)),
        return: () => {
          closed++;
          return Promise.resolve({ value: undefined, done: true });
        },
      }),
    } as unknown as AsyncIterable<never>;
    const controller = new AbortController();
    const training = started(stalled, controller.signal);
    setTimeout(() => controller.abort(new Error('the page went away')), 50);
    await expect(training).rejects.toThrow('the page went away');
    expect([given, closed]).toEqual([2, 1]);
  });

  it('ends an evaluation between epochs likewise', async () => {
    const batch = { x: ones([1, 1]), y: ones([1, 1]) };
    const stalled = { [Symbol.asyncIterator]: () => ({ next: () => new Promise<never>(() => undefined) }) };
    const model = new Linear(1, 1);
    const options = { optimizer: new SGD(model.parameters(), { lr: 0.1 }), loss: mseLoss, epochs: 1 };
    const signal = AbortSignal.timeout(50);
    await expect(fit(model, [batch], { ...options, signal, validation: stalled })).rejects.toThrow(/timeout/);
  });

  it('leaves sources as they are where it is not aborted: all batches, and what they throw', async () => {
    const batch = { x: ones([1, 1]), y: ones([1, 1]) };
    const { signal } = new AbortController();
    const model = new Linear(1, 1);
    const optimizer = new SGD(model.parameters(), { lr: 0.1 });
    const options = { optimizer, loss: mseLoss, epochs: 2, signal };
    await fit(model, [batch, batch], options);
    expect(optimizer.steps).toBe(4);
    let closed = 0;
    const failing = async function* () {
      try {
        yield batch;
        throw new Error('the disk is gone');
      } finally {
        closed++;
      }
    };
    await expect(fit(model, failing(), options)).rejects.toThrow('the disk is gone');
    const wrong = async function* () {
      try {
        yield { x: ones([1, 3]), y: ones([1, 1]) };
      } finally {
        await new Promise((resolve) => setTimeout(resolve, 10));
        closed++;
      }
    };
    await expect(fit(model, wrong(), options)).rejects.toThrow(/its last axis must have 1/);
    expect([closed, optimizer.steps]).toEqual([2, 5]);
  });
});
