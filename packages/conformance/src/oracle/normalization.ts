/** Normalisation as plain means and variances over lists of elements, and graph convolution, in float64. */
import { channelsFirst, inLayout } from './images.ts';
import { at, build, indices, type NDArray, nd, ravel } from './ndarray.ts';
import { average, spread } from './sums.ts';

/** Normalises all elements that share a key. */
export function normalizeBy(x: NDArray, eps: number, key: (index: number[]) => string): NDArray {
  const groups = new Map<string, number[]>();
  for (const index of indices(x.shape)) {
    const k = key(index);
    const list = groups.get(k) ?? [];
    list.push(at(x, index));
    groups.set(k, list);
  }
  const numbers = new Map([...groups].map(([k, v]) => [k, { m: average(v), v: spread(v) }]));
  return build(x.shape, (index) => {
    const { m, v } = numbers.get(key(index)) as { m: number; v: number };
    return (at(x, index) - m) / Math.sqrt(v + eps);
  });
}

/** weight[c] x + bias[c] for images in a layout. */
export function perChannel(x: NDArray, weight: NDArray, bias: NDArray, layout: unknown): NDArray {
  const first = channelsFirst(x, layout);
  const y = build(first.shape, (index) => at(first, index) * at(weight, [index[1]!]) + at(bias, [index[1]!]));
  return inLayout(y, layout);
}

export function localResponse(
  input: NDArray,
  o: { size: number; alpha: number; beta: number; k: number },
  layout: unknown,
): NDArray {
  const x = channelsFirst(input, layout);
  const channels = x.shape[1]!;
  const y = build(x.shape, ([n, c, ...rest]) => {
    let sum = 0;
    for (let j = 0; j < o.size; j++) {
      const from = (c as number) - Math.floor(o.size / 2) + j;
      if (from >= 0 && from < channels) sum += at(x, [n as number, from, ...rest]) ** 2;
    }
    return at(x, [n as number, c as number, ...rest]) / (o.k + (o.alpha * sum) / o.size) ** o.beta;
  });
  return inLayout(y, layout);
}

/** A X W + b of Kipf and Welling, from a dense adjacency; self loops and degrees as asked. */
export function graphConvolution(
  x: NDArray,
  adjacency: NDArray,
  w: NDArray,
  bias: NDArray,
  o: { selfLoops?: boolean; normalize?: string },
): NDArray {
  const [n, channels] = x.shape.slice(-2) as [number, number];
  const batch = x.shape.slice(0, -2);
  const a = build([n, n], ([i, j]) => at(adjacency, [i, j]) + (o.selfLoops && i === j ? 1 : 0));
  const degree = Array.from({ length: n }, (_, i) =>
    Array.from({ length: n }, (__, j) => at(a, [i, j])).reduce((s, v) => s + v, 0),
  );
  const root = (i: number): number => (degree[i]! > 0 ? 1 / Math.sqrt(degree[i]!) : 0);
  const weighted = build([n, n], ([i, j]) =>
    o.normalize === 'symmetric' ? root(i) * at(a, [i, j]) * root(j) : at(a, [i, j]),
  );
  return build([...batch, n, w.shape[1]!], (index) => {
    const [i, f] = index.slice(-2) as [number, number];
    let sum = at(bias, [f]);
    for (let j = 0; j < n; j++)
      for (let c = 0; c < channels; c++)
        sum += at(weighted, [i, j]) * at(x, [...index.slice(0, -2), j, c]) * at(w, [c, f]);
    return sum;
  });
}

/** Dense adjacency of a list of edges. */
export function denseEdges(
  sources: readonly number[],
  targets: readonly number[],
  weights: NDArray,
  n: number,
): NDArray {
  const data = new Array<number>(n * n).fill(0);
  sources.forEach((from, e) => {
    const flat = ravel([targets[e]!, from], [n, n]);
    data[flat] = data[flat]! + at(weights, [e]);
  });
  return nd([n, n], data);
}
