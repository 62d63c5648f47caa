/** Attention, embeddings and kernels of vectors as plain sums in float64. */
import { at, build, count, indices, type NDArray } from './ndarray.ts';

export interface AttentionOptions {
  readonly causal?: boolean;
  readonly causalOffset?: number;
  readonly scale?: number;
}

/** softmax(scale Q K^T + mask) V, one row of scores at a time; rows of which nothing takes part are zeros. */
export function attend(
  q: NDArray,
  k: NDArray,
  v: NDArray,
  mask: NDArray | null,
  o: AttentionOptions,
  bool: boolean,
): NDArray {
  const rank = Math.max(q.shape.length, k.shape.length, v.shape.length);
  const lift = (x: NDArray): NDArray => ({
    shape: [...new Array(rank - x.shape.length).fill(1), ...x.shape],
    data: x.data,
  });
  const [a, b, c] = [lift(q), lift(k), lift(v)];
  const [rows, depth] = a.shape.slice(-2) as [number, number];
  const columns = b.shape[rank - 2]!;
  const lead = a.shape.slice(0, -2).map((n, i) => Math.max(n, b.shape[i]!, c.shape[i]!));
  const empty = [...a.shape, ...b.shape, ...c.shape].includes(0);
  const scale = o.scale ?? 1 / Math.sqrt(depth);
  /** Index of a head of x for a head of the result: shared heads and broadcast axes. */
  const own = (x: NDArray, index: readonly number[]): number[] =>
    index.map((i, axis) => Math.floor((i * x.shape[axis]!) / lead[axis]!));
  const extra = (index: number[]): number => {
    if (mask === null) return 0;
    const tail = index.slice(index.length - mask.shape.length);
    const value = at(
      mask,
      tail.map((i, axis) => (mask.shape[axis] === 1 ? 0 : i)),
    );
    return bool ? (value !== 0 ? 0 : Number.NEGATIVE_INFINITY) : value;
  };
  return build([...lead, rows, c.shape[rank - 1]!], (index) => {
    if (empty) return 0;
    const head = index.slice(0, -2);
    const [row, column] = index.slice(-2) as [number, number];
    const scores = Array.from({ length: columns }, (_, j) => {
      if (o.causal && j > row + (o.causalOffset ?? 0)) return Number.NEGATIVE_INFINITY;
      let sum = 0;
      for (let e = 0; e < depth; e++) sum += at(a, [...own(a, head), row, e]) * at(b, [...own(b, head), j, e]);
      return sum * scale + extra([...head, row, j]);
    });
    const top = Math.max(...scores);
    if (top === Number.NEGATIVE_INFINITY) return 0;
    const weights = scores.map((s) => Math.exp(s - top));
    const total = weights.reduce((x, y) => x + y, 0);
    return weights.reduce((sum, w, j) => sum + (w / total) * (w === 0 ? 0 : at(c, [...own(c, head), j, column])), 0);
  });
}

export function rotate(
  x: NDArray,
  position: (index: readonly number[]) => number,
  o: { base?: number; style?: string; dims?: number },
): NDArray {
  const width = x.shape[x.shape.length - 1]!;
  const dims = o.dims ?? width;
  const half = dims / 2;
  return build(x.shape, (index) => {
    const d = index[index.length - 1]!;
    const lead = index.slice(0, -1);
    if (d >= dims) return at(x, index);
    const pair = o.style === 'half' ? d % half : Math.floor(d / 2);
    const isFirst = o.style === 'half' ? d < half : d % 2 === 0;
    const [first, second] = o.style === 'half' ? [pair, pair + half] : [2 * pair, 2 * pair + 1];
    const angle = position(lead) * (o.base ?? 10000) ** ((-2 * pair) / dims);
    const [a, b] = [at(x, [...lead, first]), at(x, [...lead, second])];
    return isFirst ? a * Math.cos(angle) - b * Math.sin(angle) : a * Math.sin(angle) + b * Math.cos(angle);
  });
}

export function radialBasis(x: NDArray, y: NDArray, gamma: number): NDArray {
  const [n, d] = x.shape.slice(-2) as [number, number];
  const m = y.shape[y.shape.length - 2]!;
  const rank = Math.max(x.shape.length, y.shape.length);
  const lead = Array.from({ length: rank - 2 }, (_, i) =>
    Math.max(x.shape[i - (rank - x.shape.length)] ?? 1, y.shape[i - (rank - y.shape.length)] ?? 1),
  );
  const own = (a: NDArray, index: readonly number[]): number[] => {
    const axes = a.shape.length - 2;
    return index.slice(index.length - axes).map((i, axis) => (a.shape[axis] === 1 ? 0 : i));
  };
  return build([...lead, n, m], (index) => {
    const batch = index.slice(0, -2);
    const [i, j] = index.slice(-2) as [number, number];
    let sum = 0;
    for (let e = 0; e < d; e++)
      sum +=
        (at(x, [...(x.shape.length > 2 ? own(x, batch) : []), i, e]) -
          at(y, [...(y.shape.length > 2 ? own(y, batch) : []), j, e])) **
        2;
    return Math.exp(-gamma * sum);
  });
}

/** Rows of a table pooled over bags, each a list of [row, factor]. */
export function bag(table: NDArray, bags: readonly (readonly [number, number])[][], mode: string): NDArray {
  const width = table.shape[1]!;
  return build([bags.length, width], ([b, d]) => {
    const rows = (bags[b] as [number, number][]).map(([row, f]) => f * at(table, [row, d]));
    if (rows.length === 0) return 0;
    if (mode === 'max') return Math.max(...rows);
    const sum = rows.reduce((x, y) => x + y, 0);
    return mode === 'mean' ? sum / rows.length : sum;
  });
}

/** Rows of a table by index. */
export function rowsOf(table: NDArray, index: NDArray): NDArray {
  const tail = table.shape.slice(1);
  const data: number[] = [];
  for (const i of indices(index.shape)) {
    const row = at(index, i);
    data.push(...table.data.slice(row * count(tail), (row + 1) * count(tail)));
  }
  return { shape: [...index.shape, ...tail], data };
}
