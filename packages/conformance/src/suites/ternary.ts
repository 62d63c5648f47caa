/** Elementwise operations of three operands: where, fma, and clip, whose bounds are numbers. */
import * as pg from '@polygrad/core';
import type { DType, Tensor } from '@polygrad/core';
import { broadcastShapes, count, zip } from '../oracle/ndarray.ts';
import { integer, type Random, sample, uniform } from '../oracle/random.ts';
import type { OpSpec } from '../spec.ts';
import { anyShapes } from './shapes.ts';
import { clamp } from '../oracle/special.ts';

const floats: readonly DType[] = ['float32', 'float64'];
const numeric: readonly DType[] = ['float32', 'float64', 'int32'];
const any = uniform(-3, 3);
const whole = integer(-9, 9);

export function ternarySpecs(): OpSpec[] {
  return [whereSpec(), clipSpec(), fmaSpec()];
}

function whereSpec(): OpSpec {
  return {
    name: 'where',
    dtypes: numeric,
    inputDTypes: { 0: 'bool' },
    instances: [
      { c: [], a: [3], b: [] },
      { c: [5], a: [5], b: [5] },
      { c: [2, 1], a: [1, 3], b: [2, 3] },
      { c: [67], a: [67], b: [1] },
    ].map(({ c, a, b }) => ({
      label: `[${c}] [${a}] [${b}]`,
      small: count(broadcastShapes(c, a, b)) <= 12,
      draw: (r: Random) => [sample(r, c, integer(0, 1)), sample(r, a, whole), sample(r, b, whole)],
    })),
    run: ([c, a, b]) => pg.where(c as Tensor, a as Tensor, b as Tensor),
    oracle: ([c, a, b]) => zip((p, x, y) => (p ? (x as number) : (y as number)), c as never, a as never, b as never),
    gradient: { of: [1, 2], order: 2 },
  };
}

function clipSpec(): OpSpec {
  return {
    name: 'clip',
    dtypes: floats,
    instances: anyShapes.map(({ label, shape, small }) => ({
      label,
      small,
      draw: (r: Random) => [sample(r, shape, any)],
    })),
    run: ([x]) => pg.clip(x as Tensor, -1, 1.5),
    oracle: ([x]) => zip((v) => clamp(v as number, -1, 1.5), x as never),
    gradient: { of: [0], order: 2 },
  };
}

function fmaSpec(): OpSpec {
  return {
    name: 'fma',
    dtypes: floats,
    instances: [
      [[5], [5], [5]],
      [[67], [], [67]],
      [[2, 1], [3], [2, 3]],
      [[0], [1], []],
    ].map((shapes) => ({
      label: shapes.map((shape) => `[${shape}]`).join(' '),
      small: true,
      draw: (r: Random) => shapes.map((shape) => sample(r, shape, any)),
    })),
    run: ([a, b, c]) => pg.fma(a as Tensor, b as Tensor, c as Tensor),
    oracle: ([a, b, c]) =>
      zip((x, y, z) => (x as number) * (y as number) + (z as number), a as never, b as never, c as never),
    gradient: { of: [0, 1, 2], order: 2 },
  };
}
