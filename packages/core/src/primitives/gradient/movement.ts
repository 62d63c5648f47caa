/** Gradient rules of movements: the reverse movement, and the sum where elements were used more than once. */
import type { Node } from '../../graph/node.ts';
import * as p from '../../graph/primitives.ts';
import type { GradientRule } from '../../graph/rules.ts';

export const reshapeRule: GradientRule<'reshape'> = ({ grad, src }) => [p.reshape(grad, (src[0] as Node).shape)];

export const permuteRule: GradientRule<'permute'> = ({ grad, attr }) => [
  p.permute(
    grad,
    attr.axes.map((_, i) => attr.axes.indexOf(i)),
  ),
];

export const expandRule: GradientRule<'expand'> = ({ grad, src }) => [p.sumTo(grad, (src[0] as Node).shape)];

export const sliceRule: GradientRule<'slice'> = ({ grad, src, attr }) => {
  const x = src[0] as Node;
  const backwards = attr.step.map((step, i) => step < 0 && (attr.length[i] as number) > 1);
  let g = p.flip(
    grad,
    backwards.flatMap((is, i) => (is ? [i] : [])),
  );
  const low: number[] = [];
  const high: number[] = [];
  x.shape.forEach((n, axis) => {
    const length = attr.length[axis] as number;
    const start = attr.start[axis] as number;
    const step = length > 1 ? (attr.step[axis] as number) : 1;
    const first = step < 0 ? start + (length - 1) * step : start;
    const stride = Math.abs(step);
    if (stride > 1) g = spread(g, axis, stride);
    const extent = length === 0 ? 0 : (length - 1) * stride + 1;
    low.push(length === 0 ? 0 : first);
    high.push(n - extent - (length === 0 ? 0 : first));
  });
  return [p.pad(g, low, high)];
};

/** Zeros between the elements of an axis: each element becomes one of a group of `stride`, and the last group is cut. */
function spread(g: Node, axis: number, stride: number): Node {
  const n = g.shape[axis] as number;
  const lifted = p.insertAxes(g, [axis + 1]);
  const none = lifted.shape.map(() => 0);
  const padded = p.pad(
    lifted,
    none,
    none.map((_, i) => (i === axis + 1 ? stride - 1 : 0)),
  );
  const merged = p.reshape(
    padded,
    g.shape.map((size, i) => (i === axis ? size * stride : size)),
  );
  return p.slice(
    merged,
    g.shape.map(() => 0),
    g.shape.map((size, i) => (i === axis ? (n - 1) * stride + 1 : size)),
    g.shape.map(() => 1),
  );
}

export const padRule: GradientRule<'pad'> = ({ grad, src, attr }) => {
  const { shape } = src[0] as Node;
  // An empty axis has no first element to start from.
  const start = attr.low.map((n, i) => (shape[i] === 0 ? 0 : n));
  return [
    p.slice(
      grad,
      start,
      shape,
      shape.map(() => 1),
    ),
  ];
};

export const concatRule: GradientRule<'concat'> = ({ grad, src, attr, needs }) => {
  let from = 0;
  return src.map((part, i) => {
    const n = part.shape[attr.axis] as number;
    const start = part.shape.map((_, axis) => (axis === attr.axis && n > 0 ? from : 0));
    from += n;
    return needs[i]
      ? p.slice(
          grad,
          start,
          part.shape,
          part.shape.map(() => 1),
        )
      : null;
  });
};
