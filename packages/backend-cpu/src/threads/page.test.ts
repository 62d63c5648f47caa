/** What bundles for browsers have in place of host.ts: the same names, and a page without its threads is no worker. */
import { expect, it, vi } from 'vitest';
import type * as host from './host.ts';
import * as page from './page.ts';

it('offers what bundles for browsers ask for, as Node does', () => {
  const offered: Partial<typeof host> = page;
  expect(Object.keys(offered).sort()).toEqual(
    [
      'allowRelaxed',
      'coreCount',
      'mayBlock',
      'memoryRemedy',
      'nodeModule',
      'processorName',
      'threadsAsked',
      'whyAlone',
    ].sort(),
  );
  expect([page.nodeModule('node:os'), page.threadsAsked(null), page.allowRelaxed()]).toEqual([
    undefined,
    undefined,
    false,
  ]);
});

it('has threads where memory can be shared', () => {
  expect(page.whyAlone()).toBe('the page is not cross-origin isolated');
  vi.stubGlobal('crossOriginIsolated', true);
  vi.stubGlobal('Worker', undefined);
  expect(page.whyAlone()).toBe('this kind of worker cannot start threads');
  vi.stubGlobal('Worker', class {});
  expect(page.whyAlone()).toBeNull();
  vi.stubGlobal('navigator', { hardwareConcurrency: 6 });
  expect(page.coreCount()).toBe(6);
  expect(page.mayBlock()).toBe(false);
  vi.stubGlobal('WorkerGlobalScope', class {});
  expect(page.mayBlock()).toBe(true);
  vi.unstubAllGlobals();
});
