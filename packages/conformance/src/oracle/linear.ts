/** Contractions, convolutions and pooling of the oracle: direct sums over index vectors, nothing clever. */
import { at, broadcastShapes, build, count, indices, nd, type NDArray, ravel } from './ndarray.ts';

/** NumPy's matmul, including 1-d operands and broadcast batches. */
export function matmul(a: NDArray, b: NDArray): NDArray {
  const a2 = a.shape.length === 1 ? { shape: [1, ...a.shape], data: a.data } : a;
  const b2 = b.shape.length === 1 ? { shape: [...b.shape, 1], data: b.data } : b;
  const batch = broadcastShapes(a2.shape.slice(0, -2), b2.shape.slice(0, -2));
  const [m, k] = a2.shape.slice(-2) as [number, number];
  const n = b2.shape[b2.shape.length - 1] as number;
  const pick = (x: NDArray, outer: number[], i: number, j: number): number => {
    const lead = x.shape.slice(0, -2);
    const index = lead.map((size, axis) => (size === 1 ? 0 : (outer[outer.length - lead.length + axis] as number)));
    return at(x, [...index, i, j]);
  };
  const full = build([...batch, m, n], (index) => {
    const outer = index.slice(0, -2);
    let sum = 0;
    for (let q = 0; q < k; q++) {
      sum +=
        pick(a2, outer, index[index.length - 2] as number, q) * pick(b2, outer, q, index[index.length - 1] as number);
    }
    return sum;
  });
  let shape = [...full.shape];
  if (a.shape.length === 1) shape = [...shape.slice(0, -2), shape[shape.length - 1] as number];
  if (b.shape.length === 1) shape = shape.slice(0, -1);
  return { shape, data: full.data };
}

export interface ConvOptions {
  readonly stride?: number;
  readonly padding?: number;
  readonly dilation?: number;
  readonly groups?: number;
}

/** Cross-correlation of [N, C, ...spatial] with [O, C / groups, ...kernel], any number of spatial axes. */
export function conv(
  x: NDArray,
  w: NDArray,
  { stride = 1, padding = 0, dilation = 1, groups = 1 }: ConvOptions = {},
): NDArray {
  const spatial = x.shape.slice(2);
  const kernel = w.shape.slice(2);
  const out = spatial.map(
    (n, i) => Math.floor((n + 2 * padding - dilation * ((kernel[i] as number) - 1) - 1) / stride) + 1,
  );
  const perGroupIn = w.shape[1] as number;
  const perGroupOut = (w.shape[0] as number) / groups;
  return build([x.shape[0] as number, w.shape[0] as number, ...out], ([image, feature, ...position]) => {
    const group = Math.floor((feature as number) / perGroupOut);
    let sum = 0;
    for (let c = 0; c < perGroupIn; c++) {
      for (const tap of indices(kernel)) {
        const source = position.map((p, i) => p * stride + (tap[i] as number) * dilation - padding);
        if (source.some((s, i) => s < 0 || s >= (spatial[i] as number))) continue;
        sum += at(x, [image as number, group * perGroupIn + c, ...source]) * at(w, [feature as number, c, ...tap]);
      }
    }
    return sum;
  });
}

/** Transposed convolution of [N, C, ...] with [C, O / groups, ...kernel]: every input element adds its scaled kernel. */
export function convTranspose(
  x: NDArray,
  w: NDArray,
  {
    stride = 1,
    padding = 0,
    dilation = 1,
    groups = 1,
    outputPadding = 0,
  }: ConvOptions & { outputPadding?: number } = {},
): NDArray {
  const spatial = x.shape.slice(2);
  const kernel = w.shape.slice(2);
  const out = spatial.map(
    (n, i) => (n - 1) * stride - 2 * padding + dilation * ((kernel[i] as number) - 1) + outputPadding + 1,
  );
  const perGroupIn = (x.shape[1] as number) / groups;
  const perGroupOut = w.shape[1] as number;
  const shape = [x.shape[0] as number, perGroupOut * groups, ...out];
  const data = new Array<number>(count(shape)).fill(0);
  for (const [image, channel, ...position] of indices(x.shape)) {
    const group = Math.floor((channel as number) / perGroupIn);
    for (let o = 0; o < perGroupOut; o++) {
      for (const tap of indices(kernel)) {
        const target = position.map((p, i) => p * stride + (tap[i] as number) * dilation - padding);
        if (target.some((t, i) => t < 0 || t >= (out[i] as number))) continue;
        let flat = (image as number) * (shape[1] as number) + group * perGroupOut + o;
        target.forEach((t, i) => {
          flat = flat * (out[i] as number) + t;
        });
        data[flat] =
          (data[flat] as number) +
          at(x, [image as number, channel as number, ...position]) * at(w, [channel as number, o, ...tap]);
      }
    }
  }
  return { shape, data };
}

/** Pooling over windows of the last axes; `f` sees the values inside the array (padding contributes nothing). */
export function pool(
  x: NDArray,
  size: number,
  { stride = size, padding = 0 }: { stride?: number; padding?: number },
  f: (values: number[], windowSize: number) => number,
): NDArray {
  const spatial = x.shape.slice(2);
  const window = spatial.map(() => size);
  const out = spatial.map((n) => Math.floor((n + 2 * padding - size) / stride) + 1);
  return build([...x.shape.slice(0, 2), ...out], ([image, channel, ...position]) => {
    const values: number[] = [];
    for (const tap of indices(window)) {
      const source = position.map((p, i) => p * stride + (tap[i] as number) - padding);
      if (source.every((s, i) => s >= 0 && s < (spatial[i] as number)))
        values.push(at(x, [image as number, channel as number, ...source]));
    }
    return f(values, count(window));
  });
}

/** Einstein summation: `terms` name the axes of each operand and of the result letter by letter; axes of size 1 stretch. */
export function einsum(terms: readonly string[], output: string, arrays: readonly NDArray[]): NDArray {
  const sizes = new Map<string, number>();
  terms.forEach((names, i) => {
    [...names].forEach((name, axis) => {
      const size = arrays[i]?.shape[axis] as number;
      if (size !== 1 || !sizes.has(name)) sizes.set(name, size);
    });
  });
  const names = [...sizes.keys()];
  const shape = [...output].map((name) => sizes.get(name) as number);
  const data = new Array<number>(count(shape)).fill(0);
  for (const index of indices([...sizes.values()])) {
    const place = (name: string): number => index[names.indexOf(name)] as number;
    const product = arrays.reduce(
      (value, a, i) =>
        value *
        at(
          a,
          [...(terms[i] as string)].map((name, axis) => (a.shape[axis] === 1 ? 0 : place(name))),
        ),
      1,
    );
    const flat = ravel([...output].map(place), shape);
    data[flat] = (data[flat] as number) + product;
  }
  return nd(shape, data);
}
