/**
 * Every dtype to its limits: integers of all widths over their whole range against BigInt, casts between all pairs, numbers given
 * and read back, promotion. Exact, but for nothing.
 */
import * as pg from '@polygrad/core';
import type { DType, Tensor } from '@polygrad/core';
import type { ConformanceCase } from '../case.ts';
import type { Target } from '../expand.ts';
import { fromBits, integerFormat, isSmallFloat, nearest, wrap } from '../oracle/formats.ts';
import { makeRandom, seedOf } from '../oracle/random.ts';

const integers = ['int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64'] as const;
const floats = ['float16', 'bfloat16', 'float32', 'float64'] as const;
type Integer = (typeof integers)[number];

/** Edges of the dtype, small numbers, and numbers of all sizes. */
function draw(dtype: Integer, count: number, salt: string): bigint[] {
  const { bits } = integerFormat(dtype) as { bits: number };
  const random = makeRandom(seedOf(`${dtype}/${salt}`));
  const word = (): bigint => BigInt(Math.floor(random() * 2 ** 32));
  const top = 1n << BigInt(bits - 1);
  const edges = [0n, 1n, -1n, 2n, 3n, -7n, top, top - 1n, top + 1n, 2n ** 53n + 1n, -(2n ** 53n) - 1n];
  return Array.from({ length: count }, (_, i) => {
    if (i % 3 === 0) return wrap(dtype, edges[Math.floor(random() * edges.length)] as bigint);
    return wrap(dtype, ((word() << 32n) | word()) >> BigInt(Math.floor(random() * 64)));
  });
}

/** Elements of a tensor as exact values. */
async function read(t: Tensor): Promise<(number | bigint)[]> {
  const data = await t.data();
  const { dtype } = t;
  return Array.from(data as ArrayLike<number | bigint>, (x) => {
    if (isSmallFloat(dtype)) return fromBits(dtype, x as number);
    return integerFormat(dtype) === null ? x : BigInt(x);
  });
}

async function expectValues(
  what: string,
  t: Tensor,
  wanted: readonly (number | bigint | boolean)[],
  dtype: DType,
): Promise<void> {
  const got = await read(t);
  const found = t.dtype;
  t.dispose();
  if (found !== dtype) throw new Error(`${what}: dtype ${found} where ${dtype} is expected`);
  if (got.length !== wanted.length)
    throw new Error(`${what}: ${got.length} values where ${wanted.length} are expected`);
  wanted.forEach((w, i) => {
    const want = typeof w === 'boolean' ? Number(w) : w;
    if (!Object.is(got[i], want)) throw new Error(`${what}: element ${i} is ${got[i]} where ${want} is expected`);
  });
}

/** Division rounds down and the remainder has the sign of the divisor (Python Array API). */
const floorDivide = (x: bigint, y: bigint): bigint => (x - floorModulo(x, y)) / y;
const floorModulo = (x: bigint, y: bigint): bigint => ((x % y) + y) % y;

const ascending = (a: bigint, b: bigint): number => (a < b ? -1 : a > b ? 1 : 0);
const largest = (v: readonly bigint[]): bigint => [...v].sort(ascending).at(-1) as bigint;
const least = (v: readonly bigint[]): bigint => [...v].sort(ascending)[0] as bigint;

type Binary = readonly [
  name: string,
  run: (a: Tensor, b: Tensor) => Tensor,
  oracle: (a: bigint, b: bigint) => bigint | boolean,
];
const binary: readonly Binary[] = [
  ['add', pg.add, (a, b) => a + b],
  ['sub', pg.sub, (a, b) => a - b],
  ['mul', pg.mul, (a, b) => a * b],
  ['maximum', pg.maximum, (a, b) => largest([a, b])],
  ['minimum', pg.minimum, (a, b) => least([a, b])],
  ['bitwiseAnd', pg.bitwiseAnd, (a, b) => a & b],
  ['bitwiseOr', pg.bitwiseOr, (a, b) => a | b],
  ['bitwiseXor', pg.bitwiseXor, (a, b) => a ^ b],
  ['less', pg.less, (a, b) => a < b],
  ['lessEqual', pg.lessEqual, (a, b) => a <= b],
  ['equal', pg.equal, (a, b) => a === b],
  ['notEqual', pg.notEqual, (a, b) => a !== b],
];

const length = 203;

async function checkArithmetic(dtype: Integer): Promise<void> {
  const { bits } = integerFormat(dtype) as { bits: number };
  const [x, y] = [draw(dtype, length, 'x'), draw(dtype, length, 'y')];
  const [a, b] = [pg.tensor(x, { dtype }), pg.tensor(y, { dtype })];
  const each = async (
    name: string,
    run: () => Tensor,
    oracle: (a: bigint, b: bigint) => bigint | boolean,
    right = y,
  ): Promise<void> => {
    const wanted = x.map((v, i) => {
      const w = oracle(v, right[i] as bigint);
      return typeof w === 'bigint' ? wrap(dtype, w) : w;
    });
    await expectValues(`${name} of ${dtype}`, pg.scope(run), wanted, typeof wanted[0] === 'boolean' ? 'bool' : dtype);
  };
  for (const [name, run, oracle] of binary) await each(name, () => run(a, b), oracle);
  await each(
    'neg',
    () => pg.neg(a),
    (v) => -v,
  );
  await each(
    'abs',
    () => pg.abs(a),
    (v) => (v < 0n ? -v : v),
  );
  await each(
    'bitwiseNot',
    () => pg.bitwiseNot(a),
    (v) => ~v,
  );
  await each(
    'sign',
    () => pg.sign(a),
    (v) => (v < 0n ? -1n : v > 0n ? 1n : 0n),
  );
  await each(
    'chain',
    () => pg.where(pg.less(a, b), a.mul(b).sub(a), a.add(b).mul(3)),
    (p, q) => {
      const step = (v: bigint): bigint => wrap(dtype, v);
      return p < q ? step(step(p * q) - p) : step(step(p + q) * 3n);
    },
  );
  const counts = x.map((_, i) => BigInt(i % bits));
  const shifts = pg.tensor(counts, { dtype });
  await each(
    'leftShift',
    () => pg.leftShift(a, shifts),
    (v, n) => v << n,
    counts,
  );
  await each(
    'rightShift',
    () => pg.rightShift(a, shifts),
    (v, n) => v >> n,
    counts,
  );
  const divisors = y.map((v) => (v === 0n ? 3n : v));
  const d = pg.tensor(divisors, { dtype });
  await each('floorDivide', () => pg.floorDivide(a, d), floorDivide, divisors);
  await each('remainder', () => pg.remainder(a, d), floorModulo, divisors);
  for (const t of [a, b, shifts, d]) t.dispose();
}

async function checkReductions(dtype: Integer): Promise<void> {
  const { bits, signed } = integerFormat(dtype) as { bits: number; signed: boolean };
  // 7 rows; long enough that sums are taken in vectors.
  const rows = 7;
  const x = draw(dtype, rows * length, 'rows');
  const t = pg.tensor(x, { dtype, shape: [rows, length] });
  const row = (r: number): bigint[] => x.slice(r * length, (r + 1) * length);
  const all = Array.from({ length: rows }, (_, r) => row(r));
  const wide: DType = bits >= 32 ? dtype : signed ? 'int32' : 'uint32';
  const sum = (v: readonly bigint[]): bigint => v.reduce((p, q) => p + q, 0n);
  const check = (name: string, run: () => Tensor, of: (v: readonly bigint[]) => bigint, as: DType): Promise<void> =>
    expectValues(
      `${name} of ${dtype}`,
      pg.scope(run),
      all.map((v) => wrap(as, of(v))),
      as,
    );
  await check('sum', () => t.sum(1), sum, wide);
  await check(
    'prod',
    () => t.prod(1),
    (v) => v.reduce((p, q) => p * q, 1n),
    wide,
  );
  await check('max', () => t.max(1), largest, dtype);
  await check('min', () => t.min(1), least, dtype);
  await check(
    'argMax',
    () => t.argMax(1),
    (v) => BigInt(v.indexOf(largest(v))),
    'int32',
  );
  await check(
    'argMin',
    () => t.argMin(1),
    (v) => BigInt(v.indexOf(least(v))),
    'int32',
  );
  const whole = [wrap(wide, sum(x))];
  await expectValues(
    `sum of all ${dtype}`,
    pg.scope(() => t.sum()),
    whole,
    wide,
  );
  // The long way: partial results, filled up with what changes nothing.
  const long = pg.tensor(
    Array.from({ length: 9001 }, (_, i) => x[i % x.length] as bigint),
    { dtype },
  );
  await expectValues(
    `min of many ${dtype}`,
    pg.scope(() => long.min()),
    [least(x)],
    dtype,
  );
  await expectValues(
    `max of many ${dtype}`,
    pg.scope(() => long.max()),
    [largest(x)],
    dtype,
  );
  const square = pg.scope(() => pg.matmul(t, t.transpose()));
  const dots = all.flatMap((p) => all.map((q) => wrap(dtype, sum(p.map((v, i) => v * (q[i] as bigint))))));
  await expectValues(`matmul of ${dtype}`, square, dots, dtype);
  t.dispose();
  long.dispose();
}

async function checkMoving(dtype: DType): Promise<void> {
  const format = integerFormat(dtype);
  const x = format === null ? Array.from({ length: 24 }, (_, i) => (i - 12) / 8) : draw(dtype as Integer, 24, 'moved');
  const t = pg.tensor(x, { dtype, shape: [4, 6] });
  const at = (i: number, j: number): number | bigint => x[i * 6 + j] as number | bigint;
  const zero = format === null ? 0 : 0n;
  const check = (
    name: string,
    run: () => Tensor,
    shape: readonly [number, number],
    of: (i: number, j: number) => number | bigint,
  ): Promise<void> =>
    expectValues(
      `${name} of ${dtype}`,
      pg.scope(run),
      Array.from({ length: shape[0] * shape[1] }, (_, k) => of(Math.floor(k / shape[1]), k % shape[1])),
      dtype,
    );
  await check(
    'transpose',
    () => t.transpose().contiguous(),
    [6, 4],
    (i, j) => at(j, i),
  );
  await check(
    'flip',
    () => pg.flip(t, 1).contiguous(),
    [4, 6],
    (i, j) => at(i, 5 - j),
  );
  await check(
    'pad',
    () =>
      pg.pad(t, [
        [1, 0],
        [0, 2],
      ]),
    [5, 8],
    (i, j) => (i === 0 || j > 5 ? zero : at(i - 1, j)),
  );
  await check(
    'concat',
    () => pg.concat([t, t], 1),
    [4, 12],
    (i, j) => at(i, j % 6),
  );
  const places = pg.tensor([3, 0, 3], { dtype: 'int32' });
  await check(
    'take',
    () => pg.take(t, places, 0),
    [3, 6],
    (i, j) => at([3, 0, 3][i] as number, j),
  );
  const one = format === null ? 1 : 1n;
  const added = pg.scope(() =>
    pg.indexAdd(pg.zeros([4, 6], { dtype }), places, pg.ones([3, 6], { dtype }), { axis: 0 }),
  );
  await expectValues(
    `indexAdd of ${dtype}`,
    added,
    Array.from({ length: 24 }, (_, k) => (k < 6 ? one : k < 18 ? zero : format === null ? 2 : 2n)),
    dtype,
  );
  t.dispose();
  places.dispose();
}

/** What a value of one dtype becomes in another: floats are rounded once, integers wrap, floats to integers saturate. */
function converted(x: number | bigint, to: DType): number | bigint {
  if (to === 'bool') return Number(Number(x) !== 0);
  const format = integerFormat(to);
  if (format !== null) {
    if (typeof x === 'bigint') return wrap(to, x);
    const [lo, hi] = format.signed
      ? [-(1n << BigInt(format.bits - 1)), (1n << BigInt(format.bits - 1)) - 1n]
      : [0n, (1n << BigInt(format.bits)) - 1n];
    if (Number.isNaN(x)) return 0n;
    if (!Number.isFinite(x)) return x > 0 ? hi : lo;
    const whole = BigInt(Math.trunc(x));
    return whole > hi ? hi : whole < lo ? lo : whole;
  }
  // Large integers: their low bits gathered into one, so that a number holds them and rounding once is rounding right.
  let value = Number(x);
  if (typeof x === 'bigint' && to !== 'float64' && (x > 2n ** 53n || x < -(2n ** 53n))) {
    const low = x & 0xfffn;
    value = Number(low === 0n ? x : x - low + 0x800n);
  }
  if (isSmallFloat(to)) return nearest(to, value);
  return to === 'float32' ? Math.fround(value) : value;
}

async function checkCasts(from: DType, target: Target): Promise<void> {
  let x: (number | bigint)[];
  if (integerFormat(from) !== null) x = draw(from as Integer, 61, 'cast');
  else if (from === 'bool') x = [0, 1, 1];
  else {
    const numbers = [
      0,
      -0,
      1,
      -1.5,
      2.5,
      127.5,
      -128.9,
      255.9,
      256,
      -1e5,
      65519,
      65520,
      65535.5,
      1e10,
      -3e9,
      9.3e18,
      2e19,
      1e300,
      2 ** -24,
      2 ** -25,
      1e-40,
      1 + 2 ** -8 + 2 ** -30,
      1 + 2 ** -11 + 2 ** -40,
      Number.POSITIVE_INFINITY,
      Number.NEGATIVE_INFINITY,
      Number.NaN,
    ];
    x = numbers.map((v) => converted(v, from));
  }
  const t = pg.tensor(from === 'bool' ? x.map(Boolean) : x, { dtype: from });
  for (const to of [...integers, ...floats, 'bool'] as const) {
    if (!target.holds(to) || to === from) continue;
    await expectValues(
      `${from} to ${to}`,
      pg.scope(() => t.cast(to)),
      x.map((v) => converted(v, to)),
      to,
    );
  }
  t.dispose();
}

async function checkGiven(dtype: Integer): Promise<void> {
  const { bits, signed } = integerFormat(dtype) as { bits: number; signed: boolean };
  const top = (1n << BigInt(signed ? bits - 1 : bits)) - 1n;
  const low = signed ? -top - 1n : 0n;
  await expectValues('bigints', pg.tensor([top, low, 5n], { dtype }), [top, low, 5n], dtype);
  await expectValues('full', pg.full([2], top, { dtype }), [top, top], dtype);
  await expectValues(
    'a bigint next to a tensor',
    pg.scope(() => pg.zeros([2], { dtype }).add(top)),
    [top, top],
    dtype,
  );
  await expectValues(
    'sums wrap',
    pg.scope(() => pg.full([2], top, { dtype }).add(1)),
    [low, low],
    dtype,
  );
  await expectValues('arange', pg.arange(5, { dtype }), [0n, 1n, 2n, 3n, 4n], dtype);
  await expectValues('eye', pg.eye(2, { dtype }), [1n, 0n, 0n, 1n], dtype);
  const t = pg.tensor([[low], [top]], { dtype });
  const nested = JSON.stringify(await t.array(), (_, v) => (typeof v === 'bigint' ? `${v}n` : v));
  const shown = (v: bigint): string => (bits === 64 ? `"${v}n"` : `${v}`);
  if (nested !== `[[${shown(low)}],[${shown(top)}]]`) throw new Error(`array() of ${dtype} gives ${nested}`);
  t.dispose();
  const one = pg.tensor(top, { dtype });
  const item = await one.item<number | bigint>();
  if (item !== (bits === 64 ? top : Number(top))) throw new Error(`item() of ${dtype} gives ${item}`);
  one.dispose();
}

/** Pairs of dtypes, and what they meet in; the table of the Python Array API, copied from it. */
const meetings: readonly (readonly [DType, DType, DType | null])[] = [
  ['int8', 'int16', 'int16'],
  ['int8', 'int64', 'int64'],
  ['int16', 'int32', 'int32'],
  ['int32', 'int64', 'int64'],
  ['uint8', 'uint16', 'uint16'],
  ['uint8', 'uint64', 'uint64'],
  ['uint16', 'uint32', 'uint32'],
  ['uint32', 'uint64', 'uint64'],
  ['int8', 'uint8', 'int16'],
  ['int8', 'uint16', 'int32'],
  ['int8', 'uint32', 'int64'],
  ['int16', 'uint8', 'int16'],
  ['int16', 'uint16', 'int32'],
  ['int32', 'uint8', 'int32'],
  ['int32', 'uint32', 'int64'],
  ['int64', 'uint32', 'int64'],
  ['float32', 'float64', 'float64'],
  ['float16', 'float32', 'float32'],
  ['bfloat16', 'float64', 'float64'],
  ['float16', 'bfloat16', 'float32'],
  ['int64', 'uint64', null],
  ['int8', 'uint64', null],
  ['int32', 'float32', null],
  ['uint8', 'float16', null],
  ['bool', 'int8', null],
];

async function checkPromotion(target: Target): Promise<void> {
  for (const [left, right, together] of meetings) {
    if (!target.holds(left) || !target.holds(right) || (together !== null && !target.holds(together))) continue;
    const [a, b] = [pg.ones([2], { dtype: left }), pg.ones([2], { dtype: right })];
    if (together === null) {
      let message = '';
      try {
        pg.add(a, b).dispose();
      } catch (error) {
        message = (error as Error).message;
      }
      if (!message.includes(left) || !message.includes(right))
        throw new Error(`${left} with ${right}: '${message}' where an error that names both is expected`);
    } else {
      const two = integerFormat(together) === null ? 2 : 2n;
      await expectValues(`${left} with ${right}`, pg.add(a, b), [two, two], together);
      await expectValues(`${right} with ${left}`, pg.add(b, a), [two, two], together);
    }
    a.dispose();
    b.dispose();
  }
}

/** 16-bit floats: sums in float32, one rounding per operation, gradients, random numbers below 1. */
async function checkSmallFloat(dtype: 'float16' | 'bfloat16'): Promise<void> {
  const ones = pg.ones([4096], { dtype });
  await expectValues(
    'a sum above the integers of the format',
    pg.scope(() => ones.sum()),
    [4096],
    dtype,
  );
  await expectValues(
    'a mean',
    pg.scope(() => ones.mean()),
    [1],
    dtype,
  );
  const many = pg.full([70000], 1, { dtype });
  await expectValues(
    'a mean whose sum overflows',
    pg.scope(() => many.mean()),
    [1],
    dtype,
  );
  const third = nearest(dtype, 1 / 3);
  const x = pg.full([5], third, { dtype });
  // Rounded after each operation, fused or not.
  const step = (v: number): number => nearest(dtype, v);
  const wanted = step(step(step(third * third) + third) - step(third / 7));
  await expectValues(
    'a chain',
    pg.scope(() => x.mul(x).add(x).sub(x.div(7))),
    new Array<number>(5).fill(wanted),
    dtype,
  );
  const leaf = pg.tensor([1, 2, 3], { dtype, requiresGrad: true });
  pg.scope(() => leaf.mul(leaf).sum().backward());
  const { grad } = leaf;
  if (grad === null) throw new Error('no gradient');
  const values = await read(grad);
  if (grad.dtype !== dtype || values.join() !== '2,4,6') throw new Error(`gradient ${grad.dtype} ${values}`);
  leaf.dispose();
  const random = pg.rand([4000], { key: 3, dtype });
  const drawn = (await read(random)) as number[];
  if (drawn.some((v) => !(v >= 0 && v < 1))) throw new Error('a random number outside of [0, 1)');
  const mean = drawn.reduce((p, q) => p + q, 0) / drawn.length;
  if (Math.abs(mean - 0.5) > 0.02) throw new Error(`mean of random numbers ${mean}`);
  for (const t of [ones, many, x, random]) t.dispose();
}

function checkRefusals(dtype: Integer): void {
  const refuse = (what: string, says: RegExp, run: () => unknown): void => {
    try {
      pg.scope(() => {
        run();
      });
    } catch (error) {
      if (!says.test((error as Error).message)) throw new Error(`${what}: '${(error as Error).message}'`);
      return;
    }
    throw new Error(`${what} of ${dtype} is accepted`);
  };
  refuse('a gradient', new RegExp(dtype), () => pg.ones([2], { dtype, requiresGrad: true }));
  refuse('a fraction', new RegExp(`0.5.*${dtype}`), () => pg.ones([2], { dtype }).add(0.5));
  refuse('a bigint next to floats', /5n.*float32/, () => pg.ones([2]).add(5n));
}

export function dtypeCases(target: Target): ConformanceCase[] {
  const cases: ConformanceCase[] = [];
  const add = (name: string, dtypes: readonly DType[], run: () => Promise<void>): void => {
    cases.push({
      name: `dtypes / ${name}`,
      run: async () => {
        const missing = dtypes.find((d) => !target.holds(d));
        if (missing !== undefined) return { skip: `the engine does not hold ${missing}` };
        await run();
        return undefined;
      },
    });
  };
  for (const dtype of integers) {
    add(`arithmetic of ${dtype}`, [dtype], () => checkArithmetic(dtype));
    add(`reductions of ${dtype}`, [dtype], () => checkReductions(dtype));
    add(`numbers given and read as ${dtype}`, [dtype], () => checkGiven(dtype));
    add(`refusals of ${dtype}`, [dtype], async () => checkRefusals(dtype));
  }
  for (const dtype of [...integers, ...floats]) add(`movements of ${dtype}`, [dtype], () => checkMoving(dtype));
  for (const dtype of [...integers, ...floats, 'bool'] as const)
    add(`casts from ${dtype}`, [dtype], () => checkCasts(dtype, target));
  for (const dtype of ['float16', 'bfloat16'] as const)
    add(`sums and roundings of ${dtype}`, [dtype], () => checkSmallFloat(dtype));
  add('promotion', [], () => checkPromotion(target));
  return cases;
}
