/** The one place where a plan's commands go to an engine, and where a profile listens. */
import type { Command, IEngine } from '../engine/engine.ts';

/** Told of every batch instead of the engine; hands it on itself. */
export type SubmitListener = (engine: IEngine, commands: readonly Command[]) => void;

let listener: SubmitListener | null = null;

/** Starts a batch. */
export function submit(engine: IEngine, commands: readonly Command[]): void {
  if (listener === null) engine.submit(commands);
  else listener(engine, commands);
}

/** Puts a listener in the way, or takes it away with null; returns the one before. */
export function listenToSubmits(next: SubmitListener | null): SubmitListener | null {
  const before = listener;
  listener = next;
  return before;
}
