/** Machine code touches nothing outside of its memory: whoever does ends the process. A part of the programs of guards.long.test.ts. */
import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { faultyAddon } from './fixtures/faults.ts';
import { guardedDifferences } from './fixtures/guarded-programs.ts';
import { targets } from './testing/targets.ts';

it.skipIf(targets().length === 0)('who touches a closed page ends the process', () => {
  const script = `
    const addon = require(${JSON.stringify(faultyAddon())});
    const engine = addon.create(new Uint8Array(new SharedArrayBuffer(8192, { maxByteLength: 8192 })), 1);
    addon.submit(engine, Float64Array.of(2, 4096, 4096, 0), 4);
    addon.closePages(engine, 4096, 4096, 1);
    addon.submit(engine, Float64Array.of(2, 4088, 8, 0), 4);
    if (process.env.TOUCH) addon.submit(engine, Float64Array.of(2, 4088, 12, 0), 4);`;
  const signalOf = (env: Record<string, string>): string | null =>
    spawnSync(process.execPath, ['-e', script], { env: { ...process.env, ...env } }).signal;
  expect(signalOf({})).toBeNull();
  expect(signalOf({ TOUCH: '1' })).toBe('SIGSEGV');
});

const seeds = Array.from({ length: 12 }, (_, i) => 1001 + i);

it.each(targets())('%s, vectors of %i bytes', (isa, vectorBytes) => {
  expect(guardedDifferences({ isa, vectorBytes }, seeds)).toEqual([]);
});
