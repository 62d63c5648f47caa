/** What a visitor of the playground does and sees, for the tests beside this file. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { extname, join } from 'node:path';
import { expect } from 'vitest';

/** Patience with a busy machine: milliseconds for one thing that a visitor waits for. */
export const patience = 300_000;

const axe = readFileSync(
  createRequire(new URL('../../apps/playground/package.json', import.meta.url)).resolve('axe-core'),
  'utf8',
);

const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' };

/**
 * The built folder as any web server would serve it: no header of ours. `lost` names files that are not there; `answer` may send the
 * body itself, and returns true then.
 */
export async function servePlainly(folder, lost = [], answer = () => false) {
  const server = createServer((request, response) => {
    const [asked] = request.url.split('?');
    const name = asked === '/' ? '/index.html' : asked;
    let body = null;
    try {
      body = lost.some((part) => name.includes(part)) ? null : readFileSync(join(folder, name));
    } catch {}
    response.writeHead(body === null ? 404 : 200, {
      'Content-Type': types[extname(name)] ?? 'application/octet-stream',
      ...(body === null ? {} : { 'Content-Length': body.length }),
    });
    if (body === null || !answer(name, body, response)) response.end(body ?? 'not here');
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Runs in a page: counts in `compiledHere` the modules of WebAssembly that its main thread compiles. */
export function countCompiled() {
  globalThis.compiledHere = 0;
  for (const name of ['Module', 'compile', 'compileStreaming', 'instantiate', 'instantiateStreaming']) {
    WebAssembly[name] = new Proxy(WebAssembly[name], {
      apply(target, self, args) {
        globalThis.compiledHere++;
        return Reflect.apply(target, self, args);
      },
      construct(target, args) {
        globalThis.compiledHere++;
        return Reflect.construct(target, args);
      },
    });
  }
}

/** Collects what a page does that it should not: errors, warnings, requests to other origins. */
export function watch(page, origin, into) {
  page.on('pageerror', (error) => into.push(String(error.stack ?? error)));
  page.on('console', (message) => ['error', 'warning'].includes(message.type()) && into.push(message.text()));
  page.on('crash', () => into.push('the page crashed'));
  page.on('request', (request) => {
    const { protocol, origin: asked } = new URL(request.url());
    if (asked !== origin && protocol !== 'blob:' && protocol !== 'data:') into.push(`request to ${request.url()}`);
  });
}

/** Opens a page of its own and closes it afterwards. `expected`: troubles that are meant; `before`: what is done before it loads. */
export async function visit(browser, url, work, { expected = /^$/, before } = {}) {
  const own = await browser.context.newPage();
  const seen = [];
  try {
    own.setDefaultTimeout(patience);
    watch(own, new URL(url).origin, seen);
    await before?.(own);
    await own.goto(url);
    await work(own);
    expect(seen.filter((text) => !expected.test(text))).toEqual([]);
  } finally {
    await own.close();
  }
}

export const ready = (page) => page.waitForFunction(() => document.querySelector('#train').disabled === false);

export const figure = async (page, name) =>
  Number((await page.textContent(`#figure-${name}`)).replace(/[, %]/g, '').replace('–', 'NaN'));

export const status = (page, text) =>
  page.waitForFunction((words) => document.querySelector('#status').textContent.includes(words), text);

export const steps = (page, least) =>
  page.waitForFunction((n) => Number(document.querySelector('#figure-step').textContent.replace(',', '')) >= n, least);

export async function stop(page) {
  await page.click('#train');
  await status(page, 'Stopped at step');
}

/** Waits until the network reads a digit: this one, or any. While a stroke is on its way, the page may read others. */
export const reads = (page, digit = '\\d') =>
  page.waitForFunction(
    (words) => new RegExp(words).test(document.querySelector('#prediction').textContent),
    `reads ${digit}`,
  );

/** Draws a line through points given in parts of the canvas. */
export async function draw(page, points) {
  await page.click('#clear');
  const { x, y, width, height } = await page.locator('#canvas').boundingBox();
  const at = ([u, v]) => [x + u * width, y + v * height];
  await page.mouse.move(...at(points[0]));
  await page.mouse.down();
  for (const point of points.slice(1)) await page.mouse.move(...at(point), { steps: 2 });
  await page.mouse.up();
}

/** A file as a visitor chooses it. */
export const choose = (page, name, bytes) =>
  page.setInputFiles('#load', { name, mimeType: '', buffer: Buffer.from(bytes) });

/** Waits for a message about trouble, closes it, and returns its text. */
export async function trouble(page) {
  await page.waitForSelector('.notice.trouble');
  const text = await page.textContent('.notice.trouble p');
  // In sight, wherever the page is scrolled to.
  const { y, height } = await page.locator('.notice.trouble').boundingBox();
  expect(y).toBeGreaterThanOrEqual(0);
  expect(y + height).toBeLessThanOrEqual(await page.evaluate(() => innerHeight));
  await page.click('.notice.trouble button');
  expect(await page.locator('.notice.trouble').count()).toBe(0);
  return text;
}

/** What axe finds against accessibility. */
export async function accessibility(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate('axe.run(document, { resultTypes: ["violations"] })');
  return violations.map(({ id, impact, nodes }) => `${impact} ${id}: ${nodes.map((n) => n.html).join(' ')}`);
}
