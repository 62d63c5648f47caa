/** The registry has one row for every operation, and each says something. */
import * as pg from '@polygrad/core';
import { describe, expect, it } from 'vitest';
import { packagedGoldens, readGoldens } from '../goldens/file.ts';
import { operations } from './registry.ts';

const names = operations.map(({ name }) => name);

describe('the registry of operations', () => {
  it('has one row for each, and they are public functions', () => {
    expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
    expect(names.filter((name) => typeof (pg as Readonly<Record<string, unknown>>)[name] !== 'function')).toEqual([]);
  });

  it('checks every operation, calls it at random, or says what stands for that', () => {
    const silent = operations.filter(({ specs, calls, notes }) => specs.length + calls.length === 0 && !notes);
    expect(silent.map(({ name }) => name)).toEqual([]);
  });

  it('has a row for every operation that golden values are of', async () => {
    const goldens = await readGoldens(packagedGoldens() as Uint8Array);
    const missing = new Set(goldens.map(({ op }) => op).filter((op) => op in pg && !names.includes(op)));
    expect([...missing]).toEqual([]);
  });

  it('names every case once', () => {
    const labels = operations.flatMap(({ specs }) =>
      specs.flatMap((spec) => spec.instances.map(({ label }) => `${spec.name} / ${label} / ${spec.dtypes}`)),
    );
    expect(labels.filter((label, i) => labels.indexOf(label) !== i)).toEqual([]);
  });
});
