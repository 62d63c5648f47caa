/**
 * The open loops at one point of linearization and the values lowered under them.
 *
 * A range is open either as a loop (one scalar value) or as a *tile*: `count` copies of `lanes` consecutive values
 * computed side by side in registers. Statements run over all combinations of copies with `forEach`; between such runs
 * tiles have no value. At most one open tile has lanes > 1.
 */
import type { Exprs } from '../../ir/expr.ts';
import type { FreeRanges, Range, RangeList } from '../../ir/free-ranges.ts';
import type { KNode } from '../../ir/ir.ts';

/** A range opened as `count` copies of `lanes` values, starting at `base` and each `step` after the one before. */
export interface Tile {
  readonly range: Range;
  readonly base: KNode;
  readonly count: number;
  readonly lanes: number;
  readonly step: KNode;
  /** The copy being lowered. */
  copy: number;
  /** The copy whose turn it is, or null: all of them. */
  only: number | null;
}

export type Memo = Map<KNode, KNode>;

/** Number of combinations of copies. */
export function copiesOf(tiles: readonly Tile[]): number {
  return tiles.reduce((n, t) => n * t.count, 1);
}

/** The widest lanes among tiles. */
export function lanesOf(tiles: readonly Tile[]): number {
  return tiles.reduce((n, t) => Math.max(n, t.lanes), 1);
}

/** Row-major number of the current copies. */
export function copyIndex(tiles: readonly Tile[]): number {
  return tiles.reduce((n, t) => n * t.count + t.copy, 0);
}

/** A nest that breaks a rule of stage A. */
export function refuse({ op, arg }: KNode, what: string): never {
  throw new Error(`[linearize] ${op} ${JSON.stringify(arg)} ${what}`);
}

export class Scope {
  readonly e: Exprs;
  readonly free: FreeRanges;
  readonly tiles: Tile[] = [];
  /** The tile whose lanes are being lowered as vectors, inside forEach. */
  vector: Tile | null = null;
  /** Lane that stands for the vector tile, or -1: lower to whole vectors. */
  lane = -1;
  readonly #values = new Map<Range, KNode>();
  readonly #levels = new Map<Range, number>();
  /** Values by the innermost loop they depend on; level 0 depends on none. */
  readonly #memos: Memo[] = [new Map()];
  /** Values that depend on a tile: for whole vectors, then one memo a lane. */
  #tileMemos: (Memo | undefined)[] = [];
  /** The last list of ranges asked for and its memo, while the same ranges are open at the same lane. */
  #lastRanges: RangeList | null = null;
  #lastMemo: Memo = new Map();

  constructor(e: Exprs, free: FreeRanges) {
    this.e = e;
    this.free = free;
  }

  isOpen(r: Range): boolean {
    return this.#levels.has(r);
  }

  allOpen(ranges: RangeList): boolean {
    for (const r of ranges) if (!this.#levels.has(r)) return false;
    return true;
  }

  /** Runs the body with the range open as a loop whose variable is `value`. */
  withLoop(r: Range, value: KNode, body: () => void): void {
    this.#enter(r, this.#memos.length);
    this.#memos.push(new Map());
    this.#values.set(r, value);
    body();
    this.#values.delete(r);
    this.#memos.pop();
    this.#levels.delete(r);
    this.#lastRanges = null;
  }

  /** Runs the body with the range open as a tile, whose copies follow each other unless a step is given. */
  withTile(
    r: Range,
    base: KNode,
    count: number,
    lanes: number,
    body: () => void,
    step: KNode = this.e.i32(lanes),
  ): void {
    this.#enter(r, -1);
    this.tiles.push({ range: r, base, count, lanes, step, copy: 0, only: null });
    body();
    this.tiles.pop();
    this.#levels.delete(r);
    this.#lastRanges = null;
  }

  #enter(r: Range, level: number): void {
    if (this.#levels.has(r)) refuse(r, 'is opened inside itself: nested reductions need ranges of their own');
    this.#levels.set(r, level);
    this.#lastRanges = null;
  }

  /** Runs `fn` for every combination of copies whose turn it is; inside it those tiles have values. */
  forEach(tiles: readonly Tile[], fn: () => void): void {
    const total = copiesOf(tiles);
    const vector = tiles.find((t) => t.lanes > 1) ?? null;
    for (let k = 0; k < total; k++) {
      let rest = k;
      for (let i = tiles.length - 1; i >= 0; i--) {
        const t = tiles[i]!;
        t.copy = rest % t.count;
        rest = (rest - t.copy) / t.count;
        this.#values.set(t.range, this.#start(t));
      }
      if (tiles.some((t) => t.only !== null && t.only !== t.copy)) continue;
      this.vector = vector;
      this.#tileMemos = [];
      this.#lastRanges = null;
      fn();
    }
    this.vector = null;
    for (const t of tiles) this.#values.delete(t.range);
  }

  /** Runs `fn` for one copy after another of the open tile of kind 'turn'. */
  eachTurn(fn: () => void): void {
    const tile = this.tiles.find((t) => t.range.arg.kind === 'turn');
    if (tile === undefined || tile.only !== null) {
      fn();
      return;
    }
    for (let k = 0; k < tile.count; k++) {
      tile.only = k;
      fn();
    }
    tile.only = null;
  }

  /** First value of the current copy. */
  #start({ base, copy, step }: Tile): KNode {
    const { e } = this;
    return e.add(base, e.mul(copy, step));
  }

  /** Runs `fn` with the vector tile standing at one of its lanes. */
  atLane<T>(lane: number, fn: () => T): T {
    const tile = this.vector!;
    const before = this.lane;
    const value = this.#values.get(tile.range)!;
    this.lane = lane;
    this.#lastRanges = null;
    this.#values.set(tile.range, this.e.add(this.#start(tile), lane));
    const result = fn();
    this.#values.set(tile.range, value);
    this.lane = before;
    this.#lastRanges = null;
    return result;
  }

  /** Value of an open range: scalar, or its first lane for the vector tile. */
  valueOf(r: Range): KNode {
    const v = this.#values.get(r);
    if (v === undefined) refuse(r, 'is used outside its loop');
    return v;
  }

  /** True if lowering gives a vector for something that depends on these ranges. */
  isVector(ranges: RangeList): boolean {
    return this.vector !== null && this.lane < 0 && ranges.includes(this.vector.range);
  }

  /** Where values that depend on these ranges are remembered. */
  memoFor(ranges: RangeList): Memo {
    if (ranges === this.#lastRanges) return this.#lastMemo;
    let level = 0;
    for (let i = 0; i < ranges.length && level >= 0; i++) {
      const l = this.#levels.get(ranges[i]!) ?? 0;
      if (l < 0 || l > level) level = l;
    }
    const memo = level < 0 ? (this.#tileMemos[this.lane + 1] ??= new Map()) : this.#memos[level]!;
    this.#lastRanges = ranges;
    this.#lastMemo = memo;
    return memo;
  }
}
