/** Engines that bind few tensors at once: concatenations of many, as they are and inside other work. */
import { expect, it } from 'vitest';
import { setEngine } from '../../engine/registry.ts';
import { concat, keep, stack, type Tensor, tensor, where } from '../../index.ts';
import { createReferenceEngine } from '@polygrad/testing';

const leaf = (i: number): Tensor => keep(tensor([i, 2 * i, 3 * i]));
const numbers = (parts: readonly number[]): number[] => parts.flatMap((i) => [i, 2 * i, 3 * i]);
const upTo = (n: number): number[] => Array.from({ length: n }, (_, i) => i);

it.each([4, 5, 8])('of %i', async (maxBindings) => {
  const engine = createReferenceEngine();
  await setEngine({ ...engine, caps: { ...engine.caps, maxBindings } });
  for (const n of [3, 4, 7, 8, 20]) {
    const parts = upTo(n).map(leaf);
    const want = numbers(upTo(n));
    expect(await concat(parts).array()).toEqual(want);
    expect(
      await stack(parts)
        .reshape([3 * n])
        .add(1)
        .array(),
    ).toEqual(want.map((x) => x + 1));
    expect(await concat(parts).sum().item()).toBe(want.reduce((x, y) => x + y, 0));
    const inner = concat(parts).slice([{ start: 1, stop: 3 * n - 1 }]);
    expect(await inner.array()).toEqual(want.slice(1, -1));
  }
  const three = (first: number): Tensor => concat([leaf(first), leaf(first + 1), leaf(first + 2)]);
  const [a, b, c, d] = [0, 9, 3, 6].map((first) => numbers([first, first + 1, first + 2])) as [
    number[],
    number[],
    number[],
    number[],
  ];
  const chosen = await where(three(0).greater(three(9).sub(20)), three(3), three(6)).array();
  expect(chosen).toEqual(a.map((x, i) => (x > (b[i] as number) - 20 ? c[i] : d[i])));
});
