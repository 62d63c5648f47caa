/** Values of two tensors side by side: how many differ by more than is allowed, and which of them most. */
import { UnsupportedError } from '../engine/errors.ts';
import { type Arithmetic, closeness, type Tolerances } from '../ops/elementwise/recording.ts';
import { sameShape, type Shape } from '../shape/view.ts';
import type { DType, TypedArray } from '../shape/dtype.ts';
import { showShape } from '../shape/errors.ts';
import { getElement } from '../shape/host.ts';
import type { Tensor } from '../tensor/types.ts';

/** What is compared: elements on the host. */
export interface Values {
  readonly data: TypedArray;
  readonly shape: Shape;
  readonly dtype: DType;
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

const steps: Readonly<Record<Parameters<Arithmetic<number>['apply']>[0], (a: number, b: number) => number>> = {
  abs: Math.abs,
  add: (a, b) => a + b,
  mul: (a, b) => a * b,
  lt: (a, b) => Number(a < b),
  le: (a, b) => Number(a <= b),
  and: Math.min,
  or: Math.max,
  isNaN: (a) => Number(Number.isNaN(a)),
};

const onHost: Arithmetic<number> = {
  number: (value) => value,
  apply: (op, a = 0, b = 0) => steps[op](a, b),
};

/** Null where all is as close as allowed, else what is not, in words. */
export function differenceOf(a: Values, b: Values, tolerances: Tolerances): string | null {
  if (!sameShape(a.shape, b.shape))
    return `shapes differ: received ${showShape(a.shape)}, expected ${showShape(b.shape)}`;
  const at = (values: Values, i: number): Element => getElement(values.data, values.dtype, i);
  const judge = (x: Element, y: Element, apart: number): { readonly close: number; readonly allowed: number } =>
    closeness(onHost, { x: Number(x), y: Number(y), distance: apart, same: Number(x === y) }, tolerances);
  let [count, worst, excess] = [0, -1, Number.NEGATIVE_INFINITY];
  for (let i = 0; i < a.data.length; i++) {
    const [x, y] = [at(a, i), at(b, i)];
    const apart = distance(x, y);
    const { close, allowed } = judge(x, y, apart);
    if (close === 1) continue;
    count++;
    // Not a number where one of them is NaN or infinite.
    const over = Number.isNaN(apart - allowed) ? Number.POSITIVE_INFINITY : apart - allowed;
    if (over <= excess) continue;
    [worst, excess] = [i, over];
  }
  if (count === 0) return null;
  const [x, y] = [at(a, worst), at(b, worst)];
  const apart = distance(x, y);
  return (
    `${count} of ${a.data.length} elements differ, most at ${indexOf(worst, a.shape)}: received ${x}, expected ${y}, ` +
    `apart by ${apart.toPrecision(3)}, allowed ${judge(x, y, apart).allowed.toPrecision(3)}`
  );
}
