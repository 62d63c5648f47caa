/** Attention whole, in blocks and in one kernel, causal, with masks of both kinds, and with shared heads. */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import { attend, type AttentionOptions } from '../../oracle/attention.ts';
import { count, type NDArray } from '../../oracle/ndarray.ts';
import { integer, type Random, sample, samples, uniform } from '../../oracle/random.ts';
import { drawn, operand, plain, sums } from '../../programs/operands.ts';
import { type Made, type Pool, ref } from '../../programs/pool.ts';
import { floats, type Inputs, type Instance, type OpSpec, type Options } from '../../spec.ts';
import { type OperationRow, smooth } from '../row.ts';

const any = uniform(-1, 1);

interface Shapes extends AttentionOptions {
  readonly q: readonly number[];
  readonly k: readonly number[];
  readonly v: readonly number[];
  readonly mask?: readonly number[];
}

const shapes: readonly Shapes[] = [
  { q: [1, 1], k: [1, 1], v: [1, 1] },
  { q: [3, 2], k: [4, 2], v: [4, 3] },
  { q: [2, 3, 2], k: [2, 5, 2], v: [2, 5, 2], causal: true },
  { q: [1, 2, 4, 3], k: [1, 2, 4, 3], v: [1, 2, 4, 2], causal: true, scale: 0.7 },
  // Keys that came before, and queries that see nothing.
  { q: [2, 3, 2], k: [2, 5, 2], v: [2, 5, 2], causal: true, causalOffset: 2 },
  { q: [1, 4, 2], k: [1, 3, 2], v: [1, 3, 2], causal: true, causalOffset: -2 },
  // Shared heads, broadcast batches.
  { q: [1, 4, 3, 2], k: [1, 2, 3, 2], v: [1, 2, 3, 2] },
  { q: [2, 2, 3, 2], k: [1, 1, 3, 2], v: [3, 2], causal: true },
  { q: [1, 3, 2], k: [2, 4, 2], v: [2, 4, 1] },
  { q: [2, 2, 0, 2], k: [2, 2, 3, 2], v: [2, 2, 3, 2] },
  { q: [2, 3, 2], k: [2, 0, 2], v: [2, 0, 4] },
  { q: [1, 4, 21, 8], k: [1, 2, 26, 8], v: [1, 2, 26, 4], causal: true, causalOffset: 5 },
];

const masked: readonly Shapes[] = [
  { q: [3, 2], k: [4, 2], v: [4, 3], mask: [3, 4] },
  { q: [2, 4, 3, 2], k: [2, 2, 5, 2], v: [2, 2, 5, 2], mask: [2, 1, 1, 5] },
  { q: [1, 2, 4, 2], k: [1, 2, 4, 2], v: [1, 2, 4, 2], mask: [2, 4, 1], causal: true },
  { q: [1, 4, 3, 2], k: [1, 2, 4, 2], v: [1, 2, 4, 2], mask: [4, 3, 4] },
  { q: [1, 2, 19, 4], k: [1, 2, 23, 4], v: [1, 2, 23, 4], mask: [19, 23] },
];

/** A number added to a whole row of scores changes nothing, so there would be nothing to differentiate. */
const added = masked.map((m) => (m.mask?.join() === '2,4,1' ? { ...m, mask: [2, 1, 4] } : m));

const wholeForm = { form: 'whole' };
const kernelForm = { form: 'kernel' };

/** Forms, and which shapes each is tried on, by the number of query elements. */
const forms: readonly (readonly [string, object, (size: number) => boolean])[] = [
  ['whole', wholeForm, () => true],
  ['blocks of 2x3', { form: 'blocks', blockSize: [2, 3] }, (size) => size <= 60],
  ['blocks of 1x1', { form: 'blocks', blockSize: [1, 1] }, (size) => size <= 6],
  ['blocks', { form: 'blocks' }, (size) => size > 40],
  ['in one kernel', kernelForm, () => true],
];

function attentionSpecs(): OpSpec[] {
  const instances = (
    list: readonly Shapes[],
    draw: (r: Random) => number,
    form: object,
    suits: (size: number) => boolean,
  ): Instance<3 | 4>[] =>
    list
      .filter(({ q }) => suits(count(q)))
      .map(({ q, k, v, mask, ...options }) => ({
        label: `[${q}] [${k}] [${v}]${mask ? ` mask [${mask}]` : ''} ${JSON.stringify(options)}`,
        small: count(q) <= 48 && count(q) > 0 && count(k) > 0,
        options: { ...form, ...options },
        draw: (r) => {
          const [query, key, value] = samples(r, [q, k, v], any);
          return mask ? [query, key, value, sample(r, mask, draw)] : [query, key, value];
        },
      }));
  const run = ([q, k, v, mask]: Inputs<3 | 4, Tensor>, o: Options): Tensor =>
    pg.scaledDotProductAttention(q, k, v, { ...o, mask: mask ?? null });
  const oracle =
    (bool: boolean) =>
    ([q, k, v, mask]: Inputs<3 | 4, NDArray>, o: Options): NDArray =>
      attend(q, k, v, mask ?? null, o, bool);
  return forms.flatMap(([label, form, suits]): OpSpec<3 | 4>[] => [
    {
      name: `attention ${label}`,
      dtypes: form === wholeForm || form === kernelForm ? floats : ['float32'],
      instances: instances(shapes, any, form, suits),
      run,
      oracle: oracle(true),
      gradient: { of: [0, 1, 2], order: 2 },
    },
    {
      name: `attention ${label}, bool mask`,
      dtypes: ['float32'],
      instances: instances(masked, integer(0, 1), form, suits),
      inputDTypes: { 3: 'bool' },
      run,
      oracle: oracle(true),
      gradient: { of: [0, 1, 2], order: 2 },
    },
    {
      name: `attention ${label}, added mask`,
      dtypes: ['float32'],
      instances: instances(added, any, form, suits),
      run,
      oracle: oracle(false),
      gradient: { of: [0, 1, 2, 3], order: 2 },
    },
    {
      name: `attention ${label}, infinite mask`,
      dtypes: ['float32'],
      instances: instances(masked.slice(0, 2), (r) => (r() < 0.5 ? Number.NEGATIVE_INFINITY : r()), form, suits),
      run,
      oracle: oracle(false),
      gradient: { of: [0, 1, 2], order: 2 },
    },
  ]);
}

function attention(pool: Pool): Made | null {
  const q = operand(
    pool,
    2,
    4,
    (v) =>
      (v.dtype === 'float32' || v.dtype === 'float64') && !v.shape.includes(0) && v.data.every((x) => Math.abs(x) < 20),
  );
  if (q === null) return null;
  const keys = pool.c.pick([3, 1, 6]);
  const lead = q.shape.slice(0, -2);
  const k = drawn(pool, q.dtype, [...lead, keys, q.shape.at(-1) as number]);
  const v = drawn(pool, q.dtype, [...lead, keys, pool.c.pick([2, 5])]);
  const causal = pool.c.seldom(3);
  return {
    args: [ref(q), ref(k), ref(v), ...(causal ? [{ causal }] : [])],
    dtype: q.dtype,
    formula: (a, b, c) => attend(a, b, c, null, { causal }, false),
    ...sums(q.dtype),
  };
}

/** Queries, keys and values with a mask: of numbers or of truths, for all heads or for each. */
function maskedCall(pool: Pool): Made | null {
  const q = operand(
    pool,
    2,
    4,
    (v) => (v.dtype === 'float32' || v.dtype === 'float64') && plain(v) && !v.shape.includes(0),
  );
  if (q === null) return null;
  const lead = q.shape.slice(0, -2);
  const [rows, depth] = q.shape.slice(-2) as [number, number];
  const keys = pool.c.pick([3, 1, 6, 17]);
  const k = drawn(pool, q.dtype, [...lead, keys, depth]);
  const v = drawn(pool, q.dtype, [...lead, keys, pool.c.pick([2, 5])]);
  const bool = pool.c.nat(2) === 0;
  const shape = pool.c.pick([[rows, keys], [keys], [...lead, rows, keys], [rows, 1]]);
  const truths = Array.from({ length: count(shape) }, (_, i) => ((i * 7 + 3) % 5 < 3 ? 1 : 0));
  const mask = bool ? pool.input('bool', shape, truths) : drawn(pool, q.dtype, shape);
  const options = { ...(pool.c.nat(2) === 0 ? { scale: 0.25 } : {}), ...(pool.c.seldom(3) ? { causal: true } : {}) };
  const form = pool.c.pick(['auto', 'whole', 'blocks', 'kernel']);
  return {
    args: [ref(q), ref(k), ref(v), { mask: ref(mask), ...options, ...(form === 'auto' ? {} : { form }) }],
    dtype: q.dtype,
    formula: (a, b, c, m) => attend(a, b, c, m, options, bool),
    ...sums(q.dtype),
  };
}

export const attentionRows: readonly OperationRow[] = [
  { name: 'scaledDotProductAttention', specs: attentionSpecs(), calls: smooth(attention, maskedCall) },
];
