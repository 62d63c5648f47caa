/**
 * Plans kept between processes of Node, and between visits of a page in Chromium: found again, written by several at once, left half written.
 * The page is skipped without Chromium, unless POLYGRAD_REQUIRE names `browser`.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundle } from './browser/bundle.mjs';
import { findChromium, patience, startChromium } from './browser/chromium.mjs';
import { onPage, within } from './browser/page.mjs';
import { serve } from './browser/server.mjs';

const required = (process.env.POLYGRAD_REQUIRE ?? '').split(',');

describe('processes', () => {
  const base = mkdtempSync(join(tmpdir(), 'polygrad-plans-'));
  const script = join(base, 'step.mjs');
  afterAll(() => rmSync(base, { recursive: true }));
  beforeAll(async () => {
    const build = await rolldown({
      input: fileURLToPath(new URL('./plans/step.mjs', import.meta.url)),
      platform: 'node',
      resolve: { conditionNames: ['@polygrad/source', 'node', 'import', 'default'] },
    });
    const { output } = await build.generate({ format: 'es', codeSplitting: false });
    await build.close();
    writeFileSync(script, output[0].code);
  });

  function start(folder, ...args) {
    const child = spawn(process.execPath, [script, folder, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (part) => {
      text += part;
    });
    const report = once(child, 'close').then(([code]) => {
      expect(code).toBe(0);
      return JSON.parse(text.split('\n').at(-2));
    });
    return { child, report };
  }

  it('find the plans of others, whole, however many write at once', async () => {
    const folder = join(base, 'plans');
    const both = [start(folder, 'later'), start(folder, 'later')];
    await Promise.all(both.map(({ child }) => once(child.stdout, 'data')));
    for (const { child } of both) child.stdin.write('go\n');
    const [one, two] = await Promise.all(both.map(({ report }) => report));
    expect(one).toMatchObject({ plansLoaded: 0, told: [] });
    expect(one.plansMade).toBeGreaterThan(0);
    expect(two).toEqual(one);
    const files = readdirSync(folder);
    expect(files.length).toBe(one.plansMade);
    for (const name of files) {
      expect(name).toMatch(/^[0-9a-f]{12}-[0-9a-f]{16}-[0-9a-f]{8}-[0-9a-f]{32}\.plan$/);
      if (process.platform !== 'win32') expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
    }
    expect(await start(folder).report).toEqual({ ...one, plansMade: 0, plansLoaded: one.plansMade });

    // One that was cut off, as where a disk is full.
    const [first] = files;
    writeFileSync(join(folder, first), readFileSync(join(folder, first)).subarray(0, 700));
    const { told, ...rest } = await start(folder).report;
    expect(rest).toEqual({ values: one.values, plansMade: 1, plansLoaded: one.plansMade - 1 });
    expect(told.length).toBe(1);
    expect(await start(folder).report).toMatchObject({ plansMade: 0, told: [] });
  });
});

describe('pages', () => {
  it('find the plans of the visit before', async ({ skip }) => {
    const path = findChromium();
    if (path === null) {
      if (required.includes('browser'))
        throw new Error('POLYGRAD_REQUIRE names browser, but there is no Chromium here');
      return skip('no Chromium here: `bash tooling/devices/install.sh browser` installs it');
    }
    const { files, outside } = await bundle(['plans']);
    expect(outside).toEqual([]);
    const browser = await startChromium(path);
    const server = await serve(files);
    try {
      // Run in the page; texts, because the test runner rewrites `import` in functions.
      const on = async (call) => {
        const body = `import('/plans.js').then((page) => page.${call}())`;
        const { report, errors } = await onPage(browser.context, server.url, body);
        expect(errors).toEqual([]);
        return report;
      };
      const first = await on('runVisit');
      expect(first).toMatchObject({ plansMade: 1, plansLoaded: 0, told: [] });
      expect(await on('runVisit')).toEqual({ ...first, plansMade: 0, plansLoaded: 1 });

      const { found, rows } = await on('runTroubles');
      expect(rows).toBe(1);
      const { values } = first;
      const anew = { values, plansMade: 1, plansLoaded: 0 };
      const why = (text) => [expect.stringContaining(text)];
      expect(found).toEqual({
        'another byte': { ...anew, told: why('it is damaged') },
        'written again': { values, plansMade: 0, plansLoaded: 1, told: [] },
        'no bytes': { ...anew, told: [] },
        'a later version of the database': { ...anew, told: why('cannot be read') },
        'no storage': { ...anew, told: why('storage is not allowed here') },
      });
    } finally {
      await server.close();
      await within(patience / 1000, 'closing Chromium', browser.close());
    }
  });
});
