/** Loops on the device: whole numbers, NaN, steps that hold loops, random numbers, errors, and that nothing of a loop outlives it. */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import type { ConformanceCase } from '../case.ts';
import { assertClose } from '../compare.ts';
import { arrayOf } from '../host.ts';
import { map, type NDArray, nd } from '../oracle/ndarray.ts';
import { makeRandom, sample, seedOf, uniform } from '../oracle/random.ts';
import type { Target } from '../target.ts';
import { type Refusal, refusalCases } from './errors.ts';
import { add, row, scanned } from '../oracle/scan.ts';

async function same(what: string, actual: Tensor, expected: NDArray): Promise<void> {
  const found = await arrayOf(actual);
  assertClose(what, found.data, found.shape, expected, { rtol: 1e-5, atol: 1e-6 });
}

const numbers = (shape: readonly number[], name: string): NDArray =>
  sample(makeRandom(seedOf(name)), shape, uniform(-1, 1));
const made = ({ data, shape }: NDArray): Tensor => pg.tensor(Float32Array.from(data), { shape: [...shape] });

/** A sum and its parts. */
const sums = (carry: Tensor, x: Tensor): [Tensor, Tensor] => {
  const next = carry.add(x);
  return [next, next];
};

const bad: readonly Refusal[] = [
  {
    name: 'scan whose carry changes its shape',
    run: () => pg.scan((c: Tensor, x: Tensor) => [c.add(x), null], pg.zeros([]), pg.zeros([2, 3]))[0],
    says: [/\[scan\] the carry changes its shape/, /float32 \[\]/, /float32 \[3\]/, /start with/],
  },
  {
    name: 'scan whose carry changes its dtype',
    run: () => pg.scan((c: Tensor) => [c.cast('int32'), null], pg.zeros([2]), null, { length: 2 })[0],
    says: [/\[scan\] the carry changes its dtype/, /float32 \[2\]/, /int32 \[2\]/, /cast/],
  },
  {
    name: 'scan whose carry changes its structure',
    run: () =>
      pg.scan((c: readonly Tensor[]) => [[...c, ...c], null], [pg.zeros([2])] as readonly Tensor[], null, {
        length: 2,
      })[0][0] as Tensor,
    says: [/\[scan\] the carry changes its structure/, /\[0\] goes in/, /\[0,0\] comes out/],
  },
  {
    name: 'scan over slices of different lengths',
    run: () =>
      pg.scan((c: Tensor, _: readonly Tensor[]) => [c, null], pg.zeros([]), [pg.zeros([2]), pg.zeros([3, 1])])[0],
    says: [/\[scan\] lengths differ: 2 of \[2\] and 3 of \[3, 1\]/, /same first axis/],
  },
  {
    name: 'scan over another length than is given',
    run: () => pg.scan((c: Tensor, _: Tensor) => [c, null], pg.zeros([]), pg.zeros([2]), { length: 3 })[0],
    says: [/\[scan\] lengths differ: 3 in options.length and 2 of \[2\]/],
  },
  {
    name: 'scan without a length',
    run: () => pg.scan((c: Tensor) => [c, null], pg.zeros([]), null)[0],
    says: [/\[scan\] no length/, /options.length/],
  },
  {
    name: 'scan whose function returns nothing',
    run: () => pg.scan((() => undefined) as unknown as typeof sums, pg.zeros([]), pg.zeros([2]))[0],
    says: [/\[scan\] the function returned undefined/, /\[carry, y\]/],
  },
  {
    name: 'scan whose function disposes its carry',
    run: () => {
      const dispose = (c: Tensor, x: Tensor): [Tensor, Tensor] => {
        const next = c.add(x);
        c.dispose();
        return [next, next];
      };
      return pg.scan(dispose, pg.zeros([]), pg.zeros([2]))[0];
    },
    says: [/\[scan\] the function disposed its carry/],
  },
  {
    name: 'a value read inside scan',
    run: () => {
      const read = (c: Tensor): [Tensor, null] => {
        c.add(1).dataSync();
        return [c, null];
      };
      return pg.scan(read, pg.zeros([2]), null, { length: 2 })[0];
    },
    says: [/the carry inside scan/],
  },
];

export function loopCases(target: Target): ConformanceCase[] {
  return [...valueCases(target), ...planCases(), ...stepCases(), whileCase, ...refusalCases(bad)];
}

const check = (name: string, run: () => Promise<void>): ConformanceCase => ({
  name: `loops / ${name}`,
  run: async () => {
    await run();
    return undefined;
  },
});

/** Compares what a function makes, of which nothing is left. */
const compare = async (
  make: () => Readonly<Record<string, Tensor>>,
  wanted: Readonly<Record<string, NDArray>>,
): Promise<void> => {
  const found = pg.scope(make);
  for (const [name, value] of Object.entries(found)) await same(name, value, wanted[name]!);
  pg.dispose(found);
};

/** What is carried and sliced: dtypes, and what is not a number. */
function valueCases(target: Target): ConformanceCase[] {
  return [
    check('whole numbers and truth values are carried', () =>
      compare(
        () => {
          const start = [pg.tensor(0, { dtype: 'int32' }), pg.tensor(false)] as const;
          const [[count, flag], ys] = pg.scan(
            ([n, odd]: readonly [Tensor, Tensor], v: Tensor) =>
              [[n.add(v), pg.logicalXor(odd, v.equal(1))] as const, [n, odd]] as const,
            start,
            pg.tensor([3, 1, 2, 5], { dtype: 'int32' }),
          );
          const [counts, flags] = ys;
          return Object.fromEntries(
            Object.entries({ count, flag, counts, flags }).map(([name, t]) => [name, t.cast('float32')]),
          );
        },
        { count: nd([], [11]), flag: nd([], [1]), counts: nd([4], [0, 3, 4, 6]), flags: nd([4], [0, 0, 1, 1]) },
      ),
    ),
    ...(['float16', 'bfloat16', 'int8', 'uint8', 'int64', 'float64'] as const).map((dtype) => ({
      name: `loops / slices of few bytes in ${dtype}`,
      run: async () => {
        if (!target.holds(dtype)) return { skip: `the engine does not hold ${dtype}` };
        await compare(
          () => {
            const x = pg.tensor([1, 2, 3, 4, 5, 6, 7, 8, 9], { shape: [3, 3] }).cast(dtype);
            const [end, ys] = pg.scan(sums, pg.zeros([3], { dtype }), x);
            return { end: end.cast('float32'), ys: ys.cast('float32') };
          },
          { end: nd([3], [12, 15, 18]), ys: nd([3, 3], [1, 2, 3, 5, 7, 9, 12, 15, 18]) },
        );
        return undefined;
      },
    })),
    check('dtypes that only the body computes in', () =>
      compare(
        () => {
          const x = made(nd([3], [1, 2, 3]));
          const f = (v: Tensor): Tensor =>
            pg.scan(
              (c: Tensor, part: Tensor) => {
                const wide = part.cast(target.holds('float64') ? 'float64' : 'float32').mul(2);
                return [c.add(wide.cast('float32')).add(part.cast('int8').cast('float32')), null] as const;
              },
              pg.zeros([]),
              v,
            )[0];
          return { end: f(x), slope: pg.grad(f)(x) };
        },
        { end: nd([], [18]), slope: nd([3], [2, 2, 2]) },
      ),
    ),
    check('NaN stays where it is', () =>
      compare(
        () => {
          const x = pg.tensor([
            [1, 2],
            [Number.NaN, 3],
            [1, 1],
          ]);
          const [end, ys] = pg.scan(sums, pg.zeros([2]), x);
          return { end, ys, slope: pg.grad((v: Tensor) => pg.scan(sums, pg.zeros([2]), v)[1].sum())(x) };
        },
        {
          end: nd([2], [Number.NaN, 6]),
          ys: nd([3, 2], [1, 2, Number.NaN, 5, Number.NaN, 6]),
          slope: nd([3, 2], [3, 3, 2, 2, 1, 1]),
        },
      ),
    ),
  ];
}

/** What of a loop is bound to its plan, and loops of many steps. */
function planCases(): ConformanceCase[] {
  return [
    check('a number of the caller is bound, not planned', async () => {
      const x = numbers([5, 3], 'bound');
      const run = (by: number): Readonly<Record<string, Tensor>> => ({
        end: pg.scan((c: Tensor, v: Tensor) => [c.mul(by).add(v), null], pg.zeros([3]), made(x))[0],
      });
      const wanted = (by: number): Readonly<Record<string, NDArray>> => ({
        end: scanned(
          ([c], t) => [
            [
              add(
                map(c, (v) => v * by),
                row(x, t),
              ),
            ],
            [],
          ],
          [nd([3], [0, 0, 0])],
          5,
          [],
        )[0][0],
      });
      await compare(() => run(0.5), wanted(0.5));
      const { planMisses } = pg.stats();
      await compare(() => run(0.25), wanted(0.25));
      if (pg.stats().planMisses !== planMisses) throw new Error('another number made a new plan');
    }),
    check('another length makes no plan of the step', async () => {
      const run = (length: number): Promise<void> =>
        compare(
          () => ({
            end: pg.scan((c: Tensor) => [c.mul(2).add(c.sum()), null] as const, pg.ones([2]), null, { length })[0],
          }),
          { end: nd([2], [4 ** length, 4 ** length]) },
        );
      await run(3);
      const { planMisses } = pg.stats();
      await run(7);
      if (pg.stats().planMisses !== planMisses) throw new Error('another length made a new plan');
    }),
    check('many steps', () => {
      const x = numbers([1500, 2], 'many');
      const [[end], [all]] = scanned(
        ([c], t) => {
          const next = add(
            map(c, (v) => v * 0.9),
            row(x, t),
          );
          return [[next], [nd([], [c.data.reduce((s, v) => s + v, 0)])]];
        },
        [nd([2], [0, 0])],
        1500,
        [[]],
      );
      return compare(
        () => {
          const [state, ys] = pg.scan(
            (c: Tensor, v: Tensor) => [c.mul(0.9).add(v), c.sum()] as const,
            pg.zeros([2]),
            made(x),
          );
          return { state, ys };
        },
        { state: end, ys: all },
      );
    }),
  ];
}

/** What a step may do, and when results may be asked for. */
function stepCases(): ConformanceCase[] {
  return [
    check('each step draws numbers of its own, the same in its gradient', async () => {
      const found = pg.scope(() => {
        pg.seed(3);
        const f = (x: Tensor): [Tensor, Tensor] => {
          const step = (c: Tensor, part: Tensor): [Tensor, Tensor] => {
            const y = pg.dropout(part, { p: 0.5, training: true });
            return [c.add(y), y];
          };
          const [end, ys] = pg.scan(step, pg.zeros([50]), x);
          return [end.sum(), ys];
        };
        const [[, ys], slope] = pg.valueAndGrad(f, { hasAux: true })(pg.ones([4, 50]));
        return { ys: ys, slope };
      });
      const [kept, slopes] = [await arrayOf(found.ys), await arrayOf(found.slope)];
      assertClose('gradient', slopes.data, slopes.shape, kept, { rtol: 1e-6, atol: 0 });
      const steps = new Set([0, 1, 2, 3].map((t) => row(kept, t).data.join()));
      if (steps.size !== 4) throw new Error('steps drew the same numbers');
      pg.dispose(found);
    }),
    check('checkpoints and gradients in a step', async () => {
      const found = pg.scope(() => {
        const [x, w] = [made(numbers([3, 2], 'checkpoint x')), made(numbers([2], 'checkpoint w'))];
        const slopes = (part: (c: Tensor, v: Tensor, k: Tensor) => Tensor): readonly Tensor[] =>
          pg.grads((v: Tensor, k: Tensor) =>
            pg.scan((c: Tensor, s: Tensor) => [part(c, s, k), null] as const, pg.ones([2]), v)[0].sum(),
          )(x, w);
        const plain = (c: Tensor, v: Tensor, k: Tensor): Tensor => pg.sin(c.mul(k).add(v));
        return {
          direct: slopes(plain),
          saved: slopes((c, v, k) => pg.checkpoint((a: Tensor, b: Tensor) => plain(a, b, k), c, v)),
          // The slope of the sum of sines is the cosine: a gradient in a step takes the place of the formula.
          cosine: slopes((c, v, k) => pg.cos(c.mul(k).add(v))),
          inside: slopes((c, v, k) => pg.grad((u: Tensor) => pg.sin(u).sum())(c.mul(k).add(v))),
        };
      });
      for (const i of [0, 1]) {
        await same('checkpoint', found.saved[i]!, await arrayOf(found.direct[i]!));
        await same('gradient inside', found.inside[i]!, await arrayOf(found.cosine[i]!));
      }
      pg.dispose(found);
    }),
    check('leaves, tapes and batches see what a step uses', async () => {
      const w = pg.tensor([0.5, 0.25], { requiresGrad: true });
      const found = pg.scope(() => {
        const x = pg.tensor([
          [1, 2],
          [3, 4],
        ]);
        const run = (v: Tensor): Tensor =>
          pg.scan((c: Tensor, s: Tensor) => [c.mul(w).add(s), null] as const, pg.ones([2]), v)[0];
        run(x).sum().backward();
        const tape = new pg.GradientTape();
        tape.watch(x);
        const slope = tape.gradient(run(x).sum(), x);
        return { slope, all: pg.vmap(run)(pg.stack([x, x.mul(2)])) };
      });
      // c = (w + x0) w + x1: its slope is 2 w + x0.
      await same('leaf', w.grad as Tensor, nd([2], [2, 2.5]));
      await same('tape', found.slope, nd([2, 2], [0.5, 0.25, 1, 1]));
      await same('batch', found.all, nd([2, 2], [3.75, 4.5625, 7.25, 9.0625]));
      pg.dispose([w.grad as Tensor, w, found.slope, found.all]);
    }),
    check('results are there whenever they are asked for', async () => {
      const x = numbers([4, 3], 'unheld');
      const [[end], [all]] = scanned(
        ([c], t) => {
          const next = add(c, row(x, t));
          return [[next], [next]];
        },
        [nd([3], [0, 0, 0])],
        4,
        [[3]],
      );
      const [last, ys] = pg.scope(() => pg.scan(sums, pg.zeros([3]), made(x)));
      await same('end', last, end);
      last.dispose();
      await same('results', ys, all);
      ys.dispose();
      // One result after the other, outside of scopes: for the second the loop runs again.
      const [start, xs] = [pg.zeros([3]), made(x)];
      const [first, second] = pg.scan(sums, start, xs);
      await same('end first', first, end);
      await same('results later', second, all);
      const [alone, unused] = pg.scan(sums, start, xs);
      unused.dispose();
      await same('end alone', alone, end);
      pg.dispose([start, xs, first, second, alone]);
    }),
  ];
}

const whileCase: ConformanceCase = check('steps as long as a condition holds', async () => {
  const [start, by] = [pg.tensor([100, 50]), pg.tensor(2, { requiresGrad: true })];
  const isLarge = ([x]: readonly [Tensor, Tensor]): Tensor => x.max().greater(1);
  const halve = ([x, n]: readonly [Tensor, Tensor]): readonly [Tensor, Tensor] => [x.div(by), n.add(1)];
  const count = pg.tensor(0, { dtype: 'int32' });
  const [end, steps] = await pg.whileLoop(isLarge, halve, [start, count] as const);
  await same('end', end, nd([2], [0.78125, 0.390625]));
  await same('steps', steps, nd([], [7]));
  const some = await pg.whileLoop(isLarge, halve, [start, count] as const, { maxSteps: 2 });
  await same('after two', some[0], nd([2], [25, 12.5]));
  const none = await pg.whileLoop(() => false, halve, [start, count] as const);
  await same('none', none[0], nd([2], [100, 50]));
  const refused = async (says: RegExp, run: () => unknown): Promise<void> => {
    let message = 'nothing was said';
    try {
      await run();
    } catch (error) {
      message = (error as Error).message;
    }
    if (!says.test(message)) throw new Error(message);
  };
  const [tracked, more] = await pg.whileLoop(isLarge, halve, [start, count] as const);
  await refused(/\[whileLoop\] no gradient flows through it.*use scan/, () => pg.scope(() => tracked.sum().backward()));
  await refused(/\[whileLoop\] the carry changes its shape: float32 \[2\] goes in, float32 \[4\] comes out/, () =>
    pg.whileLoop(
      () => true,
      (x: Tensor) => pg.concat([x, x]),
      start,
    ),
  );
  await refused(/\[whileLoop\] the condition returned.*one element/, () =>
    pg.whileLoop(
      (x: Tensor) => x.greater(0),
      (x: Tensor) => x,
      start,
    ),
  );
  pg.dispose([start, by, count, end, steps, tracked, more, ...some, ...none]);
});
