import { count } from '../../oracle/ndarray.ts';
import { type Random, sample, uniform } from '../../oracle/random.ts';
import type { Instance, Options } from '../../spec.ts';

export const any: (r: Random) => number = uniform(-2, 2);

/** Shapes and axes: scalar, empty, size one, lines next to each other in whole vectors and not, many short lines, few long ones. */
export const lineCases: readonly {
  readonly shape: readonly number[];
  readonly axis: number;
  readonly always?: true;
}[] = [
  { shape: [], axis: 0 },
  { shape: [1], axis: 0 },
  { shape: [7], axis: 0, always: true },
  { shape: [0], axis: 0 },
  { shape: [3, 0], axis: 0 },
  { shape: [3, 0], axis: 1 },
  { shape: [3, 5], axis: 0, always: true },
  { shape: [3, 5], axis: 1 },
  { shape: [2, 3, 4], axis: 1 },
  { shape: [4, 1, 3], axis: 1 },
  { shape: [6, 47], axis: 0, always: true },
  { shape: [45, 6], axis: 1 },
  { shape: [2, 9, 5, 4], axis: 1 },
  { shape: [2, 61], axis: 1, always: true },
];

/** The first options with all shapes, the others with some. */
export function instancesOf(draw: (r: Random) => number, options: readonly Options[] = [{}]): Instance<1>[] {
  return lineCases.flatMap(({ shape, axis, always }) =>
    (always ? options : options.slice(0, 1)).map((o) => ({
      label: `[${shape}] along ${axis}${Object.entries(o)
        .map(([k, v]) => ` ${k} ${v}`)
        .join('')}`,
      small: count(shape) <= 24 && count(shape) > 0,
      options: { axis, ...o },
      draw: (r: Random) => [sample(r, shape, draw)],
    })),
  );
}
