/**
 * `gather` (elements at indices), `scatterAdd` and `scatter` (updates put at indices), `scan` (running results along an axis) and `argSort`
 * (positions in sorted order). Gradients are made of these again: gather and scatterAdd are each other's transpose.
 */
import * as p from '../graph/primitives.ts';
import { makeAgain, makeNode } from '../graph/primitives.ts';
import {
  type BatchContext,
  type BatchRule,
  checkAxis,
  checkDType,
  checkIndex,
  common,
  define,
  type Definition,
  definitionOf,
  fail,
  type GradientRule,
  spliced,
} from '../graph/definition.ts';
import type { Node } from '../graph/node.ts';
import { opName } from '../graph/scope.ts';
import type { PlanNode } from '../planner/capture/plan-graph.ts';
import type { Index } from '../planner/lowering/index-map.ts';
import {
  movedFrom,
  part,
  programsOf,
  type ProgramUnit,
  ranges,
  sum,
  updatesFirst,
  widened,
} from '../planner/lowering/rules.ts';
import { lowerScan } from '@polygrad/compiler/programs/scan/scan';
import { lowerScatter, type ScatterOp } from '@polygrad/compiler/programs/scatter/update';
import { lowerSort } from '@polygrad/compiler/programs/sort/sort';
import { dtypeInfo, isFloat, DTypeError } from '@polygrad/compiler/shape/dtype';
import { showShape } from '@polygrad/compiler/shape/errors';
import { say } from '@polygrad/compiler/shape/shown';
import { sameShape, type Shape, sizeOf } from '@polygrad/compiler/shape/view';
import { everySource, moved, toFront, whole } from './elementwise.ts';

declare module '../graph/node.ts' {
  interface Attrs {
    /** src [x, index(int32)]. The result has x.shape with `axis` replaced by index.shape. Indices must be in range: operations check or clamp them. */
    gather: { readonly axis: number };
    /** src [base, index(int32), updates]: base with updates added at index along axis. */
    scatterAdd: { readonly axis: number };
    /**
     * src [base, index(int32), updates], shapes as for scatterAdd: base with the updates combined into it. 'set': the last update of a
     * place wins. 'prod', 'max', 'min' combine with what is there; NaN wins.
     */
    scatter: { readonly axis: number; readonly op: 'set' | 'prod' | 'max' | 'min' };
  }
}

// Where the indices differ between the elements of a batch, the batch and the indexed axis become one axis, and indices count along it.

/** Axis 0 and the axis at `axis` (counted without it) as one, in the place of the latter. */
function joined(x: Node, axis: number): Node {
  const [size, ...shape] = x.shape as [number, ...number[]];
  return p.reshape(p.permute(x, moved(x.shape.length, 0, axis)), [
    ...shape.slice(0, axis),
    size * shape[axis]!,
    ...shape.slice(axis + 1),
  ]);
}

/** Indices [size, ...] along an axis of `count` as indices along the joined axis. */
function shifted(index: Node, count: number): Node {
  const [size, ...rest] = index.shape as [number, ...number[]];
  const start = p.mul(p.iota(size), p.constant(count, 'int32'));
  return p.add(index, p.reshape(start, [size, ...rest.map(() => 1)]));
}

const gatherBatch: BatchRule<'gather'> = ({ node, src, attr, sources }) => {
  const [x, index] = sources as [Node | null, Node | null];
  const { axis } = attr;
  if (index === null) return makeAgain(node, [x!, src[1]!], { axis: axis + 1 });
  if (x === null) return toFront(makeAgain(node, [src[0]!, index], { axis }), axis);
  const at = shifted(index, src[0]!.shape[axis]!);
  return toFront(makeAgain(node, [joined(x, axis), at], { axis }), axis);
};

/** The batch of scatterAdd and of scatter. */
function scatterBatch<P extends 'scatterAdd' | 'scatter'>(c: BatchContext<P>): Node {
  const { src, attr, sources } = c;
  const { axis } = attr;
  const made = (nodes: readonly Node[], along: number): Node => makeAgain(c.node, nodes, { ...attr, axis: along });
  const base = whole(c, 0);
  const updates = whole(c, 2);
  const index = sources[1] ?? null;
  if (index === null) return made([base, src[1]!, updates], axis + 1);
  const count = src[0]!.shape[axis]!;
  const moving = p.permute(updates, moved(updates.shape.length, 0, axis));
  const result = made([joined(base, axis), shifted(index, count), moving], axis);
  const shape = src[0]!.shape;
  return toFront(p.reshape(result, [...shape.slice(0, axis), c.size, ...shape.slice(axis)]), axis);
}

export const gatherPrimitive: Definition<'gather'> = /* @__PURE__ */ define('gather', {
  infer: {
    shape: (src, attr) => {
      const { shape } = src[0]!;
      if (attr.axis < 0 || attr.axis >= shape.length)
        fail('gather', say`no axis ${attr.axis} in shape ${showShape(shape)}`, shape);
      return spliced(shape, attr.axis, src[1]!.shape);
    },
    dtype: (src) => {
      checkIndex('gather', src[1]!);
      return src[0]!.dtype;
    },
  },
  role: 'gather',
  work: 3,
  encode: (a, out) => out.push(a.axis),
  gradient: ({ grad, src, attr }) => {
    const [x, index] = src as [Node, Node];
    return [
      makeNode(scatterAddPrimitive, [p.constant(0, grad.dtype, x.shape), index, grad], { axis: attr.axis }),
      null,
    ];
  },
  tangent: ({ node, src, attr, tangents }) => makeAgain(node, [tangents[0]!, src[1]!], attr),
  batch: gatherBatch,
  sources: (c, node, index) => {
    const [x, which] = node.src as [PlanNode, PlanNode];
    const { axis } = node.attr;
    c.need(which, index.slice(axis, axis + which.shape.length));
    const base = movedFrom(x);
    // A bound number is nowhere in memory, and the same at every index.
    if (base.op === 'scalar') c.need(base, []);
    else c.needInMemory(base);
  },
  value: (c, demand, node) => {
    const [x, which] = node.src as [PlanNode, PlanNode];
    const { axis } = node.attr;
    const base = movedFrom(x);
    if (base.op === 'scalar') return part(demand, 1);
    const { size } = demand.kernel.context;
    const chosen = size?.positionOf(c.e, x.shape[axis]!, part(demand)) ?? part(demand);
    let index: Index = [...demand.index.slice(0, axis), chosen, ...demand.index.slice(axis + which.shape.length)];
    index = index.map((at, i) => (x.shape[i] === 1 ? c.e.i32(0) : at));
    for (let at = x; at !== base; at = at.src[0]!) index = definitionOf(at.op).move?.(c.e, at, index, size) ?? index;
    return c.load(demand, base, index, demand.gate);
  },
});

/** The programs of a scatter; in place they only update. */
function scatterPrograms(node: PlanNode<'scatter' | 'scatterAdd'>, op: ScatterOp, updated: boolean): ProgramUnit {
  const { axis } = node.attr;
  return programsOf(
    node,
    ({ out, slot, operand, inPlace }, caps) =>
      lowerScatter({ op, axis, out, base: inPlace ? null : operand(0), index: slot(1), updates: operand(2) }, caps),
    updated,
  );
}

type Shaped = { readonly shape: Shape };

/** A scatterAdd with at most this many elements of the base times indices is a reduction: each element sums all updates for it. */
const smallScatter = 1 << 22;

export const scatterAddPrimitive: Definition<'scatterAdd'> = /* @__PURE__ */ define('scatterAdd', {
  infer: {
    shape: (src, attr) => {
      const [base, index, updates] = [src[0]!.shape, src[1]!.shape, src[2]!.shape];
      const expected = spliced(base, attr.axis, index);
      if (updates.length !== expected.length || updates.some((n, i) => n !== expected[i])) {
        fail(
          'scatterAdd',
          say`updates have shape ${showShape(updates)}: needs ${showShape(expected)} for base ${showShape(base)} and index ${showShape(index)}`,
          updates,
          expected,
        );
      }
      return base;
    },
    dtype: (src) => {
      checkIndex('scatterAdd', src[1]!);
      return common('scatterAdd', 'number', src[0]!, src[2]!);
    },
  },
  role: 'program',
  roleOf: (_, [base, index]) =>
    sizeOf((base as Shaped).shape) * sizeOf((index as Shaped).shape) <= smallScatter ? 'reduce' : 'program',
  work: 4,
  encode: (a, out) => out.push(a.axis),
  gradient: ({ grad, src, attr, needs }) => [
    grad,
    null,
    needs[2] ? makeNode(gatherPrimitive, [grad, src[1]!], { axis: attr.axis }) : null,
  ],
  tangent: ({ node, src, attr, tangents }) => {
    const [base, index] = src as [Node, Node];
    const [byBase, , byUpdates] = tangents;
    if (byUpdates == null) return byBase ?? null;
    return makeAgain(node, [byBase ?? p.zerosLike(base), index, byUpdates], attr);
  },
  batch: scatterBatch,
  sources: (c, node, index) => {
    const [base, which, updates] = node.src as [PlanNode, PlanNode, PlanNode];
    const { axis } = node.attr;
    const own = c.loops(which.shape);
    c.need(base, index);
    c.needInside(which, own, null, ranges(own), false);
    c.needInside(updates, [...index.slice(0, axis), ...own, ...index.slice(axis + 1)], null, ranges(own), false);
  },
  value: ({ e }, demand, node) => {
    const [base, which, update] = [part(demand, 0), part(demand, 1), part(demand, 2)];
    const wide = widened(node.dtype);
    const { axis } = node.attr;
    const at = demand.index[axis]!;
    const here = e.eq(which, demand.kernel.context.size?.numberOf(e, node.shape[axis]!, at) ?? at);
    const added = e.where(here, e.cast(update, wide), e.constant(wide, 0));
    return e.cast(e.add(e.cast(base, wide), sum(e, demand, added)), node.dtype);
  },
  updates: updatesFirst,
  programs: (node, donations) => scatterPrograms(node, 'add', donations.has(node)),
});

const scatterOps = { set: 0, prod: 1, max: 2, min: 3 } as const;

// Gradients of `scatter` are made of gathers, scatters and scans, so they can be differentiated in turn.

const scatterRule: GradientRule<'scatter'> = (context) => {
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

/** The update that was written last gets the gradient; where none was written, the base does. */
const setRule: GradientRule<'scatter'> = ({ node, grad, src, attr }) => {
  const { axis } = attr;
  const [base, index] = src as [Node, Node];
  const n = base.shape[axis]!;
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
 * Each factor gets the product of all others at its place, without division, so zeros do no harm. Factors are sorted by place. The products of
 * those before, and of those after, are linear recurrences that start again where the place changes.
 */
const productRule: GradientRule<'scatter'> = ({ grad, src, attr }) => {
  const { axis } = attr;
  const [base, index, updates] = src as [Node, Node, Node];
  const n = base.shape[axis]!;
  const count = sizeOf(index.shape);
  const flatShape = base.shape.map((size, i) => (i === axis ? count : size));
  const factors = p.concat([base, p.reshape(updates, flatShape)], axis);
  const places = p.concat([p.iota(n), p.reshape(index, [count])], 0);
  const order = makeNode(argSortPrimitive, [places], { axis: 0, descending: false, from: 0, count: n + count });
  const sorted = makeNode(gatherPrimitive, [factors, order], { axis });
  const at = makeNode(gatherPrimitive, [places, order], { axis: 0 });
  const line = base.shape.map((_, i) => (i === axis ? n + count : 1));
  const productOf = (reverse: boolean): Node => {
    // The first element has no predecessor, and no element has index -1.
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

export const scatterPrimitive: Definition<'scatter'> = /* @__PURE__ */ define('scatter', {
  infer: {
    shape: (src, attr) => {
      const [base, index, updates] = src as [Node, Node, Node];
      checkAxis('scatter', attr.axis, base.shape);
      const expected = spliced(base.shape, attr.axis, index.shape);
      if (!sameShape(updates.shape, expected))
        fail(
          'scatter',
          say`updates have shape ${showShape(updates.shape)}: needs ${showShape(expected)} for base ${showShape(base.shape)} and index ${showShape(index.shape)}`,
          updates.shape,
          expected,
        );
      return base.shape;
    },
    dtype: (src, attr) => {
      const [base, index, updates] = src as [Node, Node, Node];
      checkIndex('scatter', index);
      if (attr.op !== 'set' && dtypeInfo[base.dtype].kind === 'bool')
        throw new DTypeError(opName('scatter'), 'dtype not accepted: bool; needs numbers; convert with cast()', [
          'bool',
        ]);
      return common('scatter', 'any', base, updates);
    },
  },
  role: 'program',
  work: 4,
  encode: (a, out) => {
    out.push(a.axis);
    out.push(scatterOps[a.op]);
  },
  gradient: scatterRule,
  batch: scatterBatch,
  updates: updatesFirst,
  programs: (node, donations) => scatterPrograms(node, node.attr.op, donations.has(node)),
});

// Running results along an axis, and positions in sorted order.

declare module '../graph/node.ts' {
  interface Attrs {
    /**
     * Running results along an axis; `reverse`: from its end. 'sum', 'prod', 'max', 'min' (NaN stays) have one source. 'linear' has src [b, a]:
     * h[i] = a[i] * h[i-1] + b[i] with h[-1] = 0. Its transpose is a linear recurrence too, so all derivatives of scans are scans.
     */
    scan: { readonly op: 'sum' | 'prod' | 'max' | 'min' | 'linear'; readonly axis: number; readonly reverse: boolean };
    /**
     * int32 positions of `count` elements in sorted order along an axis, from rank `from` on. The sort is stable, also if `descending`. NaN is greater than
     * every number; -0 equals 0.
     */
    argSort: { readonly axis: number; readonly descending: boolean; readonly from: number; readonly count: number };
  }
}

const scanOps = { sum: 0, prod: 1, max: 2, min: 3, linear: 4 } as const;

/**
 * The transpose of a linear recurrence is a linear recurrence the other way. So no rule divides, zeros are exact, and derivatives of every order
 * are made of scans.
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
      const [from, most] = [attr.from, n - attr.from];
      if (!Number.isInteger(attr.count) || attr.count < 0 || attr.count > most || from < 0)
        fail('argSort', say`cannot give ${attr.count} of ${most} positions; must be from 0 to ${most}`, shape);
      return shape.map((size, axis) => (axis === attr.axis ? attr.count : size));
    },
    dtype: () => 'int32',
  },
  role: 'program',
  work: 40,
  encode: (a, out) => {
    out.push(a.axis * 2 + Number(a.descending));
    out.push(a.from);
    out.push(a.count);
  },
  gradient: () => [],
  batch: (c) => makeAgain(c.node, everySource(c), { ...c.attr, axis: c.attr.axis + 1 }),
  programs: (node) =>
    programsOf(node, ({ out, slot }, caps) => {
      const { axis, descending, from } = node.attr;
      return lowerSort({ axis, descending, from, out, x: slot(0).view }, caps);
    }),
});
