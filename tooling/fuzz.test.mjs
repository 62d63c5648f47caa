/** What random programs find can be run again by itself: by the line that says so, which the long tests repeat at their end. */
import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { root } from './workspace.mjs';

const fuzz = (...args) =>
  spawnSync(process.execPath, ['tooling/fuzz.mjs', ...args], { cwd: root, encoding: 'utf8' }).stdout;

it('a failure is one line with the command that repeats it', () => {
  const engine = './tooling/fixtures/wrong-engine.mjs';
  const found = fuzz('--engine', engine, '--seed', '7', '--programs', '20');
  expect(found).toMatch(/^\d+ passed, 1 failed, 0 skipped$/m);
  const [, command] = /^FAILED programs on \S+: npm run fuzz -- (.*)$/m.exec(found) ?? [];
  expect(command).toMatch(/--seed 7 --path \d+(:\d+)*$/);
  const again = fuzz(...command.split(' '));
  expect(again).toMatch(/^1 programs /m);
  expect(again).toContain('FAILED programs');
});
