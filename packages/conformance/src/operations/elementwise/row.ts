/** How an elementwise operation is described: its formula in float64, which operands it takes, and how cases and random calls draw them. */
import type { DType } from '@polygrad/core';
import { type Random, uniform } from '../../oracle/random.ts';
import type { RandomCall } from '../../programs/pool.ts';
import type { Noise } from '../../programs/program.ts';
import type { OpSpec } from '../../spec.ts';
import type { Notes } from '../row.ts';

/** Draws one element. */
export type Draw = (r: Random) => number;

/** Options of a call, as they are written. */
export type CallOptions = Readonly<Record<string, number | string>>;

/** What a row is to the suite: one spec. */
export interface RowCase {
  /** The operation's name if left out. */
  readonly name?: string;
  /** Of each operand; -3 to 3 if left out. */
  readonly draw?: readonly Draw[];
  /** float32 and float64 if left out. */
  readonly dtypes?: readonly DType[];
  /** Orders of derivative to check; 2 if left out, 0 for none. */
  readonly order?: 0 | 1 | 2;
  /** In many shapes, as kernels with code of their own are; in a few if left out. */
  readonly shapes?: 'many' | 'few';
}

/** What rows of one operand and of two have in common. */
export interface Row {
  /** Public function. */
  readonly name: string;
  /** The last argument: options, or a dtype. */
  readonly options?: CallOptions | string;
  readonly noise?: Noise;
  /** Has derivatives almost everywhere. */
  readonly smooth?: boolean;
  /** False: random programs do not call it so. */
  readonly drawn?: false;
  readonly cases?: readonly RowCase[];
  /** What the suite checks beside the cases. */
  readonly specs?: readonly OpSpec[];
  /** How random programs call it too. */
  readonly calls?: readonly RandomCall[];
  readonly notes?: Notes;
}

/** One spec: operands drawn so, -3 to 3 where nothing is said, in many shapes. */
export const many = (draw: Draw | readonly Draw[] = [], more: RowCase = {}): readonly RowCase[] =>
  few(draw, { shapes: 'many', ...more });

/** The same in a few shapes. */
export const few = (draw: Draw | readonly Draw[] = [], more: RowCase = {}): readonly RowCase[] => [
  { draw: typeof draw === 'function' ? [draw] : draw, ...more },
];

/** Numbers at least 0.05 away from every one of the given kinks, of those that another draw gives. */
export function off(kinks: readonly number[], from: Draw = uniform(-3, 3)): Draw {
  return (r) => {
    for (;;) {
      const x = from(r);
      if (kinks.every((kink) => Math.abs(x - kink) > 0.05)) return x;
    }
  };
}

/** The row of an operation without options. Throws where there is none. */
export function rowNamed<R extends Row>(rows: readonly R[], name: string): R {
  const found = rows.find((row) => row.name === name && row.options === undefined);
  if (found === undefined) throw new Error(`no row of operations/ is called ${name}`);
  return found;
}
