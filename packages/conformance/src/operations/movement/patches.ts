/** Images as columns of patches and back, and channels exchanged with resolution. */
import * as pg from '@polygrad/core';
import { drawn, operand, sums } from '../../programs/operands.ts';
import { isFloat, type Made, type Pool } from '../../programs/pool.ts';
import { type Move, moved, moveSpec } from './row.ts';
import { type OperationRow, smooth } from '../row.ts';
import { at, build, count, indices, nd } from '../../oracle/ndarray.ts';
import type { OpSpec } from '../../spec.ts';

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

interface Patches {
  readonly size: number[];
  readonly stride: number[];
  readonly dilation: number[];
  readonly padding: number[];
  readonly out: number[];
}

function patchesOf(pool: Pool, spatial: readonly number[]): Patches | null {
  const pair = (from: readonly number[]): number[] => spatial.map(() => pool.c.pick(from));
  const [size, stride, dilation, padding] = [pair([2, 1, 3]), pair([1, 2, 3]), pair([1, 1, 2]), pair([0, 1])];
  const out = spatial.map((n, i) => {
    const extent = ((size[i] as number) - 1) * (dilation[i] as number) + 1;
    return Math.floor((n + 2 * (padding[i] as number) - extent) / (stride[i] as number)) + 1;
  });
  return out.every((n) => n > 0) ? { size, stride, dilation, padding, out } : null;
}

/** Where a tap of a patch lies in the image, along one axis. */
const place = (g: Patches, axis: number, position: number, tap: number): number =>
  position * (g.stride[axis] as number) + tap * (g.dilation[axis] as number) - (g.padding[axis] as number);

function unfold(pool: Pool): Made | null {
  const x = pool.pick((v) => v.shape.length === 4 && v.data.length < 1000 && v.dtype !== 'bool');
  const spatial = x?.shape.slice(2) ?? [];
  const g = x === null || spatial.includes(0) ? null : patchesOf(pool, spatial);
  if (x === null || g === null) return null;
  const { size, stride, dilation, padding, out } = g;
  const area = count(size);
  const shape = [x.shape[0] as number, (x.shape[1] as number) * area, count(out)];
  return moved(x, [size, { stride, dilation, padding }], (a) =>
    build(shape, ([n, row, column]) => {
      const [tap, position] = [(row as number) % area, column as number];
      const [kh, kw] = size as [number, number];
      const [, width] = out as [number, number];
      const h = place(g, 0, Math.floor(position / width), Math.floor(tap / kw) % kh);
      const w = place(g, 1, position % width, tap % kw);
      const inside = h >= 0 && w >= 0 && h < (spatial[0] as number) && w < (spatial[1] as number);
      return inside ? at(a, [n as number, Math.floor((row as number) / area), h, w]) : 0;
    }),
  );
}

function fold(pool: Pool): Made | null {
  const image = [pool.c.pick([4, 2, 5]), pool.c.pick([3, 6, 1])];
  const g = patchesOf(pool, image);
  const from = operand(pool, 0, 8, (v) => isFloat(v.dtype));
  if (g === null || from === null) return null;
  const { size, stride, dilation, padding, out } = g;
  const [batch, channels] = [pool.c.pick([1, 2]), pool.c.pick([1, 3])];
  const x = drawn(pool, from.dtype, [batch, channels * count(size), count(out)]);
  return {
    ...moved(x, [image, size, { stride, dilation, padding }], (a) => {
      const y = new Array<number>(count([batch, channels, ...image])).fill(0);
      for (const [n, c, kh, kw, oh, ow] of indices([batch, channels, ...size, ...out])) {
        const [h, w] = [place(g, 0, oh as number, kh as number), place(g, 1, ow as number, kw as number)];
        if (h < 0 || w < 0 || h >= (image[0] as number) || w >= (image[1] as number)) continue;
        const row = ((c as number) * (size[0] as number) + (kh as number)) * (size[1] as number) + (kw as number);
        const to = (((n as number) * channels + (c as number)) * (image[0] as number) + h) * (image[1] as number) + w;
        y[to] = (y[to] as number) + at(a, [n as number, row, (oh as number) * (out[1] as number) + (ow as number)]);
      }
      return nd([batch, channels, ...image], y);
    }),
    ...sums(x.dtype),
  };
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

const specsOf = (name: string): OpSpec[] => patches.filter((move) => move.name.startsWith(name)).map(moveSpec);

export const patchRows: readonly OperationRow[] = [
  { name: 'unfold', specs: specsOf('unfold'), calls: smooth(unfold) },
  { name: 'fold', specs: specsOf('fold'), calls: smooth(fold) },
  {
    name: 'pixelShuffle',
    specs: [
      moveSpec({
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
          build([8, 2, 3], ([c, y, w]) =>
            at(x, [
              Math.floor((c as number) / 4),
              (y as number) * 2 + (Math.floor((c as number) / 2) % 2),
              (w as number) * 2 + ((c as number) % 2),
            ]),
          ),
      }),
    ],
    calls: smooth(shuffled(true)),
  },
];
