/** The rows of elementwise operations: from their tables, what the suite checks and how random programs call them. */
import type { DType } from '@polygrad/core';
import { broadcastShapes, count, map, type NDArray, zip } from '../../oracle/ndarray.ts';
import { type Random, sample, uniform } from '../../oracle/random.ts';
import { hold } from '../../programs/evaluate.ts';
import { weak } from '../../programs/operands.ts';
import { floatOf, isFloat, isInteger, isNumber, type Made, meet, type Pool, ref } from '../../programs/pool.ts';
import type { Arg, Value } from '../../programs/program.ts';
import { floats, type OpSpec } from '../../spec.ts';
import { functionOf, type OperationRow, together } from '../row.ts';
import { anyShapes, broadcastPairs } from '../shapes.ts';
import { type BinaryRow, binaryRows } from './binary.ts';
import { gammaRows } from './gamma.ts';
import type { Draw, Row, RowCase } from './row.ts';
import { severalRows } from './several.ts';
import { type UnaryRow, unaryRows } from './unary.ts';

type Shape = readonly number[];
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

function unarySpecs(row: UnaryRow): OpSpec[] {
  const many = anyShapes.map(({ shape }) => [shape]);
  const few = fewShapes.map((shape) => [shape]);
  return (row.cases ?? []).map((given) =>
    specOf(row, given, given.shapes === 'many' ? many : few, {
      oracle: ([x]) => map(x as NDArray, row.f),
      ...(row.of === 'bool' ? { result: 'bool' } : row.result === undefined ? {} : { result: row.result }),
    }),
  );
}

function binarySpecs(row: BinaryRow): OpSpec[] {
  return (row.cases ?? []).map((given) =>
    specOf(row, given, given.shapes === 'many' ? broadcastPairs : fewPairs, {
      oracle: ([x, y]) => zip((a, b) => row.f(a, b, 'float64'), x as NDArray, y as NDArray),
      ...(row.result === 'bool' ? { result: 'bool' } : {}),
    }),
  );
}

const fitsUnary = ({ of, domain }: UnaryRow, v: Value): boolean =>
  (of === 'bool'
    ? v.dtype === 'bool'
    : of === 'integers'
      ? isInteger(v.dtype)
      : of === 'float'
        ? isNumber(v)
        : of === 'floats only'
          ? isFloat(v.dtype)
          : of === 'signed'
            ? isNumber(v) && !v.dtype.startsWith('u')
            : isNumber(v)) &&
  (domain === undefined || v.data.every((x) => domain(x) || Number.isNaN(x)));

/** A random call of the operation of a row; null where no value of the pool fits. */
export function unaryCall(row: UnaryRow, pool: Pool): Made | null {
  const x = pool.pick((v) => fitsUnary(row, v));
  if (x === null) return null;
  const wide = row.of === 'float' ? floatOf(x.dtype) : x.dtype;
  // Integers become floats before, and large ones are rounded then.
  const held = (v: number): number => hold(wide, v) ?? v;
  return {
    args: [ref(x), ...(row.options === undefined ? [] : [row.options])],
    dtype: row.result ?? wide,
    formula: (a) => map(a, isFloat(x.dtype) ? row.f : (v) => row.f(held(v))),
    noise: row.noise ?? 'none',
    ...(row.terms === undefined ? {} : { terms: (a) => map(a, row.terms!) }),
  };
}

const fitsBinary = ({ of }: BinaryRow, dtype: DType): boolean =>
  of === 'floats'
    ? isFloat(dtype)
    : of === 'integers'
      ? isInteger(dtype)
      : of === 'numbers'
        ? dtype !== 'bool'
        : of === 'bits'
          ? !isFloat(dtype)
          : true;

/** The second operand broadcasts, or is a number. */
function binaryCall(row: BinaryRow, pool: Pool): Made | null {
  const a = pool.pick((v) => fitsBinary(row, v.dtype));
  if (a === null) return null;
  const number = pool.c.seldom(4) && a.dtype !== 'bool';
  const b = number ? null : pool.partner(a, (v) => fitsBinary(row, v.dtype) && meet(a.dtype, v.dtype) !== null);
  const value = b === null ? hold(a.dtype, weak(pool, a.dtype)) : null;
  if (b === null && a.dtype === 'bool') return null;
  const common = b === null ? a.dtype : (meet(a.dtype, b.dtype) as DType);
  const right = b ?? { shape: [], data: [value as number] };
  const swapped = b === null && pool.c.seldom(3);
  const second = row.second ?? ((_, y) => y);
  const [l, r] = swapped ? [right, second(right, a)] : [a, second(a, right)];
  const held = (x: number): number => hold(common, x) ?? x;
  const f = (x: number, y: number): number => row.f(held(x), held(y), common);
  const fine = zip((x, y) => Number(row.domain === undefined || row.domain(held(x), held(y), common)), l, r).data.every(
    (x) => x === 1,
  );
  if (!fine) return null;
  const args: Arg[] = b === null ? (swapped ? [value as number, ref(a)] : [ref(a), value as number]) : [ref(a), ref(b)];
  const constant: NDArray = { shape: [], data: [value ?? 0] };
  return {
    args,
    dtype: row.result === 'bool' ? 'bool' : row.result === 'float' ? floatOf(common) : common,
    formula: (x, y) => {
      const [left, given] = swapped ? [constant, x] : [x, y ?? constant];
      return zip(f, left, second(left, given));
    },
    noise: row.noise ?? 'none',
  };
}

function rowOf<R extends Row>(row: R, specs: readonly OpSpec[], make: (pool: Pool) => Made | null): OperationRow {
  return {
    name: row.name,
    specs: [...specs, ...(row.specs ?? [])],
    calls: [...(row.drawn === false ? [] : [{ ...(row.smooth ? { smooth: true } : {}), make }]), ...(row.calls ?? [])],
    ...(row.notes === undefined ? {} : { notes: row.notes }),
  };
}

export const elementwiseRows: readonly OperationRow[] = together([
  ...unaryRows.map((row) => rowOf(row, unarySpecs(row), (pool) => unaryCall(row, pool))),
  ...binaryRows.map((row) => rowOf(row, binarySpecs(row), (pool) => binaryCall(row, pool))),
  ...severalRows,
  ...gammaRows,
]);
