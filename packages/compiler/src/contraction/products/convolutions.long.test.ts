/**
 * Random convolutions and gradients, of whole tensors, parts of larger ones and turned ones: where a nest is described as a convolution, that is what it computes.
 */
import { conv2d, convTranspose2d, flip, grad, permute, slice, type Tensor } from '@polygrad/core';
import { beforeAll, expect, it } from 'vitest';
import { difference, type Found, seeContractions, sought, tensors } from '../fixtures/described.ts';

beforeAll(seeContractions);

/** Numbers from 0 to n - 1, the same every time. */
function numbersFrom(seed: number): (n: number) => number {
  let state = seed;
  return (n) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
}

/** A tensor of a shape that lies in memory in one of several ways. */
async function laid(shape: readonly number[], way: number): Promise<() => Tensor> {
  const [a, b, c, d] = shape as [number, number, number, number];
  if (way === 1) {
    const [whole] = (await tensors([a + 1, b + 2, c + 3, d + 1])) as [Tensor];
    const part = (n: number, start: number) => ({ start, stop: start + n });
    return () => slice(whole, [part(a, 1), part(b, 1), part(c, 2), part(d, 0)]);
  }
  if (way === 2) {
    const [last] = (await tensors([a, c, d, b])) as [Tensor];
    return () => permute(last, [0, 3, 1, 2]);
  }
  if (way === 3) {
    const [swapped] = (await tensors([b, a, c, d])) as [Tensor];
    return () => permute(swapped, [1, 0, 2, 3]);
  }
  const [plain] = (await tensors(shape)) as [Tensor];
  return way === 4 ? () => flip(plain, [2, 3]) : () => plain;
}

it('whatever is described as a convolution is one', async () => {
  const counts = { seen: 0, forward: 0, input: 0, kernel: 0, apart: 0, flipped: 0 };
  const see = (it: Found | null, what: string): void => {
    if (it === null) return;
    counts.seen++;
    if (it.product === null) return;
    counts[it.product.pass]++;
    if (it.convolution?.direct === false) counts.apart++;
    if (it.product.flipped) counts.flipped++;
    expect(difference(it), what).toBeLessThan(1e-3);
  };
  for (let seed = 1; seed <= Number(process.env.CONVOLUTIONS ?? 400); seed++) {
    const below = numbersFrom(seed * 7919);
    for (let i = 0; i < 8; i++) below(2);
    const groups = [1, 1, 1, 2, 3][below(5)]!;
    const [n, c, o] = [1 + below(3), groups * (1 + below(3)), groups * (1 + below(3))];
    const kernel = [1 + below(4), 1 + below(4)];
    const [stride, dilation] = [
      [1 + below(3), 1 + below(3)],
      [1 + below(2), 1 + below(2)],
    ] as const;
    const size = kernel.map((k, i) => dilation[i]! * (k - 1) + 1 + below(6));
    const padding = [below(3), below(3)] as const;
    const options = { stride, dilation, padding: [padding[0], padding[1]] as const, groups };
    const what = JSON.stringify({ seed, n, c, o, kernel, size, ...options });
    const x = await laid([n, c, ...size], below(5));
    const w = await laid([o, c / groups, ...kernel], below(5));
    const of = (p: Tensor, q: Tensor): Tensor => conv2d(p, q, options);
    see(await sought(() => of(x(), w())), what);
    const [g] = (await tensors(of(x(), w()).shape)) as [Tensor];
    const loss = (p: Tensor, q: Tensor): Tensor => of(p, q).mul(g).sum();
    see(await sought(() => grad((p: Tensor) => loss(p, w()))(x())), `by the input ${what}`);
    see(await sought(() => grad((q: Tensor) => loss(x(), q))(w())), `by the kernel ${what}`);
    // Forward through what gradients are made of: a transposed one, and its gradient.
    if (groups > 1 || padding.some((p, i) => 2 * p > dilation[i]! * (kernel[i]! - 1))) continue;
    const back = await laid([c, o, ...kernel], below(5));
    const turned = (p: Tensor, q: Tensor): Tensor => convTranspose2d(p, q, { stride, dilation, padding });
    see(await sought(() => turned(x(), back())), `transposed ${what}`);
    see(
      await sought(() => grad((p: Tensor) => turned(p, back()).square().sum())(x())),
      `by the input of a transposed ${what}`,
    );
    see(
      await sought(() => grad((q: Tensor) => turned(x(), q).square().sum())(back())),
      `by the kernel of a transposed ${what}`,
    );
  }
  // Enough of each kind came by.
  console.log(JSON.stringify(counts));
  for (const kind of ['forward', 'input', 'kernel', 'apart', 'flipped'] as const)
    expect(counts[kind], kind).toBeGreaterThan(20);
});
