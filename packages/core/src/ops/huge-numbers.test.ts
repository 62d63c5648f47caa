/** Numbers of parts, keys, elements and orders that would take for ever: refused before anything is counted out on the host. */
import { beforeAll, describe, expect, it } from 'vitest';
import * as pg from '../index.ts';
import { bigintType, numberEye } from '@polygrad/numbers';
import { createNullEngine } from '@polygrad/testing';

beforeAll(() => pg.setEngine(createNullEngine()));

const image = (): pg.Tensor => pg.ones([1, 1, 2, 2]);
const long = (): pg.Tensor => pg.ones([1e7]);
const one = (): pg.Tensor => pg.tensor([1], { dtype: 'int32' });

const refused: Readonly<Record<string, (n: number) => unknown>> = {
  adaptiveAvgPool1d: (n) => pg.adaptiveAvgPool1d(pg.ones([1, 1, 2]), n),
  adaptiveAvgPool2d: (n) => pg.adaptiveAvgPool2d(image(), n),
  adaptiveMaxPool2d: (n) => pg.adaptiveMaxPool2d(image(), n),
  arange: (n) => pg.arange(n),
  conv2d: (n) => pg.conv2d(image(), image(), { padding: n }),
  eye: (n) => pg.eye(n),
  linspace: (n) => pg.linspace(0, 1, n),
  numberEye: (n) => numberEye(n, bigintType),
  oneHot: (n) => pg.oneHot(one(), n),
  permutation: (n) => pg.permutation(n),
  rand: (n) => pg.rand([n]),
  repeatInterleave: (n) => pg.repeatInterleave(pg.ones([2]), n),
  splitKey: (n) => pg.splitKey([1, 2], n),
  tile: (n) => pg.tile(pg.ones([2]), [n]),
  tri: (n) => pg.tri(n),
  zeros: (n) => pg.zeros([n]),
};

describe('huge numbers', () => {
  it.each(Object.entries(refused))('%s', (name, call) => {
    for (const n of [2 ** 31, 2 ** 32, 2 ** 53, 1e308, Number.POSITIVE_INFINITY])
      expect(() => call(n), String(n)).toThrow(new RegExp(`^\\[${name}\\] `));
  });

  it('as numbers of parts', () => {
    expect(() => pg.split(long(), 1)).toThrow(
      '[split] bad number of parts: 10000000 is too large; the limit is 1048576',
    );
    expect(() => pg.chunk(long(), 1e7)).toThrow('[chunk] bad number of parts');
    expect(() => pg.unbind(long())).toThrow('[unbind] bad number of parts');
    expect(() => pg.splitKey([1, 2], 1e8)).toThrow(
      '[splitKey] bad count: 100000000 is too large; the limit is 1048576',
    );
    expect(() => pg.repeatInterleave(pg.ones([2]), [1e9, 1e9])).toThrow('[repeatInterleave] bad sum of counts');
    expect(() => pg.arange(1, 65536, 5e-324)).toThrow('[arange] bad number of elements: Infinity');
    expect(() => pg.polygamma(2 ** 53, 1)).toThrow('[polygamma] bad order: 9007199254740992 is too large');
    expect(pg.polygamma(1e7, pg.ones([2])).shape).toEqual([2]);
    expect(() => pg.diff(long(), { n: 1e6 })).toThrow('[diff] bad number of times n: 1000000 is too large');
    expect(() => pg.adaptiveMaxPool2d(image(), 1e9)).toThrow('[adaptiveMaxPool2d] too many elements');
    expect(pg.diff(pg.ones([3]), { n: 2 ** 40 }).shape).toEqual([0]);
  });

  it('where a list has gaps, or a number is no index', () => {
    expect(() => pg.concat(new Array(3))).toThrow('[concat] bad tensors: nothing at position 0 of 3');
    expect(() => pg.meshgrid(new Array(3))).toThrow('[meshgrid] bad vectors: nothing at position 0 of 3');
    expect(() => pg.select(pg.ones([2]), 0, [1n] as never)).toThrow(/^\[select\] /);
  });

  it('windows of adaptive pooling are counted without a loop', () => {
    for (let n = 1; n < 14; n++)
      for (let m = 1; m < 20; m++) expect(pg.adaptiveAvgPool1d(pg.ones([1, 1, n]), m).shape).toEqual([1, 1, m]);
    expect(pg.adaptiveAvgPool1d(pg.ones([1, 1, 3]), 2 ** 30).shape).toEqual([1, 1, 2 ** 30]);
  });

  it('places of nearest elements are not listed', () => {
    for (const mode of ['nearest', 'nearestExact'] as const)
      expect(pg.interpolate(pg.ones([1, 1, 1]), { scaleFactor: 1e9, mode }).shape).toEqual([1, 1, 1e9]);
    expect(() => pg.interpolate(pg.ones([1, 1, 1]), { scaleFactor: 2 ** 31 })).toThrow(
      '[interpolate] too many elements',
    );
  });

  it('bernoulli refuses what is no probability', () => {
    for (const p of [2, -0.1, Number.NaN, '1', null])
      expect(() => pg.bernoulli(p as never, [2])).toThrow(/^\[bernoulli\] (bad probability|not a tensor)/);
    expect(pg.bernoulli(1, [2]).shape).toEqual([2]);
  });
});
