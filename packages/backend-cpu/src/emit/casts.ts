/**
 * CAST and BITCAST. Small integers wrap, 64-bit ones are converted lane by lane where WebAssembly has no vector instruction. Float to integer saturates and NaN gives 0, as WebAssembly's saturating conversions do; int32 and uint32 share
 * their bits; anything to bool is `!= 0`.
 */
import { told } from '#listing';
import type { KNode } from '@polygrad/core/kernel/ir';
import * as S from '../asm/simd.ts';
import * as W from '../asm/plain.ts';
import * as T from '../asm/types.ts';
import {
  type Context,
  highHalf,
  type Lowered,
  maskOfWidth,
  mapParts,
  partCount,
  scalarConst,
  shuffle32,
  splatConst,
  vop,
} from './context.ts';
import { dtypeCode } from '#dtypes';
import type { Val } from './lir.ts';
import { compareCodes } from './tables.ts';
import { type Reg, type RegKind, refuse, regOf, smallBits } from './target.ts';
import { extract, gather } from './vectors.ts';

type Pair = `${RegKind}>${RegKind}`;

/** Scalar conversions of one instruction; 0 means the bits stay. */
// biome-ignore format: a table reads better grouped
const scalarCasts: Readonly<Partial<Record<Pair, number>>> = {
  'f32>f64': W.f64PromoteF32, 'f32>i32': W.i32TruncSatF32S, 'f32>u32': W.i32TruncSatF32U,
  'f64>f32': W.f32DemoteF64, 'f64>i32': W.i32TruncSatF64S, 'f64>u32': W.i32TruncSatF64U,
  'i32>f32': W.f32ConvertI32S, 'i32>f64': W.f64ConvertI32S, 'i32>u32': 0,
  'u32>f32': W.f32ConvertI32U, 'u32>f64': W.f64ConvertI32U, 'u32>i32': 0,
  'f32>i64': W.i64TruncSatF32S, 'f32>u64': W.i64TruncSatF32U, 'f64>i64': W.i64TruncSatF64S, 'f64>u64': W.i64TruncSatF64U,
  'i32>i64': W.i64ExtendI32S, 'i32>u64': W.i64ExtendI32S, 'u32>i64': W.i64ExtendI32U, 'u32>u64': W.i64ExtendI32U,
  'i64>f32': W.f32ConvertI64S, 'i64>f64': W.f64ConvertI64S, 'i64>i32': W.i32WrapI64, 'i64>u32': W.i32WrapI64, 'i64>u64': 0,
  'u64>f32': W.f32ConvertI64U, 'u64>f64': W.f64ConvertI64U, 'u64>i32': W.i32WrapI64, 'u64>u32': W.i32WrapI64, 'u64>i64': 0,
  'bool>i64': W.i64ExtendI32U, 'bool>u64': W.i64ExtendI32U,
  'bool>f32': W.f32ConvertI32S, 'bool>f64': W.f64ConvertI32S, 'bool>i32': 0, 'bool>u32': 0,
};

/** Vector conversions between lanes of one width. */
// biome-ignore format: a table reads better grouped
const sameWidth: Readonly<Partial<Record<Pair, number>>> = {
  'f32>i32': S.i32TruncSatF32S, 'f32>u32': S.i32TruncSatF32U, 'i32>f32': S.f32ConvertI32S, 'u32>f32': S.f32ConvertI32U, 'i32>u32': 0, 'u32>i32': 0,
  'i64>u64': 0, 'u64>i64': 0,
};

/** From two low lanes of 4 bytes to lanes of 8 bytes. */
// biome-ignore format: a table reads better grouped
const widening: Readonly<Partial<Record<Pair, number>>> = {
  'f32>f64': S.f64PromoteLowF32, 'i32>f64': S.f64ConvertLowI32S, 'u32>f64': S.f64ConvertLowI32U,
  'i32>i64': S.i64ExtendLowI32S, 'i32>u64': S.i64ExtendLowI32S, 'u32>i64': S.i64ExtendLowI32U, 'u32>u64': S.i64ExtendLowI32U,
};

/** From lanes of 8 bytes to two low lanes of 4 bytes. */
// biome-ignore format: a table reads better grouped
const narrowing: Readonly<Partial<Record<Pair, number>>> = {
  'f64>f32': S.f32DemoteF64Zero, 'f64>i32': S.i32TruncSatF64SZero, 'f64>u32': S.i32TruncSatF64UZero,
};

export function lowerCast(ctx: Context, n: KNode, x: Lowered): Lowered {
  const from = regOf(n.src[0].dtype);
  const to = regOf(n.dtype);
  const bits = smallBits(n.dtype);
  if (bits !== 0 && smallBits(n.src[0].dtype) !== bits)
    return dtypeCode().wrapSmall(ctx, n, to, convert(ctx, n, from, to, x));
  return convert(ctx, n, from, to, x);
}

function convert(ctx: Context, n: KNode, from: Reg, to: Reg, x: Lowered): Lowered {
  if (from.kind === to.kind) return x;
  if (n.lanes === 1) return { parts: [castScalar(ctx, from, to, x.parts[0]!)], width: to.width };
  if (to.kind === 'bool') {
    const zero = splatConst(ctx, from, 0);
    return {
      parts: mapParts([x.parts], ([v]) => vop(ctx, compareCodes.NE![from.kind]![1], v!, zero)),
      width: x.width,
    };
  }
  if (from.kind === 'bool') {
    const one = splatConst(ctx, to, 1);
    return {
      parts: mapParts([maskOfWidth(ctx, x, n.lanes, to.width)], ([m]) => vop(ctx, S.and, m!, one)),
      width: to.width,
    };
  }
  const pair: Pair = `${from.kind}>${to.kind}`;
  const same = sameWidth[pair];
  if (same !== undefined)
    return { parts: same === 0 ? x.parts : mapParts([x.parts], ([v]) => vop(ctx, same, v!)), width: to.width };
  const widen = widening[pair];
  const cut = from.type === T.i64 && to.width === 4 && to.type === T.i32;
  if (widen === undefined && narrowing[pair] === undefined && !cut) {
    const lane = (i: number): Val => castScalar(ctx, from, to, extract(ctx, from, x, i));
    return gather(ctx, to, n.lanes, lane);
  }
  const parts: Val[] = [];
  const count = partCount(n.lanes, to.width);
  for (let p = 0; p < count; p++) {
    if (widen !== undefined) {
      const v = x.parts[p >> 1]!;
      parts.push(vop(ctx, widen, p & 1 ? highHalf(ctx, v) : v));
    } else if (cut) {
      const low = x.parts[2 * p]!;
      parts.push(shuffle32(ctx, low, x.parts[2 * p + 1] ?? low, [0, 2, 4, 6]));
    } else {
      const code = narrowing[pair] ?? refuse(told && `no cast from ${n.src[0].dtype} to ${n.dtype}`);
      const low = vop(ctx, code, x.parts[2 * p]!);
      const high = x.parts[2 * p + 1];
      parts.push(high === undefined ? low : shuffle32(ctx, low, vop(ctx, code, high), [0, 1, 4, 5]));
    }
  }
  return { parts, width: to.width };
}

function castScalar(ctx: Context, from: Reg, to: Reg, x: Val): Val {
  if (to.kind === 'bool') return ctx.fn.op(compareCodes.NE![from.kind]![0], T.i32, [x, scalarConst(ctx, from, 0)]);
  const code = scalarCasts[`${from.kind}>${to.kind}`] ?? refuse(told && `no cast from ${from.kind} to ${to.kind}`);
  return code === 0 ? x : ctx.fn.op(code, to.type, [x]);
}

// biome-ignore format: a table reads better grouped
const reinterpret: Readonly<Partial<Record<Pair, number>>> = {
  'f32>i32': W.i32ReinterpretF32, 'f32>u32': W.i32ReinterpretF32, 'i32>f32': W.f32ReinterpretI32, 'u32>f32': W.f32ReinterpretI32, 'i32>u32': 0, 'u32>i32': 0,
  'f64>i64': W.i64ReinterpretF64, 'f64>u64': W.i64ReinterpretF64, 'i64>f64': W.f64ReinterpretI64, 'u64>f64': W.f64ReinterpretI64,
  'i64>u64': 0, 'u64>i64': 0,
};

export function lowerBitcast(ctx: Context, n: KNode, x: Lowered): Lowered {
  const from = regOf(n.src[0].dtype);
  const to = regOf(n.dtype);
  if (from.kind === to.kind) return x;
  if (smallBits(n.dtype) !== 0) return dtypeCode().wrapSmall(ctx, n, to, x);
  const code = reinterpret[`${from.kind}>${to.kind}`];
  if (code === undefined) refuse(told && `no bitcast from ${n.src[0].dtype} to ${n.dtype}: sizes differ`);
  if (n.lanes > 1 || code === 0) return x;
  return { parts: [ctx.fn.op(code, to.type, [x.parts[0]!])], width: to.width };
}
