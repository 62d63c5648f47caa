/** How an elementwise operation is described: its formula in float64, which operands it takes, and how cases and random calls draw them. */
import * as pg from '@polygrad/core';
import type { DType, Tensor } from '@polygrad/core';
import { type Random, uniform } from '../oracle/random.ts';

/** Draws one element. */
export type Draw = (r: Random) => number;

/** Options of a call, as they are written. */
export type Options = Readonly<Record<string, number | string>>;

/**
 * How the library's result may differ from the formula. `none`: not at all; `out`: by its own rounding; `all`: as if its operands
 * had been rounded too (sums, compositions); `steps`: as if every step of a long line had rounded (running sums).
 */
export type Noise = 'none' | 'out' | 'all' | 'steps';

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
  readonly options?: Options | string;
  readonly noise?: Noise;
  /** Has derivatives almost everywhere. */
  readonly smooth?: boolean;
  /** False: random programs do not call it so. */
  readonly drawn?: false;
  readonly cases?: readonly RowCase[];
}

/** Numbers at least 0.05 away from every one of the given kinks, of those that another draw gives. */
export function off(kinks: readonly number[], from: Draw = uniform(-3, 3)): Draw {
  return (r) => {
    for (;;) {
      const x = from(r);
      if (kinks.every((kink) => Math.abs(x - kink) > 0.05)) return x;
    }
  };
}

/** A public function by its name. */
export function functionOf(name: string): (...args: unknown[]) => Tensor {
  return (pg as unknown as Readonly<Record<string, (...args: unknown[]) => Tensor>>)[name] as (
    ...args: unknown[]
  ) => Tensor;
}

/** The row of an operation without options. Throws where there is none. */
export function rowNamed<R extends Row>(rows: readonly R[], name: string): R {
  const found = rows.find((row) => row.name === name && row.options === undefined);
  if (found === undefined) throw new Error(`no row of operations/ is called ${name}`);
  return found;
}
