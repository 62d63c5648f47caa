/** Deep Q-learning learns whatever it begins with: all seeds balance the pole in games that they have not seen. */
import '@polygrad/backend-cpu';
import { setEngine } from '@polygrad/core';
import { beforeAll, expect, it } from 'vitest';
import { dqn } from './dqn.ts';

beforeAll(async () => {
  await setEngine('cpu');
});

it.each([1, 2, 3, 4, 5, 6])('from seed %d', async (start) => {
  const { note } = await dqn(150, start);
  expect(Number(/(\d+) in new games/.exec(note)?.[1])).toBeGreaterThan(180);
});
