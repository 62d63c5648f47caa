/** Rows of tables by index, one by one or in bags, and rows turned by their position. */
import * as pg from '@polygrad/core';
import { bag, rotate, rowsOf } from '../../oracle/attention.ts';
import { at, build, count, nd } from '../../oracle/ndarray.ts';
import { integer, type Random, sample, uniform } from '../../oracle/random.ts';
import { sums, vectors } from '../../programs/operands.ts';
import { type Made, type Pool, ref } from '../../programs/pool.ts';
import { floats, type OpSpec, spec } from '../../spec.ts';
import { type OperationRow, smooth } from '../row.ts';

const any = uniform(-1, 1);

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
    spec<1>({
      name: 'rotaryEmbedding',
      dtypes: floats,
      instances: cases.map(({ x, ...options }) => ({
        label: `[${x}] ${JSON.stringify(options)}`,
        small: count(x) > 0 && count(x) <= 60,
        options,
        draw: (r: Random) => [sample(r, x, any)],
      })),
      run: ([x], o) => pg.rotaryEmbedding(x, o as pg.RotaryOptions),
      oracle: ([x], o) => rotate(x, (lead) => lead[lead.length - 1]! + ((o.offset as number | undefined) ?? 0), o),
      gradient: { of: [0], order: 2 },
    }),
    spec<2>({
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
      run: ([x, p]) => pg.rotaryEmbedding(x, { positions: p }),
      oracle: ([x, p]) => {
        const positions = p;
        return rotate(
          x,
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
    }),
  ];
}

function bagSpecs(): OpSpec[] {
  const modes = ['sum', 'mean', 'max'] as const;
  /** Bags of a list that starts at the offsets. */
  const cut = (index: readonly number[], offsets: readonly number[]): number[][] =>
    offsets.map((from, i) => index.slice(from, offsets[i + 1] ?? index.length));
  return modes.flatMap((mode): OpSpec[] => [
    spec<2>({
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
        options: padding === undefined ? {} : { paddingIdx: padding },
        draw: (r: Random) => [sample(r, n, integer(0, 4)), sample(r, [5, 3], any)],
      })),
      inputDTypes: { 0: 'int32' },
      run: ([index, table], o) => pg.embeddingBag(index, table, { ...o, mode }),
      oracle: ([index, table], o) => {
        const [b, n] = index.shape as [number, number];
        const padding = o.paddingIdx === undefined ? -1 : ((o.paddingIdx as number) + 5) % 5;
        const bags = Array.from({ length: b }, (_, i) =>
          index.data
            .slice(i * n, (i + 1) * n)
            .filter((row) => row !== padding)
            .map((row): [number, number] => [row, 1]),
        );
        return bag(table, bags, mode);
      },
      gradient: { of: [1], order: 2 },
    }),
    spec<3>({
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
      run: ([index, offsets, table]) => pg.embeddingBag(index, table, { mode, offsets: offsets }),
      oracle: ([index, offsets, table]) => {
        const bags = cut(index.data, offsets.data);
        return bag(
          table,
          bags.map((rows) => rows.map((row): [number, number] => [row, 1])),
          mode,
        );
      },
      gradient: { of: [2], order: 2 },
    }),
  ]);
}

function weightedBagSpec(): OpSpec<3> {
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
    run: ([index, table, factors]) => pg.embeddingBag(index, table, { mode: 'sum', perSampleWeights: factors }),
    oracle: ([index, table, factors]) =>
      bag(
        table,
        [0, 1, 2].map((b) => [0, 1, 2, 3].map((i): [number, number] => [at(index, [b, i]), at(factors, [b, i])])),
        'sum',
      ),
    gradient: { of: [1, 2], order: 2 },
  };
}

const embeddingSpecs: readonly OpSpec[] = [
  spec<2>({
    name: 'embedding',
    dtypes: ['float32', 'float64'],
    inputDTypes: { 1: 'int32' },
    instances: [
      {
        label: '[7,3] by [2,4]',
        small: true,
        draw: (r: Random) => [sample(r, [7, 3], uniform(-1, 1)), sample(r, [2, 4], integer(0, 6))],
      },
    ],
    run: ([w, i]) => pg.embedding(i, w),
    oracle: ([w, i]) => build([2, 4, 3], ([a, b, c]) => at(w, [at(i, [a, b]), c])),
    gradient: { of: [0], order: 2 },
  }),
  spec<2>({
    name: 'embedding of any shape',
    dtypes: floats,
    instances: [[], [3], [2, 2], [0]].map((n) => ({
      label: `[${n}]`,
      small: true,
      draw: (r: Random) => [sample(r, n, integer(0, 4)), sample(r, [5, 2, 2], any)],
    })),
    inputDTypes: { 0: 'int32' },
    run: ([index, table]) => pg.embedding(index, table),
    oracle: ([index, table]) => rowsOf(table, index),
    gradient: { of: [1], order: 2 },
  }),
];

/** Rows of a table: as they are, or pooled. */
function embedding(pool: Pool): Made | null {
  const table = vectors(pool, 2, 3);
  if (table === null) return null;
  const index = pool.indices(pool.c.pick([[3], [2, 2], [], [0]]), 0, table.shape[0]! - 1);
  return {
    args: [ref(index), ref(table)],
    dtype: table.dtype,
    formula: (i, t) => rowsOf(t, i),
  };
}

function embeddingBag(pool: Pool): Made | null {
  const table = vectors(pool, 2, 2);
  if (table === null) return null;
  const mode = pool.c.pick(['mean', 'sum', 'max'] as const);
  const offsets = pool.c.pick([null, [0, 2, 2, 5], [0]] as const);
  const shape = offsets === null ? [pool.c.pick([3, 1]), pool.c.pick([4, 1])] : [7];
  const index = pool.indices(shape, 0, table.shape[0]! - 1);
  return {
    args: [ref(index), ref(table), { mode, ...(offsets ? { offsets } : {}) }],
    dtype: table.dtype,
    formula: (i, t) => {
      const all = [...i.data];
      const starts = offsets ?? Array.from({ length: shape[0]! }, (_, r) => r * shape[1]!);
      const bags = starts.map((from, b) =>
        all.slice(from, starts[b + 1] ?? all.length).map((r): [number, number] => [r, 1]),
      );
      return bag(t, bags, mode);
    },
    ...(mode === 'max' ? {} : sums(table.dtype)),
  };
}

function rotaryEmbedding(pool: Pool): Made | null {
  const x = vectors(
    pool,
    2,
    4,
    (v) => (v.shape.at(-1) as number) % 2 === 0 && v.dtype !== 'float16' && v.dtype !== 'bfloat16',
  );
  if (x === null) return null;
  const width = x.shape.at(-1) as number;
  const options = {
    offset: pool.c.pick([0, 3]),
    style: pool.c.pick(['interleaved', 'half']),
    dims: pool.c.pick([width, 2]),
    base: 100,
  };
  return {
    args: [ref(x), options],
    dtype: x.dtype,
    formula: (a) => rotate(a, (index) => (index.at(-1) as number) + options.offset, options),
    ...sums(x.dtype),
  };
}

export const tableRows: readonly OperationRow[] = [
  { name: 'embedding', specs: embeddingSpecs, calls: smooth(embedding) },
  { name: 'embeddingBag', specs: [...bagSpecs(), weightedBagSpec()], calls: smooth(embeddingBag) },
  {
    name: 'rotaryEmbedding',
    specs: rotarySpecs(),
    calls: smooth(rotaryEmbedding),
    notes: { goldens: 'PyTorch 1.13 has none' },
  },
];
