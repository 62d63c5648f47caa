/** The programs of ../soak, which run on the built packages. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { targets } from './testing/targets.ts';

const program = fileURLToPath(new URL('../soak/native.mjs', import.meta.url));

it.skipIf(targets().length === 0).each([
  ['engines', 200],
  ['heap', 60_000],
  ['workers', 100],
  ['endings', 100],
  ['forks', 10],
])('%s %i', (kind, count) => {
  const { status, signal, stdout, stderr } = spawnSync(process.execPath, [program, kind, String(count)], {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  expect([status, signal, stdout, stderr.slice(-2000)]).toEqual([0, null, 'fine\n', '']);
});
