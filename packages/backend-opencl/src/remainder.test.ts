/** Remainders of float64 on the device itself: PoCL's own function is wrong beside special values, and takes its time. */
import { fmod, profile, remainder, setEngine, tensor } from '@polygrad/core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createOpenClEngine, type OpenClEngine } from './engine.ts';
import { hasDevice } from './fixtures/device.ts';

describe.skipIf(!hasDevice())('remainders with special values among the operands', () => {
  let engine: OpenClEngine;
  beforeAll(async () => {
    engine = createOpenClEngine();
    await setEngine(engine);
  });
  afterAll(() => engine?.dispose());

  const specials = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0, -0];
  /** Ordinary numbers, every fiftieth a special value. `offset`: where the first is. */
  const numbers = (count: number, offset: number): Float64Array =>
    Float64Array.from({ length: count }, (_, i) =>
      i % 50 === offset ? specials[((i / 50) % 5) | 0]! : Math.sin(i + offset) * 10 ** ((i % 40) - 20),
    );

  it("is not the device's function, which took 51 s for 1,024 elements", async () => {
    const [x, y] = [tensor(numbers(64, 3), { dtype: 'float64' }), tensor(numbers(64, 20), { dtype: 'float64' })];
    const { value, kernels } = await profile(() => fmod(x, y), { sources: true });
    for (const { source } of kernels) expect(source?.text).not.toMatch(/\b(fmod|remainder)\(/);
    for (const t of [x, y, value]) t.dispose();
  });

  // One element is a scalar of the kernel language, the others fill vectors.
  it.each(['float32', 'float64'] as const)('%s', async (dtype) => {
    const round = dtype === 'float32' ? Math.fround : Number;
    for (const count of [1, 7, 1024]) {
      const [a, b] = [numbers(count, 3).map(round), numbers(count, 20).map(round)];
      const [x, y] = [tensor(a, { dtype }), tensor(b, { dtype })];
      const [rest, positive] = [fmod(x, y), remainder(x, y)];
      const expected = Array.from(a, (v, i) => v % b[i]!);
      expect([...(await rest.data())]).toEqual(expected);
      const moved = expected.map((r, i) => {
        const side = b[i]!;
        if (r === 0) return side < 0 ? -0 : 0;
        return r < 0 === side < 0 ? r : round(r + side);
      });
      expect([...(await positive.data())]).toEqual(moved);
      for (const t of [x, y, rest, positive]) t.dispose();
    }
  });
});
