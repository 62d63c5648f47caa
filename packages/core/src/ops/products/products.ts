/** Products other than the matrix product: Kronecker, cross and bilinear. */
import { makeNode } from '../../graph/build.ts';
import type { Node } from '../../graph/node.ts';
import * as p from '../../graph/primitives.ts';
import { compose } from '../../graph/scope.ts';
import { normalizeAxis } from '../../shape/axes.ts';
import { broadcastShapes, sameShape } from '../../shape/view.ts';
import { ShapeError, showShape } from '../../shape/errors.ts';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { operands } from '../../tensor/operand.ts';
import type { Tensor } from '../../tensor/types.ts';
import { widened } from '../elementwise/recording.ts';
import { say } from '../../shape/shown.ts';
import type { OneAxis } from '../normalization/softmax.ts';

/**
 * The Kronecker product: every element of a times all of b. Source: NumPy `kron`.
 *
 * @param a any shape; the tensor with fewer axes gets leading ones
 * @returns the product of the sizes, axis by axis
 *
 * @example
 * kron(tensor([1, 10]), tensor([[1, 2]])); // [[1, 2, 10, 20]]
 */
export function kron(a: Tensor, b: Tensor): Tensor {
  return compose('kron', () => {
    const [x, y] = operands(a, b);
    const rank = Math.max(x.shape.length, y.shape.length);
    const full = (node: Node): number[] => [...new Array<number>(rank - node.shape.length).fill(1), ...node.shape];
    const [m, n] = [full(x), full(y)];
    const outer = p.reshape(
      x,
      m.flatMap((size) => [size, 1]),
    );
    const inner = p.reshape(
      y,
      n.flatMap((size) => [1, size]),
    );
    return wrap(
      p.reshape(
        p.mul(outer, inner),
        m.map((size, i) => size * n[i]!),
      ),
    );
  });
}

/**
 * The cross product of vectors in space. Source: Array API `linalg.cross`.
 *
 * @param a, b shapes that broadcast, with 3 elements along the axis
 * @param axis one axis of the result, or { axis }; -1
 * @throws ShapeError unless both have size 3 along the axis
 *
 * @example
 * cross(tensor([1, 0, 0]), tensor([0, 1, 0])); // [0, 0, 1]
 */
export function cross(a: Tensor, b: Tensor, axis?: OneAxis): Tensor {
  return compose('cross', () => {
    const [x, y] = operands(a, b);
    const shape = broadcastShapes('cross', x.shape, y.shape);
    const at = normalizeAxis('cross', typeof axis === 'number' ? axis : (axis?.axis ?? -1), shape.length);
    const back = shape.length - at;
    for (const node of [x, y]) {
      if (node.shape[node.shape.length - back] !== 3)
        throw new ShapeError(
          'cross',
          say`no vectors in space: axis ${at - shape.length} of ${showShape(node.shape)} has size ${node.shape[node.shape.length - back] ?? 'none'}, not 3; choose the axis`,
          [x.shape, y.shape],
        );
    }
    // Component i of the result from components i + 1 and i + 2.
    const component = (node: Node, i: number): Node => {
      const which = node.shape.length - back;
      const part = p.slice(
        node,
        node.shape.map((_, axisOf) => (axisOf === which ? i % 3 : 0)),
        node.shape.map((size, axisOf) => (axisOf === which ? 1 : size)),
        node.shape.map(() => 1),
      );
      return widened(part);
    };
    const parts = [0, 1, 2].map((i) => {
      const difference = p.sub(
        p.mul(component(x, i + 1), component(y, i + 2)),
        p.mul(component(x, i + 2), component(y, i + 1)),
      );
      return p.cast(difference, x.dtype);
    });
    return wrap(p.concat(parts, at));
  });
}

/**
 * x1 W x2 for each matrix W of a stack, plus a bias. Source: PyTorch `torch.nn.functional.bilinear`.
 *
 * @param x1 shape [..., m]
 * @param x2 shape [..., n], the same leading axes
 * @param weight shape [o, m, n]
 * @param bias shape [o], or none
 * @returns shape [..., o]
 * @throws ShapeError where sizes do not fit
 *
 * @example
 * bilinear(tensor([1, 2]), tensor([3]), tensor([[[10], [100]]])); // [630]
 */
export function bilinear(x1: Tensor, x2: Tensor, weight: Tensor, bias?: Tensor): Tensor {
  return compose('bilinear', () => {
    const [left, right] = operands(x1, x2);
    const w = operands(wrap(left), weight)[1];
    const [o, m, n] = w.shape as readonly [number, number, number];
    const lead = left.shape.slice(0, -1);
    const fits =
      w.shape.length === 3 &&
      left.shape.length > 0 &&
      left.shape.at(-1) === m &&
      right.shape.at(-1) === n &&
      sameShape(lead, right.shape.slice(0, -1));
    if (!fits)
      throw new ShapeError(
        'bilinear',
        say`shapes do not fit: ${showShape(left.shape)}, ${showShape(right.shape)} and weight ${showShape(w.shape)}; needs [..., m], [..., n] and [o, m, n]`,
        [left.shape, right.shape, w.shape],
      );
    const rows = lead.reduce((total, size) => total * size, 1);
    const half = makeNode('dotGeneral', [p.reshape(left, [rows, m]), w], {
      lhsBatch: [],
      rhsBatch: [],
      lhsContract: [1],
      rhsContract: [1],
    });
    const whole = makeNode('dotGeneral', [half, p.reshape(right, [rows, n])], {
      lhsBatch: [0],
      rhsBatch: [0],
      lhsContract: [2],
      rhsContract: [1],
    });
    const result = p.reshape(whole, [...lead, o]);
    if (bias === undefined) return wrap(result);
    const b = nodeOf(bias);
    if (!sameShape(b.shape, [o]))
      throw new ShapeError('bilinear', say`bias has shape ${showShape(b.shape)}: needs [${o}], one per output`, [
        b.shape,
      ]);
    const [sum, addend] = operands(wrap(result), bias);
    return wrap(p.add(sum, addend));
  });
}
