/**
 * Costs of contractions from facts of a processor, for engines that know them: machine code can use all registers and the widest vectors.
 *
 * Measured with one thread of an AMD EPYC (family 26) in machine code of this repository; bench/results/2026-11-23-native.md has the figures.
 * Facts are those of a kind of processor, never of the actual one, so that results are the same on all of a kind.
 */
import { countOf, type Range, typicalOf } from '../../ir/free-ranges.ts';
import type { KNode } from '../../ir/ir.ts';
import { isArithmetic } from '../../ir/node.ts';
import { operationCost } from '../loops/work.ts';
import { lineBytes, linesThatStay } from './caches.ts';
import {
  type DotStreams,
  type Ends,
  leastVector,
  type ProductCosts,
  reducedSteps,
  type TileFormula,
  vectorSteps,
} from './cpu.ts';

/** Facts of a kind of processor. */
export interface ProcessorFacts {
  /** Number of vector registers. */
  readonly registers: number;
  /** Independent sums from which on no multiply-add waits for the one before. */
  readonly sums: number;
  /** float32 operations per nanosecond of a tile that never waits for memory. */
  readonly flopsPerNs: number;
  /** Bytes of the second-level cache of a core, and how many lines of one distance share a set. */
  readonly cacheBytes: number;
  readonly cacheWays: number;
}

/** Relative cost of a step's loads, for each row and vector: more square tiles need less of caches. */
const feeding = { row: 0.05, vector: 0.1 };
/**
 * Relative cost of a cache line that a step along the sum reads: two multiply-adds for a line. It comes beside the costs of sums along vectors (`dotAligned`,
 * `dotOther`), which stand for a tile of 4 x 4 whose rows lie apart.
 */
const dotLine = { cost: 0.5, products: 2 };
/** Most lines a page apart that are read side by side: one less than the ways of a first-level cache. */
const mostCrowded = 7;
/** A load for each multiply-add takes a quarter longer than multiply-adds alone. */
const load = 1.25;
/** Slowdown of tiles at an edge. */
const edge = 1.25;
/** Rows of tiles for which a group takes the columns of an edge, once they are read from memory. */
const edgeTiles = 32;
/** Time of a copied element relative to WebAssembly, whose vectors of 16 bytes take three times as many operations. */
const copies = 0.3;
/** Relative slowdown of a tile if every product misses the second-level cache. */
const worst = 2;
/** Relative cost of a line of the second-level cache in each step that touches it; half of a first-level cache of 32 KiB counts as near. */
const line = { cost: 0.03, near: 256 };
/**
 * Relative slowdown of rows that share sets of the first cache. Eight ways and more hold the rows of a tile; where rows are more than the ways of any
 * first-level cache, each step reads all of them from the next one.
 */
const collisions = (rows: number, bytes: number): number => (rows > linesThatStay(bytes, 4096, 12) ? 2 : 0.05);

/** Fewest lanes of vectors along a loop that is shorter than those of its nest, and along the remainder of a sum. */
const narrowest = 4;

/**
 * Operations of an element from which on vectors are side by side, about a third of what such a processor looks ahead; and fewest vectors of a loop for
 * that. Random numbers take 100 to 250. Functions of 60 to 90 that compute in float64 run out of registers: `tan` and `atan2` were a fifth slower.
 */
const longChain = 96;
const fewestSideBySide = 4;

/** A class of sizes is weighed at so many, each as far above the one before: rows, and vectors of them. */
const weighedSizes = 9;
function sizesBetween(rows: Ends, vectors: Ends): Ends[] {
  const at = ([least, most]: Ends, i: number): number => least * (most / least) ** (i / (weighedSizes - 1));
  return Array.from({ length: weighedSizes }, (_, i): Ends => [at(rows, i), at(vectors, i)]);
}
/**
 * Classes whose least size has fewer rows are weighed so where columns are fixed, with no tile lower than four rows, which would read columns
 * more often; others at both ends. Of products of 784 by 128, 128 rows in tiles of 2 by 8 vectors took 234 us in place of 219.
 */
const fewRows = 32;
const leastHeight = 4;

/** Most searches for a tile whose results are kept. */
const keptSearches = 1000;

/** Tiles that fill the registers: results, the vectors of a row of columns, a broadcast element, and one spare. */
export function tileFormula({ registers, sums }: Pick<ProcessorFacts, 'registers' | 'sums'>): TileFormula {
  const steps = (rows: number, vectors: number, dots?: DotStreams): number => {
    let more = 0;
    if (dots !== undefined) {
      // Cache lines that a step reads of these rows and columns.
      const { row, column } = dots;
      const lines = Math.max(1, rows * Math.min(1, row.apart)) + Math.max(1, vectors * Math.min(1, column.apart));
      more = dotLine.cost * (lines - (rows * vectors) / dotLine.products);
    }
    return (
      Math.max(rows * vectors, sums, load * (rows + vectors)) + feeding.row * rows + feeding.vector * vectors + more
    );
  };
  /** Time of a row of tiles. */
  const row = (vectors: number, height: number, width: number, dots?: DotStreams, singly = false): number => {
    const rest = vectors % width;
    const whole = Math.floor(vectors / width) * steps(height, width, dots);
    if (rest === 0) return whole;
    return whole + (singly ? rest * steps(height, 1, dots) : edge * steps(height, rest, dots));
  };
  const time = (
    rows: number,
    vectors: number,
    height: number,
    width: number,
    dots?: DotStreams,
    singly = false,
  ): number => Math.ceil(rows / height) * row(vectors, height, width, dots, singly);
  /** Results of searches: the products and convolutions of a network ask for the same ones over and over. */
  const known = new Map<string, readonly [number, number]>();
  /** The best tile whose results take `parts` registers each. */
  const best = (
    rows: number,
    vectors: number,
    widest: number,
    most: number,
    parts: number,
    dots?: DotStreams,
    ends?: Ends,
  ): readonly [rows: number, vectors: number] => {
    const streams = (dots && [dots.row, dots.column])?.map(({ apart, crowded }) => `${apart} ${crowded}`);
    const key = `${rows} ${vectors} ${widest} ${most} ${parts} ${ends} ${streams}`;
    let found = known.get(key);
    if (found !== undefined) return found;
    found = search(rows, vectors, widest, most, parts, dots, ends);
    if (known.size >= keptSearches) known.clear();
    known.set(key, found);
    return found;
  };
  const search = (
    rows: number,
    vectors: number,
    widest: number,
    most: number,
    parts: number,
    dots?: DotStreams,
    ends?: Ends,
  ): readonly [rows: number, vectors: number] => {
    const tallest = dots?.row.crowded ? Math.min(rows, mostCrowded) : rows;
    const limit = dots?.column.crowded ? Math.min(widest, mostCrowded) : widest;
    const isClass = ends !== undefined || (most !== rows && rows < fewRows);
    const sizes = isClass
      ? sizesBetween([rows, most], ends ?? [vectors, vectors])
      : [...new Set([rows, most])].map((n): Ends => [n, vectors]);
    const lowest = isClass ? Math.min(leastHeight, tallest) : 1;
    let found: readonly [number, number] = [1, 1];
    let least = Number.POSITIVE_INFINITY;
    for (let height = lowest; height <= tallest && height * parts + 3 <= registers; height++) {
      // Half a vector by itself takes half as long, or waits.
      const half = Math.max((load * (height + 1)) / 2, sums / 3) + (feeding.row * height) / 2;
      for (let width = 1; width <= limit && height * width * parts + width + 2 <= registers; width++) {
        // What sizes share is reckoned once.
        const whole = ends === undefined ? row(vectors, height, width, dots) : steps(height, width, dots);
        let cost = 1;
        for (let i = 0; i < sizes.length; i++) {
          const [rows, vectors] = sizes[i]!;
          // Of a class the last tile of rows is half full on average. One that fits this very size is no better for others.
          const tall = isClass ? (rows + (height - 1) / 2) / height : Math.ceil(rows / height);
          // Where columns end at a size, what whole tiles leave takes vectors half as wide.
          const tiles = Math.floor(vectors / width);
          cost *= tall * (ends === undefined ? whole : tiles * whole + Math.ceil(2 * (vectors - tiles * width)) * half);
        }
        if (cost < least) [found, least] = [[height, width], cost];
      }
    }
    return found;
  };
  return {
    tile: (rows, vectors, widest = vectors, most = rows, ends = undefined) =>
      best(rows, vectors, widest, most, 1, undefined, ends),
    ofColumns(rows, columns, lanes, widest, most, ends) {
      const vectors = Math.max(1, Math.ceil(columns / lanes));
      return best(rows, vectors, widest, most, 1, undefined, ends && [ends[0] / lanes, ends[1] / lanes]);
    },
    slower: (rows, vectors, tile, dots, singly) =>
      time(rows, vectors, tile[0], tile[1], dots, singly) / (rows * vectors),
    lines(rows, vectors, lines) {
      let best: readonly [number, number] | null = null;
      let least = Number.POSITIVE_INFINITY;
      for (let count = 1; count <= lines; count++) {
        const width = count * vectors;
        if (lines % count !== 0) continue;
        for (let height = 1; height <= rows && height * width + width + 2 <= registers; height++) {
          const cost = time(rows, vectors * lines, height, width);
          if (cost < least) [best, least] = [[height, count], cost];
        }
      }
      return best;
    },
    fills: (extent, lanes) =>
      extent >= 6 * lanes || extent % lanes === 0 || (extent >= 3 * lanes && extent % narrowest === 0),
    along(extent, lanes, rows, columns, dots, most = rows, ends = undefined) {
      let [parts, steps, rest] = [0, 0, extent];
      for (let width = lanes; width >= narrowest; width /= 2) {
        if (rest < width) continue;
        parts++;
        // Narrower vectors take half as long at least.
        steps += Math.floor(rest / width) * (width === lanes ? 1 : 0.5);
        rest %= width;
      }
      parts += Math.min(rest, 1);
      return [best(rows, columns, columns, most, parts, dots, ends), ((steps + rest / 2) / extent) * lanes, parts];
    },
  };
}

/** Costs of contractions on such a processor. */
export function processorCosts(facts: ProcessorFacts): ProductCosts {
  const { registers, flopsPerNs, cacheBytes, cacheWays } = facts;
  return {
    registers: registers - 1,
    flopsPerNs,
    copies,
    worst,
    collisions,
    nearBytes: (cacheBytes * 3) / 4,
    cacheBytes: cacheBytes / 2,
    edgeTiles,
    safeLines: cacheBytes / lineBytes / 2,
    stayingLines: (bytes) => linesThatStay(bytes, cacheBytes / cacheWays, cacheWays),
    line,
    formula: tileFormula(facts),
  };
}

/**
 * Lanes of vectors that no sum goes through: two vectors side by side where an element takes many operations, most of which wait for one before: so
 * many that a processor does not look ahead to the next element.
 */
export function widerLanes(nodes: ReadonlySet<KNode>, lanes: number, elements: number): number {
  if (lanes === 1 || elements < fewestSideBySide * lanes) return lanes;
  let operations = 0;
  for (const n of nodes) {
    if (n.op === 'REDUCE' || n.op === 'STAGE') return lanes;
    if (isArithmetic(n.op)) operations += operationCost(n.op);
  }
  return operations >= longChain ? 2 * lanes : lanes;
}

/**
 * Lanes along a loop: narrower vectors than those of its nest where it is shorter than one. `filled`: only if they fill it, as elements
 * that are reduced count once. Where the loop ends at a size, and typical ones are about a vector, those that the least size fills.
 */
export function narrowerLanes(range: Range, lanes: number, filled = false): number {
  const { extent } = range.arg;
  const isFixed = range.src.length === 0;
  const { least } = countOf(range);
  // Elements that are stored once fill wide vectors too: what is left takes narrower ones there.
  const shortest = isFixed ? extent : filled && least >= narrowest && typicalOf(range) < 2 * lanes ? least : lanes;
  let fitting = lanes;
  while (fitting > Math.max(narrowest, shortest)) fitting /= 2;
  return filled && isFixed && extent % fitting !== 0 ? lanes : fitting;
}

/**
 * For engines with several vector widths (`caps.fittingBytes`): the width, at most this many bytes, with the fewest steps along a run of
 * elements. Narrow vectors waste less on short runs.
 *
 * @example
 * const bytes = fittingBytes(64);
 * bytes(100, 4); // 64
 * bytes(7, 4); // 16
 * [bytes(14, 4), bytes(14, 4, true)]; // [32, 16]
 */
export function fittingBytes(most: number): (run: number, bytes: number, reduced?: boolean) => number {
  return (run, bytes, reduced = false) => {
    const size = Math.max(4, bytes);
    const steps = reduced ? reducedSteps : vectorSteps;
    let best = most;
    for (let wide = most / 2; wide >= leastVector; wide /= 2)
      if (steps(run, wide / size) < steps(run, best / size)) best = wide;
    return best;
  };
}
