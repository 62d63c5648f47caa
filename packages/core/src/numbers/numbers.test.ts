/** NumberTensors against values known from elsewhere: factorials, Fibonacci numbers, determinants, digits of e; and their errors. */
import { beforeAll, describe, expect, it } from 'vitest';
import {
  bigintType,
  concatNumbers,
  type DecimalClass,
  type DecimalLike,
  decimalType,
  defineNumberType,
  fromTensor,
  isTensor,
  numberEye,
  numberFull,
  type NumberTensor,
  numberTensor,
  numberType,
  setEngine,
  stackNumbers,
  tensor,
  toTensor,
} from '../index.ts';
import { createReferenceEngine } from '../testing/index.ts';
import { type Complex, complexType, type Rational, rational, rationalType } from './fixtures/types.ts';

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

const big = (values: unknown): NumberTensor<bigint> => numberTensor(values as bigint[], bigintType);
const count = (n: number): NumberTensor<bigint> => big(Array.from({ length: n }, (_, i) => i + 1));

describe('bigints', () => {
  it('factorials', () => {
    const factorials = count(30).cumProd();
    expect(factorials.at(4).item()).toBe(120n);
    expect(factorials.at(-1).item()).toBe(265252859812191058636308480000000n);
    expect(count(30).prod().item()).toBe(265252859812191058636308480000000n);
  });

  it('Fibonacci numbers by powers of a matrix', () => {
    let power = numberEye(2, bigintType);
    let square = big([
      [1, 1],
      [1, 0],
    ]);
    for (let n = 300; n > 0; n >>= 1) {
      if (n & 1) power = power.matmul(square);
      square = square.matmul(square);
    }
    expect(power.at(0, 1).item()).toBe(fibonacci(300));
    expect(fibonacci(90)).toBe(2880067194370816120n);
  });

  it('binomials by a running sum: rows of the triangle of Pascal', () => {
    let row = numberFull([70], 1, bigintType);
    for (let i = 0; i < 35; i++) row = row.cumSum();
    // C(69 - 0 + 35, 35) at the end, by the hockey stick.
    expect(row.at(-1).item()).toBe(binomial(69 + 35, 35));
  });

  it('division: exact, or rounded down like that of tensors', () => {
    expect(big([6, -6]).div(3).array()).toEqual([2n, -2n]);
    expect(
      big([7, -7, 7, -7])
        .floorDivide(big([2, 2, -2, -2]))
        .array(),
    ).toEqual([3n, -4n, -4n, 3n]);
    expect(
      big([7, -7, 7, -7])
        .remainder(big([2, 2, -2, -2]))
        .array(),
    ).toEqual([1n, 1n, -1n, -1n]);
    expect(() => big([7]).div(2)).toThrow('[div] no integer: 7 / 2; use floorDivide, or a type with fractions');
    expect(() => big([7]).floorDivide(0)).toThrow(/division by zero: 7/);
    expect(big([3]).pow(100).item()).toBe(3n ** 100n);
    expect(() => big([3]).pow(0.5)).toThrow(/\[pow\].*0\.5/);
    expect(big([-3, 2]).abs().array()).toEqual([3n, 2n]);
    expect(big([-3, 2]).neg().sub(1).array()).toEqual([2n, -3n]);
  });

  it('come from and go to tensors', async () => {
    const back = await fromTensor(
      tensor(
        [
          [1, 2],
          [3, 4],
        ],
        { dtype: 'int64' },
      ),
      bigintType,
    );
    expect(back.array()).toEqual([
      [1n, 2n],
      [3n, 4n],
    ]);
    const wide = toTensor(back.mul(2n ** 40n), { dtype: 'int64' });
    expect(isTensor(wide) && (await wide.array())).toEqual([
      [2n ** 40n, 2n ** 41n],
      [3n * 2n ** 40n, 2n ** 42n],
    ]);
    expect(await toTensor(back.pow(2)).array()).toEqual([
      [1, 4],
      [9, 16],
    ]);
    expect(() => toTensor(back.mul(2n ** 62n), { dtype: 'int64' })).toThrow(/\[toTensor\].*does not fit int64/);
    expect(() => big([1.5])).toThrow(/no integer: 1\.5/);
    await expect(fromTensor(tensor([0.5]), bigintType)).rejects.toThrow(/0\.5/);
  });
});

function fibonacci(n: number): bigint {
  let [a, b] = [0n, 1n];
  for (let i = 0; i < n; i++) [a, b] = [b, a + b];
  return a;
}

function binomial(n: number, k: number): bigint {
  let result = 1n;
  for (let i = 1; i <= k; i++) result = (result * BigInt(n - k + i)) / BigInt(i);
  return result;
}

/** Gaussian elimination without pivoting, on slices. */
function determinant<T>(matrix: NumberTensor<T>): NumberTensor<T> {
  const n = matrix.shape[0] as number;
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
    expect(() => x.add('1')).toThrow(/\[add\] not an element of number type 'bigint-mod-7': string 1.*from/);
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

describe('shapes', () => {
  const x = (): NumberTensor<bigint> => count(24).reshape([2, 3, 4]);

  it('move without looking at elements, as tensors do', () => {
    expect(x().permute([2, 0, 1]).at(1, 1, 2).item()).toBe(22n);
    expect(x().transpose().shape).toEqual([2, 4, 3]);
    expect(x().permute([1, 2, 0]).reshape([-1, 2]).at(1).array()).toEqual([2n, 14n]);
    expect(x().flip(0).at(0, 0, 0).item()).toBe(13n);
    expect(x().flip().flatten().at({ stop: 3 }).array()).toEqual([24n, 23n, 22n]);
    expect(
      x()
        .slice([{ step: -1 }, 1, { start: 1, stop: null, step: 2 }])
        .array(),
    ).toEqual([
      [18n, 20n],
      [6n, 8n],
    ]);
    expect(x().at(0).unsqueeze(1).expand([3, 5, -1]).shape).toEqual([3, 5, 4]);
    expect(x().unsqueeze(-1).squeeze().shape).toEqual([2, 3, 4]);
    expect(count(3).broadcastTo([2, 3]).array()).toEqual([
      [1n, 2n, 3n],
      [1n, 2n, 3n],
    ]);
    expect(x().take([2, 0], 1).at(0, null, 0).array()).toEqual([9n, 1n]);
    expect(x().take([], 1).shape).toEqual([2, 0, 4]);
    expect(
      concatNumbers([x(), x().at(null, { stop: 1 })], 1)
        .at(1, 3)
        .array(),
    ).toEqual([13n, 14n, 15n, 16n]);
    expect(stackNumbers([count(2), count(2)], 1).array()).toEqual([
      [1n, 1n],
      [2n, 2n],
    ]);
  });

  it('broadcast, reduce and scan like tensors', async () => {
    const t = toTensor(x());
    const axes = [undefined, 1, [0, 2], { axis: -1, keepDims: true }] as const;
    for (const axis of axes) {
      expect(await toTensor(x().sum(axis)).array()).toEqual(await t.sum(axis).array());
      expect(await toTensor(x().max(axis)).array()).toEqual(await t.max(axis).array());
      expect(await toTensor(x().argMin(axis)).array()).toEqual((await t.argMin(axis).array()) as number[]);
    }
    expect(x().cumSum(1).at(1, null, 0).array()).toEqual([13n, 30n, 51n]);
    expect(
      big([[3, 1, 2]])
        .cumMin({ axis: 1 })
        .array(),
    ).toEqual([[3n, 1n, 1n]]);
    expect(x().at(0).matmul(x().transpose()).shape).toEqual([2, 3, 3]);
    expect(await toTensor(x().matmul(x().at(1).transpose())).array()).toEqual(
      await t.matmul(t.select(0, 1).transpose()).array(),
    );
    expect(count(3).dot(count(3)).item()).toBe(14n);
    expect(big([]).sum().item()).toBe(0n);
    expect(big([]).prod().item()).toBe(1n);
    expect(
      big([
        [0, 0],
        [0, 5],
      ])
        .any(1)
        .array(),
    ).toEqual([false, true]);
    expect(
      big([1, 5])
        .where(big([1, 2]).greater(1), big([9, 9]))
        .array(),
    ).toEqual([9n, 5n]);
    expect(big([2, 5]).maximum(3).minimum(4).array()).toEqual([3n, 4n]);
  });

  it('NaN wins, the first of equals is taken', () => {
    const x = numberTensor([1, Number.NaN, 5, 5], numberType);
    expect(x.max().item()).toBeNaN();
    expect(x.argMax().item()).toBe(1);
    expect(x.at({ start: 2 }).argMax().item()).toBe(0);
    expect(x.cumMax().data()).toEqual([1, Number.NaN, Number.NaN, Number.NaN]);
  });

  it('are checked', () => {
    expect(() => big([[1, 2], [3]])).toThrow(/\[numberTensor\] rows differ/);
    expect(() => big([1, [2]])).toThrow(/\[numberTensor\] rows differ/);
    expect(() => x().reshape([5, 5])).toThrow(/\[reshape\] sizes differ/);
    expect(() => x().permute([0, 1])).toThrow(/\[permute\]/);
    expect(() => x().add(count(5))).toThrow(/\[add\].*broadcast/);
    expect(() => x().matmul(count(5))).toThrow(/\[matmul\] inner sizes differ: \[2, 3, 4\] and \[5\]/);
    expect(() => x().sum(3)).toThrow(/\[sum\] axis out of range/);
    expect(() => x().squeeze(0)).toThrow(/\[squeeze\]/);
    expect(() => x().item()).toThrow(/\[item\] 24 elements/);
    expect(() => big([]).max()).toThrow(/\[max\] no elements/);
    expect(() => concatNumbers([])).toThrow(/\[concatNumbers\] no parts/);
    expect(() => concatNumbers([count(2), x()])).toThrow(/\[concatNumbers\] shapes do not fit/);
    expect(() => stackNumbers([count(2), count(3)])).toThrow(/\[stackNumbers\] shapes differ/);
    expect(() => stackNumbers([count(2), numberTensor([1], numberType) as never])).toThrow(/number types differ/);
  });
});
