/**
 * Tiles of groups of threads: what one group and one thread of it computes.
 */

export interface SimtTile {
  /**
   * `group`: both factors are brought to group memory step by step, and all threads read them there. `thread`: every thread reads
   * what it needs, through caches. `dot`: the threads of a group share the sum of a few results.
   */
  readonly kind: 'group' | 'thread' | 'dot';
  /** Threads side by side: along columns, rows, and the loops around the tiles; of `dot` along the sum: [threads, 1, 1]. */
  readonly threads: readonly [columns: number, rows: number, outer: number];
  /** Results of a thread: rows, vectors of columns, elements of a vector. Of `dot`: results of a group. */
  readonly rows: number;
  readonly vectors: number;
  readonly lanes: number;
  /** Steps of the sum in group memory at a time; of `dot` the elements of a vector along the sum. */
  readonly depth: number;
  /** Parts of the sum, each computed by groups of its own and added up in the end. */
  readonly parts: number;
  /** Factors that threads cannot read in vectors, or not without conditions, are copied first. */
  readonly copied: boolean;
}

/** Rows and columns of a group. */
export function blockOf({ kind, threads, rows, vectors, lanes }: SimtTile): { rows: number; columns: number } {
  const [across, down] = kind === 'dot' ? [1, 1] : threads;
  return { rows: down * rows, columns: across * vectors * lanes };
}

export function threadsOf({ threads }: SimtTile): number {
  return threads[0] * threads[1] * threads[2];
}

/** A tile in one word, for tests, stores and reports. */
export function nameOf(t: SimtTile): string {
  const parts = t.parts > 1 ? `/${t.parts}` : '';
  return `${t.kind}${t.copied ? '+' : ''}:${t.threads.join('x')}:${t.rows}x${t.vectors}x${t.lanes}:${t.depth}${parts}`;
}

const form = /^(group|thread|dot)(\+?):(\d+)x(\d+)x(\d+):(\d+)x(\d+)x(\d+):(\d+)(?:\/(\d+))?$/;

/** The tile of a name; null for anything else. */
export function tileOf(name: string): SimtTile | null {
  const found = form.exec(name);
  if (found === null) return null;
  const [, kind, copied, ...rest] = found;
  const [across, down, around, rows, vectors, lanes, depth, parts] = rest.map((x) => Number(x ?? 1));
  const all = [across, down, around, rows, vectors, lanes, depth, parts] as number[];
  if (all.some((n) => !(n >= 1 && n <= 4096))) return null;
  return {
    kind: kind as SimtTile['kind'],
    threads: [all[0]!, all[1]!, all[2]!],
    rows: all[3]!,
    vectors: all[4]!,
    lanes: all[5]!,
    depth: all[6]!,
    parts: all[7]!,
    copied: copied === '+',
  };
}
