/** Values of two tensors side by side: how many differ by more than is allowed, and which of them most. */
import { UnsupportedError } from '../engine/errors.ts';
import { sameShape } from '../shape/broadcast.ts';
import type { DType, TypedArray } from '../shape/dtype.ts';
import { showShape } from '../shape/errors.ts';
import { getElement } from '../shape/host.ts';
import type { Shape } from '../shape/view.ts';
import type { Tensor } from '../tensor/types.ts';

/** What is compared: elements on the host. */
export interface Values {
  readonly data: TypedArray;
  readonly shape: Shape;
  readonly dtype: DType;
}

/** How far apart two elements may be. */
export interface Tolerances {
  readonly rtol: number;
  readonly atol: number;
  readonly equalNaN: boolean;
}

/** The elements of tensors: at once where their engines can, else later. */
export function valuesOf(tensors: readonly Tensor[]): readonly Values[] | Promise<readonly Values[]> {
  const withData = ({ shape, dtype }: Tensor, data: TypedArray): Values => ({ data, shape, dtype });
  try {
    return tensors.map((t) => withData(t, t.dataSync()));
  } catch (error) {
    if (!(error instanceof UnsupportedError)) throw error;
    return Promise.all(tensors.map(async (t) => withData(t, await t.data())));
  }
}

type Element = number | bigint | boolean;

function distance(a: Element, b: Element): number {
  if (typeof a === 'bigint' && typeof b === 'bigint') return Number(a > b ? a - b : b - a);
  return Math.abs(Number(a) - Number(b));
}

/** Where an element is, as an index of every axis. */
function indexOf(place: number, shape: Shape): string {
  let rest = place;
  const index = [...shape].reverse().map((extent) => {
    const at = rest % extent;
    rest = (rest - at) / extent;
    return at;
  });
  return showShape(index.reverse());
}

/** Null where all is as close as allowed, else what is not, in words. */
export function differenceOf(a: Values, b: Values, { rtol, atol, equalNaN }: Tolerances): string | null {
  if (!sameShape(a.shape, b.shape))
    return `shapes differ: received ${showShape(a.shape)}, expected ${showShape(b.shape)}`;
  let [count, worst, excess] = [0, -1, Number.NEGATIVE_INFINITY];
  const at = (values: Values, i: number): Element => getElement(values.data, values.dtype, i);
  const allowed = (y: Element): number => atol + rtol * Math.abs(Number(y));
  for (let i = 0; i < a.data.length; i++) {
    const [x, y] = [at(a, i), at(b, i)];
    if (x === y || (equalNaN && Number.isNaN(x) && Number.isNaN(y))) continue;
    const apart = distance(x, y);
    // False for NaN, and for an infinity beside a number.
    if (apart <= allowed(y) && apart < Number.POSITIVE_INFINITY) continue;
    count++;
    const over = Number.isNaN(apart) ? Number.POSITIVE_INFINITY : apart - allowed(y);
    if (over <= excess) continue;
    [worst, excess] = [i, over];
  }
  if (count === 0) return null;
  const [x, y] = [at(a, worst), at(b, worst)];
  return (
    `${count} of ${a.data.length} elements differ, most at ${indexOf(worst, a.shape)}: received ${x}, expected ${y}, ` +
    `apart by ${distance(x, y).toPrecision(3)}, allowed ${allowed(y).toPrecision(3)}`
  );
}
