/**
 * Tiles of WebGPU that a page has measured are there for the next page of its origin, in IndexedDB; damaged entries and databases of
 * somebody else, or that do not open, are as none. Skipped without Chromium, unless POLYGRAD_REQUIRE names `browser`.
 */
import { expect, it } from 'vitest';
import { bundle } from './browser/bundle.mjs';
import { findChromium, patience, startChromium } from './browser/chromium.mjs';
import { onPage, within } from './browser/page.mjs';
import { serve } from './browser/server.mjs';

const required = (process.env.POLYGRAD_REQUIRE ?? '').split(',');

// Run in the page; texts, because the test runner rewrites `import` in functions.
const oneVisit = (known) => `import('/tuning.js').then(({ runVisit }) => runVisit(${known}))`;
const troubles = `import('/tuning.js').then(({ runTroubles }) => runTroubles())`;

it('tiles are measured on the first visit of a page, and found again on the next', async ({ skip }) => {
  const path = findChromium();
  if (path === null) {
    if (required.includes('browser')) throw new Error('POLYGRAD_REQUIRE names browser, but there is no Chromium here');
    return skip('no Chromium here: `bash tooling/devices/install.sh browser` installs it');
  }
  const { files } = await bundle(['tuning']);
  const browser = await startChromium(path);
  const server = await serve(files);
  try {
    const on = (body) => onPage(browser.context, server.url, body);
    const { report: first, errors } = await on(oneVisit(false));
    if (first.missing !== undefined) {
      if (required.includes('webgpu')) throw new Error(`POLYGRAD_REQUIRE names webgpu: ${first.missing}`);
      return skip(first.missing);
    }
    expect(errors).toEqual([]);
    const { sum, sources: standard } = first.plain;
    const tuned = first.after.sources;
    // Another tile than without measuring, with the same results.
    expect(first.looks).toBeGreaterThan(0);
    expect(first.before).toEqual(first.plain);
    expect(tuned).not.toEqual(standard);
    expect(first.after.sum).toBe(sum);
    expect(first.entries.length).toBe(1);
    const [[, text]] = first.entries;
    const kind = 'float32 48x32x48x1 k.c 1';
    expect(Object.keys(JSON.parse(text).tiles)).toEqual([kind]);

    const { report: second, errors: more } = await on(oneVisit(true));
    expect(more).toEqual([]);
    expect(second.looks).toBe(0);
    for (const run of [second.before, second.after]) expect(run).toEqual({ sum, sources: tuned });
    expect(second.entries).toEqual(first.entries);

    const { report: others, errors: uncaught } = await on(troubles);
    expect(uncaught).toEqual([]);
    expect(Object.keys(others).length).toBe(6);
    for (const [what, { looks, before, after, entries }] of Object.entries(others)) {
      expect(looks, what).toBeGreaterThan(0);
      for (const run of [before, after]) expect(run, what).toEqual(first.plain);
      if (entries !== undefined) expect(JSON.parse(entries[0][1]).tiles, what).toHaveProperty([kind]);
    }
  } finally {
    await server.close();
    await within(patience / 1000, 'closing Chromium', browser.close());
  }
});
