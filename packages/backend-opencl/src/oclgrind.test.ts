/** Under Oclgrind, in a process of its own: a driver that compiles one program at a time. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const oclgrind = '/usr/lib/oclgrind/liboclgrind-rt-icd.so';

function run(program: string): string {
  const path = fileURLToPath(new URL(`../soak/${program}.mjs`, import.meta.url));
  const { status, signal, stdout, stderr } = spawnSync(process.execPath, [path], {
    env: { ...process.env, OCL_ICD_VENDORS: oclgrind },
    encoding: 'utf8',
  });
  if (status !== 0) expect.fail(`${program} ended with ${signal ?? status}:\n${stdout}\n${stderr}`);
  return stdout;
}

describe.skipIf(!existsSync(oclgrind))('Oclgrind', () => {
  it('is asked for many programs at once and survives', () => {
    expect(run('simulator')).toMatch(/200 programs on .*Oclgrind/);
  });
});
