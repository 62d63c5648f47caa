/**
 * Thresholds for targets with groups of threads, in one place, each with what it rests on.
 *
 * No GPU was at hand when they were chosen: they follow what is published about such devices (contraction/README.md names sources), and
 * `tune` measures tiles on the device that is there. bench/results has what was measured since.
 */

// --- threads and turns (loops/gpu.ts)

/** Threads of a group where threads work alone, and at least and at most where they reduce together. */
export const aloneThreads = 64;
export const leastTogether = 32;
export const togetherThreads = 256;
/** Threads that reduce together where those of a group run one after another, but for a few side by side: these, or one subgroup. */
export const emulatedThreads = 8;
/** Elements of a reduction for one of the threads that share it, where there are few groups and where there are many. */
export const elementsEach = { few: 4, many: 8 };
export const manyGroups = 256;
/** Reductions over at least this many elements are shared by a group; over this many where these lie side by side in memory. */
export const longReduction = 128;
export const longRow = 32;
/** With at least this many independent instances, one thread each is parallel enough. */
export const manyInstances = 16384;
/** The same where threads of a group run one after another. */
export const someInstances = 32;
/** Vectors from which on each thread takes one; threads from which on each takes several turns, and the most of those. */
export const manyVectors = 16384;
export const manyThreads: number = 2 ** 20;
export const mostTurns = 16;
/** Groups that a row of a size fills at least where each takes elements of one row. */
export const fullRow = 2;

// --- threads that reduce together (loops/cooperative.ts)

/** Turns of vectors, or of single elements, that are written out. */
export const heldTurns = { vectors: 4, elements: 8 };

// --- transposes (loops/gpu.ts)

/** Side of a tile, and the loops it is used for at least. */
export const transposeSide = 32;
export const leastTransposed = 16;
export const leastTransposedElements = 4096;

// --- contractions (contraction/simt/choose.ts)

/** Groups that give every unit of a small device some work; threads of a group where each works alone. */
export const enoughGroups = 64;
export const tileThreadsAlone = 64;
/**
 * Sums in parts: as many parts as make so many groups (`groups`) of each at least so many steps for a thread (`steps`). A few groups are
 * worth short parts; the many that a large device needs, which has a hundred units and more, only parts so long that adding them up is
 * nothing against them.
 */
type Parting = Readonly<Record<'groups' | 'group' | 'thread' | 'dot', number>>;
export const partings: readonly [few: Parting, many: Parting] = [
  { groups: enoughGroups, group: 256, thread: 64, dot: 8 },
  { groups: 512, group: 1024, thread: 256, dot: 16 },
];
export const mostParts = 512;
/** Where a thread works alone, groups are worth twice as many. */
export const groupsAlone = 2;
/** Parts of a processor: groups wanted, steps of each. */
export const processorParts = { groups: 8, steps: 256, most: 64 };
/** Sides up to this extent are thin; so many results for a group whose threads share the sum. */
export const thin = 4;
export const fewResults = 32;
/** Shortest sum that the threads of a group share. */
export const leastDot = 64;
/** Rows of a tile of a processor that emulates groups; where there are many columns it has fewer, and two vectors of columns. */
export const processorRows = { many: 8, few: 4 };
export const manyRows = 64;
export const manyColumns = 512;
/** Threads that share a sum there, where there are no subgroups of one size. */
export const emulatedDot = 8;

// --- contractions: sums of threads (contraction/simt/gemm.ts)

/** Loops of the sum that threads which read memory themselves write out, such as those of a window, and steps written out in all. */
export const longestWindow = 5;
export const mostSteps = 9;
