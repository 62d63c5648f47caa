/** Random casts from any dtype to any other. */
import type { DType } from '@polygrad/core';
import { integerFormat } from '../../oracle/formats.ts';
import { map } from '../../oracle/ndarray.ts';
import { hold } from '../../programs/evaluate.ts';
import { isFloat, type RandomCall, ref } from '../../programs/pool.ts';

/** A value of a dtype in any float dtype or integer dtype and back. */
function castTo(from: DType, to: DType, x: number): number | null {
  if (to === 'bool') return Number(x !== 0);
  const format = integerFormat(to);
  if (format === null) return hold(to, x);
  if (!isFloat(from)) return hold(to, x);
  if (Number.isNaN(x)) return 0;
  const [low, high] = format.signed
    ? [-(2 ** (format.bits - 1)), 2 ** (format.bits - 1) - 1]
    : [0, 2 ** format.bits - 1];
  const cut = Math.min(high, Math.max(low, Math.trunc(x)));
  return Number.isSafeInteger(cut) ? cut : null;
}

const dtypes: readonly DType[] = [
  'float32',
  'int32',
  'bool',
  'float16',
  'bfloat16',
  'float64',
  'int8',
  'uint8',
  'int64',
  'uint16',
  'int16',
  'uint32',
  'uint64',
];

export const castCall: RandomCall = {
  make: (pool) => {
    const x = pool.pick();
    if (x === null) return null;
    const to = pool.c.pick(dtypes);
    if (x.data.some((v) => castTo(x.dtype, to, v) === null)) return null;
    return {
      args: [ref(x), to],
      dtype: to,
      formula: (a) => map(a, (v) => castTo(x.dtype, to, v) ?? 2 ** 60),
      noise: isFloat(to) && isFloat(x.dtype) ? 'out' : 'none',
    };
  },
};
