/** The engine under test, as cases know it. */
import type { DType } from '@polygrad/core';
import type { Tolerances } from './compare.ts';

/** What cases need to know of the engine under test. */
export interface Target {
  readonly holds: (dtype: DType) => boolean;
  /** The engine itself has float64: its float32 functions are more accurate then. */
  readonly computesDouble: boolean;
  /** The engine says that arithmetic on float32 may take denormal numbers for 0. */
  readonly flushesDenormals: boolean;
  readonly tolerances: Tolerances;
  /** Runs `f` with every operation flushed at once. */
  readonly eagerly: <T>(f: () => Promise<T>) => Promise<T>;
}
