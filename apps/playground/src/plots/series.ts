/**
 * The points of a plot: appended one after the other, thinned where they are more than a screen can show. Pure.
 *
 * Thinning keeps the shape of the curve. Of each group of neighbours the lowest and the highest stay, in their order. So do the first and last point
 * of the whole.
 */

/** A column of x and columns of y, as uPlot takes them. Values that were not measured are null. */
export type Columns = [x: number[], ...y: (number | null)[][]];

/** Indices of the points of one curve to keep: at most `most` (at least 4), in order. */
export function thin(y: readonly (number | null)[], most: number): number[] {
  const all = y.length;
  if (all <= most) return Array.from({ length: all }, (_, i) => i);
  const groups = Math.max(1, Math.floor((most - 2) / 2));
  const kept = new Set([0, all - 1]);
  for (let g = 0; g < groups; g++) {
    const [from, to] = [g, g + 1].map((n) => 1 + Math.floor((n * (all - 2)) / groups)) as [number, number];
    let [low, high] = [-1, -1];
    for (let i = from; i < to; i++) {
      const value = y[i];
      if (value === null || value === undefined) continue;
      if (low < 0 || value < y[low]!) low = i;
      if (high < 0 || value > y[high]!) high = i;
    }
    if (low >= 0) kept.add(low).add(high);
  }
  return [...kept].sort((a, b) => a - b);
}

/** Points of several curves over one x, kept within a limit. */
export class Series {
  readonly #most: number;
  readonly #columns: Columns;

  /**
   * @param curves how many y there are
   * @param most points to keep; at twice as many the list is thinned to this
   */
  constructor(curves: number, most = 400) {
    this.#most = most;
    this.#columns = [[], ...Array.from({ length: curves }, () => [])] as Columns;
  }

  get length(): number {
    return this.#columns[0].length;
  }

  /** The columns themselves; not to be changed. */
  get columns(): Columns {
    return this.#columns;
  }

  /** Appends a point. At the last x again its values are filled in; an x before it starts the list anew. */
  add(x: number, ...y: readonly (number | null)[]): void {
    const [xs, ...ys] = this.#columns;
    const last = xs.at(-1);
    if (last !== undefined && x === last) {
      for (const [c, column] of ys.entries()) column[column.length - 1] = y[c] ?? column.at(-1)!;
      return;
    }
    if (last !== undefined && x < last) this.clear();
    xs.push(x);
    for (const [c, column] of ys.entries()) column.push(y[c] ?? null);
    if (xs.length >= 2 * this.#most) this.#thin();
  }

  clear(): void {
    for (const column of this.#columns) column.length = 0;
  }

  /** Every curve keeps its own extremes, so a limit of `most` is shared between them. */
  #thin(): void {
    const [xs, ...ys] = this.#columns;
    const share = Math.floor(this.#most / ys.length);
    const measured = ys.map((y) => y.flatMap((value, i) => (value === null ? [] : [i])));
    const kept = new Set([0, xs.length - 1]);
    for (const [c, y] of ys.entries()) {
      const places = measured[c]!;
      for (const i of thin(
        places.map((place) => y[place]!),
        share,
      ))
        kept.add(places[i]!);
    }
    const order = [...kept].sort((a, b) => a - b);
    for (const column of this.#columns as (number | null)[][]) {
      const values = order.map((i) => column[i]!);
      column.splice(0, column.length, ...values);
    }
  }
}
