/**
 * apps/backend-template is what it says: a folder that works outside of the repository, under 300 lines, by public entries alone. A copy in
 * another folder, with links to the built packages, is compiled, tested and sent through a part of the conformance suite. tooling/pack-test.mjs
 * does the same with packages as they are published.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { root } from './workspace.mjs';

const template = join(root, 'apps/backend-template');
const tsc = join(root, 'node_modules/typescript/bin/tsc');
const sources = readdirSync(join(template, 'src')).map((name) => readFileSync(join(template, 'src', name), 'utf8'));
let folder;

/** Runs Node in the copy, by the conditions that users have; fails with what it printed. */
function node(...args) {
  const env = { ...process.env, NODE_OPTIONS: '', POLYGRAD_LONG: '' };
  // The runner of Node's tests talks to its parent where it has one.
  delete env.NODE_TEST_CONTEXT;
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, env, encoding: 'utf8' });
  expect(status, `${stdout}${stderr}`).toBe(0);
  return stdout;
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'polygrad-template-'));
  node(tsc, '-b', join(root, 'packages/conformance/tsconfig.build.json'));
  cpSync(template, folder, { recursive: true, filter: (path) => !/[/\\](node_modules|dist)$/.test(path) });
  mkdirSync(join(folder, 'node_modules/@polygrad'), { recursive: true });
  for (const name of ['compiler', 'core', 'backend-cpu', 'conformance'])
    symlinkSync(join(root, 'packages', name), join(folder, 'node_modules/@polygrad', name));
  node(tsc);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it('is small, and knows nothing that may change in any release', () => {
  const lines = sources.reduce((sum, text) => sum + text.trimEnd().split('\n').length, 0);
  expect(lines).toBeLessThan(300);
  for (const text of sources) expect(text).not.toMatch(/internals|\.\.\//);
});

it('passes its own tests', () => {
  // The format of the report differs between versions of Node unless it is named.
  expect(node('--test', '--test-reporter=tap')).toMatch(/^# fail 0$/m);
});

it('passes a part of the conformance suite', () => {
  const cli = 'node_modules/@polygrad/conformance/dist/cli.js';
  const last = node(cli, '--engine', './dist/index.js', '--sample', '150').trimEnd().split('\n').at(-1);
  const [, passed] = /^(\d+) passed, 0 failed, \d+ skipped$/.exec(last) ?? [];
  expect(Number(passed), last).toBeGreaterThan(150);
});
