/** Programs with several equivalent forms: the interface through which measurements on the device choose one (tuning/). */
import type { Way } from '../codegen/lowering.ts';

/** Measured forms by class of program. The key of a class has all facts on which the fastest form may depend. */
export interface ProgramChoices {
  /** Name of the form for a class; undefined if nothing was measured. */
  find(key: string): string | undefined;
  /** A program of the class was lowered. Its forms by name, the guess first, each by itself. */
  ask(key: string, ways: readonly Way[]): void;
}
