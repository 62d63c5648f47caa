/** The programs of ../soak, which run on the built packages, some under AddressSanitizer and Oclgrind. */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { hasDevice } from './testing/device.ts';

const here = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url));
const oclgrind = '/usr/lib/oclgrind/liboclgrind-rt-icd.so';

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
  return { LD_PRELOAD: library, POLYGRAD_OPENCL_ADDON: here('native/build/opencl-asan.node') };
}
const hasGcc = spawnSync('g++', ['--version']).status === 0;

describe.skipIf(!hasDevice())('OpenCL, long', () => {
  it('200 engines, one after the other', () => {
    expect(run('engines')).toMatch(/200 engines/);
  });

  it('10 million buffers', () => {
    expect(run('allocations')).toMatch(/10000000 cycles/);
  });

  it('100 threads of Node at once', () => {
    expect(run('workers')).toMatch(/9\d of 100 workers right/);
  });

  it('100 threads ended at any moment', () => {
    expect(run('endings')).toMatch(/100 workers ended/);
  });

  it('many processes that write one folder of programs', () => {
    expect(run('writers')).toMatch(/never half/);
  });

  it('processes that build the same programs', () => {
    expect(run('builders')).toMatch(/4 processes compiled .*, then 0, 0, 0, 0 programs/);
  });

  it('every template, in both modes', () => {
    expect(run('templates')).not.toMatch(/WRONG/);
  });

  it.skipIf(!hasGcc)('200 engines under AddressSanitizer: no errors, no leaks', () => {
    // PoCL starts a linker for every kernel that is new, and that one leaks: both modes find their programs on disk.
    run('engines', ['2']);
    expect(run('engines', [], { ...sanitized(), ASAN_OPTIONS: 'detect_leaks=1' })).not.toMatch(/Sanitizer/);
  });

  it.skipIf(!hasGcc)('threads ended at any moment under AddressSanitizer: no errors', () => {
    // Promises nobody can keep any more are a few bytes each, of Node's.
    const options = 'detect_leaks=0:use_sigaltstack=0';
    expect(run('endings', ['40'], { ...sanitized(), ASAN_OPTIONS: options })).not.toMatch(/Sanitizer/);
  });

  it.skipIf(!hasGcc)('bad calls under AddressSanitizer: no errors', () => {
    const options = 'detect_leaks=0:use_sigaltstack=0';
    const output = run('hostile', ['50000', '2'], { ...sanitized(), ASAN_OPTIONS: options });
    expect(output).toMatch(/every bad call was refused/);
    expect(output).not.toMatch(/Sanitizer/);
  });
});

describe.skipIf(!existsSync(oclgrind))('OpenCL under Oclgrind', () => {
  const env = {
    OCL_ICD_VENDORS: oclgrind,
    OCLGRIND_DATA_RACES: '1',
    OCLGRIND_CHECK_API: '1',
    // Its interpreter does not know what LLVM makes of rotations.
    OCLGRIND_BUILD_OPTIONS: '-cl-opt-disable',
  };

  it.each(['threads', 'simt'])('no template has a race or leaves its bounds: %s', (mode) => {
    const output = run('templates', [mode], env);
    expect(output).toMatch(/Oclgrind Simulator/);
    // Its exit code says nothing: what it has to report is in the output.
    const reports = output
      .split('\n')
      .filter((line) => /data race|Invalid (read|write)|divergence|FATAL|runtime error/i.test(line));
    expect(reports).toEqual([]);
  });
});
