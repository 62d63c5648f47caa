/** How an operation that moves elements is described: what moves where, exactly, in every dtype; and its specs and random calls. */
import type { Tensor } from '@polygrad/core';
import { at, build, count, type NDArray } from '../../oracle/ndarray.ts';
import { integer, type Random, sample } from '../../oracle/random.ts';
import { type Made, type Pool, type RandomCall, ref } from '../../programs/pool.ts';
import type { Arg, Value } from '../../programs/program.ts';
import { numeric, type OpSpec } from '../../spec.ts';
import { type OperationRow, smooth } from '../row.ts';

/** A movement of one shape, as the suite checks it: values are exact, gradients the reverse movement. */
export interface Move {
  readonly name: string;
  readonly shape: readonly number[];
  readonly run: (x: Tensor) => Tensor;
  readonly f: (x: NDArray) => NDArray;
}

/** A movement told by where each element of the result comes from; null for 0. */
export interface Part extends Omit<Move, 'f'> {
  readonly shapeOf: readonly number[];
  readonly from: (index: number[]) => number[] | null;
}

export const part = ({ shapeOf, from, ...move }: Part): Move => ({
  ...move,
  f: (x) =>
    build(shapeOf, (index) => {
      const source = from(index);
      return source === null ? 0 : at(x, source);
    }),
});

export const moveSpec = ({ name, shape, run, f }: Move): OpSpec<1> => ({
  name,
  dtypes: numeric,
  instances: [
    { label: `[${shape}]`, small: count(shape) <= 24, draw: (r: Random) => [sample(r, shape, integer(-99, 99))] },
  ],
  run: ([x]) => run(x),
  oracle: ([x]) => f(x),
  gradient: { of: [0], order: 2 },
});

export interface MovementRow {
  readonly name: string;
  readonly cases: readonly Move[];
  /** What the suite checks beside the cases. */
  readonly specs?: readonly OpSpec[];
  /** Random calls take a value of so many axes at least and at most; a large one too where the result is no larger. */
  readonly rank?: number;
  readonly most?: number;
  readonly large?: boolean;
  readonly make: (pool: Pool, x: Value) => Made | null;
  /** Calls of other forms. */
  readonly others?: readonly RandomCall['make'][];
}

export function movementRow({
  name,
  cases,
  specs = [],
  rank = 0,
  most = 8,
  large,
  make,
  others = [],
}: MovementRow): OperationRow {
  const fits = (v: Value): boolean =>
    v.shape.length >= rank && v.shape.length <= most && (v.data.length < 4000 || large === true);
  const call = (pool: Pool): Made | null => {
    const x = pool.pick(fits);
    return x === null ? null : make(pool, x);
  };
  return { name, specs: [...cases.map(moveSpec), ...specs], calls: smooth(call, ...others) };
}

/** A call whose result is made of elements of x. */
export const moved = (x: Value, args: readonly Arg[], formula: (x: NDArray) => NDArray, part?: number): Made => ({
  args: [ref(x), ...args],
  dtype: x.dtype,
  formula: (a) => formula(a),
  ...(part === undefined ? {} : { part }),
});

/** A shape with an axis more. */
export const inserted = (shape: readonly number[], axis: number, n: number): number[] => [
  ...shape.slice(0, axis),
  n,
  ...shape.slice(axis),
];

/** A shape with an axis less. */
export const without = (shape: readonly number[], axis: number): number[] => shape.filter((_, i) => i !== axis);
