/** Eyes, hands and screens of all sorts. */
import { expect, it } from 'vitest';
import { accessibility, reads, ready, status, steps, visit } from './visitor.mjs';
import { isWhole } from '../../packages/compiler/src/fixtures/everyday.ts';

/** @param lab what the tests share: see ../playground.test.mjs */
export function access(lab) {
  it('has no violations of accessibility, light and dark, wide and narrow', async () => {
    const { page } = lab;
    for (const [width, colorScheme] of [
      [1400, 'light'],
      [360, 'dark'],
    ]) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 900 });
      // Colours and sizes are what they will be.
      await page.waitForFunction(
        () =>
          document.documentElement.scrollWidth <= innerWidth &&
          document.getAnimations().every(({ playState }) => playState !== 'running'),
      );
      expect(await accessibility(page)).toEqual([]);
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      expect(overflow).toBeLessThanOrEqual(0);
    }
  });

  it.runIf(isWhole)('has the pad near the button on a telephone, and times beside the names of kernels', async () => {
    await visit(lab.browser, lab.site.url, async (own) => {
      const top = async (selector) => (await own.locator(selector).boundingBox()).y;
      await own.setViewportSize({ width: 390, height: 844 });
      await ready(own);
      expect(await top('#training')).toBeLessThan(await top('#drawing'));
      expect(await top('#drawing')).toBeLessThan(await top('#curves'));
      // Pad and button together on one screen.
      expect((await top('.pad-side')) - (await top('#train'))).toBeLessThan(844 / 2);
      await own.click('#inspect');
      await own.waitForSelector('[data-kernel]');
      const time = await own.locator('#kernel-table tbody td').first().boundingBox();
      expect(time.x + time.width).toBeLessThanOrEqual(390);
      // Where there is room, training and curves stand beside the pad.
      await own.setViewportSize({ width: 1280, height: 900 });
      expect(await top('#drawing')).toBe(await top('#training'));
      expect(await top('#curves')).toBeLessThan(await top('#samples'));
    });
  });

  it.runIf(isWhole)('can be used with the keyboard alone', async () => {
    await visit(lab.browser, lab.site.url, async (own) => {
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
  });

  it('fits telephones, tablets and windows that change, with text of twice the size, and moves nothing where that is not wanted', async () => {
    const { page } = lab;
    // Pages in the background draw nothing.
    await page.bringToFront();
    const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' });
    const moving = await page
      .locator('.bar')
      .evaluateAll(
        (bars) => bars.filter((bar) => Number.parseFloat(getComputedStyle(bar).transitionDuration) > 0).length,
      );
    expect(moving).toBe(0);
    for (const size of ['', '200%']) {
      await page.evaluate((text) => {
        document.documentElement.style.fontSize = text;
      }, size);
      for (const width of [320, 375, 768, 1024, 1440]) {
        await page.setViewportSize({ width, height: 800 });
        expect(await overflow(), `${width} pixels, text ${size}`).toBeLessThanOrEqual(0);
        // Plots follow the window.
        await page.waitForFunction(() =>
          [...document.querySelectorAll('.plot')].every(
            (box) => box.querySelector('.uplot').getBoundingClientRect().width <= box.getBoundingClientRect().width + 1,
          ),
        );
      }
    }
    await page.evaluate(() => {
      document.documentElement.style.fontSize = '';
    });
    await page.emulateMedia({ reducedMotion: null });
  });
}
