/**
 * Every gradient rule against central differences, first and second order, with tangents and batches of the same functions, on the float64 evaluator of graphs: no planner, no
 * kernels, no engine takes part.
 */
import { describe, expect, it } from 'vitest';
import type { ConvAttr, Node, UnaryAttrs } from '../graph/node.ts';
import { makeNode } from '../graph/primitives.ts';
import * as p from '../graph/primitives.ts';
import { fmaPrimitive } from './elementary.ts';
import { gatherPrimitive, scanPrimitive, scatterAddPrimitive, scatterPrimitive } from './indexing.ts';
import type { Shape } from '@polygrad/compiler/shape/view';
import { check, checkBatch, gradientsOf, type Leaves, leaf, only } from '../autodiff/fixtures/rule-checks.ts';
import { unaryOps } from '@polygrad/compiler/ir/operations';
import { binaryByName, definitions, unaryByName } from './all.ts';
import '../planner/lowering/rules.ts';
import { elementwise } from './elementwise.ts';

describe('elementwise rules', () => {
  const positive = [0.3, 3] as const;
  const inside = [-0.9, 0.9] as const;
  /** Where functions that are not defined everywhere are tested. */
  const places: { readonly [P in keyof UnaryAttrs]?: readonly [number, number] } = {
    sqrt: positive,
    rsqrt: positive,
    reciprocal: positive,
    log: positive,
    log2: positive,
    log10: positive,
    log1p: positive,
    asin: inside,
    acos: inside,
  };
  const unaries = [...Object.entries(elementwise), ...definitions.map((d) => [d.op, d] as const)]
    .filter(([op, { kernelOp }]) => op === 'sign' || (kernelOp != null && kernelOp in unaryOps))
    .map(([op]) => op as keyof UnaryAttrs);
  for (const op of unaries) {
    if (op === 'not' || op === 'isNaN') continue;
    const [low, high] = places[op] ?? [-1.2, 1.3];
    it(op, () => check((x) => p.unary(unaryByName(op), x), [[5]], low, high));
  }
  for (const op of ['add', 'sub', 'mul', 'maximum', 'minimum'] as const) {
    it(`${op}, broadcasting`, () =>
      check(
        (a, b) => p.binary(binaryByName(op), a, b),
        [
          [2, 1, 3],
          [4, 1],
        ],
      ));
  }
  for (const op of ['div', 'pow', 'atan2', 'fmod'] as const) {
    it(`${op}, broadcasting`, () => check((a, b) => p.binary(binaryByName(op), a, b), [[2, 3], [3]], 0.4, 2.5));
  }
  it('where', () => check((a, b) => p.where(p.lt(a, b), p.mul(a, a), b), [[2, 3], [3]]));
  it('fma, broadcasting', () =>
    check((a, b, c) => makeNode(fmaPrimitive, [a, b, p.mul(c, c)], null), [[2, 3], [3], [2, 1]]));
  it('a value used several times', () =>
    check((a) => p.mul(p.add(a, a), p.mul(a, p.unary(unaryByName('sin'), a))), [[4]]));
  it('after', () => check((a, b) => p.mul(p.after(p.mul(a, a), b), a), [[4], [2]]));
  it('contiguous', () => check((a) => makeNode('contiguous', [p.mul(a, a)], null), [[4]]));
});

describe('reduction rules', () => {
  for (const op of ['sum', 'prod', 'max', 'min'] as const) {
    it(`${op} over inner and outer axes`, () => check((x) => p.reduce(p.mul(x, x), op, [0, 2]), [[2, 3, 4]], 0.5, 1.5));
    it(`${op}, ties to the first`, () => check((x) => p.reduce(x, op, [1], 'first'), [[2, 5]]));
  }
  it('window', () =>
    check((x) => makeNode('window', [p.mul(x, x)], { size: [2, 3], stride: [2, 1], dilation: [1, 2] }), [[2, 5, 6]]));
  it('fold', () =>
    check(
      (x) => makeNode('fold', [p.mul(x, x)], { size: [3], stride: [2], dilation: [1], spatial: [8] }),
      [[2, 3, 3]],
    ));

  it('prod is exact with zeros at every order', () => {
    const x = leaf([4]);
    const leaves: Leaves = new Map([[x, Float64Array.of(2, 0, 3, 0)]]);
    const first = gradientsOf(p.reduce(x, 'prod', [0]), p.constant(1, 'float64'), [x])[0]!;
    expect([...only(first, leaves)].map((v) => v + 0)).toEqual([0, 0, 0, 0]);
    // d^2 / dx1 dx3 = x0 x2 = 6, the only second derivative that is not zero.
    const pick = p.slice(first, [1], [1], [1]);
    const second = gradientsOf(pick, p.constant(1, 'float64', [1]), [x])[0]!;
    expect([...only(second, leaves)].map((v) => v + 0)).toEqual([0, 0, 0, 6]);
  });
});

describe('movement and indexing rules', () => {
  const square = (x: Node): Node => p.mul(x, x);
  it('reshape and permute', () => check((x) => p.permute(p.reshape(square(x), [3, 2, 2]), [2, 0, 1]), [[4, 3]]));
  it('expand', () => check((x) => p.expand(square(x), [2, 3, 4]), [[2, 1, 4]]));
  it('slice with steps and backwards', () =>
    check((x) => p.slice(square(x), [1, 6, 0], [2, 3, 2], [1, -3, 2]), [[4, 7, 3]]));
  it('pad', () => check((x) => p.pad(square(x), [1, 0], [0, 2], 5), [[2, 3]]));
  it('concat', () =>
    check(
      (a, b) => p.concat([square(a), b, a], 1),
      [
        [2, 3],
        [2, 1],
      ],
    ));
  const index = (values: readonly number[], shape: Shape): Node =>
    p.reshape(
      p.concat(
        values.map((value) => p.constant(value, 'int32', [1])),
        0,
      ),
      shape,
    );
  it('gather, repeated indices', () =>
    check((x) => makeNode(gatherPrimitive, [square(x), index([2, 0, 2, 1], [2, 2])], { axis: 1 }), [[2, 3, 2]]));
  it('scatterAdd, repeated indices', () =>
    check(
      (x, u) => makeNode(scatterAddPrimitive, [square(x), index([2, 0, 2], [3]), square(u)], { axis: 0 }),
      [
        [4, 2],
        [3, 2],
      ],
    ));
  for (const op of ['set', 'max', 'min', 'prod'] as const)
    it(`scatter ${op}, repeated indices`, () =>
      check(
        (x, u) => makeNode(scatterPrimitive, [square(x), index([2, 0, 2], [3]), square(u)], { axis: 1, op }),
        [
          [2, 4],
          [2, 3],
        ],
      ));
  for (const reverse of [false, true]) {
    for (const op of ['sum', 'prod', 'max', 'min'] as const)
      it(`scan ${op}${reverse ? ' backwards' : ''}`, () =>
        check((x) => makeNode(scanPrimitive, [square(x)], { op, axis: 1, reverse }), [[2, 4, 2]], 0.5, 1.5));
    it(`scan linear${reverse ? ' backwards' : ''}`, () =>
      check(
        (b, a) => makeNode(scanPrimitive, [square(b), a], { op: 'linear', axis: 0, reverse }),
        [
          [4, 2],
          [4, 2],
        ],
      ));
  }
  it('cast', () => check((x) => p.cast(p.cast(square(x), 'float32'), 'float64'), [[3]]));
});

describe('contraction rules', () => {
  it('dotGeneral with batches and several contracted axes in another order', () =>
    check(
      (a, b) =>
        makeNode('dotGeneral', [a, b], { lhsBatch: [1], rhsBatch: [2], lhsContract: [0, 3], rhsContract: [3, 0] }),
      [
        [2, 3, 2, 4],
        [4, 2, 3, 2],
      ],
    ));
  it('dotGeneral without contraction', () =>
    check(
      (a, b) => makeNode('dotGeneral', [a, b], { lhsBatch: [], rhsBatch: [], lhsContract: [], rhsContract: [] }),
      [[2], [3]],
    ));

  const plain: ConvAttr = {
    stride: [1],
    padLow: [0],
    padHigh: [0],
    lhsDilation: [1],
    rhsDilation: [1],
    groups: 1,
    batchGroups: 1,
  };
  const cases: readonly (readonly [string, Partial<ConvAttr>, Shape, Shape])[] = [
    ['plain', {}, [2, 3, 5], [4, 3, 2]],
    ['stride that leaves a rest', { stride: [2], padLow: [1], padHigh: [0] }, [1, 2, 6], [3, 2, 3]],
    ['dilated kernel, groups', { rhsDilation: [2], padLow: [2], padHigh: [1], groups: 2 }, [2, 4, 5], [6, 2, 2]],
    ['dilated input (transposed)', { lhsDilation: [3], padLow: [1], padHigh: [2] }, [1, 2, 4], [2, 2, 3]],
    ['cropping', { padLow: [-1], padHigh: [-1] }, [1, 1, 6], [1, 1, 2]],
    ['groups of the batch', { batchGroups: 2, stride: [2] }, [4, 3, 5], [6, 3, 2]],
    [
      'everything at once',
      { stride: [2], padLow: [2], padHigh: [1], lhsDilation: [2], rhsDilation: [2], groups: 2 },
      [1, 2, 4],
      [4, 1, 2],
    ],
  ];
  for (const [name, change, lhs, rhs] of cases)
    it(`conv, ${name}`, () => check((x, w) => makeNode('conv', [x, w], { ...plain, ...change }), [lhs, rhs]));
  it('conv over two axes', () =>
    check(
      (x, w) =>
        makeNode('conv', [x, w], {
          stride: [2, 1],
          padLow: [1, 0],
          padHigh: [0, 1],
          lhsDilation: [1, 1],
          rhsDilation: [1, 2],
          groups: 1,
          batchGroups: 1,
        }),
      [
        [1, 2, 5, 5],
        [2, 2, 3, 2],
      ],
    ));
});

describe('batches of what has no gradient', () => {
  const whole = (low: number, high: number, count: number) => (seed: number) =>
    Float64Array.from({ length: count }, (_, i) => low + ((seed * 7 + i * 5) % (high - low + 1)));
  const ints = (shape: Shape, low: number, high: number) => ({
    shape,
    dtype: 'int32' as const,
    draw: whole(
      low,
      high,
      shape.reduce((a, b) => a * b, 1),
    ),
  });
  const floats = (shape: Shape) => ({ ...ints(shape, -3, 3), dtype: 'float64' as const });
  it('comparison and where of a batched condition', () =>
    checkBatch((a, b, c) => p.where(p.lt(a, b), c, b), [floats([2, 3]), floats([3]), floats([2, 1])]));
  it('argReduce', () => checkBatch((x) => p.argReduce(x, 'max', [0, 1]), [floats([2, 3])]));
  it('integers and casts', () =>
    checkBatch((a, b) => p.cast(p.binary('idiv', a, b), 'float64'), [ints([4], -9, 9), ints([4], 1, 5)]));
  it('gather', () =>
    checkBatch(
      (x, index) => makeNode(gatherPrimitive, [x, index], { axis: 1 }),
      [floats([2, 4, 2]), ints([2, 2], 0, 3)],
    ));
  it('scatterAdd', () =>
    checkBatch(
      (base, index, updates) => makeNode(scatterAddPrimitive, [base, index, updates], { axis: 1 }),
      [floats([2, 4, 2]), ints([3], 0, 3), floats([2, 3, 2])],
    ));
  it('stopGradient', () => checkBatch((x) => p.stopGradient(p.mul(x, x)), [floats([3])]));
});

describe('the walk', () => {
  it('keeps branches that where did not take free of NaN', () => {
    const x = leaf([3]);
    const leaves: Leaves = new Map([[x, Float64Array.of(1, 0, -1)]]);
    const zero = p.constant(0, 'float64');
    const y = p.where(p.lt(zero, x), p.mul(p.neg(p.unary('log', x)), p.unary('sqrt', x)), zero);
    const slope = gradientsOf(y, p.constant(1, 'float64', [3]), [x])[0]!;
    expect([...only(slope, leaves)].map((v) => v + 0)).toEqual([-1, 0, 0]);
  });

  it('is iterative: a chain of 20000 nodes', () => {
    const x = leaf([]);
    let y: Node = x;
    for (let i = 0; i < 20_000; i++) y = p.neg(y);
    expect(gradientsOf(y, p.constant(1, 'float64'), [x])[0]?.op).toBe('neg');
  });

  it('has a rule for every primitive', () => {
    for (const { op, role, infer, gradient, batch } of definitions) {
      for (const rule of [infer.shape, infer.dtype, gradient]) expect(typeof rule, op).toBe('function');
      expect(typeof batch, op).toBe(role === 'elementwise' ? 'undefined' : 'function');
    }
  });
});
