/** Programs that users wrote, at sizes that change: small forms of what was wrong once. */
import { createReferenceEngine } from '@polygrad/testing';
import { beforeEach, describe, it } from 'vitest';
import * as pg from '../../index.ts';
import { setEngine, type Tensor } from '../../index.ts';
import { kinds, rows, sameAtSizes } from './fixtures/at-sizes.ts';

const turned = (x: Tensor): Tensor => pg.transpose(x, -1, -2);

describe.each(kinds)('%s', (_, options) => {
  beforeEach(async () => {
    await setEngine(createReferenceEngine(options));
  });

  it('a square transposed times three columns, as in the gradient of attention with narrow heads', async () => {
    // Whole numbers, whose sums are exact in any order.
    await sameAtSizes((n) => pg.matmul(turned(rows(n, n)), rows(n, 3)), [9, 8, 12, 31, 40, 5, 3]);
    await sameAtSizes((n) => pg.matmul(turned(rows(n, n)), rows(n, 2)), [9, 8, 12, 31, 40, 5, 3]);
  });
});
