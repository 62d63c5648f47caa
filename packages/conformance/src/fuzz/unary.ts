/** Random calls of elementwise operations of one operand. */
import { type UnaryRow, unaryRows } from '../operations/unary.ts';
import { map, type NDArray } from '../oracle/ndarray.ts';
import { floatOf, isFloat, isInteger, isNumber, type Operation, ref } from './pool.ts';
import type { Value } from './program.ts';

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

export const unary: readonly Operation[] = unaryRows
  .filter((row) => row.drawn !== false)
  .map(
    (row): Operation => ({
      name: row.name,
      ...(row.smooth ? { smooth: true } : {}),
      make: (pool) => {
        const x = pool.pick((v) => fitsUnary(row, v));
        if (x === null) return null;
        return {
          args: [ref(x), ...(row.options === undefined ? [] : [row.options])],
          dtype: row.result ?? (row.of === 'float' ? floatOf(x.dtype) : x.dtype),
          formula: (a) => map(a as NDArray, row.f),
          noise: row.noise ?? 'none',
        };
      },
    }),
  );
