/**
 * The playground in Chromium, as a visitor uses it: built, served, trained, drawn on. Skipped where there is no Chromium, unless
 * POLYGRAD_REQUIRE names `browser`.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { decodeSafetensors, encodeSafetensors } from '@polygrad/data';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { servePlayground } from '../apps/playground/src/server/playground.ts';
import { findChromium, startChromium, withWebGpu } from './browser/chromium.mjs';

const path = findChromium();
const required = (process.env.POLYGRAD_REQUIRE ?? '').split(',').includes('browser');
const reason = 'no Chromium here: `bash tooling/devices/install.sh browser` installs it';
const axe = readFileSync(
  createRequire(new URL('../apps/playground/package.json', import.meta.url)).resolve('axe-core'),
  'utf8',
);

/** Patience with a busy machine: milliseconds for one thing that a visitor waits for. */
const patience = 60_000;

const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' };

/** The built folder as any web server would serve it: no header of ours. `lost` names files that are not there. */
async function servePlainly(folder, lost = []) {
  const server = createServer((request, response) => {
    const [asked] = request.url.split('?');
    const name = asked === '/' ? '/index.html' : asked;
    let body = null;
    try {
      body = lost.some((part) => name.includes(part)) ? null : readFileSync(join(folder, name));
    } catch {}
    response.writeHead(body === null ? 404 : 200, {
      'Content-Type': types[extname(name)] ?? 'application/octet-stream',
    });
    response.end(body ?? 'not here');
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

if (path === null && !required) {
  process.stderr.write(`playground: skipped, ${reason}\n`);
  it('playground in Chromium', ({ skip }) => skip(reason));
} else {
  describe('playground in Chromium', { timeout: 120_000 }, () => {
    const folder = mkdtempSync(join(tmpdir(), 'polygrad-playground-'));
    let browser;
    let site;
    /** The page most tests share, and everything it did that it should not have. */
    let page;
    const troubles = [];

    function watch(p, origin, into) {
      p.on('pageerror', (error) => into.push(String(error.stack ?? error)));
      p.on('console', (message) => ['error', 'warning'].includes(message.type()) && into.push(message.text()));
      p.on('crash', () => into.push('the page crashed'));
      p.on('request', (request) => {
        const { protocol, origin: asked } = new URL(request.url());
        if (asked !== origin && protocol !== 'blob:' && protocol !== 'data:') into.push(`request to ${request.url()}`);
      });
    }

    /** Opens a page of its own and closes it afterwards. */
    async function visit(url, work, { expected = /^$/, before } = {}) {
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

    const ready = (p) => p.waitForFunction(() => document.querySelector('#train').disabled === false);
    const figure = async (p, name) =>
      Number((await p.textContent(`#figure-${name}`)).replace(/[, %]/g, '').replace('–', 'NaN'));
    const status = (p, text) =>
      p.waitForFunction((words) => document.querySelector('#status').textContent.includes(words), text);
    const steps = (p, least) =>
      p.waitForFunction((n) => Number(document.querySelector('#figure-step').textContent.replace(',', '')) >= n, least);

    async function stop(p) {
      await p.click('#train');
      await status(p, 'Stopped at step');
    }

    /** Waits until the network reads a digit: this one, or any. While a stroke is on its way, the page may read others. */
    const reads = (p, digit = '\\d') =>
      p.waitForFunction(
        (words) => new RegExp(words).test(document.querySelector('#prediction').textContent),
        `reads ${digit}`,
      );

    /** Draws a line through points given in parts of the canvas. */
    async function draw(p, points) {
      await p.click('#clear');
      const { x, y, width, height } = await p.locator('#canvas').boundingBox();
      const at = ([u, v]) => [x + u * width, y + v * height];
      await p.mouse.move(...at(points[0]));
      await p.mouse.down();
      for (const point of points.slice(1)) await p.mouse.move(...at(point), { steps: 2 });
      await p.mouse.up();
    }

    async function accessibility(p) {
      await p.evaluate(axe);
      const { violations } = await p.evaluate('axe.run(document, { resultTypes: ["violations"] })');
      return violations.map(({ id, impact, nodes }) => `${impact} ${id}: ${nodes.map((n) => n.html).join(' ')}`);
    }

    beforeAll(async () => {
      if (path === null) throw new Error(`POLYGRAD_REQUIRE names browser, but there is ${reason}`);
      site = await servePlayground(0, folder);
      browser = await startChromium(path);
      page = await browser.context.newPage();
      page.setDefaultTimeout(patience);
      watch(page, new URL(site.url).origin, troubles);
      await page.goto(site.url);
      await ready(page);
    }, 120_000);
    afterAll(async () => {
      await browser?.close();
      await site?.close();
      rmSync(folder, { recursive: true, force: true });
    });

    it('says which engine runs, isolated and under a strict policy', async () => {
      expect(await page.textContent('#engine-line')).toMatch(/^cpu – .*threads/);
      expect(await page.textContent('#engines')).toMatch(/cpu.*runs now.*WebAssembly SIMD/);
      expect(await page.evaluate(() => [crossOriginIsolated, isSecureContext])).toEqual([true, true]);
      const response = await page.request.get(site.url);
      const policy = response.headers()['content-security-policy'];
      expect(policy).toContain("default-src 'none'");
      expect(policy).not.toMatch(/unsafe-inline|'unsafe-eval'|\*|https?:/);
      expect(await page.locator('meta[http-equiv="Content-Security-Policy"]').count()).toBe(1);
    });

    it('trains to 95 % in a limited number of steps, and the page stays responsive', async () => {
      await page.locator('#rate').fill('-2.7');
      expect(await page.textContent('#rate-value')).toBe('0.002');
      await page.click('#train');
      await steps(page, 30);
      // The main thread has nothing to do but to draw.
      const lag = await page.evaluate(async () => {
        const late = [];
        for (let i = 0; i < 21; i++) {
          const from = performance.now();
          await new Promise((resolve) => setTimeout(resolve, 10));
          late.push(performance.now() - from - 10);
        }
        return late.sort((a, b) => a - b)[10];
      });
      expect(lag).toBeLessThan(200);
      expect(page.workers().length).toBeGreaterThan(0);
      const reached = await page.waitForFunction(() => {
        const [step, accuracy] = ['step', 'accuracy'].map((name) =>
          Number.parseFloat(document.querySelector(`#figure-${name}`).textContent.replace(',', '')),
        );
        return accuracy > 95 ? step : null;
      });
      // Less than an epoch.
      expect(await reached.jsonValue()).toBeLessThan(900);
      await stop(page);
      expect(await figure(page, 'accuracy')).toBeGreaterThan(93);
      for (const name of ['loss', 'epochs', 'speed']) expect(await figure(page, name)).toBeGreaterThan(0);
      expect(await page.textContent('#figure-memory')).toMatch(/MB$/);
      for (const title of ['Loss', 'Accuracy', 'Images per second', 'Memory']) {
        expect(await page.locator(`.plot[aria-label^="${title}: "][aria-label*=" to "] canvas`).count()).toBe(1);
      }
    }, 150_000);

    it('reads what is drawn, and test images picked by key', async () => {
      await draw(page, [
        [0.5, 0.15],
        [0.47, 0.85],
      ]);
      await reads(page, 1);
      const circle = Array.from({ length: 17 }, (_, i) => [
        0.5 + 0.22 * Math.sin((i * Math.PI) / 8),
        0.5 - 0.34 * Math.cos((i * Math.PI) / 8),
      ]);
      await draw(page, circle);
      await reads(page, 0);
      await page.click('#clear');
      expect(await page.textContent('#prediction')).toBe('Nothing drawn yet.');
      await page.focus('[name=sample][value="6"]');
      await page.keyboard.press('Space');
      await reads(page, 6);
      await page.keyboard.press('ArrowRight');
      await reads(page, 7);
      expect(await page.textContent('#bars .best')).toMatch(/^7/);
    });

    it('goes on where it stopped, also with another learning rate and batch', async () => {
      const before = await figure(page, 'step');
      await page.waitForTimeout(300);
      expect(await figure(page, 'step')).toBe(before);
      await page.click('#train');
      await steps(page, before + 5);
      await page.focus('#rate');
      await page.keyboard.press('ArrowLeft');
      expect(await page.textContent('#rate-value')).toBe('0.0018');
      await page.selectOption('#batch', '32');
      await steps(page, (await figure(page, 'step')) + 20);
      expect(await figure(page, 'loss')).toBeLessThan(1);
      await stop(page);
      expect(await page.textContent('#train')).toBe('Resume');
      expect(await figure(page, 'accuracy')).toBeGreaterThan(93);
    }, 90_000);

    it('shows the kernels of a step with their times and text', async () => {
      await page.click('#inspect');
      await page.waitForSelector('[data-kernel]');
      expect(await page.textContent('#kernels-summary')).toMatch(
        /^A step of 32 images: \d+ kernels in one batch, .* ms on cpu\.$/,
      );
      const rows = await page.locator('#kernel-table tbody tr').count();
      expect(rows).toBeGreaterThan(10);
      await page.click('[data-kernel="1"]');
      const texts = await page.locator('#kernel-detail pre').allTextContents();
      expect(texts[0]).toMatch(/^program .* grid/);
      expect(texts[1]).toMatch(/^\(func \$[\s\S]*v128\.load/);
      await page.selectOption('#kernel-order', 'time');
      expect(await page.locator('#kernel-table tbody tr').count()).toBe(rows);
    });

    it('saves weights, and loads them after a restart', async () => {
      const accuracy = await figure(page, 'accuracy');
      const [download] = await Promise.all([page.waitForEvent('download'), page.click('#save')]);
      const file = readFileSync(await download.path());
      const { tensors, metadata } = decodeSafetensors(file);
      // The names of `npm start`.
      expect([...tensors.keys()].sort()).toEqual(
        ['conv1', 'conv2', 'out'].flatMap((layer) => [`${layer}.bias`, `${layer}.weight`]),
      );
      await page.click('#restart');
      await status(page, 'A new network with 9,098 parameters');
      // As another program writes it: without the list of layers.
      const plain = encodeSafetensors(tensors, { format: 'pt' });
      await page.setInputFiles('#load', { name: 'mine.safetensors', mimeType: '', buffer: Buffer.from(plain) });
      await status(page, 'Weights of mine.safetensors loaded, ready');
      // Inspecting a step has trained a little since it was measured.
      expect(Math.abs((await figure(page, 'accuracy')) - accuracy)).toBeLessThan(1.5);
      expect(metadata['playground.layers']).toBe('conv 8x3, pool 2, conv 16x3, pool 2');
      await page.setInputFiles('#load', { name: 'bad.safetensors', mimeType: '', buffer: Buffer.from('no') });
      await page.waitForSelector('.notice.trouble');
      expect(await page.textContent('.notice.trouble p')).toMatch(/bad\.safetensors is truncated/);
      await page.click('.notice button');
      expect(await page.locator('.notice').count()).toBe(0);
    });

    it('builds other layers, says what cannot be built, and takes layers from a file', async () => {
      await page.click('.layer:nth-child(4) .remove');
      await page.click('[data-add=linear]');
      await page.keyboard.press('ControlOrMeta+A');
      await page.keyboard.type('32');
      expect(await page.textContent('#network-summary')).toMatch(/^101,\d{3} parameters – not built yet/);
      await page.click('.layer:nth-child(4) .up');
      expect(await page.textContent('#network-error')).toMatch(/^Layer 4: a linear layer before it/);
      expect(await page.isDisabled('#build')).toBe(true);
      await page.click('.layer:nth-child(3) .down');
      await page.click('#build');
      await status(page, 'A new network with 101,');
      await page.click('#train');
      await steps(page, 10);
      await stop(page);
      const [download] = await Promise.all([page.waitForEvent('download'), page.click('#save')]);
      await page.click('#default-layers');
      await page.click('#build');
      await status(page, 'A new network with 9,098');
      await page.setInputFiles('#load', await download.path());
      await status(page, 'loaded, ready');
      expect(await page.locator('.layer:not(.last) .layer-kind').allTextContents()).toEqual([
        'Convolution',
        'Max pooling',
        'Convolution',
        'Linear',
      ]);
    }, 90_000);

    it('has no violations of accessibility, light and dark, wide and narrow', async () => {
      for (const [width, colorScheme] of [
        [1400, 'light'],
        [360, 'dark'],
      ]) {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize({ width, height: 900 });
        await page.waitForTimeout(200);
        expect(await accessibility(page)).toEqual([]);
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        expect(overflow).toBeLessThanOrEqual(0);
      }
    });

    it('can be used with the keyboard alone', async () => {
      await visit(site.url, async (own) => {
        await ready(own);
        const focus = () =>
          own.evaluate(
            () => document.activeElement.id || document.activeElement.name || document.activeElement.className,
          );
        const tabTo = async (name) => {
          for (let i = 0; i < 40; i++) {
            await own.keyboard.press('Tab');
            if ((await focus()) === name) return;
          }
          expect.fail(`no way by Tab to ${name}`);
        };
        await own.keyboard.press('Tab');
        expect(await focus()).toBe('skip');
        await tabTo('train');
        await own.keyboard.press('Enter');
        await steps(own, 20);
        await tabTo('rate');
        await own.keyboard.press('ArrowRight');
        expect(await own.textContent('#rate-value')).toBe('0.0011');
        await tabTo('sample');
        await own.keyboard.press('Space');
        await reads(own);
        await tabTo('inspect');
        await own.keyboard.press('Space');
        await own.waitForSelector('[data-kernel]');
        await tabTo('link');
        await own.keyboard.press('Enter');
        await own.waitForSelector('#kernel-detail h3');
        expect(await own.evaluate(() => document.activeElement.tagName)).toBe('H3');
        await own.focus('#rate');
        await own.keyboard.press('Shift+Tab');
        await own.keyboard.press('Shift+Tab');
        await own.keyboard.press('Space');
        await status(own, 'Stopped at step');
      });
    }, 120_000);

    it('keeps nothing, and leaves its origin never', async () => {
      const kept = await page.evaluate(async () => [
        localStorage.length,
        sessionStorage.length,
        document.cookie,
        (await indexedDB.databases()).length,
        (await caches.keys()).length,
      ]);
      expect(kept).toEqual([0, 0, '', 0, 0]);
      expect(troubles).toEqual([]);
    });

    it('works on one thread where a server sends no headers, and says why', async () => {
      const plain = await servePlainly(folder);
      try {
        await visit(`${plain.url}?layers=pool+2,+linear+16`, async (own) => {
          await ready(own);
          expect(await own.textContent('#engine-line')).toContain('1 thread');
          expect(await own.textContent('#engine-notes')).toContain('not cross-origin isolated');
          expect(await own.textContent('#network-summary')).toBe('3,322 parameters');
          await own.click('#train');
          await steps(own, 20);
          await stop(own);
        });
      } finally {
        await plain.close();
      }
    }, 90_000);

    it('says in words what is missing: the images, WebAssembly, WebGPU', async () => {
      const without = await servePlainly(folder, ['train-images']);
      try {
        await visit(
          without.url,
          async (own) => {
            await own.waitForSelector('.notice.trouble');
            expect(await own.textContent('.notice.trouble p')).toBe(
              'The images could not be fetched: /data/train-images-idx3-ubyte.gz answered 404.',
            );
            expect(await own.textContent('#status')).toContain('Could not start');
          },
          { expected: /404/ },
        );
      } finally {
        await without.close();
      }
      const broken = await servePlainly(folder, ['worker-']);
      try {
        await visit(
          broken.url,
          async (own) => {
            await own.waitForSelector('.notice.trouble');
            expect(await own.textContent('.notice.trouble p')).toMatch(/^The worker that computes has failed/);
          },
          { expected: /404/ },
        );
      } finally {
        await broken.close();
      }
      await visit(
        site.url,
        async (own) => {
          await own.waitForSelector('.notice.trouble');
          expect(await own.textContent('.notice.trouble p')).toContain('WebAssembly is switched off');
        },
        { before: (own) => own.addInitScript(() => delete globalThis.WebAssembly) },
      );
      const withoutGpu = async (route) => {
        const response = await route.fetch();
        await route.fulfill({ response, body: `delete WorkerNavigator.prototype.gpu;${await response.text()}` });
      };
      await visit(
        `${site.url}?engine=webgpu`,
        async (own) => {
          await ready(own);
          expect(await own.textContent('.notice.note p')).toMatch(/^The engine 'webgpu' cannot run here: .*WebGPU/);
          expect(await own.textContent('#engine-line')).toMatch(/^cpu/);
          expect(await own.textContent('.engine.unusable')).toMatch(/^webgpunot usable here/);
        },
        { before: (own) => own.route('**/worker-*.js', withoutGpu) },
      );
    }, 90_000);

    it('trains on WebGPU, and loses no weights when the device goes away in the middle', async () => {
      const gpu = await startChromium(path, withWebGpu);
      try {
        const own = await gpu.context.newPage();
        const seen = [];
        own.setDefaultTimeout(patience);
        watch(own, new URL(site.url).origin, seen);
        // Small, because the GPU is played by the processor here.
        await own.goto(`${site.url}?engine=webgpu&debug&layers=pool+4,+linear+16`);
        await ready(own);
        expect(await own.textContent('#engine-line')).toMatch(/^webgpu/);
        await own.locator('#rate').fill('-2');
        await own.click('#train');
        await own.waitForFunction(() => Number.parseFloat(document.querySelector('#figure-accuracy').textContent) > 40);
        const before = await figure(own, 'step');
        await own.click('#lose-device');
        await own.waitForSelector('.notice.note');
        const words = await own.textContent('.notice.note p');
        expect(words).toMatch(/was lost: .*The network is kept, .*It runs on webgpu/);
        await steps(own, before + 5);
        // A second device goes too: the CPU engine takes over.
        await own.click('#lose-device');
        await own.waitForFunction(() => document.querySelector('#engine-line').textContent.startsWith('cpu'));
        await stop(own);
        // Without the weights it would be near 10 %.
        expect(await figure(own, 'accuracy')).toBeGreaterThan(40);
        expect(await figure(own, 'step')).toBeGreaterThan(before + 5);
        expect(await own.textContent('.engine.unusable')).toMatch(/webgpu.*Its device was lost/);
        expect(seen).toEqual([]);
      } finally {
        await gpu.close();
      }
    }, 150_000);
  });
}
