/** Elementwise operations of one and two operands: specs from the rows of operations/. */
import type { DType } from '@polygrad/core';
import { binaryRows } from '../operations/binary.ts';
import { type Draw, functionOf, type Row, type RowCase } from '../operations/row.ts';
import { unaryRows } from '../operations/unary.ts';
import { broadcastShapes, count, map, type NDArray, zip } from '../oracle/ndarray.ts';
import { type Random, sample, uniform } from '../oracle/random.ts';
import type { OpSpec } from '../spec.ts';
import { anyShapes, broadcastPairs } from './shapes.ts';

type Shape = readonly number[];
const floats: readonly DType[] = ['float32', 'float64'];
const any = uniform(-3, 3);

const fewShapes: readonly Shape[] = [[], [7], [2, 3], [67]];
const fewPairs: readonly (readonly Shape[])[] = [
  [[7], [7]],
  [[2, 1], [3]],
  [[67], []],
];

/** A case of a row: operands of these shapes, one after the other. */
function specOf(
  row: Row,
  given: RowCase,
  shapes: readonly (readonly Shape[])[],
  rest: Pick<OpSpec, 'oracle' | 'result'>,
): OpSpec {
  const { name = row.name, draw, dtypes = floats, order = 2 } = given;
  const drawOf = (i: number): Draw => draw?.[i] ?? any;
  const options = row.options === undefined ? [] : [row.options];
  const operands = shapes[0]?.length ?? 0;
  return {
    name,
    dtypes,
    instances: shapes.map((each) => ({
      label: each.map((shape) => `[${shape}]`).join(' with '),
      small: count(broadcastShapes(...each)) <= 12,
      draw: (r: Random) => each.map((shape, i) => sample(r, shape, drawOf(i))),
    })),
    run: (xs) => functionOf(row.name)(...xs, ...options),
    ...rest,
    ...(order === 0 ? {} : { gradient: { of: Array.from({ length: operands }, (_, i) => i), order } }),
  };
}

export function unarySpecs(): OpSpec[] {
  const many = anyShapes.map(({ shape }) => [shape]);
  const few = fewShapes.map((shape) => [shape]);
  return unaryRows.flatMap((row) =>
    (row.cases ?? []).map((given) =>
      specOf(row, given, given.shapes === 'many' ? many : few, {
        oracle: ([x]) => map(x as NDArray, row.f),
        ...(row.of === 'bool' ? { result: 'bool' } : row.result === undefined ? {} : { result: row.result }),
      }),
    ),
  );
}

export function binarySpecs(): OpSpec[] {
  return binaryRows.flatMap((row) =>
    (row.cases ?? []).map((given) =>
      specOf(row, given, given.shapes === 'many' ? broadcastPairs : fewPairs, {
        oracle: ([x, y]) => zip((a, b) => row.f(a, b, 'float64'), x as NDArray, y as NDArray),
        ...(row.result === 'bool' ? { result: 'bool' } : {}),
      }),
    ),
  );
}
