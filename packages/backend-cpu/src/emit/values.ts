/**
 * Value operations of the IR as instructions: arithmetic, comparisons, selection, vectors. Casts are in casts.ts, memory in memory.ts.
 */
import { told } from '#listing';
import type { KNode } from '@polygrad/core/kernel/ir';
import * as S from '../asm/simd.ts';
import * as W from '../asm/plain.ts';
import * as T from '../asm/types.ts';
import { lowerBitcast, lowerCast } from './casts.ts';
import {
  type Context,
  type Lowered,
  mapParts,
  maskOfWidth,
  scalarConst,
  select,
  splatConst,
  vectorConst,
  vop,
} from './context.ts';
import { divideByConstant, divideScalar, divideVector, mulHighScalar, mulHighVector } from './integers.ts';
import { dtypeCode } from '#dtypes';
import type { Val } from './lir.ts';
import { extremumScalar, selectScalar } from './scalar-select.ts';
import { binaryCodes, compareCodes, laneCodes, shiftCodes, unaryCodes } from './tables.ts';
import { extract, gather, lowerVec, makeParts, uniformScalar } from './vectors.ts';
import { type DType, type Reg, type RegKind, refuse, regOf } from './target.ts';

/** Lowers a pure node that is no load and no declaration. */
export function lowerValue(ctx: Context, n: KNode): Lowered {
  switch (n.op) {
    case 'CONST':
      return constant(ctx, n.dtype as DType, n.lanes, n.arg.value);
    case 'IOTA':
      return { parts: makeParts(n.lanes, 4, (p) => vectorConst(ctx, regOf('int32'), 4, (i) => p * 4 + i)), width: 4 };
    case 'VEC':
      return lowerVec(ctx, n);
    case 'LANE':
      return { parts: [extract(ctx, regOf(n.dtype), ctx.get(n.src[0]), n.arg.lane)], width: 4 };
    case 'CAST':
      return lowerCast(ctx, n, ctx.get(n.src[0]));
    case 'BITCAST':
      return lowerBitcast(ctx, n, ctx.get(n.src[0]));
    default:
      return operation(ctx, n);
  }
}

function constant(ctx: Context, dtype: DType, lanes: number, value: number | bigint): Lowered {
  const reg = regOf(dtype);
  if (lanes === 1) return { parts: [scalarConst(ctx, reg, value)], width: reg.width };
  const one = splatConst(ctx, reg, value);
  return { parts: makeParts(lanes, reg.width, () => one), width: reg.width };
}

function operation(ctx: Context, n: KNode): Lowered {
  const reg = regOf(n.src[n.op === 'WHERE' ? 1 : 0]!.dtype);
  if (n.lanes === 1) return scalarOperation(ctx, n, reg);
  const folded = foldNot(ctx, n, reg) ?? pickedExtremum(ctx, n, reg);
  if (folded !== null) return folded;
  const operands = n.src.map((s) => ctx.get(s));
  let { width } = reg;
  if (reg.kind === 'bool' && n.op !== 'WHERE') width = operands[0]!.width;
  const same = operands.map((o, i) => (n.src[i]!.dtype === 'bool' ? maskOfWidth(ctx, o, n.lanes, width) : o.parts));
  const make = vector(ctx, n.op, reg, n);
  if (make === null) return laneByLane(ctx, n, reg, operands);
  return { parts: mapParts(same, make), width };
}

function scalarOperation(ctx: Context, n: KNode, reg: Reg): Lowered {
  let found: Lowered | null = null;
  if (n.op === 'WHERE') found = selectScalar(ctx, n);
  else if (n.op === 'MAX' || n.op === 'MIN') found = extremumScalar(ctx, n, (args) => vector(ctx, n.op, reg, n)!(args));
  if (found !== null) return found;
  const args = n.src.map((s) => ctx.get(s).parts[0]!);
  return { parts: [scalar(ctx, n.op, n.dtype, reg, args, n)], width: reg.width };
}

/** Vectors: NOT(EQ(a, b)) on floats and AND(a, NOT(b)) are one instruction each. */
function foldNot(ctx: Context, n: KNode, reg: Reg): Lowered | null {
  if (n.op === 'NOT' && isNotEqual(ctx, n.op, n)) {
    const [x, y] = n.src[0].src as [KNode, KNode];
    const { kind, width } = regOf(x.dtype);
    if (kind !== 'f32' && kind !== 'f64') return null;
    const code = compareCodes.NE![kind]![1];
    return { parts: mapParts([ctx.get(x).parts, ctx.get(y).parts], (v) => vop(ctx, code, ...v)), width };
  }
  if (n.op !== 'AND') return null;
  const at = n.src.findIndex((s) => s.op === 'NOT' && ctx.uses(s) === 1 && !isNotEqual(ctx, s.op, s));
  if (at < 0) return null;
  const [x, y] = [n.src[1 - at]!, n.src[at]!.src[0]];
  const a = ctx.get(x);
  const b = ctx.get(y);
  const width = reg.kind === 'bool' ? a.width : reg.width;
  const parts = reg.kind === 'bool' ? maskOfWidth(ctx, b, n.lanes, width) : b.parts;
  return { parts: mapParts([a.parts, parts], (v) => vop(ctx, S.andnot, ...v)), width };
}

/** Vectors: `x < y ? y : x` and `x < y ? x : y` are one instruction each, as wide as the comparison. */
function pickedExtremum(ctx: Context, n: KNode, { kind, width }: Reg): Lowered | null {
  if (n.op !== 'WHERE' || (kind !== 'f32' && kind !== 'f64')) return null;
  const [cond, yes, no] = n.src;
  const [x, y] = cond.src;
  if (cond.op !== 'LT' || !((x === no && y === yes) || (x === yes && y === no))) return null;
  const f32 = kind === 'f32';
  const code = y === yes ? (f32 ? S.f32Pmax : S.f64Pmax) : f32 ? S.f32Pmin : S.f64Pmin;
  return { parts: mapParts([ctx.get(no).parts, ctx.get(yes).parts], (v) => vop(ctx, code, ...v)), width };
}

/** `NE` for NOT(EQ(a, b)), for which there are instructions. */
function isNotEqual(ctx: Context, op: string, n: KNode): boolean {
  const x = n.src[0];
  return op === 'NOT' && x.op === 'EQ' && x.src[0].dtype !== 'bool' && ctx.uses(x) === 1;
}

function scalar(ctx: Context, op: string, dtype: DType | 'void', reg: Reg, args: readonly Val[], n: KNode | null): Val {
  const { fn } = ctx;
  const { kind, type } = reg;
  const [a, b, c] = args as [Val, Val, Val];
  const simple = unaryCodes[op]?.[kind] ?? binaryCodes[op]?.[kind] ?? shiftCodes[op]?.[kind];
  if (simple !== undefined)
    return type === T.i32 && args.length === 2 ? fn.int(simple[0], type, a, b) : fn.op(simple[0], type, args);
  const compare = compareCodes[op]?.[kind];
  if (compare !== undefined) return fn.op(compare[0], T.i32, args);
  const long = type === T.i64;
  const isInt = long || kind === 'i32' || kind === 'u32';
  const int = (code: number, x: Val, y: Val): Val => fn.int(long ? code + T.toLong : code, type, x, y);
  switch (op) {
    case 'WHERE':
      return select(ctx, a, b, c);
    case 'NOT': {
      if (n !== null && isNotEqual(ctx, op, n)) {
        const [x, y] = n.src[0].src as [KNode, KNode];
        return fn.op(compareCodes.NE![regOf(x.dtype).kind]![0], T.i32, [ctx.get(x).parts[0]!, ctx.get(y).parts[0]!]);
      }
      if (kind === 'bool') return fn.op(W.i32Eqz, T.i32, [a]);
      if (isInt) return int(W.i32Xor, a, scalarConst(ctx, reg, -1));
      break;
    }
    case 'NEG':
      if (isInt) return int(W.i32Sub, scalarConst(ctx, reg, 0), a);
      break;
    case 'ABS': {
      if (kind[0] !== 'i') return a;
      const sign = int(W.i32ShrS, a, scalarConst(ctx, reg, long ? 63 : 31));
      return int(W.i32Sub, int(W.i32Xor, a, sign), sign);
    }
    case 'FLOOR':
    case 'CEIL':
    case 'TRUNC':
    case 'ROUND':
      return a;
    case 'MAX':
    case 'MIN': {
      const code = kind[0] === 'i' ? (op === 'MAX' ? W.i32GtS : W.i32LtS) : op === 'MAX' ? W.i32GtU : W.i32LtU;
      return select(ctx, fn.int(long ? code + T.toLongCompare : code, T.i32, a, b), a, b);
    }
    case 'IDIV':
    case 'IREM':
      if (isInt) return divideScalar(ctx, op, reg, a, b, n);
      break;
    case 'MULHI':
      if (kind === 'u32') return mulHighScalar(ctx, a, b);
      break;
    case 'ISNAN':
      return isInt || kind === 'bool' ? fn.i32(0) : fn.op(compareCodes.NE![kind]![0], T.i32, [a, a]);
    case 'RECIP':
      if (!isInt && kind !== 'bool') return fn.op(binaryCodes.DIV![kind]![0], type, [scalarConst(ctx, reg, 1), a]);
      break;
    case 'MULADD':
    case 'FMA':
      return multiplyAddScalar(ctx, op, reg, a, b, c);
  }
  return refuse(told && `${op} on ${dtype} is not an instruction of this engine; decompose it first`);
}

/** A scalar goes through lane 0 of a vector if that makes it round once, so that scalars and vectors agree. */
function multiplyAddScalar(ctx: Context, op: string, reg: Reg, a: Val, b: Val, c: Val): Val {
  const { fn, target } = ctx;
  if ((reg.kind === 'f32' || reg.kind === 'f64') && target.fusedMadd) {
    const { splat, extract: lane } = laneCodes[reg.kind];
    const wide = [a, b, c].map((x) => vop(ctx, splat, x));
    return fn.op(lane, reg.type, [vop(ctx, maddCode(reg.kind), ...wide)], 0);
  }
  checkFusable(ctx, op, reg);
  const product = scalar(ctx, 'MUL', 'void', reg, [a, b], null);
  return scalar(ctx, 'ADD', 'void', reg, [product, c], null);
}

function maddCode(kind: RegKind): number {
  return kind === 'f32' ? S.f32RelaxedMadd : S.f64RelaxedMadd;
}

function checkFusable(ctx: Context, op: string, reg: Reg): void {
  if (op === 'FMA' && !ctx.target.fusedMadd && reg.kind[0] === 'f')
    refuse(told && 'FMA with one rounding is not available here; decompose it first');
}

/** The vector form of an operation, applied part by part; null if it must be done lane by lane. */
function vector(ctx: Context, op: string, reg: Reg, n: KNode): ((v: Val[]) => Val) | null {
  const { kind } = reg;
  const limit = constantLimit(ctx, op, reg, n);
  if (limit !== null) return limit;
  const simple = unaryCodes[op]?.[kind] ?? binaryCodes[op]?.[kind];
  if (simple !== undefined) return (v) => vop(ctx, simple[1], ...v);
  if (shiftCodes[op]?.[kind] !== undefined) {
    const count = uniformScalar(ctx, n.src[1]);
    return count === null ? null : ([a]) => vop(ctx, shiftCodes[op]![kind]![1], a!, count);
  }
  const compare = compareCodes[op]?.[kind];
  if (compare !== undefined && compare[1] !== 0) return (v) => vop(ctx, compare[1], ...v);
  if (reg.type === T.i64) return dtypeCode().longVector(ctx, op, reg);
  const isInt = kind === 'i32' || kind === 'u32';
  switch (op) {
    case 'EQ':
      return ([a, b]) => vop(ctx, S.not, vop(ctx, S.xor, a!, b!));
    case 'LT':
      return ([a, b]) => vop(ctx, S.andnot, b!, a!);
    case 'LE':
      return ([a, b]) => vop(ctx, S.or, vop(ctx, S.not, a!), b!);
    case 'WHERE':
      if (isZeroBits(n.src[1])) return ([m, , b]) => vop(ctx, S.andnot, b!, m!);
      if (isZeroBits(n.src[2])) return ([m, a]) => vop(ctx, S.and, a!, m!);
      return ([m, a, b]) => selectVector(ctx, reg, m!, a!, b!);
    case 'NOT':
      return ([a]) => vop(ctx, S.not, a!);
    case 'NEG':
      return isInt ? ([a]) => vop(ctx, S.i32Neg, a!) : null;
    case 'ABS':
      return ([a]) => (kind === 'i32' ? vop(ctx, S.i32Abs, a!) : a!);
    case 'FLOOR':
    case 'CEIL':
    case 'TRUNC':
    case 'ROUND':
      return ([a]) => a!;
    case 'MAX':
      return ([a, b]) => vop(ctx, kind === 'i32' ? S.i32MaxS : S.i32MaxU, a!, b!);
    case 'MIN':
      return ([a, b]) => vop(ctx, kind === 'i32' ? S.i32MinS : S.i32MinU, a!, b!);
    case 'IDIV':
    case 'IREM':
      return isInt ? ([a, b]) => divideByConstant(ctx, n, kind, a!) ?? divideVector(ctx, op, kind, a!, b!) : null;
    case 'MULHI':
      return kind === 'u32' ? ([a, b]) => mulHighVector(ctx, a!, b!) : null;
    case 'ISNAN':
      return isInt || kind === 'bool' ? () => ctx.fn.zero128() : ([a]) => vop(ctx, compareCodes.NE![kind]![1], a!, a!);
    case 'RECIP': {
      if (isInt || kind === 'bool') return null;
      const one = splatConst(ctx, reg, 1);
      return ([a]) => vop(ctx, binaryCodes.DIV![kind]![1], one, a!);
    }
    case 'MULADD':
    case 'FMA': {
      if ((kind === 'f32' || kind === 'f64') && ctx.target.fusedMadd) return (v) => vop(ctx, maddCode(kind), ...v);
      checkFusable(ctx, op, reg);
      const [mul, add] = [binaryCodes.MUL![kind]![1], binaryCodes.ADD![kind]![1]];
      return ([a, b, c]) => vop(ctx, add, vop(ctx, mul, a!, b!), c!);
    }
  }
  return null;
}

/**
 * MAX and MIN against a constant that is no NaN in one or two instructions. `pmax(x, c)` is `x < c ? c : x`, which keeps a
 * NaN in x; it differs from the contract only in giving -0 for max(-0, +0), which adding zero repairs.
 */
function constantLimit(ctx: Context, op: string, reg: Reg, n: KNode): ((v: Val[]) => Val) | null {
  if ((op !== 'MAX' && op !== 'MIN') || (reg.kind !== 'f32' && reg.kind !== 'f64')) return null;
  const at = n.src[1].op === 'CONST' ? 1 : 0;
  const limit = n.src[at]!;
  if (limit.op !== 'CONST') return null;
  const c = Number(limit.arg.value);
  if (Number.isNaN(c) || (op === 'MIN' && Object.is(c, -0))) return null;
  const f32 = reg.kind === 'f32';
  const code = op === 'MAX' ? (f32 ? S.f32Pmax : S.f64Pmax) : f32 ? S.f32Pmin : S.f64Pmin;
  const addZero = op === 'MAX' && Object.is(c, 0);
  return (v) => {
    const r = vop(ctx, code, v[1 - at]!, v[at]!);
    return addZero ? vop(ctx, f32 ? S.f32Add : S.f64Add, r, v[at]!) : r;
  };
}

/** A constant whose bits are all zero: choosing it is clearing the other value. */
function isZeroBits({ op, arg }: KNode): boolean {
  return op === 'CONST' && Object.is(Number((arg as { value: number | bigint }).value), 0);
}

function selectVector(ctx: Context, reg: Reg, mask: Val, a: Val, b: Val): Val {
  if (!ctx.target.laneSelect) return vop(ctx, S.bitselect, a, b, mask);
  return vop(ctx, reg.width === 8 ? S.i64RelaxedLaneselect : S.i32RelaxedLaneselect, a, b, mask);
}

/** Operations without a vector instruction: extract the lanes, compute scalars, combine them. */
function laneByLane(ctx: Context, n: KNode, reg: Reg, operands: readonly Lowered[]): Lowered {
  const lane = (i: number): Val => {
    const args = operands.map((o, k) => extract(ctx, regOf(n.src[k]!.dtype), o, i));
    return scalar(ctx, n.op, n.dtype, reg, args, null);
  };
  return gather(ctx, regOf(n.dtype), n.lanes, lane);
}
