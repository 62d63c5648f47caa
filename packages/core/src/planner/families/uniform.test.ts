/** Which nodes are computed alike for every size: each rule, both answers. */
import { describe, expect, it } from 'vitest';
import { registerDefinition } from '../../graph/definition.ts';
import '../../index.ts';
import { definitions } from '../../primitives/all.ts';
import type { PrimitiveName } from '../../graph/node.ts';
import { countedAxes, isUniform, type SizedShape, stretchesOf } from './uniform.ts';

for (const definition of definitions) registerDefinition(definition);

/** A shape; `n` is the size, here 7. */
const of = (...shape: (number | 'n' | '3n')[]): SizedShape => {
  const lengths = shape.map((x) => (x === 'n' ? 7 : x === '3n' ? 21 : x));
  const axes = shape.map((x) => typeof x === 'string');
  return { shape: lengths, axes: axes.includes(true) ? axes : null };
};

const slice = (start: number[], step: number[]): unknown => ({ start, length: [], step });
const conv = (groups: number, batchGroups = 1): unknown => ({ groups, batchGroups });
const window = { size: [3], stride: [1], dilation: [1] };

type Case = readonly [op: PrimitiveName, attr: unknown, node: SizedShape, ...src: SizedShape[]];

const alike: readonly Case[] = [
  ['neg', null, of('n', 3), of('n', 3)],
  ['argSort', { axis: 0 }, of(4), of(4)],
  ['where', null, of('n'), of('n'), of('n'), of('n')],
  ['constant', null, of('n')],
  ['scalar', null, of()],
  ['iota', { length: 7 }, of('n')],
  ['randomBits', {}, of('n', 3), of(), of()],
  ['randomBits', {}, of(3, 'n'), of(), of()],
  ['permute', { axes: [1, 0] }, of(3, 'n'), of('n', 3)],
  ['expand', {}, of('n', 3), of(1, 3)],
  ['reshape', {}, of('3n'), of('n', 3)],
  ['reshape', {}, of('n', 3), of('3n')],
  ['reshape', {}, of(2, 'n', 3), of(2, '3n')],
  ['reshape', {}, of(1, 'n', 1), of('n')],
  ['slice', slice([0, 1], [1, 2]), of('n', 2), of('n', 5)],
  ['slice', slice([0, 0], [1, 1]), of(3, 5), of('n', 5)],
  ['slice', slice([4, 0], [-2, 1]), of(3, 5), of('n', 5)],
  ['slice', slice([1, 0], [1, 1]), of('n', 5), of('3n', 5)],
  ['pad', { low: [0, 0], high: [4, 0] }, of('n', 3), of(3, 3)],
  ['pad', { low: [1, 0], high: [13, 0] }, of('3n', 3), of('n', 3)],
  ['concat', { axis: 0 }, of('3n', 5), of('n', 5), of(14, 5)],
  ['pad', { low: [0, 1], high: [0, 2] }, of('n', 6), of('n', 3)],
  ['concat', { axis: 1 }, of('n', 5), of('n', 2), of('n', 3)],
  ['reduce', { op: 'sum', axes: [0] }, of(3), of('n', 3)],
  ['argReduce', { op: 'max', axes: [0] }, of(3), of('n', 3)],
  ['argReduce', { op: 'max', axes: [0, 1] }, of(), of('n', 3)],
  ['argReduce', { op: 'max', axes: [1] }, of('n'), of('n', 3)],
  ['gather', { axis: 0 }, of('n', 3), of(9, 3), of('n')],
  ['gather', { axis: 0 }, of(4, 3), of('n', 3), of(4)],
  ['scatterAdd', { axis: 0 }, of(9, 3), of(9, 3), of('n'), of('n', 3)],
  ['scatterAdd', { axis: 0 }, of('n', 3), of('n', 3), of(4), of(4, 3)],
  ['window', window, of('n', 4, 3), of('n', 6)],
  ['fold', { ...window, spatial: [6] }, of('n', 6), of('n', 4, 3)],
  ['dotGeneral', {}, of('n', 4), of('n', 3), of(3, 4)],
  ['conv', conv(1), of('n', 4, 6), of('n', 3, 6), of(4, 3, 3)],
];

const otherwise: readonly Case[] = [
  ['argSort', { axis: 0 }, of('n'), of('n')],
  ['scan', { axis: 0 }, of('n', 3), of('n', 3)],
  ['scatter', { axis: 0 }, of('n'), of('n'), of(2), of(2)],
  ['slice', slice([0, 0], [2, 1]), of('n', 5), of('n', 5)],
  ['slice', slice([6, 0], [-1, 1]), of('n', 5), of('n', 5)],
  ['argReduce', { op: 'max', axes: [0, 1] }, of(), of(3, 'n')],
  ['window', window, of(2, 'n', 3), of(2, 'n')],
  ['fold', { ...window, spatial: [6] }, of(2, 'n'), of(2, 'n', 3)],
  ['conv', conv(1), of(2, 4, 'n'), of(2, 3, 'n'), of(4, 3, 3)],
  ['conv', conv(2), of('n', 4, 6), of('n', 6, 6), of(4, 3, 3)],
  ['conv', conv(1, 2), of('n', 4, 6), of('n', 3, 6), of(4, 3, 3)],
];

const named = (one: Case): readonly [string, Case] => [
  `${one[0]} ${JSON.stringify(one[1])} of ${one
    .slice(2)
    .map((x) => `[${(x as SizedShape).shape}]`)
    .join(' from ')}`,
  one,
];

describe('isUniform', () => {
  it.each(alike.map(named))('%s', (_, [op, attr, node, ...src]) => {
    expect(isUniform(op, attr, node, src)).toBe(true);
  });

  it.each(otherwise.map(named))('not %s', (_, [op, attr, node, ...src]) => {
    expect(isUniform(op, attr, node, src)).toBe(false);
  });
});

it('counts along axes whose length is another one than that of the source', () => {
  expect(countedAxes('slice', {}, [3, 5, 7], [[9, 5, 8]])).toEqual([0, 2]);
  expect(countedAxes('pad', {}, [3, 5], [[2, 5]])).toEqual([0]);
  expect(
    countedAxes(
      'concat',
      { axis: 1 },
      [3, 5],
      [
        [3, 2],
        [3, 3],
      ],
    ),
  ).toEqual([1]);
  expect(countedAxes('argReduce', { axes: [1] }, [3], [[3, 5]])).toEqual([1]);
  expect(countedAxes('reduce', { axes: [1] }, [3], [[3, 5]])).toEqual([]);
});

describe('stretches', () => {
  const [n, m] = [101, 103];
  const isSize = (x: number): boolean => x % n === 0 || x % m === 0;
  const found = (...reshapes: (readonly [from: number[], to: number[]])[]): unknown => {
    const stretches = stretchesOf(isSize, reshapes);
    return stretches && Object.fromEntries([...stretches].filter(([, own]) => own.length > 1));
  };

  it('are what comes before a size', () => {
    expect(found([[n, 3], [3 * n]])).toEqual({});
    expect(found([[3, n], [3 * n]])).toEqual({ [3 * n]: [3, n] });
    expect(
      found([
        [2, 3, n, 4],
        [2, 3 * n, 4],
      ]),
    ).toEqual({ [3 * n]: [3, n] });
    expect(
      found(
        [[3, n], [3 * n]],
        [
          [3 * n, 5],
          [3, n, 5],
        ],
      ),
    ).toEqual({ [3 * n]: [3, n] });
    expect(found([[5, 4], [20]])).toEqual({});
    expect(
      found([
        [n, 0, 2],
        [0, n],
      ]),
    ).toEqual({});
    expect(
      found([
        [4, n],
        [2, 2 * n],
      ]),
    ).toEqual({ [2 * n]: [2, n] });
  });

  it('of an axis that is there from the beginning are as many as it is taken apart into', () => {
    expect(
      found([
        [3 * n, 2],
        [3, n, 2],
      ]),
    ).toEqual({ [3 * n]: [3, n] });
    expect(found([[7, 6 * n], [42 * n]], [[6 * n], [2, 3 * n]], [[3 * n], [3, n]])).toEqual({
      [6 * n]: [2, 3, n],
      [3 * n]: [3, n],
      [42 * n]: [7, 2, 3, n],
    });
  });

  it('are sizes as well', () => {
    expect(found([[n, m], [n * m]])).toEqual({ [n * m]: [n, m] });
    expect(found([[n, n], [n * n]])).toEqual({ [n * n]: [n, n] });
    expect(
      found([
        [n, 4, m, 5],
        [4 * n, 5 * m],
      ]),
    ).toEqual({});
    expect(found([[n, 4, m], [4 * n * m]], [[4 * n * m], [n, 4 * m]])).toEqual({
      [4 * n * m]: [4 * n, m],
      [4 * m]: [4, m],
    });
  });

  it('are refused where they would be cut', () => {
    expect(
      found([
        [2, 3 * n],
        [n, 6],
      ]),
    ).toBeNull();
    expect(
      found([
        [n, m],
        [m, n],
      ]),
    ).toBeNull();
    expect(
      found([
        [n, m],
        [n, 2 * m],
      ]),
    ).toBeNull();
  });

  it('of axes of one extent are alike', () => {
    expect(found([[3, n], [3 * n]], [[n, 3], [3 * n]])).toBeNull();
  });
});
