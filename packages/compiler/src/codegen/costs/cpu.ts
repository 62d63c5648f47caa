/**
 * Thresholds and costs for targets where a group is one thread with vectors, each with its reason.
 *
 * Unless stated otherwise they were measured with one thread of an AMD EPYC in WebAssembly on V8; docs/ and bench/results have the
 * figures. They choose among kernels with equal results: they say whether a transform pays. Whether it is legal follows from bounds.
 */

// --- groups and vectors (loops/cpu.ts)

/** Operations in a group: enough to pay for starting it, few enough for threads to share the work. */
export const groupWork: number = 48 * 1024;
/** Longest rows that may be side by side in vectors, so that none is reduced across lanes; each result is stored element by element. */
export const shortRow = 16;
/** Reductions with at most this much work may be repeated in every group. */
export const repeatable = 2048;
/** Chunks of a vector range are multiples of this, which all lanes and unroll factors divide. */
export const vectorChunk = 64;

// --- several streams (loops/streams.ts)

/** Elements of a group of streamed elementwise work; the two streams are its halves, eight pages apart. */
export const streamChunk = 16384;
/** With more accesses, a nest's memory is assumed to be larger than the caches. */
export const leastAccesses: number = 2 ** 21;
/** With more operations per element, arithmetic takes the time, not memory. */
export const mostWork = 16;
/** Least work of a row for reading it beside its neighbours. */
export const leastRow = 2048;
/**
 * Widest vectors for which rows are read side by side. With wider ones the next line is asked for soon enough. Rows in turn are slower: 64 MiB in
 * machine code at 20 GB/s in place of 30, with pages of 2 MiB.
 */
export const widestInterleaved = 16;
/** Rows read side by side. */
export const interleavedRows = 4;
/** Most vectors of sums computed side by side, and the least rows for that. */
export const mostSums = 6;
export const leastRowsBeside = 16;

// --- columns accumulated in memory (loops/columns.ts)

/** With fewer rows, registers accumulate: that many cache lines are still present when the next columns need them. */
export const leastRows = 32;
/** The same for rows that share cache sets: those with a multiple of `crowded` elements. */
export const leastCrowded = 8;
export const crowded = 1024;
/** Fewest columns that are accumulated in memory. */
export const leastColumns = 32;
/** Most vectors of sums of one row that stay in registers, however many rows there are: with wide vectors, more columns than `leastColumns`. */
export const mostRowVectors = 4;
/** With fewer elements, all of the work stays in a second-level cache. */
export const leastColumnElements: number = 2 ** 16;
/** Columns of one group: their results stay in the first-level cache, and their rows are long enough to stream. */
export const mostColumns = 4096;

// --- narrow rows (loops/cuts.ts)

/** Rows taken at a time, at least; and most vectors of them. */
export const rowsTogether = 4;
export const mostNarrow = 5;

// --- segments (loops/cuts.ts)

/** A cut pays if the longest segment has this many elements and there are few segments. */
export const leastSegment = 4;
export const mostSegments = 5;

// --- loops cut in two (loops/cuts.ts)

/** Shorter inner loops than a vector would be slower. */
export const leastInner = 4;
/** Least whole stretches of a loop whose length is no multiple of them, for code of their own. */
export const leastStretches = 4;

// --- transposes (loops/tile.ts)

/** Side of a square: the lanes of a vector of 4-byte numbers. */
export const side = 4;
/** Squares in a block along each axis: a cache line of 4-byte numbers. Blocks that are copied have this many times as many. */
export const squares = 4;
export const larger = 4;
/** Least extents and elements for which tiles pay. */
export const leastTransposed = { along: 8, across: 4, elements: 256 };
/** Rows this many bytes apart use two sets of a first-level cache (64 sets of 64 bytes, 8 lines each); and how close to that counts. */
export const crowdedRows = 2048;
export const nearRows = 12;

// --- contractions: which are worth tiles (contraction/choose.ts)

/** Longest sum that the plain loop nest writes out; it then keeps so many elements of a factor in registers, in whatever order they lie. */
export const shortSum = 9;
export const keptElements = 128;
/**
 * Least products for tiles: of short sums, and of others. Plain nests of these have vectors along the sum or gather elements (8 x 4 sums of 16: 0.47
 * us, and 0.17 by tiles). Then the same where a dispatch before has to copy a factor: short sums with all of it in registers, other short ones,
 * other sums.
 */
export const leastShort = 4096;
export const leastLong = 512;
export const leastKept = 16384;
export const leastShortCopied = 4096;
export const leastLongCopied = 2048;

// --- contractions: roles and ways (contraction/choose.ts)

/** Costs of contractions on one kind of processor. */
export interface ProductCosts {
  /** Vector registers that a loop body can use without spilling. */
  readonly registers: number;
  /** float32 operations per nanosecond of a tile that never waits for memory. */
  readonly flopsPerNs: number;
  /** Cost of copying a factor relative to WebAssembly. */
  readonly copies: number;
  /** Relative slowdown of a tile if every product misses the cache. */
  readonly worst: number;
  /** The same if so many rows, a given distance apart, share sets. */
  readonly collisions: (rows: number, bytes: number) => number;
  /** Bytes of both factors and the results that stay in near caches. */
  readonly nearBytes: number;
  /** Bytes that a group streams through repeatedly. */
  readonly cacheBytes: number;
  /** Least rows of tiles for which a group takes the columns of an edge, which other work has evicted. Absent: any number. */
  readonly edgeTiles?: number;
  /** Lines that always stay in the cache; and, of lines a given distance apart, those that stay when there are more than their sets hold. */
  readonly safeLines: number;
  readonly stayingLines?: (bytes: number) => number;
  /**
   * Relative slowdown of a tile for each line of the second-level cache that every step of the sum touches. It counts beyond the
   * lines that the first-level cache holds. Absent: ignored.
   */
  readonly line?: { readonly cost: number; readonly near: number };
  /** Tiles by formula, with their slowdown. Absent: measured tiles. */
  readonly formula?: TileFormula;
}

/** How a tile reads its factors where the sum runs over vectors. */
export interface DotStreams {
  readonly row: DotStream;
  readonly column: DotStream;
}

/** Vectors of one factor, that a step reads side by side. */
interface DotStream {
  /** Their distance, in vectors: those of a kernel's window share cache lines. */
  readonly apart: number;
  /** True if all of them fall into one set of a first-level cache. */
  readonly crowded: boolean;
}

/** Numbers at the least and the greatest of several sizes. */
export type Ends = readonly [least: number, most: number];

/** Tiles derived from facts of a processor (costs/processors.ts). */
export interface TileFormula {
  /**
   * Rows, and vectors of each, of a tile for this many rows and vectors of results. `widest`: vectors of a tile at most; `most`: rows where a size
   * given at dispatch is greatest, `rows` being the least; `ends`: vectors at the least and the greatest size where columns end at one.
   */
  tile(
    rows: number,
    vectors: number,
    widest?: number,
    most?: number,
    ends?: Ends,
  ): readonly [rows: number, vectors: number];
  /** The same for columns, `lanes` to a vector; `ends` are columns too. */
  ofColumns(
    rows: number,
    columns: number,
    lanes: number,
    widest: number,
    most: number,
    ends: Ends | undefined,
  ): readonly [rows: number, vectors: number];
  /**
   * Time for this many rows and vectors of results with such tiles, relative to their multiply-adds alone. `dots`: the sum runs over vectors; `singly`: vectors that
   * fill no tile are tiles of their own.
   */
  slower(
    rows: number,
    vectors: number,
    tile: readonly [rows: number, vectors: number],
    dots?: DotStreams,
    singly?: boolean,
  ): number;
  /** Rows of a tile, and how many of so many lines of `vectors` vectors it takes, each whole. Null: a line does not fit. */
  lines(rows: number, vectors: number, lines: number): readonly [rows: number, lines: number] | null;
  /** Whether vectors may run along a loop of the sum: it is much longer, or they and narrower ones for its remainder fill it. */
  fills(extent: number, lanes: number): boolean;
  /**
   * The tile then for so many rows and columns, its steps, relative to a loop that vectors fill, and its sums for a result. The vectors of each width,
   * and single elements, have sums of their own, so that fewer rows fit.
   */
  along(
    extent: number,
    lanes: number,
    rows: number,
    columns: number,
    dots: DotStreams,
    most?: number,
    ends?: Ends,
  ): readonly [tile: readonly [rows: number, columns: number], steps: number, sums: number];
}

/** WebAssembly: V8 leaves 15 of the 16 vector registers of x64; three quarters of a second-level cache of 1 MiB count as near, 64 KiB fit well inside. */
const webAssembly: ProductCosts = {
  registers: 15,
  flopsPerNs: 30,
  copies: 1,
  worst: 1,
  collisions: () => 0.7,
  nearBytes: 768 * 1024,
  cacheBytes: 64 * 1024,
  safeLines: 32,
};

/** The costs of a target. */
export function productCosts({ lowering }: { readonly lowering: { readonly products?: ProductCosts } }): ProductCosts {
  return lowering.products ?? webAssembly;
}

/** Narrowest vectors, for processors with several widths. */
export const leastVector = 16;
/** Cost of a last vector that is moved back because the remaining elements fill none: some are computed twice. */
const movedBack = 1.5;

/** Steps along this many elements: vectors, and one moved back for a remainder; without vectors, single elements. */
export function vectorSteps(elements: number, lanes: number): number {
  if (elements < lanes) return elements;
  return Math.floor(elements / lanes) + Math.min(elements % lanes, movedBack);
}

/** The same for reduced elements: each counts once, so a remainder is taken element by element. */
export function reducedSteps(elements: number, lanes: number): number {
  return Math.floor(elements / lanes) + (elements % lanes);
}

/** Slowdown of measured tiles with fewer than four rows, by the number of rows. */
export const heightCost: readonly number[] = [0, 2, 1.4, 1.25, 1];
/** Slowdown of tiles of one vector, unless rows are vectors too. */
export const oneVector = 1.3;
/** Slowdown of tiles whose sums run over vectors: with aligned rows, and with others. */
export const dotAligned = 1.05;
export const dotOther = 1.5;
/** Cost of a result of such a sum: its memory, and each lane that is added up. */
export const dotMemory = 2;
export const dotLane = 0.5;
/** Slowdown of tiles of elementwise products, which load a vector for each product besides that of the columns, which rows share. */
export const sharedSlowdown = 1.2;
/** Cost of one access of the epilogue per result: along vectors, along strides, through other indices, along other loops only. */
export const accessVectors = 0.2;
export const accessStrides = 1.5;
export const accessScattered = 2;
export const accessAround = 0.05;
/**
 * Cost of storing a sum and loading it again in another order, on processors with known facts, which alone do so: the second dispatch takes 0.6 to 0.75 ns.
 * With a cost of 2, tiles of 12 or 7 positions in vectors of 16 were taken in place of whole ones. Where results are few that counts for less than a kernel
 * more to plan: with 1 the first plans of a policy gradient took 8 % longer. That stops soon: tiles of convolutions that store results one by one have
 * twice to five times the code of both kernels, and take as long.
 */
export const accessTransposed = 1;
export const accessTransposedFew = 2;
export const fewResults: number = 2 ** 10;
/** Cost of copying an element of a factor, loaded or computed, in memory order or another; and if it does not stay in caches. */
export const copySame = 0.4;
export const copyOther = 0.8;
export const copyComputed = 0.6;
export const copyComputedOther = 1.4;
export const copyFar = 0.5;
export const farBytes: number = 2 ** 20;
/** Host time of one more dispatch, as a copy made before is. */
export const copyDispatch = 250;
/** Cost of copying an element by the group that needs it. */
export const groupCopy = 0.35;
/**
 * Groups that copy columns themselves, in near caches: least columns, fewer for short sums, and rows; the cost per element of visiting
 * results column by column. Otherwise: least rows, columns, and the cost per result and access.
 */
export const ownColumns = 96;
export const ownShortSum = 128;
export const ownShortColumns = 64;
export const ownRows = 64;
export const ownOrder = 1.15;
export const farRows = 8;
export const farMostRows = 128;
export const farColumns = 512;
export const farOrder = 0.4;

// --- contractions: groups and parts (contraction/blocking.ts)

/** Least operations of a group. */
export const tileGroupWork: number = 1 << 17;
export const mostGroups = 64;
/** Products too small for this many groups are cut finer, down to `leastWork` per group, so that threads end together. */
export const fewGroups = 16;
export const leastWork: number = 1 << 15;
/** Most tiles of columns that a group copies. */
export const mostCopiedTiles = 4;
/** With tiles for this many groups, a sum is not split for the sake of threads. */
export const enoughTiles = 24;
/** Most bytes of both factors that one tile reads before splitting the sum is better, so that parts stay in a second-level cache. */
export const stripBytes: number = 128 * 1024;
export const partBytes: number = 160 * 1024;

// --- contractions: caches (contraction/cache-misses.ts)

/** Lines that stay in the cache if they share sets. */
export const crowdedLines = 8;
/** The same if there are more lines than their sets hold. */
export const overfullLines = 16;
/** Slowdown of a tile that looks up a position for every product. */
export const lookUpPart = 0.05;

// --- contractions: sums (contraction/depth.ts, gemm.ts)

/** Shorter innermost loops cost more than looking up positions. */
export const shortLoop = 32;
export const longestTable = 4096;

// --- contractions: results transposed through a workspace (contraction/transposed-results.ts)

/**
 * Most sums in group memory at a time, so that they fit into a first-level cache, and most per column; least columns at a time,
 * a cache line of them.
 */
export const longestTranspose = 2048;
export const longestRun = 144;
export const leastColumnsTransposed = 16;

// --- contractions: sums along one column

/** Longest sum for which a single remaining column is computed along the sum. */
export const longestDot = 256;
