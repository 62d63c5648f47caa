/** Which nodes are computed alike for every size: each rule, both answers. */
import { describe, expect, it } from 'vitest';
import { bring } from '../../graph/definition.ts';
import '../../index.ts';
import { definitions } from '../../primitives/all.ts';
import type { PrimitiveName } from '../../graph/node.ts';
import { addStretches, isUniform, type SizedShape } from './uniform.ts';

for (const definition of definitions) bring(definition);

/** A shape; `n` is the size, here 7. */
const of = (...shape: (number | 'n' | '3n')[]): SizedShape => {
  const factors = shape.map((x) => (x === 'n' ? 1 : x === '3n' ? 3 : 0));
  const lengths = shape.map((x) => (x === 'n' ? 7 : x === '3n' ? 21 : x));
  return { shape: lengths, axes: factors.some((c) => c > 0) ? factors : null };
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
  ['permute', { axes: [1, 0] }, of(3, 'n'), of('n', 3)],
  ['expand', {}, of('n', 3), of(1, 3)],
  ['reshape', {}, of('3n'), of('n', 3)],
  ['reshape', {}, of('n', 3), of('3n')],
  ['reshape', {}, of(2, 'n', 3), of(2, '3n')],
  ['reshape', {}, of(1, 'n', 1), of('n')],
  ['slice', slice([0, 1], [1, 2]), of('n', 2), of('n', 5)],
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
  ['slice', slice([0, 0], [1, 1]), of(3, 5), of('n', 5)],
  ['pad', { low: [0, 0], high: [4, 0] }, of('n', 3), of(3, 3)],
  ['scatter', { axis: 0 }, of('n'), of('n'), of(2), of(2)],
  ['randomBits', {}, of(3, 'n'), of(), of()],
  ['slice', slice([1, 0], [1, 1]), of('n', 5), of('n', 5)],
  ['slice', slice([0, 0], [2, 1]), of('n', 5), of('n', 5)],
  ['slice', slice([6, 0], [-1, 1]), of('n', 5), of('n', 5)],
  ['slice', slice([0, 0], [1, 1]), of(2, 5), of('n', 5)],
  ['pad', { low: [1, 0], high: [0, 0] }, of('n', 3), of('n', 3)],
  ['pad', { low: [0, 0], high: [1, 0] }, of('n', 3), of('n', 3)],
  ['concat', { axis: 0 }, of('n', 5), of('n', 5), of(2, 5)],
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

  it('slices and paddings that count from the end', () => {
    const ends = [3, 0];
    const [last, put] = [slice([4, 0], [1, 1]), { low: [4, 0], high: [1, 0] }];
    expect(isUniform('slice', last, of(2, 5), [of('n', 5)], ends)).toBe(true);
    expect(isUniform('slice', last, of(2, 5), [of('n', 5)])).toBe(false);
    expect(isUniform('slice', slice([4, 0], [1, 1]), of('n', 5), [of('3n', 5)], ends)).toBe(false);
    expect(isUniform('pad', put, of('n', 5), [of(2, 5)], ends)).toBe(true);
    expect(isUniform('pad', put, of('n', 5), [of('n', 5)], ends)).toBe(false);
  });

  it.each(otherwise.map(named))('not %s', (_, [op, attr, node, ...src]) => {
    expect(isUniform(op, attr, node, src)).toBe(false);
  });
});

describe('stretches', () => {
  const added = (...reshapes: (readonly [from: SizedShape, to: SizedShape])[]): [number, number][] | null => {
    const stretches = new Map<number, number>();
    return reshapes.every(([from, to]) => addStretches(stretches, from, to)) ? [...stretches].sort() : null;
  };

  it('are what comes before a size', () => {
    expect(added([of('n', 3), of('3n')])).toEqual([
      [1, 1],
      [3, 1],
    ]);
    expect(added([of(3, 'n'), of('3n')])).toEqual([
      [1, 1],
      [3, 3],
    ]);
    expect(added([of(2, 3, 'n', 4), of(2, '3n', 4)])).toEqual([
      [1, 1],
      [3, 3],
    ]);
    expect(added([of(3, 'n'), of('3n')], [of('3n', 5), of(3, 'n', 5)])).toEqual([
      [1, 1],
      [3, 3],
    ]);
    expect(added([of(5, 4), of(20)])).toEqual([]);
    expect(added([of('n', 0, 2), of(0, 'n')])).toEqual([]);
  });

  it('of an axis that is there from the beginning are as many as it is taken apart into', () => {
    expect(added([of('3n', 2), of(3, 'n', 2)])).toEqual([
      [1, 1],
      [3, 3],
    ]);
  });

  it('are refused where axes of one extent would differ, where two sizes meet, where a stretch would be cut', () => {
    expect(added([of(3, 'n'), of('3n')], [of('n', 3), of('3n')])).toBeNull();
    expect(added([of('n', 'n'), { shape: [49], axes: [7] }])).toBeNull();
    expect(added([of(2, '3n'), of('n', 6)])).toBeNull();
  });
});
