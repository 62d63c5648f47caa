/** Attention whole and in blocks, rotary positions, embeddings in bags, and the radial basis function kernel. */
import * as pg from '@polygrad/core';
import type { DType, Tensor } from '@polygrad/core';
import { attend, type AttentionOptions, bag, radialBasis, rotate, rowsOf } from '../oracle/attention.ts';
import { at, count, type NDArray, nd } from '../oracle/ndarray.ts';
import { integer, type Random, sample, uniform } from '../oracle/random.ts';
import type { Instance, OpSpec, Options } from '../spec.ts';

const floats: readonly DType[] = ['float32', 'float64'];
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

/** Forms, and which shapes each is tried on, by the number of query elements. */
const forms: readonly (readonly [string, object, (size: number) => boolean])[] = [
  ['whole', { form: 'whole' }, () => true],
  ['blocks of 2x3', { form: 'blocks', blockSize: [2, 3] }, (size) => size <= 60],
  ['blocks of 1x1', { form: 'blocks', blockSize: [1, 1] }, (size) => size <= 6],
  ['blocks', { form: 'blocks' }, (size) => size > 40],
];

function attentionSpecs(): OpSpec[] {
  const instances = (
    list: readonly Shapes[],
    draw: (r: Random) => number,
    form: object,
    suits: (size: number) => boolean,
  ): Instance[] =>
    list
      .filter(({ q }) => suits(count(q)))
      .map(({ q, k, v, mask, ...options }) => ({
        label: `[${q}] [${k}] [${v}]${mask ? ` mask [${mask}]` : ''} ${JSON.stringify(options)}`,
        small: count(q) <= 48 && count(q) > 0 && count(k) > 0,
        options: { ...form, ...options },
        draw: (r: Random) => [
          sample(r, q, any),
          sample(r, k, any),
          sample(r, v, any),
          ...(mask ? [sample(r, mask, draw)] : []),
        ],
      }));
  const run = (inputs: Tensor[], o: Options): Tensor => {
    const [q, k, v, mask] = inputs as [Tensor, Tensor, Tensor, Tensor | undefined];
    return pg.scaledDotProductAttention(q, k, v, { ...o, mask: mask ?? null });
  };
  const oracle =
    (bool: boolean) =>
    ([q, k, v, mask]: NDArray[], o: Options): NDArray => {
      const y = attend(q as NDArray, k as NDArray, v as NDArray, mask ?? null, o, bool);
      return y;
    };
  return forms.flatMap(([label, form, suits]): OpSpec[] => [
    {
      name: `attention ${label}`,
      dtypes: label === 'whole' ? floats : ['float32'],
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

function rotarySpecs(): OpSpec[] {
  const cases = [
    { x: [3, 4] },
    { x: [2, 5, 6], style: 'half', base: 100 },
    { x: [2, 3, 8], dims: 4 },
    { x: [2, 3, 8], dims: 6, style: 'half', offset: 7 },
    { x: [2, 2, 3, 2], offset: -1 },
    { x: [0, 3, 2] },
  ];
  return [
    {
      name: 'rotaryEmbedding',
      dtypes: floats,
      instances: cases.map(({ x, ...options }) => ({
        label: `[${x}] ${JSON.stringify(options)}`,
        small: count(x) > 0 && count(x) <= 60,
        options,
        draw: (r: Random) => [sample(r, x, any)],
      })),
      run: ([x], o) => pg.rotaryEmbedding(x as Tensor, o as pg.RotaryOptions),
      oracle: ([x], o) =>
        rotate(x as NDArray, (lead) => (lead[lead.length - 1] as number) + ((o.offset as number | undefined) ?? 0), o),
      gradient: { of: [0], order: 2 },
    },
    {
      name: 'rotaryEmbedding at positions',
      dtypes: floats,
      instances: [
        { x: [2, 3, 4], at: [2, 3] },
        { x: [2, 3, 2, 4], at: [3, 1] },
      ].map(({ x, at: p }) => ({
        label: `[${x}] at [${p}]`,
        small: true,
        draw: (r: Random) => [sample(r, x, any), sample(r, p, integer(0, 20))],
      })),
      inputDTypes: { 1: 'int32' },
      run: ([x, p]) => pg.rotaryEmbedding(x as Tensor, { positions: p as Tensor }),
      oracle: ([x, p]) => {
        const positions = p as NDArray;
        return rotate(
          x as NDArray,
          (lead) => {
            const tail = lead.slice(lead.length - positions.shape.length);
            return at(
              positions,
              tail.map((i, axis) => (positions.shape[axis] === 1 ? 0 : i)),
            );
          },
          {},
        );
      },
      gradient: { of: [0], order: 2 },
    },
  ];
}

function bagSpecs(): OpSpec[] {
  const modes = ['sum', 'mean', 'max'] as const;
  /** Bags of a list that starts at the offsets. */
  const cut = (index: readonly number[], offsets: readonly number[]): number[][] =>
    offsets.map((from, i) => index.slice(from, offsets[i + 1] ?? index.length));
  return modes.flatMap((mode): OpSpec[] => [
    {
      name: `embeddingBag ${mode}`,
      dtypes: floats,
      instances: [
        { n: [2, 3], padding: undefined },
        { n: [3, 4], padding: 1 },
        { n: [2, 0], padding: undefined },
        { n: [33, 20], padding: -1 },
      ].map(({ n, padding }) => ({
        label: `[${n}]${padding === undefined ? '' : ` padding ${padding}`}`,
        small: count(n) < 30,
        options: padding === undefined ? {} : { paddingIndex: padding },
        draw: (r: Random) => [sample(r, n, integer(0, 4)), sample(r, [5, 3], any)],
      })),
      inputDTypes: { 0: 'int32' },
      run: ([index, table], o) => pg.embeddingBag(index as Tensor, table as Tensor, { ...o, mode }),
      oracle: ([index, table], o) => {
        const [b, n] = (index as NDArray).shape as [number, number];
        const padding = o.paddingIndex === undefined ? -1 : ((o.paddingIndex as number) + 5) % 5;
        const bags = Array.from({ length: b }, (_, i) =>
          (index as NDArray).data
            .slice(i * n, (i + 1) * n)
            .filter((row) => row !== padding)
            .map((row): [number, number] => [row, 1]),
        );
        return bag(table as NDArray, bags, mode);
      },
      gradient: { of: [1], order: 2 },
    },
    {
      name: `embeddingBag ${mode} by offsets`,
      dtypes: floats,
      instances: [
        { n: 6, offsets: [0, 2, 2, 5] },
        { n: 3, offsets: [0] },
        { n: 4, offsets: [0, 4] },
      ].map(({ n, offsets }) => ({
        label: `${n} from [${offsets}]`,
        small: true,
        draw: (r: Random) => [sample(r, [n], integer(0, 4)), nd([offsets.length], offsets), sample(r, [5, 3], any)],
      })),
      inputDTypes: { 0: 'int32', 1: 'int32' },
      run: ([index, offsets, table]) =>
        pg.embeddingBag(index as Tensor, table as Tensor, { mode, offsets: offsets as Tensor }),
      oracle: ([index, offsets, table]) => {
        const bags = cut((index as NDArray).data, (offsets as NDArray).data);
        return bag(
          table as NDArray,
          bags.map((rows) => rows.map((row): [number, number] => [row, 1])),
          mode,
        );
      },
      gradient: { of: [2], order: 2 },
    },
  ]);
}

function weightedBagSpec(): OpSpec {
  return {
    name: 'embeddingBag with factors',
    dtypes: floats,
    instances: [
      {
        label: '[3,4]',
        small: true,
        draw: (r: Random) => [sample(r, [3, 4], integer(0, 4)), sample(r, [5, 2], any), sample(r, [3, 4], any)],
      },
    ],
    inputDTypes: { 0: 'int32' },
    run: ([index, table, factors]) =>
      pg.embeddingBag(index as Tensor, table as Tensor, { mode: 'sum', perSampleWeights: factors as Tensor }),
    oracle: ([index, table, factors]) =>
      bag(
        table as NDArray,
        [0, 1, 2].map((b) =>
          [0, 1, 2, 3].map((i): [number, number] => [at(index as NDArray, [b, i]), at(factors as NDArray, [b, i])]),
        ),
        'sum',
      ),
    gradient: { of: [1, 2], order: 2 },
  };
}

export function attentionFamilySpecs(): OpSpec[] {
  return [
    ...attentionSpecs(),
    ...rotarySpecs(),
    ...bagSpecs(),
    weightedBagSpec(),
    {
      name: 'embedding of any shape',
      dtypes: floats,
      instances: [[], [3], [2, 2], [0]].map((n) => ({
        label: `[${n}]`,
        small: true,
        draw: (r: Random) => [sample(r, n, integer(0, 4)), sample(r, [5, 2, 2], any)],
      })),
      inputDTypes: { 0: 'int32' },
      run: ([index, table]) => pg.embedding(index as Tensor, table as Tensor),
      oracle: ([index, table]) => rowsOf(table as NDArray, index as NDArray),
      gradient: { of: [1], order: 2 },
    },
    {
      name: 'rbfKernel',
      dtypes: floats,
      instances: [
        { x: [1, 1], y: [1, 1] },
        { x: [3, 2], y: [4, 2], gamma: 0.3 },
        { x: [2, 3, 2], y: [1, 2, 2], gamma: 1.5 },
        { x: [2, 3, 2], y: [4, 2] },
        { x: [0, 2], y: [3, 2] },
        { x: [33, 17], y: [29, 17], gamma: 0.1 },
      ].map(({ x, y, ...options }) => ({
        label: `[${x}] [${y}] ${JSON.stringify(options)}`,
        small: count(x) > 0 && count(x) < 20,
        options,
        draw: (r: Random) => [sample(r, x, any), sample(r, y, any)],
      })),
      run: ([x, y], o) => pg.rbfKernel(x as Tensor, y as Tensor, o as { gamma?: number }),
      oracle: ([x, y], o) =>
        radialBasis(
          x as NDArray,
          y as NDArray,
          (o.gamma as number | undefined) ?? 1 / ((x as NDArray).shape.at(-1) as number),
        ),
      gradient: { of: [0, 1], order: 2 },
    },
  ];
}
