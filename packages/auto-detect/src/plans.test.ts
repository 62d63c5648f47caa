/** Plans that a search keeps for later processes: where, when not, and that the next one finds them. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import '@polygrad/backend-cpu';
import { setLogger, stats, tensor } from '@polygrad/core';
import { isPlanCacheUsed, usePlanCache } from '@polygrad/core/plans';
import { afterAll, afterEach, beforeEach, expect, it, vi } from 'vitest';
import { autoDetectAndConfigureGpu, type AutoDetectOptions } from './index.ts';

const folder = mkdtempSync(join(tmpdir(), 'polygrad-plans-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
beforeEach(() => vi.stubEnv('XDG_CACHE_HOME', join(folder, 'caches')));
afterEach(() => setLogger(null));

/** A search on the CPU engine and one computation: how many plans were made and found. */
async function visit(options: AutoDetectOptions) {
  const { engine, plans } = await autoDetectAndConfigureGpu({ only: 'cpu', measure: false, ...options });
  expect(await tensor([1, 2, 3]).mul(2).add(1).array()).toEqual([3, 5, 7]);
  await plans?.saved();
  plans?.stop();
  const { plansMade, plansLoaded } = stats();
  engine.dispose();
  return { kept: plans !== null, plansMade, plansLoaded };
}

it('are found by the next search in the same place', async () => {
  const options = { plans: { folder, version: 'test' } };
  expect(await visit(options)).toEqual({ kept: true, plansMade: 1, plansLoaded: 0 });
  expect(readdirSync(folder).filter((name) => name !== 'caches')).toHaveLength(1);
  expect(await visit(options)).toEqual({ kept: true, plansMade: 0, plansLoaded: 1 });
});

it('lie among the caches of the user unless told otherwise', async () => {
  expect(await visit({ plans: false })).toMatchObject({ kept: false });
  expect(isPlanCacheUsed()).toBe(false);
  expect(await visit({})).toMatchObject({ kept: true, plansMade: 1 });
  expect(readdirSync(join(folder, 'caches', 'polygrad', 'plans'))).toHaveLength(1);
});

it('are left to a program that keeps its own', async () => {
  const own = await usePlanCache({ folder, version: 'own' });
  expect(await visit({})).toMatchObject({ kept: false });
  expect(isPlanCacheUsed()).toBe(true);
  own.stop();
  expect(isPlanCacheUsed()).toBe(false);
});

it('are not missed, and nobody is told, where no folder can be had', async () => {
  const told: string[] = [];
  setLogger((text) => void told.push(text));
  vi.stubEnv('XDG_CACHE_HOME', '/proc/1/nowhere');
  expect(await visit({})).toMatchObject({ plansMade: 1 });
  await new Promise((resolve) => setTimeout(resolve));
  expect(told).toEqual([]);
});
