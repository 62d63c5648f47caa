/** Which steps `npm test` takes for its arguments. */
import { expect, it } from 'vitest';
import { stepsFor } from './test.mjs';

const names = (...args) => {
  const found = stepsFor(args);
  return typeof found === 'string' ? found : found.map(({ name }) => name);
};

it('takes the steps that are named, and refuses what it does not know', () => {
  expect(names('--only', 'lint,types')).toEqual(['types', 'lint']);
  expect(names('--long')).toMatch(/--long/);
  expect(names('--only', 'lint,nothing')).toBe("--only: no step 'nothing'");
  expect(names('--only', '')).toBe("--only: no step ''");
  expect(names('--only')).toMatch(/--only/);
  expect(names('--only', '--long')).toMatch(/--only/);
  expect(names('--quick')).toMatch(/--quick/);
  expect(names('unit')).toMatch(/unit/);
});
