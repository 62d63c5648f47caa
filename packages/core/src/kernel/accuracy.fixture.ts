/** For tests: decomposed functions as JavaScript functions, arguments spread over a format, errors in units in the last place. */
import type { EngineCaps } from '../engine/engine.ts';
import type { DType } from '../shape/dtype.ts';
import { createReferenceEngine } from '../testing/reference-engine.ts';
import { decompose } from './decompose.ts';
import { erf } from './erf.ts';
import { Exprs } from './expr.ts';
import type { BinaryOp, KNode, TernaryOp, UnaryOp } from './ir.ts';
import { toJsFunction } from './js-function.ts';

/** An engine with float64 and no operation of its own beyond the base. */
export const plainCaps: EngineCaps = { ...createReferenceEngine().caps, nativeOps: new Set() };
/** As a GPU without float64: no float64 anywhere, integers by conversion. */
export const singleCaps: EngineCaps = {
  ...plainCaps,
  simt: true,
  dtypes: new Set<DType>(['float32', 'int32', 'uint32', 'bool']),
};

/** The operation's decomposition with its variables. */
export function decomposed(
  op: UnaryOp | BinaryOp | TernaryOp,
  dtype: DType,
  count: number,
  caps: EngineCaps,
): { root: KNode; variables: KNode[] } {
  const e = new Exprs();
  const variables = Array.from({ length: count }, (_, i) => e.scalar(i, dtype));
  const [a, b, c] = variables as [KNode, KNode, KNode];
  const call =
    count === 1
      ? e.unary(op as UnaryOp, a)
      : count === 2
        ? e.binary(op as BinaryOp, a, b)
        : e.ternary(op as TernaryOp, a, b, c);
  const [root] = decompose([call], e, caps) as [KNode];
  return { root, variables };
}

export function unary(op: UnaryOp, dtype: DType, caps: EngineCaps = plainCaps): (x: number) => number {
  const { root, variables } = decomposed(op, dtype, 1, caps);
  return toJsFunction(root, variables);
}

export function binary(op: BinaryOp, dtype: DType, caps: EngineCaps = plainCaps): (x: number, y: number) => number {
  const { root, variables } = decomposed(op, dtype, 2, caps);
  return toJsFunction(root, variables);
}

export function ternary(
  op: TernaryOp,
  dtype: DType,
  caps: EngineCaps = plainCaps,
): (x: number, y: number, z: number) => number {
  const { root, variables } = decomposed(op, dtype, 3, caps);
  return toJsFunction(root, variables);
}

/** Every node an expression consists of. */
export function nodesOf(root: KNode): Set<KNode> {
  const seen = new Set<KNode>([root]);
  for (const n of seen) for (const s of n.src) seen.add(s);
  return seen;
}

export interface FunctionCase {
  readonly op: UnaryOp;
  /** In float64, to about one unit there. */
  readonly exact: (x: number) => number;
  /** Units in the last place of float32 promised on engines with float64. */
  readonly ulp: number;
}

/** The contract of docs/numerics.md. */
export const functions: readonly FunctionCase[] = [
  { op: 'EXP', exact: Math.exp, ulp: 1 },
  { op: 'EXP2', exact: (x) => 2 ** x, ulp: 1 },
  { op: 'EXPM1', exact: Math.expm1, ulp: 1 },
  { op: 'LOG', exact: Math.log, ulp: 1 },
  { op: 'LOG2', exact: Math.log2, ulp: 1 },
  { op: 'LOG1P', exact: Math.log1p, ulp: 1 },
  { op: 'SIN', exact: Math.sin, ulp: 1 },
  { op: 'COS', exact: Math.cos, ulp: 1 },
  { op: 'TAN', exact: Math.tan, ulp: 1 },
  { op: 'ASIN', exact: Math.asin, ulp: 1 },
  { op: 'ACOS', exact: Math.acos, ulp: 1 },
  { op: 'ATAN', exact: Math.atan, ulp: 1 },
  { op: 'SINH', exact: Math.sinh, ulp: 1 },
  { op: 'COSH', exact: Math.cosh, ulp: 1 },
  { op: 'TANH', exact: Math.tanh, ulp: 1 },
  { op: 'ERF', exact: erf, ulp: 2 },
  { op: 'RSQRT', exact: (x) => 1 / Math.sqrt(x), ulp: 1.5 },
  { op: 'RECIP', exact: (x) => 1 / x, ulp: 0.5000001 },
  { op: 'SQRT', exact: Math.sqrt, ulp: 0.5000001 },
];

const float = new Float32Array(1);
const bits = new Uint32Array(float.buffer);

/** The float32 with these bits. */
export function floatOfBits(pattern: number): number {
  bits[0] = pattern;
  return float[0] as number;
}

/** Finite float32 numbers spread over all exponents and both signs, with random mantissas. */
export function* floats(count: number, seed = 12345): Generator<number> {
  let state = seed;
  for (let k = 0; k < count; k++) {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    const x = floatOfBits(state);
    if (Number.isFinite(x)) yield x;
  }
}

/** Float32 numbers from low to high. */
export function* around(low: number, high: number, count: number): Generator<number> {
  for (let k = 0; k <= count; k++) yield Math.fround(low + ((high - low) * k) / count);
}

/** Distance of a float32 from the exact value, in units in the last place of float32 at the exact value. */
export function ulps(actual: number, exact: number): number {
  const near = Math.fround(exact);
  if (Object.is(actual, near) || actual === near || (Number.isNaN(actual) && Number.isNaN(near))) {
    return Number.isFinite(near) ? distance(actual, exact) : 0;
  }
  if (Number.isNaN(actual) || Number.isNaN(near)) return Number.POSITIVE_INFINITY;
  // Infinity counts as the next number after the largest one.
  const clip = (x: number): number => Math.max(-(2 ** 128), Math.min(2 ** 128, x));
  return distance(clip(actual), clip(exact));
}

function distance(actual: number, exact: number): number {
  const exponent = Math.max(Math.floor(Math.log2(Math.abs(exact) || 2 ** -149)), -126);
  return Math.abs(actual - exact) / 2 ** (exponent - 23);
}

/** The largest error over the inputs. */
export function worst(
  g: (x: number) => number,
  exact: (x: number) => number,
  inputs: Iterable<number>,
): { readonly ulp: number; readonly at: number } {
  let ulp = 0;
  let at = Number.NaN;
  for (const x of inputs) {
    const d = ulps(g(x), exact(x));
    if (!(d <= ulp)) {
      ulp = d;
      at = x;
    }
  }
  return { ulp, at };
}
