/** What is compiled in a copy of the checkout that is made of links leaves the original as it is. */
import { linkSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { compile, isFresh } from '../packages/addon/native/compiled.mjs';

const folder = mkdtempSync(join(tmpdir(), 'polygrad-compiled-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it('a linked copy has a binary and a key of its own once it compiles', () => {
  const [here, copy] = ['here', 'copy'].map((name) => join(folder, name, 'a.node'));
  /** A compiler that writes a text. */
  const write = (target, text) => {
    const program = `require('node:fs').writeFileSync(process.argv.at(-1), ${JSON.stringify(text)})`;
    const good = compile(process.execPath, ['-e', program, '--'], target, `key of ${text}`, (why) => expect.fail(why));
    expect(good).toBe(true);
  };
  write(here, 'old');
  mkdirSync(join(folder, 'copy'));
  for (const ending of ['', '.key']) linkSync(here + ending, copy + ending);
  expect(isFresh(copy, 'key of old')).toBe(true);
  write(copy, 'new');
  expect(['old', 'new'].map((text) => isFresh(copy, `key of ${text}`))).toEqual([false, true]);
  expect(['old', 'new'].map((text) => isFresh(here, `key of ${text}`))).toEqual([true, false]);
  expect([here, copy].map((path) => readFileSync(path, 'utf8'))).toEqual(['old', 'new']);
});
