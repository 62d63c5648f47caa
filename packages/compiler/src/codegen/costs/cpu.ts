/**
 * Thresholds and costs for targets where a group is one thread with vectors, in one place, each with what it rests on.
 *
 * Measured with one thread of an AMD EPYC in WebAssembly on V8 where nothing else is said; docs/ and bench/results have the figures. They
 * choose among kernels that compute the same. Whether a transform pays is asked of these and of extents as hints; whether it is legal, of bounds.
 */

// --- groups and vectors (loops/cpu.ts)

/** Operations in a group: enough to pay for starting it, few enough for threads to share the work. */
export const groupWork: number = 48 * 1024;
/** Rows up to so many elements may lie side by side in vectors, so that none is reduced across lanes; each is stored element by element. */
export const shortRow = 16;
/** Reductions up to this much work may be repeated in every group. */
export const repeatable = 2048;
/** Elements of a vector range are handed out in multiples of this, which all lanes and unroll factors divide. */
export const vectorChunk = 64;

// --- several streams (loops/streams.ts)

/** Elements of a group of streamed elementwise work; the two streams are its halves, eight pages apart. */
export const streamChunk = 16384;
/** Accesses of a nest above which its memory is taken for larger than the caches. */
export const leastAccesses: number = 2 ** 21;
/** Operations for an element above which arithmetic, not memory, takes the time. */
export const mostWork = 16;
/** Work of a row worth reading beside its neighbours. */
export const leastRow = 2048;
/** Rows side by side. */
export const turnRows = 4;
/** Vectors of sums that are computed side by side at most, and rows that are worth it. */
export const mostSums = 6;
export const leastRowsBeside = 16;

// --- columns accumulated in memory (loops/streams.ts)

/** Rows below which registers do: so many cache lines are still there when the next columns need them; fewer where all share a set. */
export const leastRows = 32;
export const leastCrowded = 8;
export const crowded = 1024;
export const leastColumns = 32;
/** Elements below which all of the work stays in a second-level cache. */
export const leastColumnElements: number = 2 ** 16;
/** Columns of one group: their results stay in the first-level cache, rows of them are long enough to stream. */
export const mostColumns = 4096;

// --- narrow rows (loops/cuts.ts)

/** Rows taken at a time. */
export const rowsTogether = 4;

// --- segments (loops/cuts.ts)

/** A cut pays if the longest segment has this many elements and there are not too many of them. */
export const leastSegment = 4;
export const mostSegments = 5;

// --- loops cut in two (loops/cuts.ts)

/** Inner loops shorter than a vector would be worse. */
export const leastInner = 4;

// --- transposes (loops/tile.ts)

/** Side of a square: the lanes of a vector of 4-byte numbers. */
export const side = 4;
/** Squares in a block, each way: a cache line of 4-byte numbers. Blocks that are copied: times as many. */
export const squares = 4;
export const larger = 4;
/** Extents and elements from which tiles pay. */
export const leastTransposed = { along: 8, across: 4, elements: 256 };
/** Rows so many bytes apart lie in two sets of a first-level cache (64 sets of 64 bytes, 8 lines each); how far from that is near. */
export const crowdedRows = 2048;
export const nearRows = 12;

// --- contractions: roles and ways (contraction/choose.ts)

/** What contractions are weighed by on one kind of processor. */
export interface ProductCosts {
  /** Vector registers that a loop body fills without spilling. */
  readonly registers: number;
  /** Operations of float32 a nanosecond of a well-fed tile. */
  readonly flopsPerNs: number;
  /** What copies of a factor take beside those in WebAssembly. */
  readonly copies: number;
  /** The time a tile takes if every product of it misses, and what rows add that share sets, as parts of the time it takes otherwise. */
  readonly worst: number;
  readonly collisions: number;
  /** Bytes of both factors and the results that stay near the processor. */
  readonly nearBytes: number;
  /** What a group streams through again and again. */
  readonly cacheBytes: number;
  /** Rows of tiles for which a group takes the columns of an edge at least, which other work has driven out of caches. Left out: any. */
  readonly edgeTiles?: number;
  /** Lines that stay in the cache whatever else happens, and of lines a distance in bytes apart where there are more than their sets hold. */
  readonly safeLines: number;
  readonly stayingLines?: (bytes: number) => number;
  /**
   * The part by which a tile's time grows for each line of the second-level cache that every step of the sum touches, where it walks over more
   * lines than are near. Left out: not counted.
   */
  readonly line?: { readonly cost: number; readonly near: number };
  /** Tiles by formula, and how much slower they are than well-fed ones without waste. Left out: tiles that were measured. */
  readonly formula?: TileFormula;
}

/** Tiles from what a processor has (costs/processors.ts). */
export interface TileFormula {
  /**
   * Rows, and vectors of each, of a tile for so many rows and vectors of results. `widest`: vectors of a tile at most; `most`: rows where a size
   * given at dispatch is greatest, `rows` being the least.
   */
  tile(rows: number, vectors: number, widest?: number, most?: number): readonly [rows: number, vectors: number];
  /** Time for so many rows and vectors of results with such tiles, beside that of their multiply-adds alone. */
  slower(rows: number, vectors: number, tile: readonly [rows: number, vectors: number]): number;
}

/** WebAssembly: V8 leaves 15 of the 16 vector registers of x64; three quarters of a second-level cache of 1 MiB are near, 64 KiB well inside one. */
const webAssembly: ProductCosts = {
  registers: 15,
  flopsPerNs: 30,
  copies: 1,
  worst: 1,
  collisions: 0.7,
  nearBytes: 768 * 1024,
  cacheBytes: 64 * 1024,
  safeLines: 32,
};

/** The costs of a target. */
export function productCosts({ lowering }: { readonly lowering: { readonly products?: ProductCosts } }): ProductCosts {
  return lowering.products ?? webAssembly;
}

/** Narrowest vectors, where a processor has several widths. */
export const leastVector = 16;
/** What the end of a last vector costs that is moved back, where elements fill none: some of it is computed twice. */
const movedBack = 1.5;

/** Steps along so many elements: vectors, and for what fills none one more that is moved back; without vectors, single elements. */
export function vectorSteps(elements: number, lanes: number): number {
  if (elements < lanes) return elements;
  return Math.floor(elements / lanes) + Math.min(elements % lanes, movedBack);
}

/** The same where elements are reduced: each is taken once, so what fills no vector is taken one by one. */
export function reducedSteps(elements: number, lanes: number): number {
  return Math.floor(elements / lanes) + (elements % lanes);
}

/** Slowdown of measured tiles with fewer than four rows, by their number. */
export const heightCost: readonly number[] = [0, 2, 1.4, 1.25, 1];
/** Slowdown of tiles of one vector, unless rows are vectors too. */
export const oneVector = 1.3;
/** Slowdown of tiles whose sums run over vectors: rows that are aligned, and others. */
export const dotAligned = 1.05;
export const dotOther = 1.5;
/** What a result of such a sum takes: its memory, and for each lane that is added up. */
export const dotMemory = 2;
export const dotLane = 0.5;
/** Slowdown of tiles of elementwise products, which load a vector for each of them: beside that of columns, shared by the rows. */
export const sharedSlowdown = 1.2;
/** An access of the epilogue for one result: along vectors, along strides, through other indices, along other loops only. */
export const accessVectors = 0.2;
export const accessStrides = 1.5;
export const accessScattered = 2;
export const accessAround = 0.05;
/** Putting a sum to memory and taking it from there in another order. */
export const accessTurned = 2;
/** Copying an element of a factor that is a tensor, or computed, in the order it lies in or another; and where it does not stay in caches. */
export const copySame = 0.4;
export const copyOther = 0.8;
export const copyComputed = 0.6;
export const copyComputedOther = 1.4;
export const copyFar = 0.5;
export const farBytes: number = 2 ** 20;
/** What the host takes for a dispatch more, which a copy made before is. */
export const copyDispatch = 250;
/** Copying an element by the group that needs it. */
export const groupCopy = 0.35;
/**
 * Groups that copy for themselves, near the processor: columns, fewer where sums are short, and rows; what is lost by going through the
 * results column by column, for an element. Elsewhere: rows, columns, and what is lost for a result and access.
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

/** Operations that pay for starting a group. */
export const tileGroupWork: number = 1 << 17;
export const mostGroups = 64;
/** Products too small for this many groups are cut finer, down to `leastWork` a group, so that threads end together. */
export const fewGroups = 16;
export const leastWork: number = 1 << 15;
/** Most tiles of columns that a group copies. */
export const mostCopiedTiles = 4;
/** Tiles enough for this many groups need no split for the sake of threads. */
export const enoughTiles = 24;
/** Bytes of both factors that one tile may read before parts of the sum that stay in a second-level cache are better. */
export const stripBytes: number = 128 * 1024;
export const partBytes: number = 160 * 1024;

// --- contractions: caches (contraction/choose.ts)

/** Lines that stay in the cache where they share sets. */
export const crowdedLines = 8;
/** The same where there are more lines than their sets hold. */
export const overfullLines = 16;
/** Time of a tile that looks up a position for every product. */
export const lookUpPart = 0.05;

// --- contractions: sums (contraction/depth.ts, gemm.ts)

/** Innermost loops of fewer steps cost more than looking up positions. */
export const shortLoop = 32;
export const longestTable = 4096;

// --- contractions: sums through memory (contraction/turned.ts)

/**
 * Sums that are turned in group memory at a time, so that a first-level cache has room for them, and of each column; columns at a time at least,
 * a cache line of them.
 */
export const longestTurn = 2048;
export const longestRun = 144;
export const leastColumnsTurned = 16;

// --- contractions: sums along one column

/** Longest sum that one column left over is computed along. */
export const longestDot = 256;
