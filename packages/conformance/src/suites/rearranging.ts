/** Diagonals, grids, turns, patches and pixels: values are exact, gradients the reverse movement. */
import * as pg from '@polygrad/core';
import type { DType, Tensor } from '@polygrad/core';
import { at, build, count, type NDArray, nd } from '../oracle/ndarray.ts';
import { integer, type Random, sample } from '../oracle/random.ts';
import type { OpSpec } from '../spec.ts';

const dtypes: readonly DType[] = ['float32', 'float64', 'int32'];
const whole = integer(-99, 99);

interface Move {
  readonly name: string;
  readonly shape: readonly number[];
  readonly run: (x: Tensor) => Tensor;
  readonly f: (x: NDArray) => NDArray;
}

type Index = readonly number[];
const i = (index: Index, axis: number): number => index[axis] as number;

function patch(shape: readonly number[], kernel: Index, o: { stride?: Index; padding?: Index; dilation?: Index }) {
  const [stride, padding, dilation] = [o.stride ?? [1, 1], o.padding ?? [0, 0], o.dilation ?? [1, 1]];
  const out = [0, 1].map(
    (a) => Math.floor((i(shape, a) + 2 * i(padding, a) - i(dilation, a) * (i(kernel, a) - 1) - 1) / i(stride, a)) + 1,
  );
  /** Position in the image of element `row` of patch `column`, or null in the padding. */
  const place = (row: number, column: number): [number, number] | null => {
    const y =
      Math.floor(column / i(out, 1)) * i(stride, 0) + Math.floor(row / i(kernel, 1)) * i(dilation, 0) - i(padding, 0);
    const x = (column % i(out, 1)) * i(stride, 1) + (row % i(kernel, 1)) * i(dilation, 1) - i(padding, 1);
    return y >= 0 && x >= 0 && y < i(shape, 0) && x < i(shape, 1) ? [y, x] : null;
  };
  return { count: i(out, 0) * i(out, 1), area: i(kernel, 0) * i(kernel, 1), place };
}

const geometries = [
  { kernel: [2, 2], o: {} },
  { kernel: [3, 2], o: { stride: [2, 1], padding: [1, 0] } },
  { kernel: [2, 2], o: { dilation: [2, 1], padding: [1, 1], stride: [1, 3] } },
];

const patches: readonly Move[] = geometries.flatMap(({ kernel, o }): Move[] => {
  const shape = [2, 2, 5, 4];
  const { count: columns, area, place } = patch([5, 4], kernel, o);
  const label = `${kernel} ${JSON.stringify(o)}`;
  return [
    {
      name: `unfold ${label}`,
      shape,
      run: (x) => pg.unfold(x, kernel, o),
      f: (x) =>
        build([2, 2 * area, columns], (index) => {
          const from = place(i(index, 1) % area, i(index, 2));
          return from === null ? 0 : at(x, [i(index, 0), Math.floor(i(index, 1) / area), ...from]);
        }),
    },
    {
      name: `fold ${label}`,
      shape: [2, 2 * area, columns],
      run: (x) => pg.fold(x, [5, 4], kernel, o),
      f: (x) => {
        const data = new Array<number>(80).fill(0);
        for (let n = 0; n < 2; n++)
          for (let row = 0; row < 2 * area; row++)
            for (let column = 0; column < columns; column++) {
              const to = place(row % area, column);
              if (to === null) continue;
              const flat = ((n * 2 + Math.floor(row / area)) * 5 + to[0]) * 4 + to[1];
              data[flat] = (data[flat] as number) + at(x, [n, row, column]);
            }
        return nd(shape, data);
      },
    },
  ];
});

const moves: readonly Move[] = [
  ...[0, 1, -2].flatMap((offset): Move[] => [
    {
      name: `diag of a vector, offset ${offset}`,
      shape: [3],
      run: (x) => pg.diag(x, { offset }),
      f: (x) =>
        build([3 + Math.abs(offset), 3 + Math.abs(offset)], ([r, c]) =>
          (c as number) - (r as number) === offset ? at(x, [Math.min(r as number, c as number)]) : 0,
        ),
    },
    {
      name: `diag of a matrix, offset ${offset}`,
      shape: [4, 3],
      run: (x) => pg.diag(x, { offset }),
      f: (x) => {
        const on: number[] = [];
        for (let r = 0; r < 4; r++) if (r + offset >= 0 && r + offset < 3) on.push(at(x, [r, r + offset]));
        return nd([on.length], on);
      },
    },
    {
      name: `diagEmbed, offset ${offset}`,
      shape: [2, 2],
      run: (x) => pg.diagEmbed(x, { offset, axis1: 0, axis2: -1 }),
      f: (x) =>
        build([2 + Math.abs(offset), 2, 2 + Math.abs(offset)], ([r, b, c]) =>
          (c as number) - (r as number) === offset ? at(x, [b as number, Math.min(r as number, c as number)]) : 0,
        ),
    },
    {
      name: `diagEmbed with axes exchanged, offset ${offset}`,
      shape: [2, 3],
      run: (x) => pg.diagEmbed(x, { offset, axis1: 2, axis2: 1 }),
      f: (x) =>
        build([2, 3 + Math.abs(offset), 3 + Math.abs(offset)], ([b, c, r]) =>
          (c as number) - (r as number) === offset ? at(x, [b as number, Math.min(r as number, c as number)]) : 0,
        ),
    },
  ]),
  // A quarter turn takes element (r, c) of [h, w] to (w - 1 - c, r).
  {
    name: 'rot90',
    shape: [2, 3],
    run: (x) => pg.rot90(x),
    f: (x) => build([3, 2], ([r, c]) => at(x, [c as number, 2 - (r as number)])),
  },
  {
    name: 'rot90 twice',
    shape: [2, 3],
    run: (x) => pg.rot90(x, 2),
    f: (x) => build([2, 3], ([r, c]) => at(x, [1 - (r as number), 2 - (c as number)])),
  },
  {
    name: 'rot90 back',
    shape: [2, 3],
    run: (x) => pg.rot90(x, -1),
    f: (x) => build([3, 2], ([r, c]) => at(x, [1 - (c as number), r as number])),
  },
  {
    name: 'rot90 of other axes',
    shape: [2, 3, 4],
    run: (x) => pg.rot90(x, 5, [2, 0]),
    // From axis 2 towards axis 0.
    f: (x) => build([4, 3, 2], ([a, b, c]) => at(x, [1 - (c as number), b as number, a as number])),
  },
  {
    name: 'meshgrid xy',
    shape: [5],
    run: (x) => pg.concat(pg.meshgrid([pg.narrow(x, 0, 0, 2), pg.narrow(x, 0, 2, 3)])),
    f: (x) => build([6, 2], ([r, c]) => at(x, [(r as number) < 3 ? (c as number) : 2 + ((r as number) % 3)])),
  },
  {
    name: 'meshgrid ij',
    shape: [5],
    run: (x) => pg.concat(pg.meshgrid([pg.narrow(x, 0, 0, 2), pg.narrow(x, 0, 2, 3)], { indexing: 'ij' })),
    f: (x) => build([4, 3], ([r, c]) => at(x, [(r as number) < 2 ? (r as number) : 2 + (c as number)])),
  },
  {
    name: 'pixelShuffle',
    shape: [2, 8, 2, 3],
    run: (x) => pg.pixelShuffle(x, 2),
    f: (x) =>
      build([2, 2, 4, 6], ([n, c, y, w]) =>
        at(x, [
          n as number,
          (c as number) * 4 + ((y as number) % 2) * 2 + ((w as number) % 2),
          Math.floor((y as number) / 2),
          Math.floor((w as number) / 2),
        ]),
      ),
  },
  {
    name: 'pixelUnshuffle',
    shape: [2, 4, 9],
    run: (x) => pg.pixelUnshuffle(pg.narrow(x, 2, 0, 6), 2),
    f: (x) =>
      build([8, 2, 3], ([c, y, w]) =>
        at(x, [
          Math.floor((c as number) / 4),
          (y as number) * 2 + (Math.floor((c as number) / 2) % 2),
          (w as number) * 2 + ((c as number) % 2),
        ]),
      ),
  },
  ...patches,
];

export function rearrangingSpecs(): OpSpec[] {
  return moves.map(({ name, shape, run, f }) => ({
    name,
    dtypes,
    instances: [{ label: `[${shape}]`, small: count(shape) <= 24, draw: (r: Random) => [sample(r, shape, whole)] }],
    run: ([x]) => run(x as Tensor),
    oracle: ([x]) => f(x as NDArray),
    gradient: { of: [0], order: 2 },
  }));
}
