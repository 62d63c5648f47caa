/** What steps leave behind is collected with the young generation: nothing that ended with one step keeps what later ones leave. */
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createNullEngine } from '@polygrad/testing';
import { beforeAll, expect, it } from 'vitest';
import { keep, mul, scope, setEngine, tensor, zeros } from '../index.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as (options?: { readonly type: 'minor' }) => void;

beforeAll(() => setEngine(createNullEngine()));

/** Bytes that the old generation has. */
const oldBytes = (): number =>
  getHeapSpaceStatistics().find(({ space_name }) => space_name === 'old_space')!.space_used_size;

/** Collects the young generation. What lives through two collections is old. */
function collectYoung(): void {
  for (let i = 0; i < 3; i++) collect({ type: 'minor' });
}

/** Bytes by which the old generation grows for each step: the least of three measurements, because what ran before in this process may be in others. */
async function grown(step: () => void, steps = 1500): Promise<number> {
  const some = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i++) {
      step();
      if (i % 20 !== 19) continue;
      // Handles are watched from the next microtask on.
      await null;
      collect({ type: 'minor' });
    }
    collectYoung();
  };
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 3; round++) {
    await some(200);
    collect();
    const before = oldBytes();
    await some(steps);
    least = Math.min(least, (oldBytes() - before) / steps);
  }
  return least;
}

it('of tensors that are assigned', async () => {
  const w = keep(zeros([4]));
  const x = tensor([1, 2, 3, 4]);
  const step = (): void => {
    scope(() => w.assign(mul(w, x).add(1)));
  };
  // 45, of which most are code and feedback of V8; steps that kept later ones alive left 310 to 480.
  expect(await grown(step)).toBeLessThan(150);
});
