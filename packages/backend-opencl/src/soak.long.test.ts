/** The programs of ../soak and of the addon package, which run on the built packages, some under AddressSanitizer and Oclgrind. */
import { existsSync } from 'node:fs';
import { hasGcc, sanitized, soak } from '@polygrad/addon/fixtures/soak';
import { describe, expect, it } from 'vitest';
import { hasDevice } from './fixtures/device.ts';

const oclgrind = '/usr/lib/oclgrind/liboclgrind-rt-icd.so';

/** Runs a program of ../soak. */
const run = (program: string, args: readonly string[] = [], env: Readonly<Record<string, string>> = {}): string =>
  soak(program, args, env, 'backend-opencl');

describe.skipIf(!hasDevice())('OpenCL, long', () => {
  it('200 engines, one after the other', () => {
    expect(soak('engines', ['opencl'])).toMatch(/200 engines/);
  });

  it('10 million buffers', () => {
    expect(soak('allocations', ['opencl'])).toMatch(/10000000 cycles/);
  });

  it('100 threads of Node at once', () => {
    expect(soak('workers', ['opencl'])).toMatch(/9\d of 100 workers right/);
  });

  it('100 threads ended at any moment', () => {
    expect(soak('endings', ['opencl'])).toMatch(/100 workers ended/);
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
    soak('engines', ['opencl', '2']);
    expect(soak('engines', ['opencl'], { ...sanitized('opencl'), ASAN_OPTIONS: 'detect_leaks=1' })).not.toMatch(
      /Sanitizer/,
    );
  });

  it.skipIf(!hasGcc)('threads ended at any moment under AddressSanitizer: no errors', () => {
    // Promises nobody can keep any more are a few bytes each, of Node's.
    const options = 'detect_leaks=0:use_sigaltstack=0';
    expect(soak('endings', ['opencl', '40'], { ...sanitized('opencl'), ASAN_OPTIONS: options })).not.toMatch(
      /Sanitizer/,
    );
  });

  it.skipIf(!hasGcc)('bad calls under AddressSanitizer: no errors', () => {
    const options = 'detect_leaks=0:use_sigaltstack=0';
    const output = run('hostile', ['50000', '2'], { ...sanitized('opencl'), ASAN_OPTIONS: options });
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
