/**
 * Denormal numbers, those below the normal ones (docs/numerics.md): moving them, and asking whether they are 0, is exact on every engine.
 * Arithmetic and comparisons of float32 may take them for 0 where the engine says so.
 */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import type { ConformanceCase } from '../case.ts';
import type { Target } from '../target.ts';
import { arrayOf } from '../host.ts';
import { type FloatType, inFormat, isDenormal } from '../oracle/units.ts';

type Values = readonly number[];

/** Exponents of the smallest number above 0 and of the smallest normal one. */
const ends: Readonly<Record<FloatType, readonly [least: number, normal: number]>> = {
  float32: [-149, -126],
  float64: [-1074, -1022],
};

/** Denormal numbers of both signs, the smallest and the largest among them, beside 0 and ordinary numbers. */
function tinyNumbers(type: FloatType): number[] {
  const [least, normal] = ends[type].map((exponent) => 2 ** exponent) as [number, number];
  return [least, -least, 5 * least, normal / 2, normal - least, least - normal, normal, 1.5 * normal, 0, -3];
}

/** Numbers that meet: denormal ones, ordinary ones whose products are denormal, denormal and ordinary ones. */
function operandLists(type: FloatType): readonly (readonly [left: Values, right: Values])[] {
  const [least, normal] = ends[type];
  const [low, high] = [2 ** Math.ceil(least / 2), 2 ** (normal / 2)];
  const [tiny, roots] = [tinyNumbers(type), [low, -low, 3 * low, 1.25 * high, -high, 1]];
  return [
    [tiny, tiny],
    [roots, roots],
    [tiny, [1, -1, 0.5, 2]],
  ];
}

/** Elements by their places in the operand. */
const moved: readonly (readonly [name: string, run: (x: Tensor) => Tensor, expected: (x: Values) => Values])[] = [
  ['reading', (x) => pg.reshape(x, [x.size]), (x) => x],
  ['flip', (x) => pg.flip(x).contiguous(), (x) => [...x].reverse()],
  ['concat', (x) => pg.concat([x, x]), (x) => [...x, ...x]],
  ['pad', (x) => pg.pad(x, [[1, 1]]), (x) => [0, ...x, 0]],
  ['repeat', (x) => pg.repeat(x, [2]), (x) => [...x, ...x]],
  ['take', (x) => pg.take(x, pg.tensor([4, 0, 1], { dtype: 'int32' })), (x) => [4, 0, 1].map((i) => x[i]!)],
  ['scatter', (x) => pg.scatter(pg.zeros([12], { dtype: x.dtype }), [11, 3], x.at({ stop: 2 })), scattered],
  ['where', (x) => pg.where(pg.isNaN(x), pg.flip(x), x), (x) => x],
  [
    'full',
    (x) => pg.full([3], tinyNumbers(x.dtype as FloatType)[0]!, { dtype: x.dtype }),
    ([x]) => [x, x, x] as number[],
  ],
];

function scattered([first, second]: Values): Values {
  const values = new Array<number>(12).fill(0);
  [values[11], values[3]] = [first as number, second as number];
  return values;
}

const truthOf = (x: number): number => Number(x !== 0);

/** What asks whether elements are 0. */
const truths: readonly (readonly [name: string, run: (x: Tensor) => Tensor, expected: (x: Values) => Values])[] = [
  ['cast to bool', (x) => x.cast('bool'), (x) => x.map(truthOf)],
  ['logicalNot', (x) => pg.logicalNot(x), (x) => x.map((v) => 1 - truthOf(v))],
  [
    'logicalAnd',
    (x) => pg.logicalAnd(x, pg.flip(x)),
    (x) => x.map((v, i) => truthOf(v) * truthOf(x.at(-1 - i) as number)),
  ],
  ['where', (x) => pg.where(x, 1, 2), (x) => x.map((v) => 2 - truthOf(v))],
  ['any', (x) => pg.any(x.at({ stop: 6 })), () => [1]],
  ['all', (x) => pg.all(x.at({ stop: 6 })), () => [1]],
  ['countNonZero', (x) => pg.countNonZero(x), (x) => [x.filter(truthOf).length]],
];

/** Arithmetic of a number with another. */
const computed: readonly (readonly [
  name: string,
  run: (x: Tensor, y: Tensor) => Tensor,
  f: (x: number, y: number) => number | boolean,
])[] = [
  ['sum', (x, y) => pg.add(x, y), (x, y) => x + y],
  ['difference', (x, y) => pg.sub(x, y), (x, y) => x - y],
  ['product', (x, y) => pg.mul(x, y), (x, y) => x * y],
  ['product with a half', (x) => pg.mul(x, 0.5), (x) => x / 2],
  ['negation', (x) => pg.neg(x), (x) => -x],
  ['maximum', (x, y) => pg.maximum(x, y), Math.max],
  ['minimum', (x, y) => pg.minimum(x, y), Math.min],
  ['relu', (x) => pg.relu(x), (x) => Math.max(x, 0)],
  ['less', (x, y) => pg.less(x, y), (x, y) => x < y],
  ['lessEqual', (x, y) => pg.lessEqual(x, y), (x, y) => x <= y],
  ['equal', (x, y) => pg.equal(x, y), (x, y) => x === y],
  ['equal to 0', (x) => pg.equal(x, 0), (x) => x === 0],
  ['greater than 0', (x) => pg.greater(x, 0), (x) => x > 0],
];

/** Whether a device that takes some denormal numbers for 0, as operands or results, may give `got`. */
function mayBe(got: number, type: FloatType, operands: Values, f: (x: number, y: number) => number | boolean): boolean {
  const flushed = (x: number): number => (isDenormal(type, x) ? 0 : x);
  return [operands, operands.map(flushed)].some(([x, y]) => {
    const exact = inFormat(type, Number(f(x as number, y as number)));
    return got === exact || got === flushed(exact);
  });
}

function differs(got: ArrayLike<number>, want: Values): string | null {
  if (got.length !== want.length) return `${got.length} values where ${want.length} are expected`;
  const at = want.findIndex((value, i) => value !== got[i]);
  return at < 0 ? null : `element ${at} is ${got[at]} where ${want[at]} is expected`;
}

async function checkExact(result: Tensor, want: Values): Promise<void> {
  const problem = differs((await arrayOf(result)).data, want);
  if (problem !== null) throw new Error(problem);
}

export function denormalCases(target: Target): ConformanceCase[] {
  const cases: ConformanceCase[] = [];
  const add = (name: string, run: () => Promise<void>): void => {
    cases.push({
      name: `denormals / ${name}`,
      run: async () => {
        await run();
        return undefined;
      },
    });
  };
  for (const type of target.holds('float64') ? (['float32', 'float64'] as const) : (['float32'] as const)) {
    const tiny = tinyNumbers(type);
    const made = (values: Values): Tensor => pg.tensor([...values], { dtype: type });
    for (const [name, run, expected] of [...moved, ...truths]) {
      add(`${name} of ${type}`, async () => {
        const x = made(tiny);
        try {
          await checkExact(
            pg.scope(() => run(x)),
            expected(tiny),
          );
        } finally {
          x.dispose();
        }
      });
    }
    add(`nonZero of ${type}`, async () => {
      const x = made(tiny);
      try {
        await checkExact(
          await pg.nonZero(x),
          tiny.flatMap((v, i) => (v === 0 ? [] : [i])),
        );
      } finally {
        x.dispose();
      }
    });
    for (const [name, run, f] of computed) {
      add(`${name} of ${type}`, async () => {
        for (const [left, right] of operandLists(type)) {
          const pairs = left.flatMap((x) => right.map((y) => [x, y] as const));
          const [xs, ys] = [pairs.map(([x]) => x), pairs.map(([, y]) => y)];
          const { data } = await arrayOf(pg.scope(() => run(made(xs), made(ys))));
          pairs.forEach(([x, y], i) => {
            const [got, exact] = [data[i]!, inFormat(type, Number(f(x, y)))];
            if (got === exact) return;
            if (type === 'float32' && target.flushesDenormals && mayBe(got, type, [x, y], f)) return;
            throw new Error(`of ${x} and ${y} it is ${got} where ${exact} is expected`);
          });
        }
      });
    }
  }
  return cases;
}
