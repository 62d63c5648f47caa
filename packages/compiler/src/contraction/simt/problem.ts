/**
 * A contraction as groups of threads see it: rows, columns, outer loops, and the sum; and the tiles for it.
 *
 * `flat`: all loops of a factor become one; tiles then gather elements one by one, which suits tiles in group memory.
 * There a convolution is a matrix product whose patches are gathered on the fly. `lines`: one loop each for rows and columns, so
 * that neighbours stay neighbours in memory; the other loops are outside the tiles.
 */
import { vectorLanes } from '../../codegen/linearize/vector.ts';
import type { CodegenCaps } from '../../codegen/lowering.ts';
import type { Exprs } from '../../ir/expr.ts';
import {
  coefficient,
  countOf,
  endOf,
  indexForms,
  isSized,
  type Range,
  sizeOf,
  stretchesOf,
} from '../../ir/free-ranges.ts';
import type { KNode } from '../../ir/ir.ts';
import { assumeBounds, highOf, type Linear } from '../../ir/node.ts';
import { decodeRanges, type Replacement } from '../../ir/rewrite.ts';
import { linearOf } from '../../ir/simplify/integers.ts';
import { linearAccess } from '../access.ts';
import type { Contraction, Factor } from '../contraction.ts';

/** Rows or columns: the factor that has them, and its loops, the fastest varying last. */
export interface Side {
  readonly factor: Factor;
  readonly ranges: readonly Range[];
  /** Most elements; `least`: fewest, where loops end at a size given at dispatch; `step`: a number that always divides them. */
  readonly extent: number;
  readonly least: number;
  readonly step: number;
  /** True if neighbouring elements of the side are adjacent in memory. */
  readonly consecutive: boolean;
  /** True if neighbouring steps of the sum are. */
  readonly alongSum: boolean;
}

export interface Problem {
  readonly rows: Side;
  readonly columns: Side;
  readonly outer: readonly Range[];
  /** Loops of the sum, the fastest varying last. */
  readonly k: readonly Range[];
  /** Most steps of the sum; `step`: a number that always divides them. */
  readonly depth: number;
  readonly depthStep: number;
}

/** Distance in memory between results of consecutive iterations of a range; null if unknown. */
function storeStride(c: Contraction, r: Range): number | null {
  const index = c.kernel.stores[0]?.store.src[1] as KNode;
  const stride = strideIn(linearOf(index), r);
  return stride === 0 ? null : stride;
}

/** Upper bound of how far a range moves a factor in memory. */
function reach(value: KNode, r: Range): number {
  return indexForms([value]).reduce((far, form) => Math.max(far, strideIn(form, r)), 0);
}

/** How far a range moves a position. If that is a multiple of a size, the greatest size counts. */
function strideIn(form: Linear, r: Range): number {
  const bound = form.terms.findIndex((t) => t.op === 'MUL' && t.src.includes(r));
  const moved = bound < 0 ? 0 : (form.coefs[bound]! * highOf(form.terms[bound]!)) / Math.max(1, r.arg.extent - 1);
  return Math.abs(coefficient(form, r)) + Math.abs(moved);
}

/** True if a factor reads consecutive elements along a range, wherever it depends on it. */
function isUnit(value: KNode, r: Range | undefined): boolean {
  return r !== undefined && reach(value, r) === 1;
}

/** The factor that has the columns: results are adjacent in memory along its loops. */
function columnFactor(c: Contraction): 0 | 1 {
  const rank = ({ own }: Factor): number => {
    let best = 0;
    for (const r of own) {
      const stride = storeStride(c, r);
      if (stride !== null) best = Math.max(best, (r.arg.extent > 1 ? 1 : 0) / stride);
    }
    return best;
  };
  const [x, y] = c.factors.map(rank) as [number, number];
  if (x !== y) return x > y ? 0 : 1;
  return sizeOf(c.factors[0].own) > sizeOf(c.factors[1].own) ? 0 : 1;
}

/** The fewest iterations of nested loops, or a number that always divides them. */
function productOf(ranges: readonly Range[], what: 'least' | 'step'): number {
  return ranges.reduce((n, r) => n * countOf(r)[what], 1);
}

function side(factor: Factor, ranges: readonly Range[], k: readonly Range[]): Side {
  return {
    factor,
    ranges,
    extent: sizeOf(ranges),
    least: productOf(ranges, 'least'),
    step: productOf(ranges, 'step'),
    consecutive: isUnit(factor.value, ranges[ranges.length - 1]),
    alongSum: isUnit(factor.value, k[k.length - 1]),
  };
}

function byReach(c: Contraction, ranges: readonly Range[]): Range[] {
  const far = (r: Range): number => c.factors.reduce((n, f) => n + reach(f.value, r), 0);
  return ranges
    .map((r, i) => ({ r, i, far: far(r) }))
    .sort((x, y) => y.far - x.far || x.i - y.i)
    .map((x) => x.r);
}

/**
 * True if a stage of a side reads better along the sum than along the side. In overlapping windows neighbours of both are adjacent: then the
 * longer of the two fastest loops decides.
 */
export function readAlongSum({ consecutive, alongSum, ranges }: Side, k: readonly Range[]): boolean {
  const length = (list: readonly Range[]): number => list[list.length - 1]?.arg.extent ?? 1;
  return consecutive && alongSum ? length(k) > length(ranges) : !consecutive;
}

export function flatProblem(c: Contraction): Problem {
  const at = columnFactor(c);
  const k = byReach(c, c.k);
  const ordered = ({ own }: Factor): Range[] =>
    own
      .map((r, i) => ({ r, i, far: storeStride(c, r) ?? Number.POSITIVE_INFINITY }))
      .sort((x, y) => (x.far === y.far ? x.i - y.i : y.far - x.far))
      .map((x) => x.r);
  const [columns, rows] = [c.factors[at], c.factors[1 - at]!];
  return {
    columns: side(columns, ordered(columns), k),
    rows: side(rows, ordered(rows), k),
    outer: c.batch,
    k,
    depth: sizeOf(k),
    depthStep: productOf(k, 'step'),
  };
}

export function lineProblem(c: Contraction, lanes: number): Problem {
  const flat = flatProblem(c);
  const last = flat.columns.ranges[flat.columns.ranges.length - 1];
  const longest = (ranges: readonly Range[]): Range | undefined =>
    ranges.reduce<Range | undefined>((x, y) => (x === undefined || y.arg.extent > x.arg.extent ? y : x), undefined);
  const column = last !== undefined && last.arg.extent >= lanes ? last : longest(flat.columns.ranges);
  const row = longest(flat.rows.ranges);
  const list = (r: Range | undefined): Range[] => (r === undefined ? [] : [r]);
  const outer = (c.kernel.stores[0]?.ranges ?? []).filter((r) => r !== column && r !== row);
  return {
    ...flat,
    columns: side(flat.columns.factor, list(column), flat.k),
    rows: side(flat.rows.factor, list(row), flat.k),
    outer,
  };
}

/** A loop over blocks of `size` elements along other loops: its extent, and its end if that depends on a size. */
export function blocksAlong(
  e: Exprs,
  ranges: readonly Range[],
  size: number,
): { readonly extent: number; readonly limit: KNode | undefined } {
  const end = endOf(e, ranges);
  return { extent: Math.ceil(sizeOf(ranges) / size), limit: end === null ? undefined : stretchesOf(e, end, size) };
}

/** Expresses ranges by one flat index; its bounds follow from theirs. */
export function decodeInto(changes: Map<Range, Replacement>, e: Exprs, ranges: readonly Range[], flat: KNode): void {
  if (ranges.length > 0) assumeBounds(flat, 0, sizeOf(ranges) - 1);
  decodeRanges(e, ranges, flat, changes);
}

/**
 * Classes of contractions that share a tile: extents rounded to one and a half binary digits, and the memory order of both factors.
 */

/** Increased whenever tiles, their names or these classes change: earlier measurements are then ignored. */
export const tilesVersion = 4;

/** The nearest of 1, 2, 3, 4, 6, 8, 12 ... */
export function rounded(n: number): number {
  const power = 2 ** Math.floor(Math.log2(Math.max(1, n)));
  const steps = [power, power * 1.5, power * 2].filter(Number.isInteger);
  return steps.reduce((best, x) => (Math.abs(Math.log(x / n)) < Math.abs(Math.log(best / n)) ? x : best));
}

/** c: neighbours are adjacent in memory, k: steps of the sum are; g: read under conditions or through other arithmetic. */
function layoutOf({ factor, consecutive, alongSum }: Side): string {
  const plain = linearAccess(factor.value) === null ? 'g' : '';
  return `${consecutive ? 'c' : ''}${alongSum ? 'k' : ''}${plain}` || '-';
}

/** The class of a contraction on an engine, as a key. */
export function classOf(c: Contraction, caps: CodegenCaps): string {
  const { rows, columns, outer } = flatProblem(c);
  // Where loops end at a size, from the least to the greatest.
  const lengths = [rows.ranges, columns.ranges, c.k, outer].map((ranges) => {
    const [least, most] = [productOf(ranges, 'least'), sizeOf(ranges)].map(rounded);
    return ranges.some(isSized) ? `${least}-${most}` : most;
  });
  const sizes = lengths.join('x');
  const ragged = columns.extent % Math.max(1, vectorLanes(c.kernel.stores, caps)) === 0 ? '' : ' ragged';
  return `${c.reduce.dtype} ${sizes} ${layoutOf(rows)}.${layoutOf(columns)} ${c.k.length}${ragged}`;
}

// Tiles of groups of threads: what one group and one thread of it computes.

export interface SimtTile {
  /**
   * `group`: both factors are staged in group memory step by step, and all threads read them there. `thread`: every thread reads
   * memory directly, through caches. `dot`: the threads of a group share the sum of a few results.
   */
  readonly kind: 'group' | 'thread' | 'dot';
  /** Number of threads along columns, rows and outer loops; for `dot` along the sum: [threads, 1, 1]. */
  readonly threads: readonly [columns: number, rows: number, outer: number];
  /** Results of a thread: rows, vectors of columns, elements of a vector. For `dot`: results of a group. */
  readonly rows: number;
  readonly vectors: number;
  readonly lanes: number;
  /** Steps of the sum per stage in group memory; for `dot` the elements of a vector along the sum. */
  readonly depth: number;
  /** Parts of the sum, computed by separate groups and added up at the end. */
  readonly parts: number;
  /** Factors that threads cannot read in vectors, or only under conditions, are copied first. */
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

/** Prefixes of the names of staged blocks (staged.ts): by matrix instructions, and by threads. */
export const matrixName = 'matrix:';
export const stagedName = 'stages:';

export function isStagedName(name: string): boolean {
  return name.startsWith(matrixName) || name.startsWith(stagedName);
}

/** A tile as one word, for tests, stores and reports. */
export function nameOf(t: SimtTile): string {
  const parts = t.parts > 1 ? `/${t.parts}` : '';
  return `${t.kind}${t.copied ? '+' : ''}:${t.threads.join('x')}:${t.rows}x${t.vectors}x${t.lanes}:${t.depth}${parts}`;
}

const form = /^(group|thread|dot)(\+?):(\d+)x(\d+)x(\d+):(\d+)x(\d+)x(\d+):(\d+)(?:\/(\d+))?$/;

/** The tile with this name; null for anything else. */
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
