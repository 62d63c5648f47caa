/**
 * Arguments of a wrong kind, as programs in JavaScript pass them: every operation refuses them in its own words, and the next call is as
 * good as ever. What no operation can take at all is left out: null in the place of options.
 */
import { readdirSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import * as pg from '../index.ts';
import { createReferenceEngine } from '@polygrad/testing';
import { sampled } from '@polygrad/compiler/fixtures/everyday';

beforeAll(async () => {
  await pg.setEngine(createReferenceEngine());
});

const files = readdirSync(new URL('.', import.meta.url), { recursive: true })
  .map((file) => String(file).replaceAll('\\', '/'))
  .filter((file) => /^(?!fixtures)[a-z-]+\/[a-z-]+\.ts$/.test(file));
const modules = await Promise.all(
  files.map((file) => import(new URL(file, import.meta.url).href) as Promise<Record<string, unknown>>),
);
const exported = pg as unknown as Record<string, unknown>;
type Operation = (...args: unknown[]) => unknown;
const operations = modules
  .flatMap((module) => Object.entries(module))
  .filter(([name, value]) => typeof value === 'function' && /^[a-z]/.test(name) && exported[name] === value) as [
  string,
  Operation,
][];

/** Calls an operation; a message if it fails other than by an OperationError of a public name. */
async function complaint(operation: Operation, args: readonly unknown[]): Promise<string | null> {
  try {
    for (const result of [await operation(...args)].flat()) (result as Partial<pg.Tensor> | undefined)?.dispose?.();
    return null;
  } catch (error) {
    return error instanceof pg.OperationError && error.op in exported ? null : `${String(error)}`;
  }
}

describe('wrong kinds of arguments', () => {
  it('covers the operations', () => {
    expect(operations.length).toBeGreaterThan(250);
  });

  it.each(sampled(operations, 3))('%s refuses them and leaves everything as it was', async (_, operation) => {
    const t = pg.tensor([
      [1, 2, 3],
      [4, 5, 6],
    ]);
    const values = [t, undefined, 'x', [[1]], 1.5, Number.NaN, {}, true, -99, [t], ['a']];
    const lists: unknown[][] = [[null], ...values.map((a) => [a])];
    for (const a of values) for (const b of values) lists.push([a, b]);
    for (const b of [t, undefined, 'x', 1]) for (const c of values) lists.push([t, b, c]);
    for (const args of lists) expect(await complaint(operation, args)).toBe(null);
    const sum = pg.scope(() => t.add(1));
    pg.flush();
    expect([...(sum.dataSync() as Float32Array)]).toEqual([2, 3, 4, 5, 6, 7]);
    sum.dispose();
    t.dispose();
  });
});
