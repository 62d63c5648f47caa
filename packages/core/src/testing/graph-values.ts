/**
 * Values of graph nodes by definition: every primitive as a loop over its result, in float64, on host arrays.
 *
 * Shares nothing with lowering or kernels; tests compare the two. Integers wrap as their dtype does; floats are not rounded
 * between operations. Slow by design. Leaves are given by `leaves`.
 */
import type { Attrs, PrimitiveName } from '../graph/attrs.ts';
import type { Node, NodeStorage } from '../graph/node.ts';
import { dtypeInfo } from '../shape/dtype.ts';
import { type Shape, rowMajorStrides, sizeOf } from '../shape/view.ts';
import { argSortValues, scanValues, scatterValues } from './graph-values-order.ts';

/** Elements in row-major order. */
export type Values = Float64Array;

type Rule<P extends PrimitiveName> = (src: readonly Tensor[], attr: Attrs[P], shape: Shape) => Values;

interface Tensor {
  readonly shape: Shape;
  readonly values: Values;
}

/** Calls `fn` with every index of the shape, in row-major order, and collects its results. */
function build(shape: Shape, fn: (index: readonly number[]) => number): Values {
  const out = new Float64Array(sizeOf(shape));
  const index = shape.map(() => 0);
  for (let i = 0; i < out.length; i++) {
    out[i] = fn(index);
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      index[axis] = (index[axis] as number) + 1;
      if ((index[axis] as number) < (shape[axis] as number)) break;
      index[axis] = 0;
    }
  }
  return out;
}

function at(t: Tensor, index: readonly number[]): number {
  const strides = rowMajorStrides(t.shape);
  let flat = 0;
  for (let axis = 0; axis < t.shape.length; axis++) {
    const i = index[axis] as number;
    if (i < 0 || i >= (t.shape[axis] as number)) return 0;
    flat += i * (strides[axis] as number);
  }
  return t.values[flat] as number;
}

/** NumPy's broadcasting: right-aligned, axes of size 1 stay at 0. */
function spread(t: Tensor, index: readonly number[]): number {
  const skip = index.length - t.shape.length;
  return at(
    t,
    t.shape.map((n, axis) => (n === 1 ? 0 : (index[axis + skip] as number))),
  );
}

function each(fn: (...xs: number[]) => number): Rule<PrimitiveName> {
  return (src, _, shape) => build(shape, (index) => fn(...src.map((t) => spread(t, index))));
}

function roundHalfEven(x: number): number {
  const down = Math.floor(x);
  if (x - down !== 0.5) return Math.round(x);
  return down % 2 === 0 ? down : down + 1;
}

/** The error function by its series and its continued fraction, to about 1e-15. */
function erf(x: number): number {
  const a = Math.abs(x);
  if (a > 6) return Math.sign(x);
  if (a < 2.5) {
    let term = a;
    let sum = a;
    for (let n = 1; n < 80; n++) {
      term *= (-a * a) / n;
      sum += term / (2 * n + 1);
    }
    return (Math.sign(x) * 2 * sum) / Math.sqrt(Math.PI);
  }
  let f = 0;
  for (let n = 120; n > 0; n--) f = n / 2 / (a + f);
  return Math.sign(x) * (1 - Math.exp(-a * a) / Math.sqrt(Math.PI) / (a + f));
}

const bothNaN = (fn: (a: number, b: number) => number) => (a: number, b: number) =>
  Number.isNaN(a) || Number.isNaN(b) ? Number.NaN : fn(a, b);

const elementwise: { readonly [name: string]: (...xs: number[]) => number } = {
  neg: (x = 0) => -x,
  not: (x = 0) => ~x,
  abs: Math.abs as (...xs: number[]) => number,
  sign: (x = 0) => (Number.isNaN(x) ? x : Math.sign(x)),
  sqrt: (x = 0) => Math.sqrt(x),
  rsqrt: (x = 0) => 1 / Math.sqrt(x),
  reciprocal: (x = 0) => 1 / x,
  floor: (x = 0) => Math.floor(x),
  ceil: (x = 0) => Math.ceil(x),
  trunc: (x = 0) => Math.trunc(x),
  round: (x = 0) => roundHalfEven(x),
  exp: (x = 0) => Math.exp(x),
  exp2: (x = 0) => 2 ** x,
  expm1: (x = 0) => Math.expm1(x),
  log: (x = 0) => Math.log(x),
  log2: (x = 0) => Math.log2(x),
  log1p: (x = 0) => Math.log1p(x),
  sin: (x = 0) => Math.sin(x),
  cos: (x = 0) => Math.cos(x),
  tan: (x = 0) => Math.tan(x),
  asin: (x = 0) => Math.asin(x),
  acos: (x = 0) => Math.acos(x),
  atan: (x = 0) => Math.atan(x),
  sinh: (x = 0) => Math.sinh(x),
  cosh: (x = 0) => Math.cosh(x),
  tanh: (x = 0) => Math.tanh(x),
  erf: (x = 0) => erf(x),
  isNaN: (x = 0) => Number(Number.isNaN(x)),
  add: (a = 0, b = 0) => a + b,
  sub: (a = 0, b = 0) => a - b,
  mul: (a = 0, b = 0) => a * b,
  div: (a = 0, b = 0) => a / b,
  idiv: (a = 0, b = 0) => (b === 0 ? 0 : Math.trunc(a / b)),
  irem: (a = 0, b = 0) => (b === 0 ? 0 : a % b),
  fmod: (a = 0, b = 0) => a % b,
  pow: (a = 0, b = 0) => (a === 1 ? 1 : a ** b),
  atan2: (a = 0, b = 0) => Math.atan2(a, b),
  maximum: bothNaN(Math.max) as (...xs: number[]) => number,
  minimum: bothNaN(Math.min) as (...xs: number[]) => number,
  and: (a = 0, b = 0) => a & b,
  or: (a = 0, b = 0) => a | b,
  xor: (a = 0, b = 0) => a ^ b,
  shl: (a = 0, b = 0) => a << b,
  shr: (a = 0, b = 0) => a >> b,
  lt: (a = 0, b = 0) => Number(a < b),
  le: (a = 0, b = 0) => Number(a <= b),
  eq: (a = 0, b = 0) => Number(a === b),
  where: (c = 0, a = 0, b = 0) => (c !== 0 ? a : b),
  fma: (a = 0, b = 0, c = 0) => a * b + c,
};

/** Elements of `t` over the reduced axes, for one index of the result. */
function reduced(t: Tensor, axes: readonly number[], index: readonly number[]): number[] {
  const extents = axes.map((axis) => t.shape[axis] as number);
  const found: number[] = [];
  build(extents, (own) => {
    let kept = 0;
    found.push(
      at(
        t,
        t.shape.map((_, axis) =>
          axes.includes(axis) ? (own[axes.indexOf(axis)] as number) : (index[kept++] as number),
        ),
      ),
    );
    return 0;
  });
  return found;
}

const combine = {
  sum: (a: number, b: number) => a + b,
  prod: (a: number, b: number) => a * b,
  max: bothNaN(Math.max),
  min: bothNaN(Math.min),
} as const;
const start = { sum: 0, prod: 1, max: Number.NEGATIVE_INFINITY, min: Number.POSITIVE_INFINITY } as const;

const structured: { readonly [P in PrimitiveName]?: Rule<P> } = {
  iota: (_, __, shape) => build(shape, (index) => index[0] as number),
  constant: (_, attr, shape) => build(shape, () => Number(attr.value)),
  stopGradient: ([x]) => (x as Tensor).values,
  after: ([x]) => (x as Tensor).values,
  contiguous: ([x]) => (x as Tensor).values,
  reshape: ([x]) => (x as Tensor).values,
  reduce: ([x], attr, shape) =>
    build(shape, (index) => reduced(x as Tensor, attr.axes, index).reduce(combine[attr.op], start[attr.op])),
  argReduce: ([x], attr, shape) =>
    build(shape, (index) => {
      const all = reduced(x as Tensor, attr.axes, index);
      const nan = all.findIndex(Number.isNaN);
      if (nan >= 0) return nan;
      const best = all.reduce(combine[attr.op], start[attr.op]);
      return all.indexOf(best);
    }),
  permute: ([x], attr, shape) =>
    build(shape, (index) => {
      const from = index.map(() => 0);
      attr.axes.forEach((axis, i) => {
        from[axis] = index[i] as number;
      });
      return at(x as Tensor, from);
    }),
  expand: ([x], _, shape) => build(shape, (index) => spread(x as Tensor, index)),
  slice: ([x], attr, shape) =>
    build(shape, (index) =>
      at(
        x as Tensor,
        index.map((i, axis) => (attr.start[axis] as number) + i * (attr.step[axis] as number)),
      ),
    ),
  pad: ([x], attr, shape) =>
    build(shape, (index) => {
      const from = index.map((i, axis) => i - (attr.low[axis] as number));
      const inside = from.every((i, axis) => i >= 0 && i < ((x as Tensor).shape[axis] as number));
      return inside ? at(x as Tensor, from) : Number(attr.value);
    }),
  concat: (src, attr, shape) =>
    build(shape, (index) => {
      let i = index[attr.axis] as number;
      for (const part of src) {
        const n = part.shape[attr.axis] as number;
        if (i < n)
          return at(
            part,
            index.map((v, axis) => (axis === attr.axis ? i : v)),
          );
        i -= n;
      }
      return Number.NaN;
    }),
  window: ([x], attr, shape) =>
    build(shape, (index) => {
      const rank = attr.size.length;
      const lead = shape.length - 2 * rank;
      const from = index.slice(0, lead);
      for (let i = 0; i < rank; i++) {
        from.push(
          (index[lead + i] as number) * (attr.stride[i] as number) +
            (index[lead + rank + i] as number) * (attr.dilation[i] as number),
        );
      }
      return at(x as Tensor, from);
    }),
  fold: ([x], attr, shape) => {
    const t = x as Tensor;
    const out = new Float64Array(sizeOf(shape));
    const strides = rowMajorStrides(shape);
    const rank = attr.size.length;
    const lead = shape.length - rank;
    build(t.shape, (index) => {
      let flat = 0;
      for (let axis = 0; axis < lead; axis++) flat += (index[axis] as number) * (strides[axis] as number);
      for (let i = 0; i < rank; i++) {
        const to =
          (index[lead + i] as number) * (attr.stride[i] as number) +
          (index[lead + rank + i] as number) * (attr.dilation[i] as number);
        flat += to * (strides[lead + i] as number);
      }
      out[flat] = (out[flat] as number) + at(t, index);
      return 0;
    });
    return out;
  },
  dotGeneral: ([lhs, rhs], attr, shape) => {
    const [a, b] = [lhs as Tensor, rhs as Tensor];
    const free = (t: Tensor, used: readonly number[]): number[] =>
      t.shape.map((_, axis) => axis).filter((axis) => !used.includes(axis));
    const aFree = free(a, [...attr.lhsBatch, ...attr.lhsContract]);
    const bFree = free(b, [...attr.rhsBatch, ...attr.rhsContract]);
    const extents = attr.lhsContract.map((axis) => a.shape[axis] as number);
    return build(shape, (index) => {
      const ia = a.shape.map(() => 0);
      const ib = b.shape.map(() => 0);
      attr.lhsBatch.forEach((axis, i) => {
        ia[axis] = index[i] as number;
        ib[attr.rhsBatch[i] as number] = index[i] as number;
      });
      aFree.forEach((axis, i) => {
        ia[axis] = index[attr.lhsBatch.length + i] as number;
      });
      bFree.forEach((axis, i) => {
        ib[axis] = index[attr.lhsBatch.length + aFree.length + i] as number;
      });
      let sum = 0;
      build(extents, (own) => {
        own.forEach((k, i) => {
          ia[attr.lhsContract[i] as number] = k;
          ib[attr.rhsContract[i] as number] = k;
        });
        sum += at(a, ia) * at(b, ib);
        return 0;
      });
      return sum;
    });
  },
  conv: ([lhs, rhs], attr, shape) => {
    const [x, w] = [lhs as Tensor, rhs as Tensor];
    const [features, depth] = [w.shape[0] as number, w.shape[1] as number];
    return build(shape, (index) => {
      const [n, o] = [index[0] as number, index[1] as number];
      const group = Math.floor(o / (features / attr.groups));
      const image = n + Math.floor(o / (features / attr.batchGroups)) * (shape[0] as number);
      let sum = 0;
      build(w.shape.slice(1), (own) => {
        const from = [image, group * depth + (own[0] as number)];
        for (let i = 0; i < attr.stride.length; i++) {
          const p =
            (index[i + 2] as number) * (attr.stride[i] as number) -
            (attr.padLow[i] as number) +
            (own[i + 1] as number) * (attr.rhsDilation[i] as number);
          const hole = attr.lhsDilation[i] as number;
          from.push(p % hole === 0 ? p / hole : -1);
        }
        sum += at(x, from) * at(w, [o, ...own]);
        return 0;
      });
      return sum;
    });
  },
  gather: ([x, which], attr, shape) =>
    build(shape, (index) => {
      const rank = (which as Tensor).shape.length;
      const i = at(which as Tensor, index.slice(attr.axis, attr.axis + rank));
      return at(x as Tensor, [...index.slice(0, attr.axis), i, ...index.slice(attr.axis + rank)]);
    }),
  scatterAdd: ([base, which, updates], attr, shape) => {
    const out = Float64Array.from((base as Tensor).values);
    const strides = rowMajorStrides(shape);
    const rank = (which as Tensor).shape.length;
    build((updates as Tensor).shape, (index) => {
      const i = at(which as Tensor, index.slice(attr.axis, attr.axis + rank));
      const to = [...index.slice(0, attr.axis), i, ...index.slice(attr.axis + rank)];
      const flat = to.reduce((sum, v, axis) => sum + v * (strides[axis] as number), 0);
      out[flat] = (out[flat] as number) + at(updates as Tensor, index);
      return 0;
    });
    return out;
  },
  scatter: ([base, which, updates], attr) => scatterValues(base as Tensor, which as Tensor, updates as Tensor, attr),
  scan: ([x, factor], attr) => scanValues(x as Tensor, factor, attr),
  argSort: ([x], attr) => argSortValues(x as Tensor, attr),
};

function wrapped(node: Node, values: Values): Values {
  const { kind, bytes } = dtypeInfo[node.dtype];
  if (kind === 'float') return values;
  if (kind === 'bool') return values.map((v) => Number(v !== 0));
  const modulus = 2 ** (8 * bytes);
  const low = kind === 'int' ? -modulus / 2 : 0;
  return values.map((v) => {
    const rest = (((v - low) % modulus) + modulus) % modulus;
    return rest + low;
  });
}

/**
 * Values of nodes by definition. Random bits are not covered.
 *
 * @param wanted the nodes
 * @param leaves values of 'buffer' nodes
 */
export function valuesOf(wanted: readonly Node[], leaves: ReadonlyMap<Node, Values>): Values[] {
  const known = new Map<Node, Values>(leaves);
  const stack = [...wanted];
  while (stack.length > 0) {
    const node = stack[stack.length - 1] as Node;
    if (!known.has(node) && node.storage !== null) known.set(node, viewed(node, leaves));
    const missing = known.has(node) ? [] : node.src.filter((s) => !known.has(s));
    if (!known.has(node) && missing.length > 0) {
      stack.push(...missing);
      continue;
    }
    stack.pop();
    if (!known.has(node)) known.set(node, wrapped(node, compute(node, known)));
  }
  return wanted.map((node) => known.get(node) as Values);
}

/** A realised view of a leaf's memory. */
function viewed(node: Node, leaves: ReadonlyMap<Node, Values>): Values {
  const { buffer, view } = node.storage as NodeStorage;
  for (const [leaf, values] of leaves) {
    if (leaf.storage?.buffer !== buffer) continue;
    return build(node.shape, (index) => {
      return values[index.reduce((sum, i, axis) => sum + i * (view.strides[axis] as number), view.offset)] as number;
    });
  }
  throw new Error(`[valuesOf] node ${node.id} ${node.op} is in memory and no view of a leaf given`);
}

function compute(node: Node, known: ReadonlyMap<Node, Values>): Values {
  const src = node.src.map((s): Tensor => ({ shape: s.shape, values: known.get(s) as Values }));
  if (node.op === 'scalar') return Float64Array.of(Number((node.attr as Attrs['scalar']).value));
  if (node.op === 'cast') {
    const { kind } = dtypeInfo[node.dtype];
    const x = (src[0] as Tensor).values;
    return kind === 'float' ? x : kind === 'bool' ? x.map((v) => Number(v !== 0)) : x.map(Math.trunc);
  }
  if (node.op === 'not' && node.dtype === 'bool') return (src[0] as Tensor).values.map((v) => Number(v === 0));
  const rule = structured[node.op] as Rule<PrimitiveName> | undefined;
  if (rule !== undefined) return rule(src, node.attr as never, node.shape);
  const fn = elementwise[node.op];
  if (fn === undefined) throw new Error(`[valuesOf] primitive ${node.op} has no definition here`);
  return each(fn)(src, node.attr as never, node.shape);
}
