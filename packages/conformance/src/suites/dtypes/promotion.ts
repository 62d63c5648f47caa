/** What two dtypes meet in, or the error that names them both. */
import * as pg from '@polygrad/core';
import type { DType } from '@polygrad/core';
import type { Target } from '../../target.ts';
import { integerFormat } from '../../oracle/formats.ts';
import { expectValues } from './values.ts';

/** Pairs of dtypes, and what they meet in; the table of the Python Array API, copied from it. */
const meetings: readonly (readonly [DType, DType, DType | null])[] = [
  ['int8', 'int16', 'int16'],
  ['int8', 'int64', 'int64'],
  ['int16', 'int32', 'int32'],
  ['int32', 'int64', 'int64'],
  ['uint8', 'uint16', 'uint16'],
  ['uint8', 'uint64', 'uint64'],
  ['uint16', 'uint32', 'uint32'],
  ['uint32', 'uint64', 'uint64'],
  ['int8', 'uint8', 'int16'],
  ['int8', 'uint16', 'int32'],
  ['int8', 'uint32', 'int64'],
  ['int16', 'uint8', 'int16'],
  ['int16', 'uint16', 'int32'],
  ['int32', 'uint8', 'int32'],
  ['int32', 'uint32', 'int64'],
  ['int64', 'uint32', 'int64'],
  ['float32', 'float64', 'float64'],
  ['float16', 'float32', 'float32'],
  ['bfloat16', 'float64', 'float64'],
  ['float16', 'bfloat16', 'float32'],
  ['int64', 'uint64', null],
  ['int8', 'uint64', null],
  ['int32', 'float32', null],
  ['uint8', 'float16', null],
  ['bool', 'int8', null],
];

export async function checkPromotion(target: Target): Promise<void> {
  for (const [left, right, together] of meetings) {
    if (!target.holds(left) || !target.holds(right) || (together !== null && !target.holds(together))) continue;
    const [a, b] = [pg.ones([2], { dtype: left }), pg.ones([2], { dtype: right })];
    if (together === null) {
      let message = '';
      try {
        pg.add(a, b).dispose();
      } catch (error) {
        message = (error as Error).message;
      }
      if (!message.includes(left) || !message.includes(right))
        throw new Error(`${left} with ${right}: '${message}' where an error that names both is expected`);
    } else {
      const two = integerFormat(together) === null ? 2 : 2n;
      await expectValues(`${left} with ${right}`, pg.add(a, b), [two, two], together);
      await expectValues(`${right} with ${left}`, pg.add(b, a), [two, two], together);
    }
    a.dispose();
    b.dispose();
  }
}
