/** The shapes every family is tried on: scalar, empty, size one, and sizes that are no multiple of any tile or vector. */

export interface NamedShape {
  readonly label: string;
  readonly shape: readonly number[];
  readonly small: boolean;
}

function named(shape: readonly number[]): NamedShape {
  const size = shape.reduce((p, n) => p * n, 1);
  return { label: `[${shape}]`, shape, small: size <= 12 };
}

/** For operations on one tensor of any rank. */
export const anyShapes: readonly NamedShape[] = [
  [],
  [0],
  [3, 0, 2],
  [1],
  [1, 1, 1],
  [7],
  [2, 5],
  [67],
  [3, 5, 7],
  [4, 33],
  [130],
  [2, 1, 3, 1, 2],
].map(named);

/** Pairs that broadcast against each other. */
export const broadcastPairs: readonly (readonly [readonly number[], readonly number[]])[] = [
  [[], []],
  [[], [3]],
  [[5], [5]],
  [[67], []],
  [[0], [1]],
  [
    [2, 0],
    [1, 1],
  ],
  [
    [3, 1],
    [1, 4],
  ],
  [[2, 3], [3]],
  [
    [4, 1, 5],
    [7, 1],
  ],
  [
    [1, 1],
    [2, 3],
  ],
  [
    [3, 5, 7],
    [3, 5, 7],
  ],
  [
    [2, 33],
    [2, 1],
  ],
];

/** Shape and axes for reductions. `undefined` axes reduce everything. */
export const reductionCases: readonly { readonly shape: readonly number[]; readonly axes: readonly number[] }[] = [
  { shape: [], axes: [] },
  { shape: [1], axes: [0] },
  { shape: [7], axes: [0] },
  { shape: [67], axes: [0] },
  { shape: [3, 5], axes: [0] },
  { shape: [3, 5], axes: [1] },
  { shape: [3, 5], axes: [0, 1] },
  { shape: [2, 3, 4], axes: [1] },
  { shape: [2, 3, 4], axes: [0, 2] },
  { shape: [4, 33], axes: [0] },
  { shape: [33, 4], axes: [1] },
  { shape: [5, 130], axes: [1] },
  { shape: [130, 5], axes: [0] },
  { shape: [2, 0, 3], axes: [0] },
  { shape: [3, 1, 5], axes: [1] },
];
