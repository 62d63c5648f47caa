/** Random calls that move elements further: patches, pixels as channels, grids, diagonals, the other forms of joins and cuts. */
import { at, build, count, indices, type NDArray, nd, permute, reshape } from '../oracle/ndarray.ts';
import { drawn, operand, sums, withAxis } from './operands.ts';
import { alike, along, concatenated, moved, sliceCall } from './parts.ts';
import { picking } from './picking.ts';
import { isFloat, type Made, type Operation, type Pool, ref } from './pool.ts';
import type { Value } from './program.ts';

function chunk(pool: Pool): Made | null {
  const found = withAxis(pool);
  if (found === null || found.n === 0) return null;
  const { x, axis, written, n } = found;
  const pieces = pool.c.between(1, 4);
  const size = Math.ceil(n / pieces);
  const part = pool.c.nat(Math.ceil(n / size));
  const length = Math.min(size, n - part * size);
  return moved(x, [pieces, written], (a) => along(a, axis, length, (i) => i + part * size), part);
}

function unflatten(pool: Pool): Made | null {
  const found = withAxis(pool, (v) => v.shape.length < 8);
  if (found === null || found.n === 0) return null;
  const { x, axis, written, n } = found;
  const k = pool.c.pick([1, 2, 3, n].filter((f) => n % f === 0));
  const sizes = pool.c.nat(2) === 0 ? [k, n / k] : [n / k, k];
  const given = pool.c.seldom(3) ? [sizes[0] as number, -1] : sizes;
  return moved(x, [written, given], (a) =>
    reshape(a, [...a.shape.slice(0, axis), ...sizes, ...a.shape.slice(axis + 1)]),
  );
}

function repeat(pool: Pool): Made | null {
  const x = pool.pick((v) => v.shape.length < 6 && v.data.length < 1000);
  if (x === null) return null;
  const by = x.shape.map(() => pool.c.pick([1, 2, 3]));
  if (pool.c.seldom(3) || x.shape.length === 0) by.unshift(pool.c.pick([2, 1]));
  const lead = by.length - x.shape.length;
  return moved(x, [by], (a) => {
    const full = reshape(a, [...new Array<number>(lead).fill(1), ...a.shape]);
    return by.reduce(
      (y, k, i) => along(y, i, k * (full.shape[i] as number), (q) => q % (full.shape[i] as number)),
      full,
    );
  });
}

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

function meshgrid(pool: Pool): Made | null {
  const first = pool.pick((v) => v.shape.length === 1 && v.data.length < 40);
  if (first === null) return null;
  const xs = alike(pool, first, 0).slice(0, 3);
  if (count(xs.map((v) => v.data.length)) > 4000) return null;
  const part = pool.c.nat(xs.length);
  const ij = pool.c.nat(2) === 0;
  const axisOf = (i: number): number => (!ij && xs.length > 1 && i < 2 ? 1 - i : i);
  const grid = xs.map((_, i) => (xs[axisOf(i)] as Value).data.length);
  return {
    args: [xs.map(ref), ...(ij ? [{ indexing: 'ij' }] : [])],
    part,
    dtype: first.dtype,
    formula: (...as) => build(grid, (index) => (as[part] as NDArray).data[index[axisOf(part)] as number] as number),
  };
}

function diag(pool: Pool): Made | null {
  const x = pool.pick((v) => (v.shape.length === 1 || v.shape.length === 2) && v.data.length < 100);
  if (x === null) return null;
  const offset = pool.c.pick([0, 1, -1, -2]);
  const [low, high] = [Math.max(0, -offset), Math.max(0, offset)];
  const n = x.shape.length === 1 ? x.data.length + Math.abs(offset) : 0;
  const size = n > 0 ? n : Math.max(0, Math.min((x.shape[0] as number) - low, ((x.shape[1] ?? 0) as number) - high));
  return moved(x, [{ offset }], (a) =>
    x.shape.length === 1
      ? build([n, n], ([i, j]) =>
          (j as number) - (i as number) === offset ? (a.data[Math.min(i as number, j as number)] as number) : 0,
        )
      : build([size], ([i]) => at(a, [(i as number) + low, (i as number) + high])),
  );
}

function trace(pool: Pool): Made | null {
  const x = operand(pool, 2, 8, (v) => isFloat(v.dtype) || v.dtype === 'int32');
  if (x === null) return null;
  const offset = pool.c.pick([0, 1, -1]);
  const [rows, columns] = x.shape.slice(-2) as [number, number];
  return {
    ...moved(x, offset === 0 ? [] : [{ offset }], (a) =>
      build(x.shape.slice(0, -2), (index) => {
        let sum = 0;
        for (let i = 0; i < rows; i++)
          if (i + offset >= 0 && i + offset < columns) sum += at(a, [...index, i, i + offset]);
        return sum;
      }),
    ),
    ...sums(x.dtype),
  };
}

function kron(pool: Pool): Made | null {
  const a = operand(pool, 0, 4, (v) => v.data.length < 60);
  const b = a && operand(pool, 0, 4, (v) => v.dtype === a.dtype && v.data.length < 60);
  if (a === null || b === null) return null;
  const rank = Math.max(a.shape.length, b.shape.length);
  const full = (x: NDArray): NDArray => reshape(x, [...new Array<number>(rank - x.shape.length).fill(1), ...x.shape]);
  return {
    args: [ref(a), ref(b)],
    dtype: a.dtype,
    formula: (x, y) => {
      const [p, q] = [full(x as NDArray), full(y as NDArray)];
      const size = (i: number): number => q.shape[i] as number;
      return build(
        p.shape.map((n, i) => n * size(i)),
        (index) =>
          at(
            p,
            index.map((k, i) => Math.floor(k / size(i))),
          ) *
          at(
            q,
            index.map((k, i) => k % size(i)),
          ),
      );
    },
    noise: 'out',
  };
}

/** Axes swapped, or rolled as a flat list. */
function swapped(pool: Pool): Made | null {
  const x = pool.pick((v) => v.shape.length >= 2);
  if (x === null) return null;
  const [[i, first], [j, second]] = [pool.axis(x.shape.length), pool.axis(x.shape.length)];
  const axes = x.shape.map((_, k) => (k === i ? j : k === j ? i : k));
  return { ...moved(x, [first, second], (a) => permute(a, axes)), op: 'transpose' };
}

function rolledFlat(pool: Pool): Made | null {
  const x = pool.pick((v) => v.data.length > 0 && v.data.length < 4000);
  if (x === null) return null;
  const by = pool.c.between(-5, 70);
  const n = x.data.length;
  return {
    ...moved(x, [by], (a) =>
      nd(
        a.shape,
        a.data.map((_, i) => a.data[(((i - by) % n) + n) % n] as number),
      ),
    ),
    op: 'roll',
  };
}

function flattened(pool: Pool): Made | null {
  const x = pool.pick((v) => v.shape.length >= 2);
  if (x === null) return null;
  const [start, end] = [pool.c.nat(x.shape.length), pool.c.nat(x.shape.length)].sort((a, b) => a - b) as [
    number,
    number,
  ];
  const shape = [...x.shape.slice(0, start), count(x.shape.slice(start, end + 1)), ...x.shape.slice(end + 1)];
  return { ...moved(x, [{ start, end }], (a) => reshape(a, shape)), op: 'flatten' };
}

function unevenSplit(pool: Pool): Made | null {
  const found = withAxis(pool);
  if (found === null) return null;
  const { x, axis, written, n } = found;
  const first = pool.c.nat(n + 1);
  const second = pool.c.nat(n - first + 1);
  const sizes = [first, second, n - first - second];
  const part = pool.c.nat(3);
  const from = sizes.slice(0, part).reduce((a, b) => a + b, 0);
  const made = moved(x, [sizes, written], (a) => along(a, axis, sizes[part] as number, (i) => i + from), part);
  return { ...made, op: 'split' };
}

/** Counts of their own for the elements of an axis. */
function repeatEach(pool: Pool): Made | null {
  const found = withAxis(pool);
  if (found === null || found.n > 20) return null;
  const { x, axis, written, n } = found;
  const counts = Array.from({ length: n }, () => pool.c.nat(3));
  const from = counts.flatMap((k, i) => new Array<number>(k).fill(i));
  const made = moved(x, [counts, { axis: written }], (a) => along(a, axis, from.length, (i) => from[i] as number));
  return { ...made, op: 'repeatInterleave' };
}

/** Parts of the same value joined again: what was cut may be read where it lies. */
function rejoined(pool: Pool): Made | null {
  const found = withAxis(pool, (v) => v.data.length < 1500);
  if (found === null) return null;
  const { x, axis, written } = found;
  return {
    args: [[ref(x), ref(x), ref(x)], written],
    op: 'concat',
    dtype: x.dtype,
    formula: (a, b, c) => concatenated([a, b, c] as NDArray[], axis),
  };
}

const at1 = (pool: Pool): Made | null => {
  const x = pool.pick((v) => v.shape.length > 0);
  if (x === null) return null;
  const made = sliceCall(pool, x);
  return { ...made, args: [made.args[0] as never, ...(made.args[1] as never[])] };
};

export const rearranging: readonly Operation[] = [
  ...picking,
  { name: 'chunk', smooth: true, make: chunk },
  { name: 'unflatten', smooth: true, make: unflatten },
  { name: 'repeat', smooth: true, make: repeat },
  { name: 'unfold', smooth: true, make: unfold },
  { name: 'fold', smooth: true, make: fold },
  { name: 'pixelShuffle', smooth: true, make: shuffled(false) },
  { name: 'pixelUnshuffle', smooth: true, make: shuffled(true) },
  { name: 'meshgrid', smooth: true, make: meshgrid },
  { name: 'diag', smooth: true, make: diag },
  { name: 'trace', smooth: true, make: trace },
  { name: 'kron', smooth: true, make: kron },
  { name: 'swapped', smooth: true, make: swapped },
  { name: 'rolledFlat', smooth: true, make: rolledFlat },
  { name: 'flattened', smooth: true, make: flattened },
  { name: 'unevenSplit', smooth: true, make: unevenSplit },
  { name: 'repeatEach', smooth: true, make: repeatEach },
  { name: 'rejoined', smooth: true, make: rejoined },
  { name: 'at', smooth: true, make: at1 },
];
