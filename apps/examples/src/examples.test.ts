/** Each program learns: a few steps of it lower its loss. And it gives back what it took. */
import '@polygrad/backend-cpu';
import { flush, memory, setEngine } from '@polygrad/core';
import { beforeAll, expect, it } from 'vitest';
import { programs } from './programs.ts';

beforeAll(async () => {
  await setEngine('cpu');
});

/** Steps, or episodes, and what the last losses are at most, as a part of the first. */
const few: Readonly<Record<string, readonly [steps: number, part: number]>> = {
  'char-gpt': [20, 0.8],
  dcgan: [60, 0.95],
  dqn: [6, 1000],
  'lstm-lengths': [120, 0.9],
  'neural-style': [40, 0.5],
  pinn: [150, 0.3],
  reinforce: [30, 1000],
  resnet: [5, 1],
  seq2seq: [60, 0.8],
  tabular: [40, 0.3],
  unet: [20, 0.9],
  vae: [80, 0.7],
};

it('all programs are tried', () => {
  expect(Object.keys(few).sort()).toEqual(Object.keys(programs).sort());
});

it.each(Object.entries(programs))('%s', async (name, program) => {
  const [steps, part] = few[name]!;
  const before = memory();
  const { losses, note } = await program(steps);
  flush();
  const { numTensors, numBuffers } = memory();
  expect({ numTensors, numBuffers }).toEqual({ numTensors: before.numTensors, numBuffers: before.numBuffers });
  expect(losses.every(Number.isFinite)).toBe(true);
  expect(note).not.toContain('NaN');
  const last = Math.min(...losses.slice(-3));
  // Of games the numbers are minus the steps that the pole stood.
  if (losses[0]! > 0) expect(last).toBeLessThan(part * losses[0]!);
  else expect(last).toBeLessThan(-8);
});
