/**
 * The CPU engine in a browser, out of a minified bundle: on a page's main thread and in a module worker, with memory that
 * threads share and without. Skipped where there is no Chromium, unless POLYGRAD_REQUIRE names `browser`.
 */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundle, sizes } from './browser/bundle.mjs';
import { runChecks } from './browser/checks.mjs';
import { findChromium, startChromium } from './browser/chromium.mjs';
import { inPage as inPageOf, say, within } from './browser/page.mjs';
import { isolation } from './browser/server.mjs';

const path = findChromium();
const required = (process.env.POLYGRAD_REQUIRE ?? '').split(',').includes('browser');
const reason = 'no Chromium here: `bash tooling/devices/install.sh browser` installs it';

// Run in the page; texts, because the test runner rewrites `import` in functions.
const onMainThread = `import('/checks.js').then(({ runChecks }) => runChecks())`;
const withoutWaiting = `import('/checks.js').then(({ runChecks }) => runChecks({ patience: 500 }))`;
const inWorker = `new Promise((resolve, reject) => {
  const worker = new Worker('/worker.js', { type: 'module' });
  worker.onerror = (event) => reject(new Error('the worker failed: ' + event.message));
  worker.onmessage = ({ data }) => {
    worker.terminate();
    if (data.error === undefined) resolve(data.report);
    else reject(new Error(data.error));
  };
})`;

describe('bundle for browsers', () => {
  it('asks for nothing outside itself', async () => {
    const application = await bundle(['pages/mlp']);
    expect(application.warnings).toEqual([]);
    expect(application.outside).toEqual([]);
    const { bytes, gzip } = sizes(application.files);
    say(
      `core, backend-cpu and a network of nn bundled: ${(bytes / 1000).toFixed(1)} kB, ${(gzip / 1000).toFixed(1)} kB gzip`,
    );
    // Far above what it is: a bundle that suddenly carries something else shall be noticed.
    expect(gzip).toBeLessThan(200_000);
  });
});

if (path === null && !required) {
  say(`skipped, ${reason}`);
  it('CPU engine in Chromium', ({ skip }) => skip(reason));
} else {
  describe('CPU engine in Chromium', () => {
    let browser;
    let built;
    let expected;

    beforeAll(async () => {
      if (path === null) throw new Error(`POLYGRAD_REQUIRE names browser, but there is ${reason}`);
      built = await bundle(['checks', 'worker']);
      const goldens = new URL('../packages/conformance/goldens/torch.bin.gz', import.meta.url);
      built.files.set('/torch.bin.gz', readFileSync(goldens));
      expected = await runChecks({ threads: 1 });
      browser = await startChromium(path);
    });
    afterAll(() => (browser === undefined ? undefined : within(15, 'closing Chromium', browser.close())));

    const inPage = (headers, body) => inPageOf(browser.context, built.files, headers, body);

    function judge({ report, errors }) {
      const { isolated, inWorker: worker, threads, conformance, milliseconds } = report;
      say(
        `${isolated ? 'isolated' : 'not isolated'}, ${worker ? 'module worker' : 'main thread'}: ${threads} of ${report.cores} ` +
          `threads (${report.readyWorkers} more started), ${conformance.passed} cases, loss ${report.losses.at(-1)}, ${milliseconds} ms`,
      );
      expect(errors).toEqual([]);
      expect(conformance.failures).toEqual([]);
      expect(conformance.passed).toBe(expected.conformance.passed);
      // The same number with every number of threads; across machine codes within rounding.
      expect(report.products[1]).toBe(report.products[0]);
      expect(report.losses.length).toBe(expected.losses.length);
      for (const [i, loss] of report.losses.entries()) expect(loss).toBeCloseTo(expected.losses[i], 3);
      expect(report.losses.at(-1)).toBeLessThan(0.02);
    }

    const places = [
      ['the main thread', onMainThread, false],
      ['a module worker', inWorker, true],
    ];
    const seen = [];

    it.each(places)(
      'uses threads on %s of an isolated page',
      async (_, body, worker) => {
        const result = await inPage(isolation, body);
        judge(result);
        const { report } = result;
        expect([report.isolated, report.inWorker]).toEqual([true, worker]);
        expect(report.threads).toBe(Math.min(report.cores, 8));
        expect(report.readyWorkers).toBe(report.threads - 1);
        if (report.threads > 1) expect(report.shared).toBeGreaterThan(0);
        seen.push(report);
      },
      90_000,
    );

    it.each(places)(
      'uses one thread on %s of any other page',
      async (_, body, worker) => {
        const result = await inPage({}, body);
        judge(result);
        const { report } = result;
        expect([report.isolated, report.inWorker]).toEqual([false, worker]);
        expect([report.threads, report.readyWorkers, report.shared]).toEqual([1, 0, 0]);
        seen.push(report);
      },
      90_000,
    );

    it('works alone where a policy forbids its threads', async () => {
      const policy = { ...isolation, 'Content-Security-Policy': "script-src 'self' 'wasm-unsafe-eval'" };
      const { report, errors } = await inPage(policy, withoutWaiting);
      // The browser itself reports what it refused.
      judge({ report, errors: errors.filter((text) => !text.includes('Content Security Policy')) });
      expect([report.isolated, report.readyWorkers, report.shared]).toEqual([true, 0, 0]);
      expect(report.losses).toEqual(seen[0]?.losses);
    }, 90_000);

    it('gives the same bits in all four', () => {
      expect(seen.length).toBe(4);
      for (const report of seen) {
        expect(report.losses).toEqual(seen[0].losses);
        expect(report.products).toEqual(seen[0].products);
      }
    });
  });
}
