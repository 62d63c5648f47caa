/** Running results along an axis, and positions in sorted order. */
import { makeAgain } from '../graph/build.ts';
import {
  checkAxis,
  checkDType,
  common,
  define,
  type Definition,
  fail,
  type GradientRule,
} from '../graph/definition.ts';
import type { Node } from '../graph/node.ts';
import * as p from '../graph/primitives.ts';
import { programsOf } from '../planner/lowering/rules.ts';
import { lowerScan } from '../programs/scan/scan.ts';
import { lowerSort } from '../programs/sort/sort.ts';
import { sameShape } from '../shape/view.ts';
import { isFloat } from '../shape/dtype.ts';
import { showShape } from '../shape/errors.ts';
import { say } from '../shape/shown.ts';
import { everySource } from './rules.ts';

declare module '../graph/attrs.ts' {
  interface Attrs {
    /**
     * Running results along an axis, `reverse`: from its end. 'sum', 'prod', 'max', 'min' (NaN stays) of one source. 'linear':
     * src [b, a], h[i] = a[i] * h[i-1] + b[i] with h[-1] = 0; it is its own transpose, so all derivatives of scans are scans.
     */
    scan: { readonly op: 'sum' | 'prod' | 'max' | 'min' | 'linear'; readonly axis: number; readonly reverse: boolean };
    /**
     * int32 positions of the first `count` elements in sorted order along an axis. Stable; NaN is greater than every number, -0
     * equals 0; `descending` is the order of falling values, equal elements still as they lie.
     */
    argSort: { readonly axis: number; readonly descending: boolean; readonly count: number };
  }
}

const scanOps = { sum: 0, prod: 1, max: 2, min: 3, linear: 4 } as const;

/**
 * The transpose of a linear recurrence is a linear recurrence the other way, so no division occurs, zeros are exact, and every order of
 * derivative is again made of scans.
 */
const scanRule: GradientRule<'scan'> = ({ grad, src, node, attr, needs }) => {
  const { op, axis, reverse } = attr;
  const x = src[0]!;
  switch (op) {
    case 'sum':
      return [makeAgain(node, [grad], { op, axis, reverse: !reverse })];
    case 'prod': {
      // y[i] = x[i] * y[i-1]: a recurrence whose coefficients are x.
      const slope = back(node, grad, x, axis, reverse);
      return [p.mul(slope, p.previous(node, axis, reverse, 1))];
    }
    case 'linear': {
      const slope = back(node, grad, src[1]!, axis, reverse);
      return [slope, needs[1] ? p.mul(slope, p.previous(node, axis, reverse, 0)) : null];
    }
    case 'max':
    case 'min': {
      // A new winner starts at every element that equals the result there. It collects the gradients up to the next winner.
      const here = p.eq(x, node);
      const wins = isFloat(x.dtype) ? p.binary('or', here, p.unary('isNaN', x)) : here;
      const goesOn = p.cast(p.not(wins), grad.dtype);
      return [p.where(wins, back(node, grad, goesOn, axis, reverse), p.zerosLike(x))];
    }
    default:
      return op satisfies never;
  }
};

/** Gradient by b of h[i] = a[i] * h[i-1] + b[i]: s[i] = g[i] + a[i+1] * s[i+1]. */
function back(scan: Node<'scan'>, grad: Node, factor: Node, axis: number, reverse: boolean): Node {
  return makeAgain(scan, [grad, p.previous(factor, axis, !reverse, 0)], { op: 'linear', axis, reverse: !reverse });
}

export const scanPrimitive: Definition<'scan'> = /* @__PURE__ */ define('scan', {
  infer: {
    shape: (src, attr) => {
      const { shape } = src[0]!;
      checkAxis('scan', attr.axis, shape);
      if (src.length !== (attr.op === 'linear' ? 2 : 1))
        fail('scan', say`wrong number of sources: ${src.length}`, shape);
      for (const other of src.slice(1))
        if (!sameShape(shape, other.shape))
          fail('scan', say`shapes differ: ${showShape(shape)} and ${showShape(other.shape)}`, shape, other.shape);
      return shape;
    },
    dtype: (src) => {
      checkDType('number', 'scan', src[0]!.dtype);
      return common('scan', 'number', src[0]!, src[src.length - 1]!);
    },
  },
  role: 'program',
  work: 2,
  encode: (a, out) => {
    out.push(a.axis);
    out.push(scanOps[a.op] * 2 + Number(a.reverse));
  },
  gradient: scanRule,
  tangent: ({ node, attr, tangents }) => (attr.op === 'sum' ? makeAgain(node, [tangents[0]!], attr) : undefined),
  batch: (c) => makeAgain(c.node, everySource(c), { ...c.attr, axis: c.attr.axis + 1 }),
  programs: (node) =>
    programsOf(node, ({ out, slot }, caps) => {
      const { axis, op, reverse } = node.attr;
      return lowerScan({ axis, op, reverse, out, x: slot(0), factor: op === 'linear' ? slot(1) : null }, caps);
    }),
});

export const argSortPrimitive: Definition<'argSort'> = /* @__PURE__ */ define('argSort', {
  infer: {
    shape: (src, attr) => {
      const { shape } = src[0]!;
      checkAxis('argSort', attr.axis, shape);
      const n = shape[attr.axis]!;
      if (!Number.isInteger(attr.count) || attr.count < 0 || attr.count > n)
        fail('argSort', say`cannot give ${attr.count} of ${n} positions; must be from 0 to ${n}`, shape);
      return shape.map((size, axis) => (axis === attr.axis ? attr.count : size));
    },
    dtype: () => 'int32',
  },
  role: 'program',
  work: 40,
  encode: (a, out) => {
    out.push(a.axis * 2 + Number(a.descending));
    out.push(a.count);
  },
  gradient: () => [],
  batch: (c) => makeAgain(c.node, everySource(c), { ...c.attr, axis: c.attr.axis + 1 }),
  programs: (node) =>
    programsOf(node, ({ out, slot }, caps) => {
      const { axis, descending } = node.attr;
      return lowerSort({ axis, descending, out, x: slot(0).view }, caps);
    }),
});
