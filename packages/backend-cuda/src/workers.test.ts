/** The engine in many threads of Node at once, and in threads that are ended at any moment: in processes of their own, which must survive. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { hasDevice } from './testing/device.ts';

/** Runs a program of ../soak; gives what it wrote. */
function run(program: string, ...args: string[]): string {
  const path = fileURLToPath(new URL(`../soak/${program}.mjs`, import.meta.url));
  const { status, signal, stdout, stderr } = spawnSync(process.execPath, [path, ...args], { encoding: 'utf8' });
  if (status !== 0) expect.fail(`${program} ended with ${signal ?? status}:\n${stdout}\n${stderr}`);
  return stdout;
}

describe.skipIf(!hasDevice())('threads of Node', () => {
  it('train at once, each right', () => {
    expect(run('workers', '6')).toMatch(/6 of 6 workers right/);
  });

  it('may be ended at any moment', () => {
    expect(run('endings', '8')).toMatch(/8 workers ended at any moment, the last one is right/);
  });
});
