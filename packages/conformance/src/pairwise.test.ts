/** The cases that a pairwise sample takes of the suite visit all that they should. */
import { expect, it } from 'vitest';
import { defaultTolerances } from './compare.ts';
import { pairwise } from './pairwise.ts';
import { allCases } from './suites/all.ts';

const names = allCases(
  {
    ...{ holds: () => true, computesDouble: true, flushesDenormals: false, tolerances: defaultTolerances },
    eagerly: (f) => f(),
  },
  null,
  false,
).map(({ name }) => name);

it('visits every operation by every check in every dtype, and every instance by values, views and derivatives', () => {
  const chosen = pairwise(names);
  const [all, visited] = [new Set<string>(), new Set<string>()];
  for (const [i, name] of names.entries()) {
    const [operation, instance, dtype, check, more] = name.split(' / ');
    if (check === undefined || more !== undefined) continue;
    const ways = [`${operation} / ${dtype} / ${check}`, `${operation} / ${instance}`];
    if (/derivative|gradient|^forward$/.test(check)) ways.push(`${operation} / ${instance} / derivative`);
    if (/transposed|strided|flipped/.test(check)) ways.push(`${operation} / ${instance} / view`);
    if (check === 'plain') ways.push(`${operation} / ${instance} / values`);
    for (const way of ways) {
      all.add(way);
      if (chosen.has(i)) visited.add(way);
    }
  }
  expect(all.size).toBeGreaterThan(15_000);
  expect([...all].filter((way) => !visited.has(way))).toEqual([]);
  expect(chosen.size / names.length).toBeLessThan(0.35);
});

it('takes every second of the cases that are of no operation, and turns dtypes and checks from instance to instance', () => {
  const shapes = ['[1]', '[2]', '[3]', '[4]'];
  const all = [
    ...shapes.flatMap((shape) =>
      ['float32', 'int32'].flatMap((d) => ['plain', 'flipped'].map((c) => `add / ${shape} / ${d} / ${c}`)),
    ),
    ...['memory / a', 'memory / b', 'goldens / add / 2 / float32', 'goldens / add / 3 / float32'],
  ];
  expect(all.filter((_, i) => pairwise(all).has(i))).toEqual([
    ...['add / [1] / float32 / plain', 'add / [1] / float32 / flipped'],
    ...['add / [2] / int32 / plain', 'add / [2] / int32 / flipped'],
    ...['add / [3] / float32 / plain', 'add / [3] / float32 / flipped'],
    ...['add / [4] / int32 / plain', 'add / [4] / int32 / flipped'],
    ...['memory / a', 'goldens / add / 2 / float32'],
  ]);
});
