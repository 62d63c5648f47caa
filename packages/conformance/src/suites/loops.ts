/**
 * Loops on the device as operations: scans of every form against loops of JavaScript in float64, with their derivatives of every order and
 * batches. What else must hold of loops is in loop-cases.ts.
 */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import { matmul } from '../oracle/linear.ts';
import { at, build, map, type NDArray, nd, zip } from '../oracle/ndarray.ts';
import { type Random, sample, uniform } from '../oracle/random.ts';
import { floats, type Instance, type OpSpec, type Options } from '../spec.ts';
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

type Steps = (inputs: readonly Tensor[], options: pg.ScanOptions) => Tensor;
type Loop = (inputs: readonly NDArray[], reverse: boolean) => NDArray;

/** A scan as an operation: forwards, backwards, and with derivatives that compute the steps again. */
function spec(
  name: string,
  shapes: (length: number) => readonly (readonly number[])[],
  run: Steps,
  loop: Loop,
  of: readonly number[],
  lengths: readonly number[] = [3, 1, 0, 7],
): OpSpec {
  const forms: readonly (readonly [string, Options])[] = [
    ['', {}],
    [' reverse', { reverse: true }],
    [' recompute', { recompute: true }],
  ];
  const instances = lengths.flatMap((length) =>
    forms
      .filter(([form]) => length > 1 || form === '')
      .map(
        ([form, options]): Instance => ({
          label: `length ${length}${form}`,
          options,
          small: length < 4,
          draw: (r: Random) => shapes(length).map((shape) => sample(r, shape, uniform(-1, 1))),
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
const layer = spec(
  'a recurrent layer',
  (n) => [[n, 2, 3], [2, 3], [3, 3], [3]],
  ([xs, h0, w, b], options) => {
    const [h, ys] = pg.scan(
      (state: Tensor, x: Tensor) => {
        const next = pg.tanh(
          pg
            .matmul(state, w as Tensor)
            .add(x)
            .add(pg.mul(b as Tensor, 0.5)),
        );
        return [next, { state: next, half: next.mul(0.5).sum(-1) }] as const;
      },
      h0 as Tensor,
      xs as Tensor,
      options,
    );
    return together(h, ys.state, ys.half);
  },
  ([xs, h0, w, b], reverse) => {
    const [[h], [states, halves]] = scanned(
      ([state], t) => {
        const bias = map(b as NDArray, (x) => x * 0.5);
        const next = tanh(add(add(matmul(state as NDArray, w as NDArray), row(xs as NDArray, t)), bias));
        const half = build([2], ([i]) => 0.5 * [0, 1, 2].reduce((sum, j) => sum + at(next, [i, j]), 0));
        return [[next], [next, half]];
      },
      [h0 as NDArray],
      (xs as NDArray).shape[0]!,
      [[2, 3], [2]],
      reverse,
    );
    return allOf(h as NDArray, states as NDArray, halves as NDArray);
  },
  [0, 1, 2, 3],
);

/** Two carries that change places, one of which depends on the other; the slice itself among the results. */
const exchange = spec(
  'two carries that change places',
  (n) => [[n, 3], [3], []],
  ([xs, a0, b0], options) => {
    const [[a, b], ys] = pg.scan(
      ([a, b]: readonly [Tensor, Tensor], x: Tensor) =>
        [
          [a.mul(b).add(x), a.sum()],
          [x, a, b],
        ] as const,
      [a0 as Tensor, b0 as Tensor] as const,
      xs as Tensor,
      options,
    );
    return together(a, b, ...ys);
  },
  ([xs, a0, b0], reverse) => {
    const [ends, ys] = scanned(
      ([a, b], t) => {
        const x = row(xs as NDArray, t);
        const total = nd([], [(a as NDArray).data.reduce((s, v) => s + v, 0)]);
        return [
          [add(times(a as NDArray, b as NDArray), x), total],
          [x, a as NDArray, b as NDArray],
        ];
      },
      [a0 as NDArray, b0 as NDArray],
      (xs as NDArray).shape[0]!,
      [[3], [3], []],
      reverse,
    );
    return allOf(...ends, ...ys);
  },
  [0, 1, 2],
);

/** Carries that stay, that trade places and nothing else, and that are both the same; a result that is the same at each step. */
const still = spec(
  'carries that are only moved',
  (n) => [[n, 2], [2], [2], [2], [2]],
  ([xs, a0, b0, c0, k], options) => {
    const [ends, ys] = pg.scan(
      ({ a, b, c, d }: { a: Tensor; b: Tensor; c: Tensor; d: Tensor }, x: Tensor) => [
        { a: b, b: a, c: d, d: x.mul(c) },
        [k as Tensor, k as Tensor, c.mul(d), pg.flip(a, 0)],
      ],
      { a: a0 as Tensor, b: b0 as Tensor, c: c0 as Tensor, d: c0 as Tensor },
      xs as Tensor,
      options,
    );
    return together(...Object.values(ends), ...ys);
  },
  ([xs, a0, b0, c0, k], reverse) => {
    const [ends, ys] = scanned(
      (carry, t) => {
        const [a, b, c, d] = carry as [NDArray, NDArray, NDArray, NDArray];
        const flipped = nd([2], [a.data[1]!, a.data[0]!]);
        return [
          [b, a, d, times(row(xs as NDArray, t), c)],
          [k as NDArray, k as NDArray, times(c, d), flipped],
        ];
      },
      [a0 as NDArray, b0 as NDArray, c0 as NDArray, c0 as NDArray],
      (xs as NDArray).shape[0]!,
      [[2], [2], [2], [2]],
      reverse,
    );
    return allOf(...ends, ...ys);
  },
  [0, 1, 2, 3, 4],
);

/** No slices and no results: a power by its length; what it starts from is computed, and so is what it uses. */
const power = spec(
  'a step without slices',
  (n) => [[n], [2, 2], [2]],
  ([xs, m, v], options) => {
    const root = pg.mul(m as Tensor, 0.5).add(1);
    const [end] = pg.scan((state: Tensor) => [pg.matmul(root, state), null] as const, pg.square(v as Tensor), null, {
      ...options,
      length: (xs as Tensor).shape[0]!,
    });
    return end;
  },
  ([xs, m, v]) => {
    let state = map(v as NDArray, (x) => x * x);
    const root = map(m as NDArray, (x) => x * 0.5 + 1);
    for (let i = 0; i < (xs as NDArray).shape[0]!; i++) {
      const [a, b, c, d] = root.data as [number, number, number, number];
      const [x, y] = state.data as [number, number];
      state = nd([2], [a * x + b * y, c * x + d * y]);
    }
    return state;
  },
  [1, 2],
);

/** No carry: the rows of a matrix, each on its own. */
const rows = spec(
  'rows without a carry',
  (n) => [[n, 4], [4]],
  ([xs, w], options) => {
    const carry: readonly Tensor[] = [];
    const [, ys] = pg.scan((none, x: Tensor) => [none, pg.softmax(x.mul(w as Tensor))], carry, xs as Tensor, options);
    return ys;
  },
  ([xs, w], reverse) => {
    const [, [ys]] = scanned(
      (none, t) => {
        const e = map(times(row(xs as NDArray, t), w as NDArray), Math.exp);
        const total = e.data.reduce((s, v) => s + v, 0);
        return [none, [map(e, (v) => v / total)]];
      },
      [],
      (xs as NDArray).shape[0]!,
      [[4]],
      reverse,
    );
    return ys as NDArray;
  },
  [0, 1],
);

/** A loop in each step of a loop, over the rows of its slice, that uses the carry of the outer one. */
const nested = spec(
  'scans',
  (n) => [[n, 2, 2], [2], [2]],
  ([xs, h0, w], options) => {
    const [h, ys] = pg.scan(
      (outer: Tensor, x: Tensor) => {
        const [end, inner] = pg.scan(
          (state: Tensor, y: Tensor) => {
            const next = pg.sin(state.mul(w as Tensor).add(y)).add(outer.mul(0.25));
            return [next, next.mul(y)] as const;
          },
          outer,
          x,
          options,
        );
        return [end, inner.sum(0)] as const;
      },
      h0 as Tensor,
      xs as Tensor,
      options,
    );
    return together(h, ys);
  },
  ([xs, h0, w], reverse) => {
    const [[h], [ys]] = scanned(
      ([outer], t) => {
        const x = row(xs as NDArray, t);
        const [[end], [inner]] = scanned(
          ([state], u) => {
            const y = row(x, u);
            const wave = map(add(times(state as NDArray, w as NDArray), y), Math.sin);
            const next = add(
              wave,
              map(outer as NDArray, (v) => v * 0.25),
            );
            return [[next], [times(next, y)]];
          },
          [outer as NDArray],
          2,
          [[2]],
          reverse,
        );
        return [[end as NDArray], [add(row(inner as NDArray, 0), row(inner as NDArray, 1))]];
      },
      [h0 as NDArray],
      (xs as NDArray).shape[0]!,
      [[2]],
      reverse,
    );
    return allOf(h as NDArray, ys as NDArray);
  },
  [0, 1, 2],
  [2],
);

export function loopSpecs(): OpSpec[] {
  return [layer, exchange, still, power, rows, nested];
}
