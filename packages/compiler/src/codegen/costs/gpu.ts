/**
 * Thresholds for targets with groups of threads, each with its reason.
 *
 * They were chosen without a GPU, from what is published about such devices (contraction/README.md names sources);
 * `tune` measures tiles on the actual device. bench/results has later measurements.
 */

// --- threads and iterations (loops/gpu.ts)

/** Threads of a group whose threads share nothing. */
export const aloneThreads = 64;
/** Least and most threads that reduce together. */
export const leastTogether = 32;
export const togetherThreads = 256;
/** Threads that reduce together on devices that run the threads of a group one after another, a few at a time: these, or one subgroup. */
export const emulatedThreads = 8;
/** Elements of a reduction per thread that shares it, with few groups and with many. */
export const elementsEach = { few: 4, many: 8 };
export const manyGroups = 256;
/** Reductions over at least this many elements are shared by a group; `longRow` is for elements contiguous in memory. */
export const longReduction = 128;
export const longRow = 32;
/** With this many independent reductions, one thread for each is parallel enough. */
export const manyInstances = 16384;
/** The same if threads of a group run one after another. */
export const someInstances = 32;
/** From this many vectors on, each thread takes a vector. */
export const manyVectors = 16384;
/** From this many threads on, each takes several elements or vectors in turn, at most `mostIterations`. */
export const manyThreads: number = 2 ** 20;
export const mostIterations = 16;
/** Least groups per row of a size for which each group takes elements of one row only. */
export const fullRow = 2;

// --- threads that reduce together (loops/cooperative.ts)

/** Most iterations over vectors, or over single elements, that are unrolled. */
export const heldIterations = { vectors: 4, elements: 8 };

// --- reductions side by side (loops/beside.ts)

/** Bytes of the smallest access to memory (a sector), on NVIDIA's cards and most others. */
export const sectorBytes = 32;
/** Columns of a group where there are many groups. */
export const wideColumns = 32;

// --- transposes (loops/gpu.ts)

/** Side of a tile, and the least extents for which tiles are used. */
export const transposeSide = 32;
export const leastTransposed = 16;
export const leastTransposedElements = 4096;

// --- contractions (contraction/simt/choose.ts)

/** Groups that give every unit of a small device work; threads of a group whose threads share nothing. */
export const enoughGroups = 64;
export const tileThreadsAlone = 64;
/**
 * Splitting sums: as many parts as give this many groups (`groups`) with at least this many steps per thread (`steps`). A few groups are
 * worth short parts. A large device, with a hundred units and more, needs many groups. They are worth only parts so long that adding them up costs
 * nearly nothing.
 */
type Parting = Readonly<Record<'groups' | 'group' | 'thread' | 'dot', number>>;
export const partings: readonly [few: Parting, many: Parting] = [
  { groups: enoughGroups, group: 256, thread: 64, dot: 8 },
  { groups: 512, group: 1024, thread: 256, dot: 16 },
];
export const mostParts = 512;
/** If threads share nothing, twice as many groups are wanted. */
export const groupsAlone = 2;
/** Parts on a processor: wanted groups, steps of each. */
export const processorParts = { groups: 8, steps: 256, most: 64 };
/** Sides up to this extent count as thin. */
export const thin = 4;
/** Results per group whose threads share the sum. */
export const fewResults = 32;
/** Shortest sum that the threads of a group share. */
export const leastDot = 64;
/** Rows of a tile on a processor that emulates groups; with many columns it has fewer rows, and two vectors of columns. */
export const processorRows = { many: 8, few: 4 };
export const manyRows = 64;
export const manyColumns = 512;
/** Threads that share a sum there, if subgroups do not have one size. */
export const emulatedDot = 8;

// --- contractions: sums of threads (contraction/simt/gemm.ts)

/** Longest loop of the sum that is unrolled in threads that read memory directly, such as a window, and most unrolled steps in all. */
export const longestWindow = 5;
export const mostSteps = 9;
