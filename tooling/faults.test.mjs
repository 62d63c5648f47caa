/** Some schedules of faults every day; `npm run test:long` has a thousand on each engine (tooling/long/parts.mjs). */
import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { root } from './workspace.mjs';

it.each(['reference', 'cpu'])('trainings on engines that fail end with the bits they would have had: %s', (engine) => {
  const args = ['tooling/fuzz.mjs', '--kind', 'faults', '--engine', engine, '--seed', '11', '--programs', '12'];
  const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' });
  expect(stdout, stderr).toMatch(/^12 passed, 0 failed, 0 skipped$/m);
  // Schedules in which nothing happens show nothing.
  const [, errors, engines] = /^(\d+) errors of the library on (\d+) engines$/m.exec(stdout) ?? [];
  expect(Number(errors)).toBeGreaterThan(12);
  expect(Number(engines)).toBeGreaterThan(24);
});
