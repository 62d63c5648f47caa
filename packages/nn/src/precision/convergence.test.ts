/** Trainings of a few steps in 16 bits against float32; whole ones are in convergence.long.test.ts. */
import '@polygrad/backend-cpu';
import { setEngine } from '@polygrad/core';
import { beforeAll, describe, expect, it } from 'vitest';
import { characters, digits } from './fixtures/trainings.ts';

const images = { rows: 1500, testRows: 500, epochs: 1 };
// A text that does not change: where another one has a step left out in float16, which halves the scale of its loss, it is behind for a while.
const text = { steps: 20, context: 32, width: 32, tests: 8, files: ['LICENSE'] };
let accuracy: number;
let gpt: Awaited<ReturnType<typeof characters>>;

beforeAll(async () => {
  await setEngine('cpu');
  accuracy = await digits(undefined, images);
  gpt = await characters(undefined, text);
  expect(accuracy).toBeGreaterThan(60);
  expect(gpt.bits).toBeLessThan(5.5);
});

describe.each(['bfloat16', 'float16'] as const)('in %s', (precision) => {
  it('digits are learned as in float32', async () => {
    expect(Math.abs((await digits(precision, images)) - accuracy)).toBeLessThan(3);
  });

  it('the next character is learned as in float32, but for roundings', async () => {
    const { bits } = await characters(precision, text);
    expect(bits).not.toBe(gpt.bits);
    expect(Math.abs(bits - gpt.bits)).toBeLessThan(0.01);
  });
});
