/**
 * A page that brings its plans, in Chromium: it trains as the page with the compiler does, without asking for that; and it asks for it where a plan is missing.
 * Skipped without Chromium, unless POLYGRAD_REQUIRE names `browser`.
 */
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundle } from './browser/bundle.mjs';
import { counted } from './browser/counted.mjs';
import { findChromium, patience, startChromium } from './browser/chromium.mjs';
import { onPage, say, within } from './browser/page.mjs';
import { recordTraining } from './browser/record.mjs';
import { isolation, serve } from './browser/server.mjs';

const path = findChromium();
const required = (process.env.POLYGRAD_REQUIRE ?? '').split(',').includes('browser');
const reason = 'no Chromium here: `bash tooling/devices/install.sh browser` installs it';

/** The engines of visitors: with multiply-add in one rounding and without, and with a second thread. */
const visitors = [{ threads: 1 }, { threads: 1, relaxedSimd: false }, { threads: 2 }];

if (path === null && !required) {
  it('a page that brings its plans', ({ skip }) => skip(reason));
} else {
  describe('a page that brings its plans', () => {
    let browser;
    let server;
    let requests;
    /** Files of the compiler: those that the page imports when a plan is missing, and nothing else does. */
    let compiler;
    let recorded;
    let file;

    beforeAll(async () => {
      if (path === null) throw new Error(`POLYGRAD_REQUIRE names browser, but there is ${reason}`);
      recorded = await recordTraining(visitors);
      file = Buffer.from(recorded.file);
      const { files, outside, warnings } = await bundle(['planned']);
      expect([outside, warnings]).toEqual([[], []]);
      compiler = [...files.keys()].filter((name) => name.startsWith('/kernel-code'));
      files.set('/plans.bin', file);
      files.set('/half.bin', file.subarray(0, file.length / 2));
      files.set('/other.bin', Buffer.from('<!doctype html><title>404</title>'.repeat(99)));
      // The same page with its compiler, recording.
      const whole = await bundle(['record']);
      for (const [name, text] of whole.files) files.set(`/whole${name}`, text);
      requests = counted(files);
      server = await serve(requests.served);
      browser = await startChromium(path);
    });
    afterAll(async () => {
      await server?.close();
      await (browser === undefined ? undefined : within(patience / 1000, 'closing Chromium', browser.close()));
    });

    /** What the page reports, and which files it asked for. */
    async function visit(options = {}) {
      requests.restart();
      const body = `import('/planned.js').then(({ runPlanned }) => runPlanned(${JSON.stringify(options)}))`;
      const { report, errors } = await onPage(browser.context, server.url, body);
      // The browser itself reports what the server has not.
      expect(errors.filter((text) => !text.includes('404'))).toEqual([]);
      return report;
    }

    it('trains as the page with the compiler does, bit for bit, and does not ask for the compiler', async () => {
      expect(compiler.length).toBe(1);
      requests.restart();
      const body = "import('/whole/record.js').then(({ recordTraining }) => recordTraining([{ threads: 1 }]))";
      const { report: whole } = await onPage(
        browser.context,
        server.url,
        `${body}.then(({ file, losses }) => ({ losses, file: [...file] }))`,
      );
      const report = await visit();
      say(
        `plans of the page: ${file.length} bytes, ${gzipSync(file, { level: 9 }).length} gzip, for ${visitors.length} engines; ` +
          `${whole.file.length} bytes, ${gzipSync(Buffer.from(whole.file), { level: 9 }).length} gzip for one; first step ${report.first.toFixed(0)} ms`,
      );
      // What the page loads besides its code, a little above what it is.
      expect(whole.file.length).toBeLessThan(39_000);
      expect(gzipSync(Buffer.from(whole.file), { level: 9 }).length).toBeLessThan(14_600);
      expect(report).toMatchObject({ losses: whole.losses[0], plansMade: 0, told: [] });
      expect(report.losses).toEqual(recorded.losses[0]);
      expect(report.plansLoaded).toBeGreaterThan(0);
      expect(requests.asked()).not.toContain(compiler[0]);
      expect(report.plans).toBe(visitors.length * report.plansLoaded);
    });

    it('asks for the compiler once where a plan is missing, and who cannot wait is told', async () => {
      const report = await visit({ more: true });
      expect(report).toMatchObject({
        plansMade: 0,
        values: [5, 7.5, 10],
        afterwards: [12.5, 15, 17.5],
        losses: recorded.losses[0],
      });
      expect(report.refused).toEqual({
        name: 'UnsupportedError',
        message: expect.stringContaining(
          'the compiler, which a plan that was not brought along needs, is still being loaded; read with await',
        ),
      });
      expect(report.madeLater).toBe(1);
      expect(requests.asked().filter((name) => name === compiler[0])).toEqual(compiler);
    });

    it.each(['/half.bin', '/other.bin', '/nowhere.bin'])('makes plans anew where the file is %s', async (name) => {
      const report = await visit({ path: name });
      expect(report).toMatchObject({ plans: 0, plansLoaded: 0, losses: recorded.losses[0] });
      expect(report.plansMade).toBeGreaterThan(0);
      expect(report.told).toEqual([expect.stringContaining('the file of plans is not used')]);
      expect(requests.asked()).toContain(compiler[0]);
    });

    it('finds the plans of its number of threads', async () => {
      const isolated = await serve(new Map([...(await bundle(['planned'])).files, ['/plans.bin', file]]), isolation);
      try {
        const run = async (threads) => {
          const body = `import('/planned.js').then(({ runPlanned }) => runPlanned({ threads: ${threads} }))`;
          return (await onPage(browser.context, isolated.url, body)).report;
        };
        expect(await run(2)).toMatchObject({ plansMade: 0, losses: recorded.losses[2] });
        const { plansMade, losses, told } = await run(3);
        expect(plansMade).toBeGreaterThan(0);
        expect(losses).toEqual(recorded.losses[2]);
        expect(told).toEqual([expect.stringContaining('it has none for cpu with these threads')]);
      } finally {
        await isolated.close();
      }
    });
  });
}
