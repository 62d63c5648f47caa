/**
 * Rewrites value operations an engine does not print into ones it does.
 *
 * Works on expression DAGs of either stage, before vectors are formed, so each function is written once for all dtypes,
 * lanes and engines. float32 functions are computed in float64 where the engine has it and the function is hard; then a
 * coarse float64 polynomial is still far more accurate than float32 can show.
 */
import type { EngineCaps } from '../engine/engine.ts';
import { type DType, isFloat } from '../shape/dtype.ts';
import { acos, asin, atan, atan2 } from './decompose-arc.ts';
import { abs, ceil, fma32, frem, mulHigh, nanTest, round, trunc } from './decompose-basic.ts';
import { erf } from './decompose-erf.ts';
import { cosh, exp, exp2, expm1, sinh, tanh } from './decompose-exp.ts';
import { log, log1p, log2, pow } from './decompose-log.ts';
import { FloatMath } from './decompose-math.ts';
import { cos, sin, tan } from './decompose-trig.ts';
import type { Exprs } from './expr.ts';
import { ownRanges } from './free-ranges.ts';
import { BASE_OPS, type BinaryOp, type KNode, type KOp, type TernaryOp, type UnaryOp, type ValueOp } from './ir.ts';

type FloatFunction = (m: FloatMath, ...x: KNode[]) => KNode;

/** Functions that are cheap and exact enough in the operand's own dtype. */
const plain: Readonly<Partial<Record<KOp, FloatFunction>>> = {
  CEIL: (m, x) => ceil(m, x as KNode),
  TRUNC: (m, x) => trunc(m, x as KNode),
  ROUND: (m, x) => round(m, x as KNode),
  EXP: (m, x) => exp(m, x as KNode),
  RSQRT: (m, x) => m.div(1, m.sqrt(x as KNode)),
  RECIP: (m, x) => m.div(1, x as KNode),
};

/** Functions computed in float64 for float32 operands, where the engine has float64. */
const widened: Readonly<Partial<Record<KOp, FloatFunction>>> = {
  EXP2: (m, x) => exp2(m, x as KNode),
  EXPM1: (m, x) => expm1(m, x as KNode),
  LOG: (m, x) => log(m, x as KNode),
  LOG2: (m, x) => log2(m, x as KNode),
  LOG1P: (m, x) => log1p(m, x as KNode),
  SIN: (m, x) => sin(m, x as KNode),
  COS: (m, x) => cos(m, x as KNode),
  TAN: (m, x) => tan(m, x as KNode),
  ASIN: (m, x) => asin(m, x as KNode),
  ACOS: (m, x) => acos(m, x as KNode),
  ATAN: (m, x) => atan(m, x as KNode),
  SINH: (m, x) => sinh(m, x as KNode),
  COSH: (m, x) => cosh(m, x as KNode),
  TANH: (m, x) => tanh(m, x as KNode),
  ERF: (m, x) => erf(m, x as KNode),
  POW: (m, a, b) => pow(m, a as KNode, b as KNode),
  ATAN2: (m, y, x) => atan2(m, y as KNode, x as KNode),
  FREM: (m, x, y) => frem(m, x as KNode, y as KNode),
};

/**
 * Expressions equal to `roots` that use only BASE_OPS and the engine's native operations.
 *
 * @param roots expressions of one kernel
 * @param e factory for the new nodes
 */
export function decompose(roots: readonly KNode[], e: Exprs, caps: EngineCaps): readonly KNode[] {
  const done = new Map<KNode, KNode>();
  const stack = [...roots].reverse();
  while (stack.length > 0) {
    const n = stack[stack.length - 1] as KNode;
    if (done.has(n)) {
      stack.pop();
      continue;
    }
    const pending = n.src.filter((s) => !done.has(s));
    if (pending.length > 0) {
      stack.push(...pending);
      continue;
    }
    const src = n.src.map((s) => done.get(s) as KNode);
    const same = src.every((s, i) => s === n.src[i]) ? n : rebuild(e, n, src);
    const simpler = replacement(e, same, caps);
    if (simpler === null) {
      stack.pop();
      done.set(n, same);
      continue;
    }
    // The replacement may itself use operations to decompose.
    const final = done.get(simpler);
    if (final === undefined) stack.push(simpler);
    else {
      stack.pop();
      done.set(n, final);
    }
  }
  return roots.map((r) => done.get(r) as KNode);
}

function rebuild(e: Exprs, n: KNode, src: readonly KNode[]): KNode {
  const [a, b, c, d] = src as [KNode, KNode, KNode, KNode];
  switch (n.op) {
    case 'REDUCE':
      return e.reduce(n.arg.op, a, ownRanges(n));
    case 'STAGE':
      return e.stage(n.arg.space, a, ownRanges(n));
    case 'LOAD':
      return e.load(a, b, c, d, n.lanes);
    case 'CAST':
      return e.cast(a, n.dtype as DType);
    case 'BITCAST':
      return e.bitcast(a, n.dtype as DType);
    case 'VEC':
      return src.length === 1 ? e.splat(a, n.lanes) : e.vec(src);
    case 'LANE':
      return e.lane(a, n.arg.lane);
    default:
      if (src.length === 1) return e.unary(n.op as UnaryOp, a);
      if (src.length === 2) return e.binary(n.op as BinaryOp, a, b);
      if (src.length === 3) return e.ternary(n.op as TernaryOp, a, b, c);
      throw new Error(`[kernel.decompose] ${n.op} with ${src.length} sources cannot be part of a value`);
  }
}

/** What stands for the node, or null if the engine prints it. */
function replacement(e: Exprs, n: KNode, caps: EngineCaps): KNode | null {
  if (BASE_OPS.has(n.op) || caps.nativeOps.has(n.op)) return null;
  const [a, b, c] = n.src as [KNode, KNode, KNode];
  switch (n.op as ValueOp) {
    case 'ABS':
      return abs(e, a);
    case 'ISNAN':
      return nanTest(e, a);
    case 'MULHI':
      return mulHigh(e, a, b);
    case 'MULADD':
      return e.add(e.mul(a, b), c);
    case 'FMA':
      return n.dtype === 'float32' && caps.dtypes.has('float64') ? fma32(e, a, b, c) : e.add(e.mul(a, b), c);
    default:
      break;
  }
  const dtype = n.dtype as DType;
  const own = plain[n.op];
  if (own && isFloat(dtype)) return own(new FloatMath(e, dtype, dtype === 'float64'), ...n.src);
  const wide = widened[n.op];
  if (!wide) return null;
  if (!isFloat(dtype)) throw new Error(`[kernel.decompose] ${n.op} is no operation on ${dtype}`);
  if (dtype === 'float64') return wide(new FloatMath(e, dtype, true), ...n.src);
  if (!caps.dtypes.has('float64')) return wide(new FloatMath(e, 'float32', false), ...n.src);
  const m = new FloatMath(e, 'float64', false);
  return e.cast(wide(m, ...n.src.map((x) => e.cast(x, 'float64'))), dtype);
}
