/** Images as columns of patches and back, and channels exchanged with resolution. */
import * as pg from '@polygrad/core';
import { at, build, count, indices, nd, type NDArray, ravel } from '../../oracle/ndarray.ts';
import { drawn, operand, sums } from '../../programs/operands.ts';
import { isFloat, type Made, type Pool } from '../../programs/pool.ts';
import { type OperationRow, smooth } from '../row.ts';
import { type Move, moved, moveSpec } from './row.ts';

type Index = readonly number[];
const i = (index: Index, axis: number): number => index[axis]!;

interface PatchOptions {
  readonly stride?: Index;
  readonly padding?: Index;
  readonly dilation?: Index;
}

/** Positions of patches along both axes of an image. */
const positions = (image: Index, kernel: Index, { stride, padding, dilation }: PatchOptions): number[] =>
  [0, 1].map((a) => {
    const extent = i(dilation ?? [1, 1], a) * (i(kernel, a) - 1) + 1;
    return Math.floor((i(image, a) + 2 * i(padding ?? [0, 0], a) - extent) / i(stride ?? [1, 1], a)) + 1;
  });

/** Position in the image of element `row` of patch `column`, or null in the padding. */
function placeIn(image: Index, kernel: Index, o: PatchOptions) {
  const [stride, padding, dilation] = [o.stride ?? [1, 1], o.padding ?? [0, 0], o.dilation ?? [1, 1]];
  const across = i(positions(image, kernel, o), 1);
  return (row: number, column: number): [number, number] | null => {
    const y =
      Math.floor(column / across) * i(stride, 0) + Math.floor(row / i(kernel, 1)) * i(dilation, 0) - i(padding, 0);
    const x = (column % across) * i(stride, 1) + (row % i(kernel, 1)) * i(dilation, 1) - i(padding, 1);
    return y >= 0 && x >= 0 && y < i(image, 0) && x < i(image, 1) ? [y, x] : null;
  };
}

function unfolded(x: NDArray, kernel: Index, o: PatchOptions): NDArray {
  const image = x.shape.slice(2);
  const [area, place] = [count(kernel), placeIn(image, kernel, o)];
  return build([i(x.shape, 0), i(x.shape, 1) * area, count(positions(image, kernel, o))], (index) => {
    const from = place(i(index, 1) % area, i(index, 2));
    return from === null ? 0 : at(x, [i(index, 0), Math.floor(i(index, 1) / area), ...from]);
  });
}

function folded(x: NDArray, image: Index, kernel: Index, o: PatchOptions): NDArray {
  const [area, place] = [count(kernel), placeIn(image, kernel, o)];
  const shape = [i(x.shape, 0), i(x.shape, 1) / area, ...image];
  const data = new Array<number>(count(shape)).fill(0);
  for (const index of indices(x.shape)) {
    const to = place(i(index, 1) % area, i(index, 2));
    if (to === null) continue;
    const flat = ravel([i(index, 0), Math.floor(i(index, 1) / area), ...to], shape);
    data[flat] = data[flat]! + at(x, index);
  }
  return nd(shape, data);
}

const geometries = [
  { kernel: [2, 2], o: {} },
  { kernel: [3, 2], o: { stride: [2, 1], padding: [1, 0] } },
  { kernel: [2, 2], o: { dilation: [2, 1], padding: [1, 1], stride: [1, 3] } },
];

const unfolds: readonly Move[] = geometries.map(({ kernel, o }) => ({
  name: `unfold ${kernel} ${JSON.stringify(o)}`,
  shape: [2, 2, 5, 4],
  run: (x) => pg.unfold(x, kernel, o),
  f: (x) => unfolded(x, kernel, o),
}));
const folds: readonly Move[] = geometries.map(({ kernel, o }) => ({
  name: `fold ${kernel} ${JSON.stringify(o)}`,
  shape: [2, 2 * count(kernel), count(positions([5, 4], kernel, o))],
  run: (x) => pg.fold(x, [5, 4], kernel, o),
  f: (x) => folded(x, [5, 4], kernel, o),
}));

/** Patches of which at least one fits an image. */
function drawnPatches(
  pool: Pool,
  image: Index,
): { kernel: number[]; options: Record<keyof PatchOptions, number[]> } | null {
  const pair = (from: Index): number[] => image.map(() => pool.c.pick(from));
  const [kernel, stride, dilation, padding] = [pair([2, 1, 3]), pair([1, 2, 3]), pair([1, 1, 2]), pair([0, 1])];
  const options = { stride, dilation, padding };
  return positions(image, kernel, options).every((n) => n > 0) ? { kernel, options } : null;
}

function unfold(pool: Pool): Made | null {
  const x = pool.pick((v) => v.shape.length === 4 && v.data.length < 1000 && v.dtype !== 'bool');
  const image = x?.shape.slice(2) ?? [];
  const patches = x === null || image.includes(0) ? null : drawnPatches(pool, image);
  if (x === null || patches === null) return null;
  const { kernel, options } = patches;
  return moved(x, [kernel, options], (a) => unfolded(a, kernel, options));
}

function fold(pool: Pool): Made | null {
  const image = [pool.c.pick([4, 2, 5]), pool.c.pick([3, 6, 1])];
  const patches = drawnPatches(pool, image);
  const from = operand(pool, 0, 8, (v) => isFloat(v.dtype));
  if (patches === null || from === null) return null;
  const { kernel, options } = patches;
  const [batch, channels] = [pool.c.pick([1, 2]), pool.c.pick([1, 3])];
  const x = drawn(pool, from.dtype, [batch, channels * count(kernel), count(positions(image, kernel, options))]);
  return { ...moved(x, [image, kernel, options], (a) => folded(a, image, kernel, options)), ...sums(x.dtype) };
}

/** Pixels as channels and back. */
const shuffled =
  (back: boolean) =>
  (pool: Pool): Made | null => {
    const r = pool.c.pick([2, 1, 3]);
    const fits = ([c, h, w]: readonly number[]): boolean =>
      back ? (h as number) % r === 0 && (w as number) % r === 0 : (c as number) % (r * r) === 0;
    const x = pool.pick((v) => v.shape.length >= 3 && v.data.length < 1500 && fits(v.shape.slice(-3)));
    if (x === null) return null;
    const [lead, [c, h, w]] = [x.shape.slice(0, -3), x.shape.slice(-3) as [number, number, number]];
    const shape = back ? [...lead, c * r * r, h / r, w / r] : [...lead, c / (r * r), h * r, w * r];
    return moved(x, [r], (a) =>
      build(shape, (index) => {
        const [k, i, j] = index.slice(-3) as [number, number, number];
        const from = back
          ? [Math.floor(k / (r * r)), i * r + (Math.floor(k / r) % r), j * r + (k % r)]
          : [k * r * r + (i % r) * r + (j % r), Math.floor(i / r), Math.floor(j / r)];
        return at(a, [...index.slice(0, -3), ...from]);
      }),
    );
  };

export const patchRows: readonly OperationRow[] = [
  { name: 'unfold', specs: unfolds.map(moveSpec), calls: smooth(unfold) },
  { name: 'fold', specs: folds.map(moveSpec), calls: smooth(fold) },
  {
    name: 'pixelShuffle',
    specs: [
      moveSpec({
        name: 'pixelShuffle',
        shape: [2, 8, 2, 3],
        run: (x) => pg.pixelShuffle(x, 2),
        f: (x) =>
          build([2, 2, 4, 6], ([n, c, y, w]) =>
            at(x, [n, c * 4 + (y % 2) * 2 + (w % 2), Math.floor(y / 2), Math.floor(w / 2)]),
          ),
      }),
    ],
    calls: smooth(shuffled(false)),
  },
  {
    name: 'pixelUnshuffle',
    specs: [
      moveSpec({
        name: 'pixelUnshuffle',
        shape: [2, 4, 9],
        run: (x) => pg.pixelUnshuffle(pg.narrow(x, 2, 0, 6), 2),
        f: (x) =>
          build([8, 2, 3], ([c, y, w]) => at(x, [Math.floor(c / 4), y * 2 + (Math.floor(c / 2) % 2), w * 2 + (c % 2)])),
      }),
    ],
    calls: smooth(shuffled(true)),
  },
];
