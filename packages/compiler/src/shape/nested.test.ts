/** Data and trees that hold themselves, are nested without an end, or have more paths than anybody can walk. */
import { beforeAll, expect, it } from 'vitest';
import * as pg from '@polygrad/core';
import { bigintType, numberTensor } from '@polygrad/numbers';
import { createReferenceEngine } from '@polygrad/testing';
import { mapNested } from './nested.ts';

beforeAll(() => pg.setEngine(createReferenceEngine()));

const cyclic = (): unknown[] => {
  const list: unknown[] = [];
  list.push(list, list);
  return list;
};

/** So many levels, each holding the next twice. */
const branching = (levels: number, end: unknown = 1): unknown[] => {
  let list: unknown[] = [end];
  for (let i = 1; i < levels; i++) list = [list, list];
  return list;
};

it('data that holds itself or is too deep is refused at once', () => {
  for (const data of [cyclic(), branching(100)] as never[]) {
    expect(() => pg.tensor(data)).toThrow('[tensor] nested arrays are too deep: more than 64 levels');
    expect(() => pg.take(pg.ones([3]), data)).toThrow('[take] nested arrays are too deep');
    expect(() => numberTensor(data, bigintType)).toThrow('[numberTensor] nested arrays are too deep');
  }
  expect(() => pg.tensor(branching(60) as never)).toThrow('[tensor] too many elements');
  expect(pg.tensor(branching(10) as never).size).toBe(512);
});

it('data is checked row by row, and its elements one by one', () => {
  expect(() => pg.tensor([[1, 2], [3]])).toThrow('ragged: length 1 at depth 1 where shape [2, 2] has length 2');
  expect(() => pg.tensor([[1], 2] as never)).toThrow('ragged: the value 2 at depth 1');
  expect(() => pg.tensor([1, [2]] as never)).toThrow('ragged: length 1 at depth 1');
  expect(() => pg.tensor([1, true] as never)).toThrow('values of different types: float32 and bool');
  expect(() => pg.tensor(new Array(2) as never)).toThrow('element is no number: undefined');
  expect(pg.tensor([[], []]).shape).toEqual([2, 0]);
  expect(pg.tensor([new Float32Array(3), [1, 2, 3]]).shape).toEqual([2, 3]);
});

it('trees of tensors that hold themselves are refused, and those that branch without an end', () => {
  const f = (tree: unknown): pg.Tensor => (tree === undefined ? pg.ones([]) : pg.ones([]));
  expect(() => pg.grad(f as never)(cyclic() as never)).toThrow('[grad] argument holds itself');
  const tensor = pg.ones([]);
  expect(() => pg.grad(f as never)(branching(60, tensor) as never)).toThrow('[grad] argument is too large');
  expect(() => pg.vmap(((x: unknown) => x) as never)(cyclic() as never)).toThrow('[vmap] argument holds itself');
  // The same object in two places is no cycle.
  const shared = [tensor];
  expect(
    mapNested(
      'map',
      { a: shared, b: [shared, 1] },
      0,
      (x, n) => (x === tensor ? n : x),
      (n) => n + 1,
    ),
  ).toEqual({
    a: [2],
    b: [[3], 1],
  });
});

it('trees are replaced in order, once they are known to end, with all keys they have', () => {
  const seen: unknown[] = [];
  const note = (x: unknown): unknown => seen.push(x) * 10;
  const tree = JSON.parse('{"b": ["p", {"__proto__": "q"}], "a": [], "c": "r"}') as unknown;
  const made = mapNested('map', tree, null, note, () => null);
  expect(seen).toEqual(['p', 'q', 'r']);
  expect(JSON.stringify(made)).toBe('{"b":[10,{"__proto__":20}],"a":[],"c":30}');
  expect(() => mapNested('map', ['s', cyclic()], null, note, () => null)).toThrow('argument holds itself');
  expect(seen).toHaveLength(3);
});

it('what is disposed, or returned from a scope, may hold itself', () => {
  const t = pg.ones([2]);
  const knot: { self?: unknown; readonly list: unknown[] } = { list: [t, ...cyclic(), branching(60)] };
  knot.self = knot;
  pg.dispose(knot);
  expect(() => pg.add(t, 1)).toThrow(pg.DisposedError);
  const kept = pg.scope(() => {
    const result: { self?: unknown; readonly t: pg.Tensor } = { t: pg.ones([2]) };
    result.self = result;
    return result;
  });
  expect(kept.t.dataSync()).toEqual(new Float32Array([1, 1]));
  let deep: unknown = kept;
  for (let i = 0; i < 50_000; i++) deep = [deep];
  pg.dispose(deep);
  expect(() => pg.add(kept.t, 1)).toThrow(pg.DisposedError);
});

it('shapes are shown and checked whatever they are', () => {
  expect(pg.showShape({ length: 1e9 } as never)).toMatch(/^\[undefined, .* and 999999968 more\]$/);
  expect(pg.showShape(null as never)).toBe('[]');
  expect(pg.showShape(cyclic() as never)).toBe('[a list, a list]');
  expect(() => pg.ones(new Array(2 ** 32 - 1))).toThrow(
    '[ones] too many entries in shape: 4294967295; the limit is 64',
  );
  expect(() => pg.ones(new Array(65).fill(1))).toThrow('[ones] too many entries in shape');
  expect(() => pg.reshape(pg.ones([1]), new Array(1e9) as never)).toThrow('[reshape] too many entries in shape');
});
