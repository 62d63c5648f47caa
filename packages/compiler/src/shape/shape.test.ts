/** Pure arithmetic of shapes, views and dtypes, against brute force and the published table. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { normalizeAxes, normalizeAxis } from './axes.ts';
import { permuteView, reshapeView, rowMajorStrides, type Shape, sizeOf, sliceView, type View } from './view.ts';
import { broadcastShapes } from './broadcast.ts';
import { type DType, dtypeInfo } from './dtype.ts';
import { fromBFloat16, fromFloat16, getElement, hostArray, setElement, toBFloat16, toFloat16 } from './host.ts';
import { checkWeak, promoteOrNull, promoteTypes } from './promotion.ts';
import { draws } from '../fixtures/draws.ts';

/** Buffer positions of all elements, in row-major order of the shape. */
function positions(shape: Shape, view: View): number[] {
  let found = [view.offset];
  shape.forEach((n, axis) => {
    found = found.flatMap((at) => Array.from({ length: n }, (_, i) => at + i * view.strides[axis]!));
  });
  return found;
}

const shapes = fc.array(fc.integer({ min: 1, max: 4 }), { maxLength: 4 });

/** A shape of the same size, from factors in another grouping. */
function regrouped(shape: Shape, cuts: readonly number[]): number[] {
  const factors: number[] = [];
  for (const n of shape) for (let rest = n, d = 2; rest > 1; d++) for (; rest % d === 0; rest /= d) factors.push(d);
  const result: number[] = [];
  let current = 1;
  factors.forEach((factor, i) => {
    current *= factor;
    if ((cuts[i % Math.max(1, cuts.length)] ?? 0) > 0) {
      result.push(current);
      current = 1;
    }
  });
  result.push(current);
  if ((cuts[0] ?? 0) > 1) result.splice(1, 0, 1);
  return result;
}

describe('views', () => {
  it('reshape keeps the order of elements, or says that strides cannot', () => {
    fc.assert(
      fc.property(
        shapes,
        fc.array(fc.integer({ min: 0, max: 2 }), { minLength: 1, maxLength: 5 }),
        fc.boolean(),
        fc.integer({ min: 1, max: 2 }),
        (shape, cuts, turn, step) => {
          // A strided, perhaps transposed, view of a larger buffer.
          const wide = shape.map((n) => n * step);
          let view: View = sliceView(
            { strides: rowMajorStrides(wide), offset: 0 },
            shape.map(() => step - 1),
            shape.map(() => step),
          );
          let from: Shape = shape;
          if (turn) {
            const axes = shape.map((_, i) => shape.length - 1 - i);
            view = permuteView(view, axes);
            from = axes.map((axis) => shape[axis]!);
          }
          const to = regrouped(from, cuts);
          const result = reshapeView(from, view, to);
          if (result !== null) expect(positions(to, result)).toEqual(positions(from, view));
          else expect(step > 1 || turn).toBe(true);
        },
      ),
      draws,
    );
  });

  it('reshape to and from axes of size 1 is always possible', () => {
    const view = { strides: [1, 7], offset: 3 };
    const up = reshapeView([2, 3], view, [1, 2, 1, 3, 1]);
    expect(up && positions([1, 2, 1, 3, 1], up)).toEqual(positions([2, 3], view));
    const down = up && reshapeView([1, 2, 1, 3, 1], up, [2, 3]);
    expect(down).toEqual(view);
  });
});

describe('broadcasting and axes', () => {
  it('follows NumPy', () => {
    expect(broadcastShapes('t', [4, 1, 5], [7, 1])).toEqual([4, 7, 5]);
    expect(broadcastShapes('t', [], [2])).toEqual([2]);
    expect(broadcastShapes('t', [0], [1])).toEqual([0]);
    expect(() => broadcastShapes('t', [0], [2])).toThrow(/\[t\].*\[0\] and \[2\]/);
  });

  it('counts negative axes from the end and refuses others', () => {
    expect(normalizeAxis('t', -1, 3)).toBe(2);
    expect(() => normalizeAxis('t', 3, 3)).toThrow(/3 for 3 axes/);
    expect(() => normalizeAxis('t', 0, 0)).toThrow(/no axes/);
    expect(normalizeAxes('t', [-1, 0], 3)).toEqual([0, 2]);
    expect(() => normalizeAxes('t', [0, -3], 3)).toThrow(/twice/);
  });
});

describe('promotion', () => {
  // https://data-apis.org/array-api/latest/API_specification/type_promotion.html, rows by first operand.
  const table: readonly (readonly [DType, DType, DType | null])[] = [
    ['int8', 'int16', 'int16'],
    ['int8', 'int64', 'int64'],
    ['int32', 'int64', 'int64'],
    ['uint8', 'uint16', 'uint16'],
    ['uint32', 'uint64', 'uint64'],
    ['int8', 'uint8', 'int16'],
    ['int8', 'uint16', 'int32'],
    ['int8', 'uint32', 'int64'],
    ['int16', 'uint8', 'int16'],
    ['int16', 'uint16', 'int32'],
    ['int32', 'uint32', 'int64'],
    ['int64', 'uint32', 'int64'],
    ['int8', 'uint64', null],
    ['int64', 'uint64', null],
    ['float32', 'float64', 'float64'],
    ['float16', 'float32', 'float32'],
    ['float16', 'bfloat16', 'float32'],
    ['float32', 'int32', null],
    ['bool', 'int32', null],
    ['bool', 'float32', null],
    ['bool', 'bool', 'bool'],
  ];
  for (const [a, b, expected] of table) {
    it(`${a} with ${b}`, () => {
      expect(promoteOrNull(a, b)).toBe(expected);
      expect(promoteOrNull(b, a)).toBe(expected);
    });
  }

  it('is idempotent and names both dtypes where there is no common one', () => {
    for (const dtype of Object.keys(dtypeInfo) as DType[]) expect(promoteOrNull(dtype, dtype)).toBe(dtype);
    expect(() => promoteTypes('add', 'float32', 'int32')).toThrow(/\[add\].*float32 and int32.*cast/);
  });

  it('numbers fit the dtype they meet', () => {
    checkWeak('t', 2, 'int32');
    expect(() => checkWeak('t', 0.5, 'int32')).toThrow(/0.5.*int32/);
    expect(() => checkWeak('t', 1, 'bool')).toThrow(/bool/);
    expect(() => checkWeak('t', true, 'float32')).toThrow(/float32/);
  });
});

describe('host arrays', () => {
  it('convert 16-bit floats both ways, every bit pattern', () => {
    for (let bits = 0; bits < 65536; bits++) {
      const half = fromFloat16(bits);
      if (!Number.isNaN(half)) expect(toFloat16(half)).toBe(bits);
      const brain = fromBFloat16(bits);
      if (!Number.isNaN(brain)) expect(toBFloat16(brain)).toBe(bits);
    }
  });

  it('round to nearest even', () => {
    expect(fromFloat16(toFloat16(1 + 2 ** -11))).toBe(1);
    expect(fromFloat16(toFloat16(1 + 3 * 2 ** -11))).toBe(1 + 2 ** -9);
    expect(fromFloat16(toFloat16(65519))).toBe(65504);
    expect(fromFloat16(toFloat16(65520))).toBe(Number.POSITIVE_INFINITY);
    expect(fromFloat16(toFloat16(2 ** -25))).toBe(0);
    expect(fromFloat16(toFloat16(2 ** -24 * 1.5))).toBe(2 ** -23);
    expect(fromBFloat16(toBFloat16(1 + 2 ** -8))).toBe(1);
    expect(Number.isNaN(fromBFloat16(toBFloat16(Number.NaN)))).toBe(true);
  });

  it('store and read every dtype', () => {
    for (const dtype of Object.keys(dtypeInfo) as DType[]) {
      const array = hostArray(dtype, 1);
      setElement(array, dtype, 0, 1);
      expect(Number(getElement(array, dtype, 0))).toBe(1);
    }
    expect(sizeOf([])).toBe(1);
  });
});
