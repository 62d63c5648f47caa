/**
 * Gradient rule of scatters that are no sums. Every rule is made of gathers, scatters and scans, so it can be differentiated in turn.
 */
import { makeAgain, makeNode } from '../../graph/build.ts';
import type { Node } from '../../graph/node.ts';
import * as p from '../../graph/primitives.ts';
import { gatherPrimitive, scatterAddPrimitive } from '../gather.ts';
import { scanPrimitive } from '../scan.ts';
import { argSortPrimitive } from '../sort.ts';
import { sizeOf } from '../../shape/view.ts';
import type { GradientRule } from '../../graph/rules.ts';

export const scatterRule: GradientRule<'scatter'> = (context) => {
  const { attr } = context;
  switch (attr.op) {
    case 'set':
      return setRule(context);
    case 'max':
    case 'min':
      return extremeRule(context);
    case 'prod':
      return productRule(context);
    default:
      return attr.op satisfies never;
  }
};

/** Who was written last gets the gradient: the base where nobody was. */
const setRule: GradientRule<'scatter'> = ({ node, grad, src, attr }) => {
  const { axis } = attr;
  const [base, index] = src as [Node, Node];
  const n = base.shape[axis] as number;
  const count = sizeOf(index.shape);
  const flat = p.reshape(index, [count]);
  const none = p.constant(-1, 'int32', [n]);
  const last = makeAgain(node, [none, flat, p.iota(count)], { axis: 0, op: 'max' });
  const along = base.shape.map((_, i) => (i === axis ? n : 1));
  const untouched = p.reshape(p.eq(last, p.constant(-1, 'int32')), along);
  const winners = p.eq(makeNode(gatherPrimitive, [last, flat], { axis: 0 }), p.iota(count));
  const within = [
    ...base.shape.slice(0, axis).map(() => 1),
    ...index.shape,
    ...base.shape.slice(axis + 1).map(() => 1),
  ];
  const picked = makeNode(gatherPrimitive, [grad, index], { axis });
  const updates = p.where(p.reshape(winners, within), picked, p.zerosLike(picked));
  return [p.where(untouched, grad, p.zerosLike(base)), null, updates];
};

/** Equal winners share the gradient, the base among them. */
const extremeRule: GradientRule<'scatter'> = ({ grad, node, src, attr }) => {
  const { axis } = attr;
  const [base, index, updates] = src as [Node, Node, Node];
  const ofBase = p.eq(base, node);
  const ofUpdates = p.eq(updates, makeNode(gatherPrimitive, [node, index], { axis }));
  const counts = [p.cast(ofBase, grad.dtype), index, p.cast(ofUpdates, grad.dtype)];
  const share = p.div(grad, makeNode(scatterAddPrimitive, counts, { axis }));
  const spread = makeNode(gatherPrimitive, [share, index], { axis });
  return [p.where(ofBase, share, p.zerosLike(base)), null, p.where(ofUpdates, spread, p.zerosLike(updates))];
};

/**
 * Each factor gets the product of all others at its place, without division: factors are sorted by place, and the products of those
 * before and of those after are recurrences that start again where the place changes.
 */
const productRule: GradientRule<'scatter'> = ({ grad, src, attr }) => {
  const { axis } = attr;
  const [base, index, updates] = src as [Node, Node, Node];
  const n = base.shape[axis] as number;
  const count = sizeOf(index.shape);
  const flatShape = base.shape.map((size, i) => (i === axis ? count : size));
  const factors = p.concat([base, p.reshape(updates, flatShape)], axis);
  const places = p.concat([p.iota(n), p.reshape(index, [count])], 0);
  const order = makeNode(argSortPrimitive, [places], { axis: 0, descending: false, count: n + count });
  const sorted = makeNode(gatherPrimitive, [factors, order], { axis });
  const at = makeNode(gatherPrimitive, [places, order], { axis: 0 });
  const line = base.shape.map((_, i) => (i === axis ? n + count : 1));
  const productOf = (reverse: boolean): Node => {
    // The first element has none before it; -1 is nobody's place.
    const goesOn = p.reshape(p.eq(at, p.previous(at, 0, reverse, -1)), line);
    const factor = p.where(goesOn, p.previous(sorted, axis, reverse, 1), p.zerosLike(sorted));
    const start = p.broadcastTo(p.cast(p.not(goesOn), sorted.dtype), sorted.shape);
    return makeNode(scanPrimitive, [start, factor], { op: 'linear', axis, reverse });
  };
  const others = p.mul(productOf(false), productOf(true));
  const slopes = p.mul(makeNode(gatherPrimitive, [grad, at], { axis }), others);
  const zeros = p.constant(0, slopes.dtype, slopes.shape);
  const unsorted = makeNode(scatterAddPrimitive, [zeros, order, slopes], { axis });
  const part = (start: number, length: number): Node =>
    p.slice(
      unsorted,
      base.shape.map((_, i) => (i === axis ? start : 0)),
      base.shape.map((size, i) => (i === axis ? length : size)),
      base.shape.map(() => 1),
    );
  return [part(0, n), null, p.reshape(part(n, count), updates.shape)];
};
