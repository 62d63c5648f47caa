/** Commands tell what they take: the comment that opens their file, to `--help` and to options that they do not know. */
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { openingComment } from './usage.ts';

const here = new URL('.', import.meta.url);
const built = new URL('../../dist/commands/', import.meta.url);
const commands = readdirSync(here)
  .filter((name) => !name.endsWith('.test.ts') && readFileSync(new URL(name, here), 'utf8').includes('= optionsOf('))
  .map((name) => name.replace('.ts', ''));

const run = (command: string, option: string): Promise<{ code: number; out: string }> =>
  new Promise((resolve) => {
    execFile(process.execPath, [fileURLToPath(new URL(`${command}.js`, built)), option], (error, out, said) =>
      resolve({ code: Number(error?.code ?? 0), out: `${out}${said}` }),
    );
  });

it.each(commands)('%s says how it is called', (command) => {
  expect(openingComment(new URL(`${command}.ts`, here).href)).toContain(`commands/${command}.js`);
});

it('a command tells it, and measures nothing', async () => {
  const comment = openingComment(new URL('new-shapes.ts', here).href);
  expect(await run('new-shapes', '--help')).toEqual({ code: 0, out: `${comment}\n` });
  const { code, out } = await run('new-shapes', '--none');
  expect([code, out.includes(`'--none'`), out.endsWith(`${comment}\n`)]).toEqual([2, true, true]);
});
