/** The engine that runs, training, drawing, the kernels of a step. */
import { expect, it } from 'vitest';
import { millisecondsOf, time } from '../../apps/playground/src/view/numbers.ts';
import { draw, figure, reads, ready, steps, stop, visit } from './visitor.mjs';
import { isWhole } from '../../packages/compiler/src/fixtures/everyday.ts';

/** @param lab what the tests share: see ../playground.test.mjs */
export function training(lab) {
  it('says which engine runs, isolated and under a strict policy', async () => {
    const { page } = lab;
    const threads = Math.min(8, await page.evaluate('navigator.hardwareConcurrency'));
    expect(await page.textContent('#engine-line')).toBe(`CPU, ${threads} ${threads === 1 ? 'thread' : 'threads'}`);
    expect(await page.textContent('#engines')).toMatch(/CPU.*runs now.*WebAssembly SIMD/);
    expect(await page.evaluate(() => [crossOriginIsolated, isSecureContext])).toEqual([true, true]);
    const response = await page.request.get(lab.site.url);
    const policy = response.headers()['content-security-policy'];
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toMatch(/unsafe-inline|'unsafe-eval'|\*|https?:/);
    expect(await page.locator('meta[http-equiv="Content-Security-Policy"]').count()).toBe(1);
  });

  it('trains to 95 % in a limited number of steps, and the page stays responsive', async () => {
    const { page } = lab;
    await page.locator('#rate').fill('-2.7');
    expect(await page.textContent('#rate-value')).toBe('0.002');
    await page.click('#train');
    await steps(page, 30);
    // The main thread has nothing to do but to draw: it computes nothing itself.
    expect(await page.evaluate('compiledHere')).toBe(0);
    expect(page.workers().length).toBeGreaterThan(0);
    // Less than an epoch. A fast machine is some steps further when it is stopped, and no worse.
    await steps(page, 800);
    await stop(page);
    expect(await figure(page, 'accuracy')).toBeGreaterThan(95);
    for (const name of ['loss', 'epochs', 'speed']) expect(await figure(page, name)).toBeGreaterThan(0);
    expect(await page.textContent('#figure-memory')).toMatch(/MB$/);
    // Weights of 9,098 parameters and Adam's two means of each: a curve of them would lie on the axis.
    expect(await page.textContent('.plot-remark:not(:empty)')).toBe('between steps 109 kB');
    expect(await page.locator('.plot[aria-label^="Memory: "]').getAttribute('aria-label')).not.toMatch(/ 0 B|; /);
    for (const title of ['Loss', 'Accuracy', 'Images per second', 'Memory']) {
      expect(await page.locator(`.plot[aria-label^="${title}: "][aria-label*=" to "] canvas`).count()).toBe(1);
    }
  });

  it.runIf(isWhole)('names one step, not an older one beside it', async () => {
    await visit(lab.browser, `${lab.site.url}?layers=pool+4,+linear+16`, async (own) => {
      await ready(own);
      // A minute passes between two reports: what is said now and then is said.
      await own.evaluate(() => {
        const now = performance.now.bind(performance);
        let late = 0;
        performance.now = () => now() + (late += 60_000);
      });
      await own.click('#train');
      await own.waitForFunction(() => /^Training: step [1-9]/.test(document.querySelector('#spoken').textContent));
      expect(await own.textContent('#status')).toBe('Training …');
      const { width, height } = await own.locator('#spoken').boundingBox();
      expect(width * height).toBeLessThanOrEqual(1);
      await stop(own);
      expect(await own.textContent('#spoken')).toBe('');
      expect(await own.textContent('#status')).toContain(`step ${await own.textContent('#figure-step')},`);
    });
  });

  it('reads what is drawn, and test images picked by key', async () => {
    const { page } = lab;
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
    const { page } = lab;
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
  });

  it('shows the kernels of a step with their times and text', async () => {
    const { page } = lab;
    await page.click('#inspect');
    await page.waitForSelector('[data-kernel]');
    const summary = await page.textContent('#kernels-summary');
    const [, took] = /^A step of 32 images: \d+ kernels in one batch, [\d.,]+ million operations, (.+) on CPU\.$/.exec(
      summary,
    ) ?? [null, summary];
    // In the unit that fits, however fast the machine is.
    expect(took).toBe(time(millisecondsOf(took)));
    const rows = await page.locator('#kernel-table tbody tr').count();
    expect(rows).toBeGreaterThan(10);
    await page.click('[data-kernel="1"]');
    const texts = await page.locator('#kernel-detail pre').allTextContents();
    expect(texts[0]).toMatch(/^program .* grid/);
    expect(texts[1]).toMatch(/^\(func \$[\s\S]*v128\.load/);
    await page.selectOption('#kernel-order', 'time');
    expect(await page.locator('#kernel-table tbody tr').count()).toBe(rows);
  });
}
