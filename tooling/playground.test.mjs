/**
 * The playground in Chromium, as a visitor uses it: built, served, trained, drawn on. Skipped where there is no Chromium, unless
 * POLYGRAD_REQUIRE names `browser`. One build, one browser and, where nothing speaks against it, one page for all of them.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { servePlayground } from '../apps/playground/src/server/playground.ts';
import { findChromium, startChromium } from './browser/chromium.mjs';
import { access } from './playground/access.mjs';
import { networks } from './playground/networks.mjs';
import { training } from './playground/training.mjs';
import { troubles } from './playground/troubles.mjs';
import { countCompiled, patience, ready, watch } from './playground/visitor.mjs';

const path = findChromium();
const required = (process.env.POLYGRAD_REQUIRE ?? '').split(',').includes('browser');
const reason = 'no Chromium here: `bash tooling/devices/install.sh browser` installs it';

if (path === null && !required) {
  process.stderr.write(`playground: skipped, ${reason}\n`);
  it('playground in Chromium', ({ skip }) => skip(reason));
} else {
  describe('playground in Chromium', () => {
    /** The built folder, who serves it, the browser, the page most tests share, and everything it did that it should not have. */
    const lab = {
      folder: mkdtempSync(join(tmpdir(), 'polygrad-playground-')),
      chromium: (more) => startChromium(path, more),
      troubles: [],
    };

    beforeAll(async () => {
      if (path === null) throw new Error(`POLYGRAD_REQUIRE names browser, but there is ${reason}`);
      lab.site = await servePlayground(0, lab.folder);
      lab.browser = await lab.chromium();
      lab.page = await lab.browser.context.newPage();
      lab.page.setDefaultTimeout(patience);
      watch(lab.page, new URL(lab.site.url).origin, lab.troubles);
      await lab.page.addInitScript(countCompiled);
      await lab.page.goto(lab.site.url);
      await ready(lab.page);
    });
    afterAll(async () => {
      await lab.browser?.close();
      await lab.site?.close();
      rmSync(lab.folder, { recursive: true, force: true });
    });

    training(lab);
    networks(lab);
    access(lab);
    troubles(lab);
  });
}
