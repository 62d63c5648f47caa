/** Programs of which there are several forms that do the same: a guess until one is measured on the device. */
import type { Way } from '../codegen/lowering.ts';

/** What was measured, by class of program; classes are words that say all on which the fastest form may depend. */
export interface ProgramChoices {
  /** Name of the form for a class; undefined if nothing was measured. */
  find(key: string): string | undefined;
  /** A program of the class was lowered. Its forms by name, the guess first, each by itself. */
  ask(key: string, ways: readonly Way[]): void;
}
