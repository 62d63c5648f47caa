/** Polygrad as a participant. */
import { type Runner, type RunnerOptions, Unsupported } from './runner.ts';

export async function createRunner(_options: RunnerOptions): Promise<Runner> {
  throw new Unsupported('not wired yet');
}
