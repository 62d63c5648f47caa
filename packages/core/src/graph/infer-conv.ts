/** Shape arithmetic of convolutions and of sliding windows. Errors name the operation the user called. */
import { ShapeError, showShape } from '../shape/errors.ts';
import type { Shape } from '../shape/view.ts';
import type { Attrs, ConvAttr, PrimitiveName } from './attrs.ts';
import { opName } from './scope.ts';
import { say } from '../shape/shown.ts';

function fail(op: PrimitiveName, message: string, ...shapes: Shape[]): never {
  throw new ShapeError(opName(op), message, shapes);
}

/** Extent of an axis of n elements with `dilation - 1` holes between neighbours. */
export function dilated(n: number, dilation: number): number {
  return n === 0 ? 0 : (n - 1) * dilation + 1;
}

/** Result of the `conv` primitive: [N / batchGroups, O, ...spatial]. */
export function convShape(lhs: Shape, rhs: Shape, attr: ConvAttr): Shape {
  const rank = lhs.length - 2;
  if (rank < 1 || rhs.length !== lhs.length || attr.stride.length !== rank) {
    fail(
      'conv',
      say`ranks do not fit: input ${showShape(lhs)}, kernel ${showShape(rhs)}, ${attr.stride.length} spatial axes; needs [N, C, ...] and [O, C / groups, ...]`,
      lhs,
      rhs,
    );
  }
  const [batch, channels] = [lhs[0]!, lhs[1]!];
  const [features, depth] = [rhs[0]!, rhs[1]!];
  const { groups, batchGroups } = attr;
  if (channels !== depth * groups) {
    fail(
      'conv',
      say`channels do not fit: input ${showShape(lhs)} has ${channels}, kernel ${showShape(rhs)} with ${groups} groups needs ${depth * groups}`,
      lhs,
      rhs,
    );
  }
  if (
    features % groups !== 0 ||
    features % batchGroups !== 0 ||
    batch % batchGroups !== 0 ||
    (groups > 1 && batchGroups > 1)
  ) {
    fail(
      'conv',
      say`groups do not divide: ${features} output features in ${groups * batchGroups} groups; choose a divisor`,
      lhs,
      rhs,
    );
  }
  const shape = [batch / batchGroups, features];
  for (let i = 0; i < rank; i++) {
    const size = dilated(lhs[i + 2]!, attr.lhsDilation[i]!) + attr.padLow[i]! + attr.padHigh[i]!;
    const extent = dilated(rhs[i + 2]!, attr.rhsDilation[i]!);
    if (extent === 0) fail('conv', say`empty kernel: ${showShape(rhs)}; spatial sizes must be at least 1`, rhs);
    shape.push(size < extent ? 0 : Math.floor((size - extent) / attr.stride[i]!) + 1);
  }
  return shape;
}

/** [..., H, W] to [..., outH, outW, kh, kw]. */
export function windowShape(shape: Shape, attr: Attrs['window']): Shape {
  const rank = attr.size.length;
  const lead = shape.length - rank;
  if (lead < 0) fail('window', say`too few axes: ${showShape(shape)} for ${rank} window axes`, shape);
  const counts = attr.size.map((size, i) => {
    const n = shape[lead + i]!;
    const extent = dilated(size, attr.dilation[i]!);
    return n < extent ? 0 : Math.floor((n - extent) / attr.stride[i]!) + 1;
  });
  return [...shape.slice(0, lead), ...counts, ...attr.size];
}

/** [..., outH, outW, kh, kw] to [..., H, W]. */
export function foldShape(shape: Shape, attr: Attrs['fold']): Shape {
  const lead = shape.length - 2 * attr.size.length;
  const expected = lead < 0 ? [] : windowShape([...shape.slice(0, lead), ...attr.spatial], attr);
  if (expected.length !== shape.length || expected.some((n, i) => n !== shape[i])) {
    fail(
      'fold',
      say`shape ${showShape(shape)} is not what windows over ${showShape(attr.spatial)} give: ${showShape(expected)}`,
      shape,
      expected,
    );
  }
  return [...shape.slice(0, lead), ...attr.spatial];
}
