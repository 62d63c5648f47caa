/** Whole trainings in 16 bits: within 0.3 points of float32, on digits and on the next character. */
import '@polygrad/backend-cpu';
import { setEngine } from '@polygrad/core';
import { beforeAll, describe, expect, it } from 'vitest';
import { characters, digits } from './fixtures/trainings.ts';

const images = { rows: 20000, testRows: 10000, epochs: 2 };
const files = ['docs/architecture.md', 'docs/numerics.md', 'docs/glossary.md'];
const text = { steps: 1000, context: 64, width: 64, tests: 15, files };

describe('trainings in mixed precision', () => {
  let accuracy: number;
  let gpt: Awaited<ReturnType<typeof characters>>;

  beforeAll(async () => {
    await setEngine('cpu');
    accuracy = await digits(undefined, images);
    gpt = await characters(undefined, text);
  });

  for (const precision of ['bfloat16', 'float16'] as const) {
    it(`recognise as many digits in ${precision}`, async () => {
      const found = await digits(precision, images);
      expect(accuracy).toBeGreaterThan(97);
      expect(found).toBeGreaterThan(accuracy - 0.3);
    });

    it(`foresee as many characters in ${precision}`, async () => {
      const found = await characters(precision, text);
      expect(gpt.accuracy).toBeGreaterThan(40);
      expect(found.accuracy).toBeGreaterThan(gpt.accuracy - 0.3);
    });
  }
});
