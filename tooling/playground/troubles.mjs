/** What is missing, fails or goes away. */
import { expect, it } from 'vitest';
import { withWebGpu } from '../browser/chromium.mjs';
import {
  figure,
  reads,
  patience,
  ready,
  servePlainly,
  status,
  steps,
  stop,
  trouble,
  visit,
  watch,
} from './visitor.mjs';

/** @param lab what the tests share: see ../playground.test.mjs */
export function troubles(lab) {
  it('keeps nothing, and leaves its origin never', async () => {
    const { page } = lab;
    const kept = await page.evaluate(async () => [
      localStorage.length,
      sessionStorage.length,
      document.cookie,
      (await indexedDB.databases()).length,
      (await caches.keys()).length,
    ]);
    expect(kept).toEqual([0, 0, '', 0, 0]);
    expect(lab.troubles).toEqual([]);
  });

  it('works on one thread where a server sends no headers, says why, and goes on without the server', async () => {
    const plain = await servePlainly(lab.folder);
    try {
      await visit(lab.browser, `${plain.url}?layers=pool+2,+linear+16`, async (own) => {
        await ready(own);
        expect(await own.textContent('#engine-line')).toContain('1 thread');
        expect(await own.textContent('#engine-notes')).toContain('not cross-origin isolated');
        expect(await own.textContent('#network-summary')).toBe('3,322 parameters, 3,296 multiplications for an image');
        // Once loaded, the page needs no server.
        await plain.close();
        await own.click('#train');
        await steps(own, 20);
        await stop(own);
        await own.click('[name=sample][value="4"]');
        await reads(own);
        await own.click('#inspect');
        await own.waitForSelector('[data-kernel]');
        await own.click('[data-kernel="0"]');
        expect(await own.textContent('#kernel-detail')).toContain('(func $');
        const [download] = await Promise.all([own.waitForEvent('download'), own.click('#save')]);
        await own.setInputFiles('#load', await download.path());
        await status(own, 'loaded, ready');
        expect(await own.locator('.notice').count()).toBe(0);
      });
    } finally {
      await plain.close();
    }
  });

  it('says in words what is missing: the images, WebAssembly, WebGPU', async () => {
    const without = await servePlainly(lab.folder, ['train-images']);
    try {
      await visit(
        lab.browser,
        without.url,
        async (own) => {
          await own.waitForSelector('.notice.trouble');
          expect(await own.textContent('.notice.trouble p')).toBe(
            'The images could not be fetched: /data/train-images-idx3-ubyte.gz answered 404. Reload the page to try again.',
          );
          expect(await own.textContent('#status')).toContain('Could not start');
        },
        { expected: /404/ },
      );
    } finally {
      await without.close();
    }
    const broken = await servePlainly(lab.folder, ['worker-']);
    try {
      await visit(
        lab.browser,
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
      lab.browser,
      lab.site.url,
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
      lab.browser,
      `${lab.site.url}?engine=webgpu`,
      async (own) => {
        await ready(own);
        expect(await own.textContent('.notice.note p')).toMatch(/^The engine 'webgpu' cannot run here: .*WebGPU/);
        expect(await own.textContent('#engine-line')).toMatch(/^CPU/);
        expect(await own.textContent('.engine.unusable')).toMatch(/^WebGPUnot usable here/);
      },
      { before: (own) => own.route('**/worker-*.js', withoutGpu) },
    );
  });

  it('trains on WebGPU, and loses no weights when the device goes away in the middle', async () => {
    const gpu = await lab.chromium(withWebGpu);
    try {
      const own = await gpu.context.newPage();
      const seen = [];
      own.setDefaultTimeout(patience);
      watch(own, new URL(lab.site.url).origin, seen);
      // Small, because the GPU is played by the processor here.
      await own.goto(`${lab.site.url}?engine=webgpu&debug&layers=pool+4,+linear+16`);
      await ready(own);
      expect(await own.textContent('#engine-line')).toMatch(/^WebGPU/);
      await own.locator('#rate').fill('-2');
      await own.click('#train');
      await own.waitForFunction(() => Number.parseFloat(document.querySelector('#figure-accuracy').textContent) > 40);
      const before = await figure(own, 'step');
      await own.click('#lose-device');
      await own.waitForSelector('.notice.note');
      const words = await own.textContent('.notice.note p');
      expect(words).toMatch(/was lost: .*The network is kept, .*It runs on WebGPU/);
      await steps(own, before + 5);
      // A second device goes too: the CPU engine takes over.
      await own.click('#lose-device');
      await own.waitForFunction(() => document.querySelector('#engine-line').textContent.startsWith('CPU'));
      await stop(own);
      // Without the weights it would be near 10 %.
      expect(await figure(own, 'accuracy')).toBeGreaterThan(40);
      expect(await figure(own, 'step')).toBeGreaterThan(before + 5);
      expect(await own.textContent('.engine.unusable')).toMatch(/WebGPU.*Its device was lost/);
      expect(seen).toEqual([]);
    } finally {
      await gpu.close();
    }
  });

  it('shows how much of the images has come, and says where they break off', async () => {
    let breakOff = () => {};
    const slow = await servePlainly(lab.folder, [], (name, body, response) => {
      if (!name.includes('train-images')) return false;
      response.write(body.subarray(0, 1_000_000));
      breakOff = () => response.destroy();
      return true;
    });
    try {
      await visit(
        lab.browser,
        slow.url,
        async (own) => {
          await own.waitForFunction(() =>
            /MB of 1[01]\.?\d* MB$/.test(document.querySelector('#progress').textContent),
          );
          expect(await own.textContent('#status')).toBe('Loading the images …');
          expect(await own.isVisible('#progress progress')).toBe(true);
          expect(await own.isDisabled('#train')).toBe(true);
          breakOff();
          expect(await trouble(own)).toBe(
            'The images could not be fetched: /data/train-images-idx3-ubyte.gz broke off. Reload the page to try again.',
          );
          expect(await own.isVisible('#progress')).toBe(false);
        },
        { expected: /ERR_/ },
      );
    } finally {
      await slow.close();
    }
  });
}
