import { expect, test } from 'vitest';
import { Exprs } from '@polygrad/compiler/ir/expr';
import { FreeRanges } from '@polygrad/compiler/ir/free-ranges';
import type { KNode } from '@polygrad/compiler/ir/ir';
import { stridesFor } from './lower.ts';

const shape = [2, 5, 3, 4];

/** Strides of a temporary [N, C, H, W] made of loads at these strides (by axis). */
function strides(sources: readonly (readonly number[])[], from = shape): readonly number[] {
  const e = new Exprs();
  const loops = from.map((n) => (n === 1 ? e.i32(0) : e.range(n)));
  const loads = sources.map((steps, i): KNode => {
    const at = steps.reduce<KNode>((sum, step, axis) => e.add(sum, e.mul(loops[axis] as KNode, e.i32(step))), e.i32(0));
    return e.load(e.param(i, 'float32', 'read', 1000), at);
  });
  const value = loads.reduce((x, y) => e.add(x, y));
  return stridesFor(from, loops, value, { free: new FreeRanges(), size: null });
}

const first = [60, 12, 4, 1];
const last = [60, 1, 20, 5];

test('a temporary lies as what it is made of', () => {
  expect(strides([first])).toEqual(first);
  expect(strides([last])).toEqual(last);
  // Every second pixel of a larger image.
  expect(strides([[960, 1, 80, 10]])).toEqual(last);
});

test('what is broadcast has no say, nor have sources that disagree', () => {
  expect(strides([last, [0, 1, 0, 0]])).toEqual(last);
  expect(strides([[0, 1, 0, 0]])).toEqual(first);
  expect(strides([last, first])).toEqual(first);
});

test('matrices, and images of one pixel, stay as they are', () => {
  expect(strides([[1, 7]], [7, 3])).toEqual([3, 1]);
  expect(strides([[1, 2, 0, 0]], [2, 3, 1, 1])).toEqual([3, 1, 1, 1]);
});
