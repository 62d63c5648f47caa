/** Random calls of elementwise operations of two operands, which broadcast; the second may be a number. */
import type { DType } from '@polygrad/core';
import { type BinaryRow, binaryRows } from '../operations/binary.ts';
import { type NDArray, zip } from '../oracle/ndarray.ts';
import { hold } from './evaluate.ts';
import { floatOf, isFloat, isInteger, type Made, meet, type Operation, type Pool, ref } from './pool.ts';
import type { Arg } from './program.ts';

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

/** A number that stands for an element of the dtype. */
export function weak(pool: Pool, dtype: DType): number {
  const whole = pool.c.pick([2, 1, 3, 0, 5, 7]);
  if (dtype.startsWith('u') || isInteger(dtype)) return dtype.startsWith('u') || pool.c.nat(2) === 0 ? whole : -whole;
  return pool.c.pick([2, 0.5, -1.5, 1, 0, 3, -0.25]);
}

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
      const [left, given] = swapped ? [constant, x as NDArray] : [x as NDArray, y ?? constant];
      return zip(f, left, second(left, given));
    },
    noise: row.noise ?? 'none',
  };
}

export const binary: readonly Operation[] = binaryRows
  .filter((row) => row.drawn !== false)
  .map(
    (row): Operation => ({
      name: row.name,
      ...(row.smooth ? { smooth: true } : {}),
      make: (pool) => binaryCall(row, pool),
    }),
  );
