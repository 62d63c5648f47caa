/** Results that change where an engine takes numbers below the normal ones for 0, as WGSL and OpenCL let devices do. */
import { type FloatType, isDenormal } from './oracle/units.ts';

/** An operand: its shape and its values. */
export interface Operand {
  readonly shape: readonly number[];
  readonly values: ArrayLike<number | bigint>;
}

/**
 * For each element of a result of elementwise work whether a denormal number goes into it.
 *
 * @returns null where the result is not of the operands' common shape, so that nothing is known of single elements
 */
export function touchedByDenormals(
  operands: readonly Operand[],
  type: FloatType,
  shape: readonly number[],
): boolean[] | null {
  const rank = Math.max(0, ...operands.map((o) => o.shape.length));
  const common = Array.from({ length: rank }, (_, axis) =>
    Math.max(1, ...operands.map((o) => o.shape[axis - rank + o.shape.length] ?? 1)),
  );
  if (common.join() !== shape.join()) return null;
  const total = shape.reduce((n, extent) => n * extent, 1);
  return Array.from({ length: total }, (_, at) =>
    operands.some((o) => {
      let [rest, stride, place] = [at, 1, 0];
      for (let axis = rank - 1; axis >= 0; axis--) {
        const extent = common[axis]!;
        const own = o.shape[axis - rank + o.shape.length] ?? 1;
        place += (own === 1 ? 0 : rest % extent) * stride;
        rest = Math.floor(rest / extent);
        stride *= own;
      }
      return isDenormal(type, Number(o.values[place]));
    }),
  );
}
