/** The addon of tests, which fails where it is told to. */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const here = (path: string): string => fileURLToPath(new URL(`../../native/${path}`, import.meta.url));

/** Compiles it where that was not done yet; its file. */
export function faultyAddon(): string {
  execFileSync(process.execPath, [here('build.mjs'), '--faults'], { stdio: 'inherit' });
  return here('build/native-faults.node');
}
