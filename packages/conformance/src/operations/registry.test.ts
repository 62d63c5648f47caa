/** The registry has one row for every operation, and each says something. */
import * as pg from '@polygrad/core';
import { describe, expect, it } from 'vitest';
import { packagedGoldens, readGoldens } from '../goldens/file.ts';
import { nd } from '../oracle/ndarray.ts';
import { type Instance, spec } from '../spec.ts';
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

  it('is of specs that draw as many inputs as they name', () => {
    const one: Instance<1> = { label: '', draw: () => [nd([], [1])] };
    const rest = { name: 'add', dtypes: [], gradient: { of: [0], order: 2 } } as const;
    const sum = spec<2>({
      ...rest,
      // @ts-expect-error: draws one input, and takes two
      instances: [one],
      run: ([a, b]) => pg.add(a, b),
      // @ts-expect-error: there is no third
      oracle: ([_a, _b, c]) => c,
    });
    expect(sum.instances).toHaveLength(1);
  });

  it('names every case once', () => {
    const labels = operations.flatMap(({ specs }) =>
      specs.flatMap((spec) => spec.instances.map(({ label }) => `${spec.name} / ${label} / ${spec.dtypes}`)),
    );
    expect(labels.filter((label, i) => labels.indexOf(label) !== i)).toEqual([]);
  });
});
