/** Products of matrices as the planner would describe them, for tuning sizes that have not been used yet. */
import { Exprs } from '../ir/expr.ts';
import { type DType, dtypeInfo, isFloat } from '../shape/dtype.ts';
import { ArgumentError } from '../shape/errors.ts';
import { say } from '../shape/shown.ts';
import type { Seen } from './choices.ts';

/** A product of m x k by k x n matrices, `batch` of them (default 1), either of them given transposed. */
export interface ProductShape {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly batch?: number;
  readonly transposeA?: boolean;
  readonly transposeB?: boolean;
  /** float32 unless given; a dtype of 32 or 64 bits. */
  readonly dtype?: DType;
}

export function productOf(shape: ProductShape): Seen {
  const { m, n, k, batch = 1, transposeA = false, transposeB = false, dtype = 'float32' } = shape;
  for (const [name, size] of Object.entries({ m, n, k, batch })) {
    if (!Number.isInteger(size) || size < 1)
      throw new ArgumentError('tune', say`${name} must be an integer of at least 1: got ${size}`);
  }
  if (dtypeInfo[dtype].bytes < 4 || (!isFloat(dtype) && dtype.endsWith('64')))
    throw new ArgumentError('tune', say`products of ${dtype} are not tuned: give float32, float64, int32 or uint32`);
  const e = new Exprs();
  const [a, b, y] = [
    e.param(0, dtype, 'read', batch * m * k),
    e.param(1, dtype, 'read', batch * k * n),
    e.param(2, dtype, 'write', batch * m * n),
  ] as const;
  const [z, i, j, step] = [e.range(batch), e.range(m), e.range(n), e.range(k)] as const;
  const at = (...terms: readonly (readonly [typeof z, number])[]) =>
    terms.map(([r, stride]) => e.mul(r, stride)).reduce((p, q) => e.add(p, q));
  const x = e.load(a, transposeA ? at([z, m * k], [step, m], [i, 1]) : at([z, m * k], [i, k], [step, 1]));
  const w = e.load(b, transposeB ? at([z, k * n], [j, k], [step, 1]) : at([z, k * n], [step, n], [j, 1]));
  const sum = e.reduce('sum', e.mul(x, w), [step]);
  const store = e.store(y, at([z, m * n], [i, n], [j, 1]), sum);
  const kernel = {
    name: `product_${m}x${n}x${k}`,
    params: [a, b, y],
    scalars: [],
    stores: [{ store, ranges: [z, i, j] }],
  };
  return { kernel, e };
}
