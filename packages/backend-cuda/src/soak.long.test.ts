/** The programs of ../soak and of the addon package, which run on the built packages, some under AddressSanitizer. */
import { hasGcc, sanitized, soak } from '@polygrad/addon/fixtures/soak';
import { describe, expect, it } from 'vitest';
import { hasDevice } from './fixtures/device.ts';

describe.skipIf(!hasDevice())('CUDA, long', () => {
  it('100 engines, one after the other', () => {
    expect(soak('engines', ['cuda', '100'])).toMatch(/100 engines/);
  });

  it('2 million buffers', () => {
    expect(soak('allocations', ['cuda', '2000000'])).toMatch(/2000000 cycles/);
  });

  it('50 threads of Node at once', () => {
    expect(soak('workers', ['cuda', '50'])).toMatch(/(4[7-9]|50) of 50 workers right/);
  });

  it('50 threads ended at any moment', () => {
    expect(soak('endings', ['cuda', '50'])).toMatch(/50 workers ended/);
  });

  it.skipIf(!hasGcc)('20 engines under AddressSanitizer: no errors', () => {
    expect(soak('engines', ['cuda', '20'], { ...sanitized('cuda'), ASAN_OPTIONS: 'detect_leaks=0' })).not.toMatch(
      /Sanitizer/,
    );
  });

  it.skipIf(!hasGcc)('threads ended at any moment under AddressSanitizer: no errors', () => {
    const options = 'detect_leaks=0:use_sigaltstack=0';
    expect(soak('endings', ['cuda', '20'], { ...sanitized('cuda'), ASAN_OPTIONS: options })).not.toMatch(/Sanitizer/);
  });

  it.skipIf(!hasGcc)('bad calls under AddressSanitizer: no errors', () => {
    const options = 'detect_leaks=0:use_sigaltstack=0';
    const output = soak('hostile', ['50000', '2'], { ...sanitized('cuda'), ASAN_OPTIONS: options }, 'backend-cuda');
    expect(output).toMatch(/every bad call was refused/);
    expect(output).not.toMatch(/Sanitizer/);
  });
});
