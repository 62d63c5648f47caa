/** Runs the one-line examples of layers, initialisers and schedules, and compares with what the comments behind them say. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as core from '@polygrad/core';
import { createReferenceEngine } from '@polygrad/core/testing';
import { beforeAll, expect, it } from 'vitest';
import * as nn from './index.ts';

beforeAll(() => core.setEngine(createReferenceEngine()));

const files = ['layers/activation.ts', 'init/init.ts', 'optim/schedule.ts'];
const examples = files.flatMap((file) =>
  Array.from(
    readFileSync(join(import.meta.dirname, file), 'utf8').matchAll(
      /@example\n \* (new .*|\w+\(.*); \/\/ ([[\]\d., e-]+)\n/g,
    ),
    ([, call = '', result = '']) => [call, result] as const,
  ),
);

it.each(examples)('%s is %s', async (call, result) => {
  const names = { ...core, ...nn };
  const value: unknown = new Function(...Object.keys(names), `return ${call}`)(...Object.values(names));
  const got = core.isTensor(value) ? await value.array() : value;
  const flat = (x: unknown): number[] => [x].flat() as number[];
  const wanted = flat(JSON.parse(result));
  expect(flat(got)).toHaveLength(wanted.length);
  for (const [i, number] of flat(got).entries()) expect(number).toBeCloseTo(wanted[i] as number, 6);
});

it('there are some', () => expect(examples.length).toBeGreaterThan(25));
