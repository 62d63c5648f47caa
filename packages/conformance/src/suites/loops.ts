/**
 * Loops on the device as operations: scans of every form against loops of JavaScript in float64, with their derivatives of every order and
 * batches. What else must hold of loops is in loop-cases.ts.
 */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import { matmul } from '../oracle/linear.ts';
import { at, build, map, type NDArray, nd, zip } from '../oracle/ndarray.ts';
import { type Random, sample, uniform } from '../oracle/random.ts';
import { floats, type Inputs, type Instance, type OpSpec, type Options } from '../spec.ts';
import { add, row, scanned } from '../oracle/scan.ts';

/** Everything that a loop gives, one after the other. */
function together(...parts: readonly Tensor[]): Tensor {
  return pg.concat(parts.map((part) => pg.reshape(part, [part.size])));
}

function allOf(...parts: readonly NDArray[]): NDArray {
  const data = parts.flatMap((part) => part.data);
  return nd([data.length], data);
}

const times = (a: NDArray, b: NDArray): NDArray => zip((x, y) => x * y, a, b);

type Steps<N extends number> = (inputs: Inputs<N, Tensor>, options: pg.ScanOptions) => Tensor;
type Loop<N extends number> = (inputs: Inputs<N, NDArray>, reverse: boolean) => NDArray;

/** An array of each shape. */
const drawn = <N extends number>(shapes: Inputs<N, readonly number[]>, r: Random): Inputs<N, NDArray> =>
  (shapes as readonly (readonly number[])[]).map((shape) => sample(r, shape, uniform(-1, 1))) as Inputs<N, NDArray>;

/** A scan as an operation: forwards, backwards, and with derivatives that compute the steps again. */
function spec<N extends number>(
  name: string,
  shapes: (length: number) => Inputs<N, readonly number[]>,
  run: Steps<N>,
  loop: Loop<N>,
  of: readonly number[],
  lengths: readonly number[] = [3, 1, 0, 7],
): OpSpec<N> {
  const forms: readonly (readonly [string, Options])[] = [
    ['', {}],
    [' reverse', { reverse: true }],
    [' recompute', { recompute: true }],
  ];
  const instances = lengths.flatMap((length) =>
    forms
      .filter(([form]) => length > 1 || form === '')
      .map(
        ([form, options]): Instance<N> => ({
          label: `length ${length}${form}`,
          options,
          small: length < 4,
          draw: (r: Random) => drawn(shapes(length), r),
        }),
      ),
  );
  return {
    name: `scan of ${name}`,
    dtypes: floats,
    // Of the other floats every step rounds; `loopCases` has one that is exact.
    more: [],
    instances,
    run: (inputs, options) => run(inputs, options as pg.ScanOptions),
    oracle: (inputs, options) => loop(inputs, options.reverse === true),
    terms: (inputs) => 8 * inputs[0]!.shape[0]! + 16,
    gradient: { of, order: 2 },
  };
}

const tanh = (x: NDArray): NDArray => map(x, Math.tanh);

/** A recurrent layer: a product with a weight from outside, a bias that is computed from a tensor outside, results that are the carry and more. */
const layer = spec<4>(
  'a recurrent layer',
  (n) => [[n, 2, 3], [2, 3], [3, 3], [3]],
  ([xs, h0, w, b], options) => {
    const [h, ys] = pg.scan(
      (state: Tensor, x: Tensor) => {
        const next = pg.tanh(pg.matmul(state, w).add(x).add(pg.mul(b, 0.5)));
        return [next, { state: next, half: next.mul(0.5).sum(-1) }] as const;
      },
      h0,
      xs,
      options,
    );
    return together(h, ys.state, ys.half);
  },
  ([xs, h0, w, b], reverse) => {
    const [[h], [states, halves]] = scanned(
      ([state], t) => {
        const bias = map(b, (x) => x * 0.5);
        const next = tanh(add(add(matmul(state, w), row(xs, t)), bias));
        const half = build([2], ([i]) => 0.5 * [0, 1, 2].reduce((sum, j) => sum + at(next, [i, j]), 0));
        return [[next], [next, half]];
      },
      [h0],
      xs.shape[0]!,
      [[2, 3], [2]],
      reverse,
    );
    return allOf(h, states, halves);
  },
  [0, 1, 2, 3],
);

/** Two carries that change places, one of which depends on the other; the slice itself among the results. */
const exchange = spec<3>(
  'two carries that change places',
  (n) => [[n, 3], [3], []],
  ([xs, a0, b0], options) => {
    const [[a, b], ys] = pg.scan(
      ([a, b]: readonly [Tensor, Tensor], x: Tensor) =>
        [
          [a.mul(b).add(x), a.sum()],
          [x, a, b],
        ] as const,
      [a0, b0] as const,
      xs,
      options,
    );
    return together(a, b, ...ys);
  },
  ([xs, a0, b0], reverse) => {
    const [ends, ys] = scanned(
      ([a, b], t) => {
        const x = row(xs, t);
        const total = nd([], [a.data.reduce((s, v) => s + v, 0)]);
        return [
          [add(times(a, b), x), total],
          [x, a, b],
        ];
      },
      [a0, b0],
      xs.shape[0]!,
      [[3], [3], []],
      reverse,
    );
    return allOf(...ends, ...ys);
  },
  [0, 1, 2],
);

/** Carries that stay, that trade places and nothing else, and that are both the same; a result that is the same at each step. */
const still = spec<5>(
  'carries that are only moved',
  (n) => [[n, 2], [2], [2], [2], [2]],
  ([xs, a0, b0, c0, k], options) => {
    const [ends, ys] = pg.scan(
      ({ a, b, c, d }: { a: Tensor; b: Tensor; c: Tensor; d: Tensor }, x: Tensor) => [
        { a: b, b: a, c: d, d: x.mul(c) },
        [k, k, c.mul(d), pg.flip(a, 0)],
      ],
      { a: a0, b: b0, c: c0, d: c0 },
      xs,
      options,
    );
    return together(...Object.values(ends), ...ys);
  },
  ([xs, a0, b0, c0, k], reverse) => {
    const [ends, ys] = scanned(
      ([a, b, c, d], t) => {
        const flipped = nd([2], [a.data[1]!, a.data[0]!]);
        return [
          [b, a, d, times(row(xs, t), c)],
          [k, k, times(c, d), flipped],
        ];
      },
      [a0, b0, c0, c0],
      xs.shape[0]!,
      [[2], [2], [2], [2]],
      reverse,
    );
    return allOf(...ends, ...ys);
  },
  [0, 1, 2, 3, 4],
);

/** No slices and no results: a power by its length; what it starts from is computed, and so is what it uses. */
const power = spec<3>(
  'a step without slices',
  (n) => [[n], [2, 2], [2]],
  ([xs, m, v], options) => {
    const root = pg.mul(m, 0.5).add(1);
    const [end] = pg.scan((state: Tensor) => [pg.matmul(root, state), null] as const, pg.square(v), null, {
      ...options,
      length: xs.shape[0]!,
    });
    return end;
  },
  ([xs, m, v]) => {
    let state = map(v, (x) => x * x);
    const root = map(m, (x) => x * 0.5 + 1);
    for (let i = 0; i < xs.shape[0]!; i++) {
      const [a, b, c, d] = root.data as [number, number, number, number];
      const [x, y] = state.data as [number, number];
      state = nd([2], [a * x + b * y, c * x + d * y]);
    }
    return state;
  },
  [1, 2],
);

/** No carry: the rows of a matrix, each on its own. */
const rows = spec<2>(
  'rows without a carry',
  (n) => [[n, 4], [4]],
  ([xs, w], options) => {
    const carry: readonly Tensor[] = [];
    const [, ys] = pg.scan((none, x: Tensor) => [none, pg.softmax(x.mul(w))], carry, xs, options);
    return ys;
  },
  ([xs, w], reverse) => {
    const [, [ys]] = scanned(
      (none, t) => {
        const e = map(times(row(xs, t), w), Math.exp);
        const total = e.data.reduce((s, v) => s + v, 0);
        return [none, [map(e, (v) => v / total)]];
      },
      [],
      xs.shape[0]!,
      [[4]],
      reverse,
    );
    return ys;
  },
  [0, 1],
);

/** A loop in each step of a loop, over the rows of its slice, that uses the carry of the outer one. */
const nested = spec<3>(
  'scans',
  (n) => [[n, 2, 2], [2], [2]],
  ([xs, h0, w], options) => {
    const [h, ys] = pg.scan(
      (outer: Tensor, x: Tensor) => {
        const [end, inner] = pg.scan(
          (state: Tensor, y: Tensor) => {
            const next = pg.sin(state.mul(w).add(y)).add(outer.mul(0.25));
            return [next, next.mul(y)] as const;
          },
          outer,
          x,
          options,
        );
        return [end, inner.sum(0)] as const;
      },
      h0,
      xs,
      options,
    );
    return together(h, ys);
  },
  ([xs, h0, w], reverse) => {
    const [[h], [ys]] = scanned(
      ([outer], t) => {
        const x = row(xs, t);
        const [[end], [inner]] = scanned(
          ([state], u) => {
            const y = row(x, u);
            const wave = map(add(times(state, w), y), Math.sin);
            const next = add(
              wave,
              map(outer, (v) => v * 0.25),
            );
            return [[next], [times(next, y)]];
          },
          [outer],
          2,
          [[2]],
          reverse,
        );
        return [[end], [add(row(inner, 0), row(inner, 1))]];
      },
      [h0],
      xs.shape[0]!,
      [[2]],
      reverse,
    );
    return allOf(h, ys);
  },
  [0, 1, 2],
  [2],
);

export function loopSpecs(): OpSpec[] {
  return [layer, exchange, still, power, rows, nested];
}
