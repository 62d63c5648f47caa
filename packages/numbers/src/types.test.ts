/** Types of users against values known from elsewhere: determinants, roots of one, digits of e; and what they say they lack. */
import { beforeAll, describe, expect, it } from 'vitest';
import { setEngine } from '@polygrad/core';
import {
  type DecimalClass,
  type DecimalLike,
  decimalType,
  defineNumberType,
  numberFull,
  type NumberTensor,
  numberTensor,
  toTensor,
} from './index.ts';
import { createReferenceEngine } from '@polygrad/testing';
import { type Complex, complexType, type Rational, rational, rationalType } from './fixtures/types.ts';
import { big } from './fixtures/bigints.ts';

interface Decimal extends DecimalLike<Decimal> {
  sqrt(): Decimal;
}

/** By its name, because the library is optional: here as for users. */
async function decimalLibrary(): Promise<DecimalClass<Decimal> & { clone(o: object): DecimalClass<Decimal> }> {
  const name = 'decimal.js';
  return ((await import(/* @vite-ignore */ name)) as { Decimal: never }).Decimal;
}

beforeAll(async () => {
  await setEngine(createReferenceEngine());
});

/** Gaussian elimination without pivoting, on slices. */
function determinant<T>(matrix: NumberTensor<T>): NumberTensor<T> {
  const n = matrix.shape[0]!;
  if (n === 1) return matrix.at(0, 0);
  const pivot = matrix.at(0, 0);
  const factors = matrix.at({ start: 1 }, 0).div(pivot);
  const rest = matrix.at({ start: 1 }, { start: 1 }).sub(factors.outer(matrix.at(0, { start: 1 })));
  return pivot.mul(determinant(rest));
}

describe('types of users', () => {
  it('rationals: the determinant of a Hilbert matrix', () => {
    const hilbert = (n: number): NumberTensor<Rational> =>
      numberTensor(
        Array.from({ length: n }, (_, i) => Array.from({ length: n }, (_, j) => rational(1n, BigInt(i + j + 1)))),
        rationalType,
      );
    // Published: 1 / det for n = 1, 2, ... is 1, 12, 2160, 6048000, 266716800000, 186313420339200000 (OEIS A005249).
    const inverse = [1n, 12n, 2160n, 6048000n, 266716800000n, 186313420339200000n];
    inverse.forEach((value, i) => {
      expect(determinant(hilbert(i + 1)).item()).toEqual(rational(1n, value));
    });
    expect(hilbert(3).mean().item()).toEqual(rational(37n, 90n));
    expect(hilbert(2).format()).toBe('[[  1 1/2]\n [1/2 1/3]]');
    expect(String(hilbert(2))).toBe('NumberTensor rational [2, 2]');
    expect(
      numberTensor([rational(2n, 3n)], rationalType)
        .pow(-2)
        .item(),
    ).toEqual(rational(9n, 4n));
  });

  it('complex numbers, whose elements are arrays', () => {
    const roots = numberTensor<Complex>(
      Array.from({ length: 5 }, (_, k): Complex => [Math.cos((2 * Math.PI * k) / 5), Math.sin((2 * Math.PI * k) / 5)]),
      complexType,
    );
    expect(roots.shape).toEqual([5]);
    const [re, im] = roots.sum().item();
    expect([re, im].map((v) => Math.abs(v) < 1e-12)).toEqual([true, true]);
    const [one] = roots.pow(5).data() as [Complex];
    expect(one[0]).toBeCloseTo(1, 12);
    expect(numberTensor<Complex>([[[1, 2]], [[3, 4]]] as never, complexType).shape).toEqual([2, 1]);
    expect(() => roots.max()).toThrow(
      "[max] number type 'complex' defines no compare: add compare to defineNumberType to use it",
    );
  });

  it('say what they lack', () => {
    const mod7 = defineNumberType({
      name: 'bigint-mod-7',
      zero: 0n,
      one: 1n,
      add: (a, b) => (a + b) % 7n,
      mul: (a, b) => (a * b) % 7n,
      equals: (a, b) => a === b,
    });
    const x = numberTensor([3n, 5n], mod7);
    expect(x.mul(x).array()).toEqual([2n, 4n]);
    expect(x.pow(6).array()).toEqual([1n, 1n]);
    const lacks = (what: string): string =>
      `number type 'bigint-mod-7' defines no ${what}: add ${what} to defineNumberType to use it`;
    expect(() => x.div(x)).toThrow(`[div] ${lacks('div')}`);
    expect(() => x.pow(-1)).toThrow(`[pow] ${lacks('div')}`);
    expect(() => x.sub(x)).toThrow(`[sub] ${lacks('sub')}`);
    expect(() => x.neg()).toThrow(`[neg] ${lacks('neg')}`);
    expect(() => x.less(x)).toThrow(`[less] ${lacks('compare')}`);
    expect(() => x.cumMax()).toThrow(`[cumMax] ${lacks('compare')}`);
    expect(() => toTensor(x)).toThrow(`[toTensor] ${lacks('toNumber')}`);
    expect(() => x.add('1')).toThrow(/\[add\] not an element of number type 'bigint-mod-7': '1'.*from/);
    expect(() => x.add(big([1]) as never)).toThrow("[add] number types differ: 'bigint-mod-7' and 'bigint'");
    expect(() => defineNumberType({ name: '' } as never)).toThrow(/\[defineNumberType\] no name/);
    expect(() => defineNumberType({ name: 'a', zero: 0 } as never)).toThrow(/'a' has no one/);
    expect(() => defineNumberType({ name: 'a', zero: 0, one: 1, add: () => 0, mul: () => 0 } as never)).toThrow(
      /'a' has no equals/,
    );
    const signed = defineNumberType({ ...mod7, name: 'signed', toString: String, neg: (a: bigint) => (7n - a) % 7n });
    expect(numberTensor([3n], signed).sub(5n).array()).toEqual([5n]);
  });

  it('decimals of decimal.js: digits of e and of the square root of 2', async () => {
    const Decimal = await decimalLibrary();
    const type = decimalType(Decimal.clone({ precision: 60 }));
    const factorials = numberTensor(
      Array.from({ length: 50 }, (_, i) => i + 1),
      type,
    ).cumProd();
    const e = numberFull([], 1, type).add(numberFull([50], 1, type).div(factorials).sum());
    expect(e.item().toString().slice(0, 52)).toBe('2.71828182845904523536028747135266249775724709369995');
    const third = numberTensor(['1', '0.1'], type).div(3);
    expect(
      third
        .mul(3)
        .sub(numberTensor(['1', '0.1'], type))
        .abs()
        .less('1e-58')
        .all()
        .item(),
    ).toBe(true);
    expect(numberTensor(['0.1', '0.2'], type).sum().equal('0.3').item()).toBe(true);
    expect(numberTensor(['7.5', '-7.5'], type).floorDivide(2).data().map(String)).toEqual(['3', '-4']);
    expect(await toTensor(numberTensor(['0.5'], type)).array()).toEqual([0.5]);
  });
});
