/** Rotary position embedding: pairs of numbers turned by angles that grow with the position. */
import type { Node } from '../../graph/node.ts';
import * as p from '../../graph/primitives.ts';
import { compose } from '../../graph/scope.ts';
import { cosPrimitive, sinPrimitive } from '../../primitives/trigonometric.ts';
import { broadcastsTo } from '../../shape/view.ts';
import type { DType } from '../../shape/dtype.ts';
import { ArgumentError, ShapeError, showShape } from '../../shape/errors.ts';
import { checkNames, shown } from '../../shape/options.ts';
import { uploadNode } from '../../tensor/reading.ts';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { floatOperand } from '../../tensor/operand.ts';
import { say } from '../../shape/shown.ts';
import type { Tensor } from '../../tensor/types.ts';

export interface RotaryOptions {
  /** Positions, broadcast to x.shape without its last axis. Default: 0, 1, 2 ... along the axis before the last. */
  readonly positions?: Tensor | null;
  /** Added to the positions counted by default: how many came before. Default 0. */
  readonly offset?: number;
  /** Pair k turns by position * base^(-2 k / dims). Default 10000. */
  readonly base?: number;
  /** Which numbers are a pair: neighbours (the paper), or the k-th of the first half and the k-th of the second. Default 'interleaved'. */
  readonly style?: 'interleaved' | 'half';
  /** How many numbers of the last axis turn, from the first; the rest stays. Default all. */
  readonly dims?: number;
}

/**
 * Pairs of numbers turned by angles proportional to their position, so that products of queries and keys depend on the distance between positions
 * alone. Source: Su et al., "RoFormer" (2021).
 *
 * @param x queries or keys, shape [..., positions, width]
 * @param options positions, offset (0), base (10000), style ('interleaved'; 'half' as in GPT-NeoX and Llama), dims (the whole width)
 * @returns the shape of x
 * @throws ArgumentError for an odd number of dims; ShapeError for positions that do not fit
 *
 * @example
 * rotaryEmbedding(tensor([[1, 0], [1, 0]])); // about [[1, 0], [0.5403, 0.8415]]
 */
export function rotaryEmbedding(x: Tensor, options: RotaryOptions = {}): Tensor {
  checkNames('rotaryEmbedding', options, 'positions offset# base# style dims#');
  const op = 'rotaryEmbedding';
  return compose(op, () => {
    const node = floatOperand(x);
    const rank = node.shape.length;
    if (rank < 2)
      throw new ShapeError(
        op,
        say`shape ${showShape(node.shape)} has ${rank} axes: needs at least 2, [..., positions, width]`,
        [node.shape],
      );
    const width = node.shape[rank - 1]!;
    const { base = 10000, style = 'interleaved', dims = width, offset = 0 } = options;
    if (style !== 'interleaved' && style !== 'half')
      throw new ArgumentError(op, say`unknown style: ${shown(style)}; must be 'interleaved' or 'half'`);
    if (!Number.isInteger(dims) || dims < 2 || dims % 2 !== 0 || dims > width)
      throw new ArgumentError(op, say`bad dims: ${dims} of ${width}; must be an even number from 2 to ${width}`);
    if (!Number.isFinite(base) || base <= 0) throw new ArgumentError(op, say`bad base: ${base}; must be above 0`);
    if (!Number.isInteger(offset)) throw new ArgumentError(op, say`bad offset: ${offset}; must be an integer`);
    // Angles in at least 32 bits.
    const wide: DType = node.dtype === 'float64' ? 'float64' : 'float32';
    const angle = angles(op, node, dims / 2, wide, base, offset, options.positions);
    const [cos, sin] = [p.unary(cosPrimitive, angle), p.unary(sinPrimitive, angle)];
    const part = (start: number, length: number, step: number): Node =>
      p.cast(
        p.slice(
          node,
          node.shape.map((_, i) => (i === rank - 1 ? start : 0)),
          node.shape.map((n, i) => (i === rank - 1 ? length : n)),
          node.shape.map((_, i) => (i === rank - 1 ? step : 1)),
        ),
        wide,
      );
    const near = style === 'interleaved';
    const first = part(0, dims / 2, near ? 2 : 1);
    const second = part(near ? 1 : dims / 2, dims / 2, near ? 2 : 1);
    const turned = [p.sub(p.mul(first, cos), p.mul(second, sin)), p.add(p.mul(first, sin), p.mul(second, cos))];
    const whole = [...node.shape.slice(0, -1), dims];
    const joined = near
      ? p.reshape(
          p.concat(
            turned.map((t) => p.insertAxes(t, [rank])),
            rank,
          ),
          whole,
        )
      : p.concat(turned, rank - 1);
    const result = dims === width ? joined : p.concat([joined, part(dims, width - dims, 1)], rank - 1);
    return wrap(p.cast(result, node.dtype));
  });
}

/** position * frequency, broadcasts with [..., pairs]. */
function angles(
  op: string,
  x: Node,
  pairs: number,
  dtype: DType,
  base: number,
  offset: number,
  positions: Tensor | null | undefined,
): Node {
  const lead = x.shape.slice(0, -1);
  let at: Node;
  if (positions) {
    at = p.cast(nodeOf(positions), dtype);
    if (!broadcastsTo(at.shape, lead))
      throw new ShapeError(
        op,
        say`positions do not fit: ${showShape(at.shape)} for x ${showShape(x.shape)}; must broadcast to ${showShape(lead)}`,
        [at.shape, x.shape],
      );
  } else at = p.add(p.cast(p.iota(lead[lead.length - 1]!), dtype), p.scalar(offset, dtype));
  // Frequencies from the host: a power in float32 would lose digits that large positions multiply.
  const values = Float64Array.from({ length: pairs }, (_, k) => base ** (-k / pairs));
  const frequency = uploadNode(dtype === 'float64' ? values : Float32Array.from(values), [pairs], dtype);
  return p.mul(p.insertAxes(at, [at.shape.length]), frequency);
}
