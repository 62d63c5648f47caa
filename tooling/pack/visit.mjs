/** Opens a page that a bundler built in Chromium, isolated and not, and looks at what it writes to its console. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { patience, startChromium } from '../browser/chromium.mjs';
import { within } from '../browser/page.mjs';
import { isolation, serve } from '../browser/server.mjs';

/** Files below a folder by the path at which they are asked for; its page is at `/`. */
function filesBelow(folder) {
  // Browsers ask for an icon.
  const files = new Map([['/favicon.ico', '']]);
  for (const entry of readdirSync(folder, { recursive: true })) {
    const path = `/${String(entry).replaceAll('\\', '/')}`;
    if (!statSync(join(folder, entry)).isFile()) continue;
    files.set(path === '/index.html' ? '/' : path, readFileSync(join(folder, entry)));
  }
  return files;
}

/** Runs in the page: a value of the console as plain data, a typed array with the memory behind it. */
const plain = (value) =>
  ArrayBuffer.isView(value)
    ? {
        type: value.constructor.name,
        elements: Array.from(value),
        memory: `${value.buffer.constructor.name} of ${value.buffer.byteLength}`,
      }
    : value;

async function firstLine(context, files, headers) {
  const server = await serve(files, headers);
  const page = await context.newPage();
  try {
    const line = new Promise((resolve, reject) => {
      page.on('pageerror', reject);
      page.on('response', (answer) => answer.ok() || reject(new Error(`${answer.url()}: ${answer.status()}`)));
      page.on('crash', () => reject(new Error('the page crashed')));
      page.on('console', (message) => {
        if (message.type() === 'log') resolve(Promise.all(message.args().map((value) => value.evaluate(plain))));
        else reject(new Error(message.text()));
      });
    });
    const [found] = await within(patience / 1000, 'the page', Promise.all([line, page.goto(server.url)]));
    return found;
  } finally {
    await page.close();
    await server.close();
  }
}

/**
 * What is wrong with a page that was built into a folder; nothing where all is well.
 *
 * @param problemOf is given the first line that the page logs, as a list of plain values, and answers with a text or null
 */
export async function problemsOfPage(chromium, folder, problemOf) {
  const files = filesBelow(folder);
  const { context, close } = await startChromium(chromium);
  const problems = [];
  try {
    for (const [kind, headers] of [
      ['a page', {}],
      ['an isolated page', isolation],
    ]) {
      try {
        const problem = problemOf(await firstLine(context, files, headers));
        if (problem !== null) problems.push(`${kind}: ${problem}`);
      } catch (error) {
        problems.push(`${kind}: ${error.message}`);
      }
    }
  } finally {
    await close();
  }
  return problems;
}
