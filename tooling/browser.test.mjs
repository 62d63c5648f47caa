/**
 * Engines in a browser, out of a minified bundle: the CPU engine on a page's main thread and in a module worker, with memory that
 * threads share and without; WebGPU beside it. Skipped where there is no Chromium, unless POLYGRAD_REQUIRE names `browser` (and `webgpu`).
 */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundle, sizes } from './browser/bundle.mjs';
import { runChecks } from './browser/checks.mjs';
import { findChromium, patience, startChromium } from './browser/chromium.mjs';
import { inPage as inPageOf, say, within } from './browser/page.mjs';
import { isolation } from './browser/server.mjs';
import { isWhole } from '../packages/compiler/src/fixtures/everyday.ts';

const path = findChromium();
const named = (process.env.POLYGRAD_REQUIRE ?? '').split(',');
const required = named.includes('browser');
const reason = 'no Chromium here: `bash tooling/devices/install.sh browser` installs it';

/** Everyday one of so many cases of the suite; the long tests run all (the part `engines in Chromium`). */
const sample = isWhole ? 1 : 12;

// Run in the page; texts, because the test runner rewrites `import` in functions.
const onMainThread = `import('/checks.js').then(({ runChecks }) => runChecks({ sample: ${sample} }))`;
const withoutWaiting = `import('/checks.js').then(({ runChecks }) => runChecks({ sample: ${sample}, patience: 500 }))`;
const onWebGpu = `import('/webgpu.js').then(({ runWebGpu }) => runWebGpu())`;
const inWorker = `new Promise((resolve, reject) => {
  const worker = new Worker('/worker.js?sample=${sample}', { type: 'module' });
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
  describe('engines in Chromium', () => {
    let browser;
    let built;
    let expected;

    beforeAll(async () => {
      if (path === null) throw new Error(`POLYGRAD_REQUIRE names browser, but there is ${reason}`);
      built = await bundle(['checks', 'worker', 'webgpu', 'turns']);
      const goldens = new URL('../packages/conformance/goldens/torch.bin.gz', import.meta.url);
      built.files.set('/torch.bin.gz', readFileSync(goldens));
      expected = await runChecks({ threads: 1, sample });
      browser = await startChromium(path);
    });
    afterAll(() => (browser === undefined ? undefined : within(patience / 1000, 'closing Chromium', browser.close())));

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

    it.each(places)('uses threads on %s of an isolated page', async (_, body, worker) => {
      const result = await inPage(isolation, body);
      judge(result);
      const { report } = result;
      expect([report.isolated, report.inWorker]).toEqual([true, worker]);
      expect(report.threads).toBe(Math.min(report.cores, 8));
      expect(report.readyWorkers).toBe(report.threads - 1);
      if (report.threads > 1) expect(report.shared).toBeGreaterThan(0);
      seen.push(report);
    });

    it.each(places)('uses one thread on %s of any other page', async (_, body, worker) => {
      const result = await inPage({}, body);
      judge(result);
      const { report } = result;
      expect([report.isolated, report.inWorker]).toEqual([false, worker]);
      expect([report.threads, report.readyWorkers, report.shared]).toEqual([1, 0, 0]);
      seen.push(report);
    });

    it('leaves the page its turns while it reads in a loop', async () => {
      const { report, errors } = await inPage({}, `import('/turns.js').then(({ runTurns }) => runTurns())`);
      say(`timers, messages and frames came within ${report.reads} reads`);
      expect({ came: report.came, errors }).toEqual({ came: ['frame', 'message', 'timer'], errors: [] });
    });

    it('works alone where a policy forbids its threads', async () => {
      const policy = { ...isolation, 'Content-Security-Policy': "script-src 'self' 'wasm-unsafe-eval'" };
      const { report, errors } = await inPage(policy, withoutWaiting);
      // The browser itself reports what it refused.
      judge({ report, errors: errors.filter((text) => !text.includes('Content Security Policy')) });
      expect([report.isolated, report.readyWorkers, report.shared]).toEqual([true, 0, 0]);
      expect(report.losses).toEqual(seen[0]?.losses);
    });

    it('says what a policy must allow', async () => {
      const refused = inPage({ 'Content-Security-Policy': "script-src 'self'" }, onMainThread);
      await expect(refused).rejects.toThrow(
        "[cpu] WebAssembly cannot be compiled here; a page's content security policy must allow it: script-src 'wasm-unsafe-eval'",
      );
    });

    it('gives the same bits in all four', () => {
      expect(seen.length).toBe(4);
      for (const report of seen) {
        expect(report.losses).toEqual(seen[0].losses);
        expect(report.products).toEqual(seen[0].products);
      }
    });

    it('trains on WebGPU as on the CPU, loses a device and starts again', async (context) => {
      const { report, errors } = await inPage({}, onWebGpu);
      if (report.missing !== undefined) {
        if (required && named.includes('webgpu')) throw new Error(`POLYGRAD_REQUIRE names webgpu: ${report.missing}`);
        say(`WebGPU skipped, ${report.missing}`);
        return context.skip(report.missing);
      }
      const { device, subgroups, differences, losses, expected: onCpu, submits, first, lost, after, disposed } = report;
      say(
        `WebGPU (${device}): losses ${losses.map((loss) => loss.toFixed(4)).join(' ')}, lost in ${lost.milliseconds.toFixed(0)} ms, ` +
          (subgroups === undefined ? 'no subgroups' : `subgroups of ${subgroups.least} to ${subgroups.most}`),
      );
      expect(errors).toEqual([]);
      expect(differences).toEqual([]);
      expect(losses.length).toBe(4);
      for (const [i, loss] of losses.entries()) expect(Math.abs(loss - onCpu[i])).toBeLessThan(1e-3 * onCpu[i]);
      expect(losses.at(-1)).toBeLessThan(losses[0]);
      // A scope whose kernels are made is one submission.
      expect([submits, first]).toEqual([1, 64]);
      expect(lost.pending).toEqual(['DeviceLostError', 'DeviceLostError']);
      expect(lost.reason).toBe('lost');
      expect(after).toBe(8);
      expect(disposed).toEqual({ bytes: 0, error: 'EngineDisposedError' });
    });
  });
}
