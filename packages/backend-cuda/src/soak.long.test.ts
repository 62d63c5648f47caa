/** The programs of ../soak, which run on the built packages, some under AddressSanitizer. */
import { execFileSync, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { hasDevice } from './testing/device.ts';

const here = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url));

/** The last lines of a text. */
const endOf = (text: string, lines: number): string => text.trimEnd().split('\n').slice(-lines).join('\n');

/** Runs a program; gives what it wrote, and fails with the end of that if it did not end well: an abort says why at the end. */
function run(program: string, args: readonly string[] = [], env: Readonly<Record<string, string>> = {}): string {
  const { status, signal, error, stdout, stderr } = spawnSync(
    process.execPath,
    [here(`soak/${program}.mjs`), ...args],
    {
      env: { ...process.env, ...env },
      encoding: 'utf8',
      maxBuffer: 1 << 28,
    },
  );
  if (status !== 0)
    expect.fail(
      `${program} ended with ${error?.message ?? signal ?? status}.\nstdout ends with:\n${endOf(stdout, 10)}\nstderr ends with:\n${endOf(stderr, 40)}`,
    );
  return stdout + stderr;
}

/** Compiles the addon for AddressSanitizer; what a program needs to run with it. */
function sanitized(): Record<string, string> {
  execFileSync(process.execPath, [here('native/build.mjs'), '--sanitize']);
  const library = execFileSync('g++', ['-print-file-name=libasan.so'], { encoding: 'utf8' }).trim();
  return { LD_PRELOAD: library, POLYGRAD_CUDA_ADDON: here('native/build/cuda-asan.node') };
}
const hasGcc = spawnSync('g++', ['--version']).status === 0;

describe.skipIf(!hasDevice())('CUDA, long', () => {
  it('100 engines, one after the other', () => {
    expect(run('engines', ['100'])).toMatch(/100 engines/);
  });

  it('2 million buffers', () => {
    expect(run('allocations', ['2000000'])).toMatch(/2000000 cycles/);
  });

  it('50 threads of Node at once', () => {
    expect(run('workers', ['50'])).toMatch(/(4[7-9]|50) of 50 workers right/);
  });

  it('50 threads ended at any moment', () => {
    expect(run('endings', ['50'])).toMatch(/50 workers ended/);
  });

  it.skipIf(!hasGcc)('20 engines under AddressSanitizer: no errors', () => {
    expect(run('engines', ['20'], { ...sanitized(), ASAN_OPTIONS: 'detect_leaks=0' })).not.toMatch(/Sanitizer/);
  });

  it.skipIf(!hasGcc)('threads ended at any moment under AddressSanitizer: no errors', () => {
    const options = 'detect_leaks=0:use_sigaltstack=0';
    expect(run('endings', ['20'], { ...sanitized(), ASAN_OPTIONS: options })).not.toMatch(/Sanitizer/);
  });

  it.skipIf(!hasGcc)('bad calls under AddressSanitizer: no errors', () => {
    const options = 'detect_leaks=0:use_sigaltstack=0';
    const output = run('hostile', ['50000', '2'], { ...sanitized(), ASAN_OPTIONS: options });
    expect(output).toMatch(/every bad call was refused/);
    expect(output).not.toMatch(/Sanitizer/);
  });
});
