/**
 * A page that brings its plans for WebGPU, in Chromium: it trains as the engine with its compiler does, bit for bit, without asking for that; and it asks for it
 * where a plan is missing. The plans are recorded in Node, on another device. Skipped without Chromium or WebGPU, unless POLYGRAD_REQUIRE names `browser` and `webgpu`.
 */
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundle } from './browser/bundle.mjs';
import { counted } from './browser/counted.mjs';
import { findChromium, patience, startChromium } from './browser/chromium.mjs';
import { onPage, say, within } from './browser/page.mjs';
import { recordOnWebGpu } from './browser/record-webgpu.mjs';
import { serve } from './browser/server.mjs';

const path = findChromium();
const named = (process.env.POLYGRAD_REQUIRE ?? '').split(',');
const required = named.includes('browser') && named.includes('webgpu');
const profiles = ['common', 'f16', 'subgroups', 'f16-subgroups'];

/** Run in the page: its adapters lack 16-bit floats from here on. */
const withoutHalf = `{
  const { get } = Object.getOwnPropertyDescriptor(GPUAdapter.prototype, 'features');
  const less = { get() { return new Set([...get.call(this)].filter((name) => name !== 'shader-f16')); } };
  Object.defineProperty(GPUAdapter.prototype, 'features', less);
}
`;

/** A file of plans for these profiles, and what else recording tells; or why there is none. */
async function recordedFor(some) {
  if (path === null) return 'no Chromium here: `bash tooling/devices/install.sh browser` installs it';
  try {
    return await recordOnWebGpu(some);
  } catch (error) {
    if (error.name !== 'EngineMissingError') throw error;
    return error.message;
  }
}

const one = await recordedFor(['common']);
if (typeof one === 'string') {
  it('a page that brings its plans for WebGPU', ({ skip }) => {
    if (required) throw new Error(`POLYGRAD_REQUIRE names browser and webgpu: ${one}`);
    skip(one);
  });
} else {
  describe('a page that brings its plans for WebGPU', () => {
    let browser;
    let server;
    let requests;
    let without;
    let both;
    /** Files of the compiler: those that the page imports when a plan is missing, and nothing else does. */
    let compiler;

    beforeAll(async () => {
      const { files, outside, warnings } = await bundle(['webgpu-planned', 'detected-planned']);
      expect([outside, warnings]).toEqual([[], []]);
      compiler = [...files.keys()].filter((name) => name.startsWith('/kernel-code'));
      const common = Buffer.from(one.file);
      const { file: half } = await recordOnWebGpu(['f16']);
      const { file: all } = await recordOnWebGpu(profiles);
      say(
        `plans of the page for WebGPU: ${common.length} bytes, ${gzipSync(common, { level: 9 }).length} gzip for one profile; ` +
          `${all.length} bytes, ${gzipSync(all, { level: 9 }).length} gzip for ${profiles.length}`,
      );
      // What the page loads besides its code, a little above what it is.
      expect(common.length).toBeLessThan(71_000);
      expect(gzipSync(common, { level: 9 }).length).toBeLessThan(16_000);
      expect(gzipSync(all, { level: 9 }).length).toBeLessThan(16_500);
      files.set('/webgpu.bin', common);
      files.set('/half.bin', Buffer.from(half));
      files.set('/all.bin', Buffer.from(all));
      both = await recordOnWebGpu(['common'], [{ threads: 1 }]);
      files.set('/both.bin', Buffer.from(both.file));
      files.set('/part.bin', common.subarray(0, common.length / 2));
      requests = counted(files);
      server = await serve(requests.served);
      browser = await startChromium(path);
      without = await onPage(
        browser.context,
        server.url,
        "import('/webgpu-planned.js').then((m) => m.missingWebGpu())",
      );
    });
    afterAll(async () => {
      await server?.close();
      await (browser === undefined ? undefined : within(patience / 1000, 'closing Chromium', browser.close()));
    });

    /** How many files of compilers were asked for. */
    const compilerAsked = () => requests.asked().filter((name) => compiler.includes(name)).length;

    /** What the page reports, and which files it asked for. Skips where the browser has no WebGPU. */
    async function visit(skip, options = {}, before = '') {
      if (without.report !== null && required) throw new Error(`POLYGRAD_REQUIRE names webgpu: ${without.report}`);
      skip(without.report !== null, without.report ?? '');
      requests.restart();
      const body = `${before}import('/webgpu-planned.js').then(({ runPlanned }) => runPlanned(${JSON.stringify(options)}))`;
      const { report, errors } = await onPage(browser.context, server.url, body);
      // The browser itself reports what the server has not.
      expect(errors.filter((text) => !text.includes('404'))).toEqual([]);
      return report;
    }

    it('trains as the engine with the compiler does, bit for bit, and does not ask for the compiler', async ({
      skip,
    }) => {
      const whole = await visit(skip, { path: null, profile: 'common' });
      expect(whole).toMatchObject({ plansLoaded: 0 });
      expect(compilerAsked()).toBe(1);
      const report = await visit(skip);
      say(
        `first step with plans for WebGPU: ${report.first.toFixed(0)} ms; made by the page: ${whole.first.toFixed(0)} ms`,
      );
      expect(report).toMatchObject({ losses: whole.losses, plansMade: 0, told: [], plansLoaded: report.plans });
      expect(report.device).toMatch(/, profile common$/);
      expect(compilerAsked()).toBe(0);
      // Devices round alike here, or nearly so.
      for (const [i, loss] of report.losses.entries()) expect(loss).toBeCloseTo(one.losses[0][i], 5);
    });

    it('asks for the compiler once where a plan is missing', async ({ skip }) => {
      const report = await visit(skip, { more: true });
      expect(report).toMatchObject({ plansMade: 0, values: [5, 7.5, 10], madeLater: 1 });
      expect(report.told).toEqual([expect.stringContaining('this computation was not recorded')]);
      expect(compilerAsked()).toBe(1);
    });

    it('takes the best profile that the file has and the adapter', async ({ skip }) => {
      const all = await visit(skip, { path: '/all.bin' });
      expect(all).toMatchObject({ plansMade: 0, told: [] });
      const half = /^(.*), profile (f16|f16-subgroups)$/.exec(all.device);
      if (half === null) return;
      const lacking = await visit(skip, { path: '/all.bin' }, withoutHalf);
      expect(lacking).toMatchObject({ plansMade: 0, told: [] });
      expect(lacking.device).toMatch(/, profile (common|subgroups)$/);
      expect(compilerAsked()).toBe(0);
    });

    it('has its compiler, and all that the adapter offers, where the file has no profile of the adapter', async ({
      skip,
    }) => {
      const report = await visit(skip, { path: '/half.bin' }, withoutHalf);
      expect(report).toMatchObject({ plansLoaded: 0, told: [expect.stringContaining('it has none for webgpu')] });
      expect(report.device).not.toContain('profile');
      expect(compilerAsked()).toBe(1);
      for (const [i, loss] of report.losses.entries()) expect(loss).toBeCloseTo(one.losses[0][i], 5);
    });

    it('has plans for all engines that auto-detection may choose', async ({ skip }) => {
      await visit(skip);
      const detect = async (options) => {
        requests.restart();
        const body = `import('/detected-planned.js').then(({ runDetected }) => runDetected(${JSON.stringify(options)}))`;
        const { report, errors } = await onPage(browser.context, server.url, body);
        expect(errors).toEqual([]);
        expect(report).toMatchObject({ plansMade: 0, told: [] });
        expect(report.plansLoaded).toBeGreaterThan(0);
        return report;
      };
      expect(await detect({ only: 'cpu' })).toMatchObject({ name: 'cpu', losses: both.losses[1] });
      expect(compilerAsked()).toBe(0);
      const { name, device } = await detect({ prefer: 'webgpu' });
      expect([name, device]).toEqual(['webgpu', expect.stringMatching(/, profile common$/)]);
      // The first visit tests the engine, which needs its compiler; later ones know.
      expect(compilerAsked()).toBe(1);
      await detect({ prefer: 'webgpu' });
      expect(compilerAsked()).toBe(0);
    });

    it.for(['/part.bin', '/nowhere.bin'])('makes plans anew where the file is %s', async (name, { skip }) => {
      const report = await visit(skip, { path: name });
      expect(report).toMatchObject({ plans: 0, plansLoaded: 0 });
      expect(report.told).toEqual([expect.stringContaining('the file of plans is not used')]);
      expect(compilerAsked()).toBe(1);
      for (const [i, loss] of report.losses.entries()) expect(loss).toBeCloseTo(one.losses[0][i], 5);
    });
  });
}
