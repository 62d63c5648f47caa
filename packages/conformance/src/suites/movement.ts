/** Shape operations and indexing: pure data movement, so values are exact, and gradients are the reverse movement. */
import * as pg from '@polygrad/core';
import type { DType, Tensor } from '@polygrad/core';
import { at, broadcastTo, build, count, flip, type NDArray, permute, reshape } from '../oracle/ndarray.ts';
import { integer, type Random, sample, uniform } from '../oracle/random.ts';
import type { OpSpec } from '../spec.ts';

const dtypes: readonly DType[] = ['float32', 'float64', 'int32'];
const whole = integer(-99, 99);

interface Move {
  readonly name: string;
  readonly shape: readonly number[];
  readonly run: (x: Tensor) => Tensor;
  readonly f: (x: NDArray) => NDArray;
}

const moves: readonly Move[] = [
  { name: 'reshape [2,6] to [3,4]', shape: [2, 6], run: (x) => pg.reshape(x, [3, 4]), f: (x) => reshape(x, [3, 4]) },
  { name: 'reshape with -1', shape: [2, 3, 4], run: (x) => pg.reshape(x, [4, -1]), f: (x) => reshape(x, [4, 6]) },
  { name: 'flatten', shape: [2, 3, 4], run: (x) => pg.flatten(x), f: (x) => reshape(x, [24]) },
  { name: 'permute', shape: [2, 3, 4], run: (x) => pg.permute(x, [2, 0, 1]), f: (x) => permute(x, [2, 0, 1]) },
  {
    name: 'permute then reshape',
    shape: [2, 3, 4],
    run: (x) => pg.reshape(pg.permute(x, [2, 1, 0]), [6, 4]),
    f: (x) => reshape(permute(x, [2, 1, 0]), [6, 4]),
  },
  { name: 'transpose odd matrix', shape: [33, 17], run: (x) => pg.transpose(x), f: (x) => permute(x, [1, 0]) },
  { name: 'moveAxis', shape: [2, 3, 4], run: (x) => pg.moveAxis(x, 0, -1), f: (x) => permute(x, [1, 2, 0]) },
  { name: 'squeeze', shape: [1, 3, 1], run: (x) => pg.squeeze(x), f: (x) => reshape(x, [3]) },
  { name: 'unsqueeze', shape: [3, 2], run: (x) => pg.unsqueeze(x, 1), f: (x) => reshape(x, [3, 1, 2]) },
  { name: 'broadcastTo', shape: [3, 1], run: (x) => pg.broadcastTo(x, [2, 3, 4]), f: (x) => broadcastTo(x, [2, 3, 4]) },
  { name: 'flip', shape: [3, 4], run: (x) => pg.flip(x, [1]), f: (x) => flip(x, [1]) },
  {
    name: 'slice with step and negative index',
    shape: [6, 7],
    run: (x) =>
      pg.slice(x, [
        { start: 1, stop: -1, step: 2 },
        { start: -2, stop: 0, step: -2 },
      ]),
    f: (x) => build([2, 3], ([i, j]) => at(x, [1 + 2 * (i as number), 5 - 2 * (j as number)])),
  },
  {
    name: 'narrow',
    shape: [5, 4],
    run: (x) => pg.narrow(x, 0, 1, 3),
    f: (x) => build([3, 4], ([i, j]) => at(x, [(i as number) + 1, j as number])),
  },
  {
    name: 'select',
    shape: [5, 4],
    run: (x) => pg.select(x, 1, 2),
    f: (x) => build([5], ([i]) => at(x, [i as number, 2])),
  },
  {
    name: 'pad with a value',
    shape: [2, 3],
    run: (x) =>
      pg.pad(
        x,
        [
          [1, 0],
          [2, 1],
        ],
        { value: 7 },
      ),
    f: (x) =>
      build([3, 6], ([i, j]) =>
        (i as number) >= 1 && (j as number) >= 2 && (j as number) < 5
          ? at(x, [(i as number) - 1, (j as number) - 2])
          : 7,
      ),
  },
  ...(
    [
      // What is left closes the circle; the others reach into what is cut.
      ['circular', [-2, 3], [2, 3, 4, 2, 3, 4]],
      ['circular', [2, -1], [2, 3, 0, 1, 2, 3]],
      ['reflect', [-2, 3], [2, 3, 4, 3, 2, 1]],
      ['reflect', [4, -2], [4, 3, 2, 1, 0, 1, 2]],
      ['symmetric', [-3, 4], [3, 4, 4, 3, 2, 1]],
      ['symmetric', [-7, 5], [2, 1, 0]],
      ['replicate', [3, -4], [0, 0, 0, 0]],
      ['replicate', [-6, 4], [4, 4, 4]],
    ] as const
  ).map(
    ([mode, widths, places]): Move => ({
      name: `pad in mode ${mode} by ${widths}`,
      shape: [2, 5],
      run: (x) => pg.pad(x, [[0, 0], widths], { mode }),
      f: (x) => build([2, places.length], ([i, j]) => at(x, [i as number, places[j as number] as number])),
    }),
  ),
  {
    name: 'pad after arithmetic keeps the pad value',
    shape: [3],
    run: (x) => pg.pad(x.add(1), [[1, 1]]),
    f: (x) => build([5], ([i]) => ((i as number) >= 1 && (i as number) <= 3 ? at(x, [(i as number) - 1]) + 1 : 0)),
  },
  {
    name: 'tile',
    shape: [2, 3],
    run: (x) => pg.tile(x, [2, 2]),
    f: (x) => build([4, 6], ([i, j]) => at(x, [(i as number) % 2, (j as number) % 3])),
  },
  {
    name: 'tril',
    shape: [4, 4],
    run: (x) => pg.tril(x),
    f: (x) => build([4, 4], ([i, j]) => ((j as number) <= (i as number) ? at(x, [i as number, j as number]) : 0)),
  },
];

export function movementSpecs(): OpSpec[] {
  const specs: OpSpec[] = moves.map(({ name, shape, run, f }) => ({
    name,
    dtypes,
    instances: [{ label: `[${shape}]`, small: count(shape) <= 24, draw: (r: Random) => [sample(r, shape, whole)] }],
    run: ([x]) => run(x as Tensor),
    oracle: ([x]) => f(x as NDArray),
    gradient: { of: [0], order: 2 },
  }));
  specs.push(joinSpec('concat'), joinSpec('stack'), ...indexSpecs());
  return specs;
}

function joinSpec(name: 'concat' | 'stack'): OpSpec {
  return {
    name,
    dtypes,
    instances: [0, 1].map((axis) => ({
      label: `axis ${axis}`,
      small: true,
      options: { axis },
      draw: (r: Random) => {
        const other = name === 'stack' ? [2, 3] : axis === 0 ? [4, 3] : [2, 5];
        return [sample(r, [2, 3], whole), sample(r, other, whole)];
      },
    })),
    run: (xs, o) =>
      name === 'concat' ? pg.concat(xs, { axis: o.axis as number }) : pg.stack(xs, { axis: o.axis as number }),
    oracle: ([a, b], o) => {
      const [x, y] = [a as NDArray, b as NDArray];
      const axis = o.axis as number;
      if (name === 'stack') {
        const shape = [...x.shape];
        shape.splice(axis, 0, 2);
        return build(shape, (i) =>
          at(
            i[axis] === 0 ? x : y,
            i.filter((_, q) => q !== axis),
          ),
        );
      }
      const first = x.shape[axis] as number;
      const shape = x.shape.map((n, q) => (q === axis ? n + (y.shape[axis] as number) : n));
      return build(shape, (i) =>
        (i[axis] as number) < first
          ? at(x, i)
          : at(
              y,
              i.map((v, q) => (q === axis ? v - first : v)),
            ),
      );
    },
    gradient: { of: [0, 1], order: 2 },
  };
}

function indexSpecs(): OpSpec[] {
  return [
    {
      name: 'indexSelect',
      dtypes,
      inputDTypes: { 1: 'int32' },
      instances: [0, 1].map((axis) => ({
        label: `[4,5] axis ${axis}`,
        small: true,
        options: { axis },
        draw: (r: Random) => [sample(r, [4, 5], whole), sample(r, [6], integer(0, 3))],
      })),
      run: ([x, i], o) => pg.indexSelect(x as Tensor, i as Tensor, { axis: o.axis as number }),
      oracle: ([x, i], o) =>
        o.axis === 0
          ? build([6, 5], ([a, b]) => at(x as NDArray, [at(i as NDArray, [a as number]), b as number]))
          : build([4, 6], ([a, b]) => at(x as NDArray, [a as number, at(i as NDArray, [b as number])])),
      gradient: { of: [0], order: 2 },
    },
    {
      name: 'indexSelect of a transpose',
      dtypes,
      inputDTypes: { 1: 'int32' },
      instances: [
        {
          label: '[21,37] transposed, [27]',
          draw: (r: Random) => [sample(r, [21, 37], whole), sample(r, [27], integer(0, 20))],
        },
      ],
      run: ([x, i]) => pg.indexSelect(pg.transpose(x as Tensor), i as Tensor, { axis: 1 }),
      oracle: ([x, i]) => build([37, 27], ([a, b]) => at(x as NDArray, [at(i as NDArray, [b as number]), a as number])),
      gradient: { of: [0], order: 1 },
    },
    {
      name: 'takeAlongAxis',
      dtypes,
      inputDTypes: { 1: 'int32' },
      instances: [
        {
          label: '[3,5] by [3,2]',
          small: true,
          draw: (r: Random) => [sample(r, [3, 5], whole), sample(r, [3, 2], integer(0, 4))],
        },
        {
          label: '[1,5] by [3,2]',
          small: true,
          draw: (r: Random) => [sample(r, [1, 5], whole), sample(r, [3, 2], integer(0, 4))],
        },
        {
          label: '[3,5] by [1,7]',
          small: true,
          draw: (r: Random) => [sample(r, [3, 5], whole), sample(r, [1, 7], integer(0, 4))],
        },
      ],
      run: ([x, i]) => pg.takeAlongAxis(x as Tensor, i as Tensor, { axis: 1 }),
      oracle: ([x, i]) => {
        const [from, by] = [x as NDArray, i as NDArray];
        const row = (of: NDArray, a: number): number => (of.shape[0] === 1 ? 0 : a);
        const rows = Math.max(from.shape[0] as number, by.shape[0] as number);
        return build([rows, by.shape[1] as number], ([a = 0, b = 0]) =>
          at(from, [row(from, a), at(by, [row(by, a), b])]),
        );
      },
      gradient: { of: [0], order: 2 },
    },
    {
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
      run: ([w, i]) => pg.embedding(i as Tensor, w as Tensor),
      oracle: ([w, i]) =>
        build([2, 4, 3], ([a, b, c]) => at(w as NDArray, [at(i as NDArray, [a as number, b as number]), c as number])),
      gradient: { of: [0], order: 2 },
    },
    {
      name: 'indexAdd',
      dtypes,
      inputDTypes: { 1: 'int32' },
      instances: [
        {
          label: '[5,3] by [8]',
          small: true,
          draw: (r: Random) => [sample(r, [5, 3], whole), sample(r, [8], integer(0, 4)), sample(r, [8, 3], whole)],
        },
      ],
      run: ([x, i, u]) => pg.indexAdd(x as Tensor, i as Tensor, u as Tensor, { axis: 0 }),
      oracle: ([x, i, u]) =>
        build([5, 3], ([a, b]) => {
          let value = at(x as NDArray, [a as number, b as number]);
          (i as NDArray).data.forEach((target, row) => {
            if (target === a) value += at(u as NDArray, [row, b as number]);
          });
          return value;
        }),
      gradient: { of: [0, 2], order: 2 },
    },
  ];
}
