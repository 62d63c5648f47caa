/** Engines made by name: they are tested first, unless they were. */
import { getBackend } from '@polygrad/core/engine';
import { beforeEach, expect, it, vi } from 'vitest';
import './index.ts';
import { targets } from './testing/targets.ts';

const asked = vi.hoisted(() => vi.fn<(options: unknown) => string | null>(() => null));
vi.mock('./self-test.ts', () => ({ selfTest: asked }));
beforeEach(() => asked.mockClear());

const { create } = getBackend('native')!;

it.skipIf(targets().length === 0)('is tested before it is handed out', async () => {
  (await create({ threads: 1 })).dispose();
  expect(asked).toHaveBeenCalledTimes(1);
  asked.mockReturnValueOnce('element 3 is wrong');
  expect(() => create()).toThrow('[native] its self-test failed: element 3 is wrong');
});

it.skipIf(targets().length === 0)('is not tested where it passed in another process', async () => {
  (await create({ threads: 1 }, { isProven: true })).dispose();
  expect(asked).not.toHaveBeenCalled();
});
