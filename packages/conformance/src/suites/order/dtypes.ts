/** Operations that depend on order or on indices, in every dtype of integers and of 16 bits. Numbers of a few bits say what they must give. */
import * as pg from '@polygrad/core';
import type { DType, Tensor } from '@polygrad/core';
import type { ConformanceCase } from '../../case.ts';
import type { Target } from '../../target.ts';
import { compared, i32, t } from './values.ts';

const whole: readonly DType[] = ['int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64'];
const halves: readonly DType[] = ['float16', 'bfloat16'];

export function orderDTypeCases(target: Target): ConformanceCase[] {
  const data = [3, 1, 9, 3, 5, 100];
  const places = (): Tensor => i32(0, 4, 0);
  const checks: readonly { readonly name: string; readonly of: (x: Tensor) => Tensor; readonly expected: number[] }[] =
    [
      { name: 'sort', of: (x) => pg.sort(x), expected: [1, 3, 3, 5, 9, 100] },
      { name: 'argSort', of: (x) => pg.argSort(x, { descending: true }), expected: [5, 2, 4, 0, 3, 1] },
      { name: 'topK', of: (x) => pg.topK(x, 2)[0], expected: [100, 9] },
      { name: 'cumSum', of: (x) => pg.cumSum(x), expected: [3, 4, 13, 16, 21, 121] },
      { name: 'cumMax', of: (x) => pg.cumMax(x), expected: [3, 3, 9, 9, 9, 100] },
      { name: 'cumMin from the end', of: (x) => pg.cumMin(x, { reverse: true }), expected: [1, 1, 3, 3, 5, 100] },
      { name: 'diff', of: (x) => pg.diff(pg.cumMax(x)), expected: [0, 6, 0, 0, 91] },
      { name: 'scatter', of: (x) => pg.scatter(x, places(), pg.narrow(x, 0, 1, 3)), expected: [3, 1, 9, 3, 9, 100] },
      {
        name: 'scatterReduce max',
        of: (x) => pg.scatterReduce(x, places(), pg.narrow(x, 0, 1, 3), 'max', { includeSelf: false }),
        expected: [3, 1, 9, 3, 9, 100],
      },
      {
        name: 'scatterReduce sum',
        of: (x) => pg.scatterReduce(x, places(), pg.narrow(x, 0, 1, 3), 'sum'),
        expected: [7, 1, 9, 3, 14, 100],
      },
      { name: 'indexFill', of: (x) => pg.indexFill(x, [1, -1], 2), expected: [3, 2, 9, 3, 5, 2] },
      { name: 'searchSorted', of: (x) => pg.searchSorted(pg.sort(x), x), expected: [1, 0, 4, 1, 3, 5] },
    ];
  return [...whole, ...halves]
    .filter((dtype) => target.holds(dtype))
    .flatMap((dtype) =>
      checks.map(({ name, of, expected }) => ({
        name: `order / ${name} of ${dtype}`,
        run: async () => {
          const result = pg.scope(() => pg.cast(of(pg.cast(t(...data), dtype)), 'float64'));
          await compared(result, { expected });
          return undefined;
        },
      })),
    );
}
