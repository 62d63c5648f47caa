/**
 * Attention over keys and values that are kept, as KVCache of @polygrad/nn has it. New ones are scattered in place at positions that are data, and a
 * mask by position hides what is not filled. Compared with plain loops in float64, and with attention to the whole sequence.
 */
import * as pg from '@polygrad/core';
import type { ConformanceCase } from '../case.ts';
import { arrayOf } from '../host.ts';
import type { Target } from '../target.ts';

const [batch, heads, size] = [2, 3, 5];

/** Numbers from -1 to 1 of queries, keys and values: [3, batch, heads, length, size]. */
const element = (at: number): number => (((at * 7919) % 2003) / 1001.5 - 1) * 1.5;

/** Attention of every position to itself and those before, in float64. */
function expected(data: readonly number[], length: number): number[] {
  const part = (which: number, lead: number, at: number): readonly number[] => {
    const from = ((which * batch * heads + lead) * length + at) * size;
    return data.slice(from, from + size);
  };
  const result: number[] = [];
  for (let lead = 0; lead < batch * heads; lead++)
    for (let at = 0; at < length; at++) {
      const query = part(0, lead, at);
      const scores = Array.from({ length: at + 1 }, (_, s) =>
        Math.exp(part(1, lead, s).reduce((sum, k, i) => sum + k * query[i]!, 0) / Math.sqrt(size)),
      );
      const total = scores.reduce((a, b) => a + b, 0);
      for (let i = 0; i < size; i++)
        result.push(scores.reduce((sum, score, s) => sum + score * part(2, lead, s)[i]!, 0) / total);
    }
  return result;
}

async function decode(dtype: 'float32' | 'float16', parts: readonly number[], capacity: number): Promise<pg.Tensor> {
  const length = parts.reduce((a, b) => a + b, 0);
  const data = Array.from({ length: 3 * batch * heads * length * size }, (_, i) => element(i));
  const all = pg.tensor(data, { shape: [3, batch, heads, length, size], dtype });
  const kept = pg.tensor(new Float32Array(2 * batch * heads * capacity * size), {
    shape: [2, batch, heads, capacity, size],
    dtype,
  });
  pg.flush();
  let start = 0;
  const results: pg.Tensor[] = [];
  for (const count of parts) {
    results.push(
      pg.scope(() => {
        const now = pg.narrow(all, 3, start, count);
        const at = pg.add(pg.arange(count, { dtype: 'int32' }), start);
        const seen = pg.lessEqual(pg.arange(capacity, { dtype: 'int32' }), pg.reshape(at, [count, 1]));
        const next = pg.indexCopy(kept, at, pg.narrow(now, 0, 1, 2), 3);
        kept.assign(next);
        const [keys, values] = [pg.select(next, 0, 0), pg.select(next, 0, 1)];
        return pg.scaledDotProductAttention(pg.select(now, 0, 0), keys, values, { mask: seen });
      }),
    );
    start += count;
  }
  const found = pg.concat(results, 2);
  for (const t of [all, kept, ...results]) t.dispose();
  return found;
}

const forms: readonly (readonly [parts: readonly number[], capacity: number])[] = [
  [[1, 1, 1, 1, 1, 1, 1], 7],
  [[4, 1, 1, 3, 1], 16],
  [[9, 1], 33],
];

export function decodingCases(target: Target): ConformanceCase[] {
  return forms.flatMap(([parts, capacity]) =>
    (['float32', 'float16'] as const).map((dtype) => ({
      name: `decoding / ${dtype}, calls of ${parts.join(', ')} positions, room for ${capacity}`,
      run: async () => {
        if (!target.holds(dtype)) return { skip: `the engine does not hold ${dtype}` };
        const length = parts.reduce((a, b) => a + b, 0);
        const data = Array.from({ length: 3 * batch * heads * length * size }, (_, i) => element(i));
        const wanted = expected(data, length);
        const found = (await arrayOf(await decode(dtype, parts, capacity))).data;
        const bound = dtype === 'float32' ? 1e-5 : 1e-2;
        for (const [i, value] of wanted.entries())
          if (!(Math.abs(found[i]! - value) <= bound))
            throw new Error(`element ${i} is ${found[i]} where ${value} is expected`);
        return undefined;
      },
    })),
  );
}
