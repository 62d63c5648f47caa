/** Operations on vectors, part by part; lane by lane where the machine has no instruction. */
import type { KNode } from '@polygrad/core/kernel';
import type { Reg } from '../code.ts';
import { type DType, isFloat, type Kind, kindOf, refuse, widthOf } from '../target.ts';
import { lowerBitcast, lowerCast } from './casts.ts';
import { type Context, extract, gather, type Lowered, makeParts, partBytes, splat } from './context.ts';
import { extremum, multiplyAdd } from './floats.ts';
import { isSmall, scalarOperation } from './scalars.ts';

/** Lowers a pure node that is no load and no declaration. */
export function lowerValue(ctx: Context, n: KNode): Lowered {
  switch (n.op) {
    case 'CONST':
      return constant(ctx, n.dtype as DType, n.lanes, n.arg.value);
    case 'IOTA':
      return iota(ctx, n.lanes);
    case 'VEC':
      return vectorOf(ctx, n);
    case 'LANE': {
      const kind = kindOf(n.dtype);
      const x = ctx.get(n.src[0]);
      const r = kind === 'bool' ? ctx.masks.lane(x, n.arg.lane) : extract(ctx, kind, x, n.arg.lane);
      return { parts: [r], width: 4 };
    }
    case 'CAST':
      return lowerCast(ctx, n);
    case 'BITCAST':
      return lowerBitcast(ctx, n);
    default:
      return operation(ctx, n);
  }
}

function constant(ctx: Context, dtype: DType, lanes: number, value: number | bigint): Lowered {
  const kind = kindOf(dtype);
  const width = widthOf(kind);
  if (kind === 'bool' && lanes > 1) return ctx.masks.constant(Number(value) !== 0, lanes);
  if (isFloat(kind)) {
    const one = ctx.b.float(Number(value), width);
    return makeParts(ctx, lanes, width, () => one);
  }
  if (lanes === 1) return { parts: [ctx.b.integer(value, width)], width };
  const one = ctx.b.bits(value, width);
  return makeParts(ctx, lanes, width, () => one);
}

function iota(ctx: Context, lanes: number): Lowered {
  return makeParts(ctx, lanes, 4, (p) => {
    const first = (p * ctx.target.vectorBytes) / 4;
    return ctx.b.vector(new Uint8Array(Int32Array.from({ length: 16 }, (_, i) => first + i).buffer));
  });
}

function vectorOf(ctx: Context, n: KNode): Lowered {
  const kind = kindOf(n.dtype);
  const scalarOf = (i: number): Reg => ctx.get(n.src[i]!).parts[0]!;
  if (n.src.length > 1)
    return kind === 'bool' ? ctx.masks.gather(n.lanes, scalarOf) : gather(ctx, kind, n.lanes, scalarOf);
  if (kind === 'bool') return ctx.masks.splat(scalarOf(0), n.lanes);
  const width = widthOf(kind);
  const one = splat(ctx, kind, scalarOf(0), partBytes(ctx, n.lanes, width));
  return makeParts(ctx, n.lanes, width, () => one);
}

function operation(ctx: Context, n: KNode): Lowered {
  const kind = kindOf(n.src[n.op === 'WHERE' ? 1 : 0]!.dtype);
  const width = widthOf(kind);
  const operands = n.src.map((s) => ctx.get(s));
  if (n.lanes === 1) {
    const args = operands.map((o) => o.parts[0]!);
    return { parts: [scalarOperation(ctx, n.op, kind, args, n)], width };
  }
  if (kind === 'bool') return boolOperation(ctx, n, operands);
  const [x, y, z] = operands as [Lowered, Lowered, Lowered];
  switch (n.op) {
    case 'LT':
    case 'LE':
    case 'EQ':
      return ctx.masks.compare(kind, n.op, x.parts, y.parts, n.lanes);
    case 'ISNAN':
      if (!isFloat(kind)) return ctx.masks.constant(false, n.lanes);
      return ctx.masks.compare(kind, 'UNORD', x.parts, x.parts, n.lanes);
    case 'WHERE': {
      const picked = pickedExtremum(ctx, n, kind);
      if (picked !== null) return picked;
      return { parts: ctx.masks.select(x, y.parts, z.parts, n.lanes, width), width };
    }
  }
  const bytes = partBytes(ctx, n.lanes, width);
  const make = isFloat(kind) ? floats(ctx, n, kind, bytes) : integers(ctx, n, kind, bytes);
  if (make === null) {
    const lane = (i: number): Reg => {
      const args = operands.map((o, k) => extract(ctx, kindOf(n.src[k]!.dtype), o, i));
      return scalarOperation(ctx, n.op, kind, args, null);
    };
    return gather(ctx, kindOf(n.dtype), n.lanes, lane);
  }
  return { parts: x.parts.map((_, p) => make(operands.map((o) => o.parts[p]!))), width };
}

function boolOperation({ masks }: Context, n: KNode, operands: readonly Lowered[]): Lowered {
  const [x, y, z] = operands as [Lowered, Lowered, Lowered];
  const { lanes } = n;
  switch (n.op) {
    case 'AND':
    case 'MUL':
    case 'MIN':
      return masks.logic('AND', x, y, lanes);
    case 'OR':
    case 'ADD':
    case 'MAX':
      return masks.logic('OR', x, y, lanes);
    case 'XOR':
      return masks.logic('XOR', x, y, lanes);
    case 'EQ':
      return masks.logic('EQ', x, y, lanes);
    case 'LT':
      return masks.logic('ANDNOT', y, x, lanes);
    case 'LE':
      return masks.not(masks.logic('ANDNOT', x, y, lanes), lanes);
    case 'NOT':
      return masks.not(x, lanes);
    case 'ISNAN':
      return masks.constant(false, lanes);
    case 'WHERE':
      return masks.logic('OR', masks.logic('AND', x, y, lanes), masks.logic('ANDNOT', z, x, lanes), lanes);
    default:
      return refuse(`${n.op} on bool is not an instruction of this engine; decompose it first`);
  }
}

/** `x < y ? y : x` and `x < y ? x : y` are one instruction each. */
function pickedExtremum(ctx: Context, n: KNode, kind: Kind): Lowered | null {
  if (!isFloat(kind)) return null;
  const [cond, yes, no] = n.src as readonly [KNode, KNode, KNode];
  const [x, y] = cond.src;
  if (cond.op !== 'LT' || !((x === no && y === yes) || (x === yes && y === no))) return null;
  const p = kind === 'f32' ? 'ps' : 'pd';
  const key = y === yes ? `vmax${p}` : `vmin${p}`;
  const width = widthOf(kind);
  const bytes = partBytes(ctx, n.lanes, width);
  const [a, c] = [ctx.get(yes), ctx.get(no)];
  return { parts: a.parts.map((v, i) => ctx.b.op(key, bytes, v, c.parts[i]!)), width };
}

type Make = (v: readonly Reg[]) => Reg;

const roundings: Readonly<Record<string, number>> = { ROUND: 8, FLOOR: 9, CEIL: 10, TRUNC: 11 };

function floats(ctx: Context, n: KNode, kind: Kind, bytes: number): Make | null {
  const { b } = ctx;
  const p = kind === 'f32' ? 'ps' : 'pd';
  const width = widthOf(kind);
  const { op } = n;
  const sign = 1n << BigInt(width * 8 - 1);
  switch (op) {
    case 'ADD':
    case 'SUB':
    case 'MUL':
    case 'DIV':
      return ([x, y]) => b.op(`v${op.toLowerCase()}${p}`, bytes, x!, y!);
    case 'MAX':
    case 'MIN':
      return ([x, y]) => extremum(ctx, op, kind, x!, y!, bytes, n);
    case 'SQRT':
      return ([x]) => b.op(`vsqrt${p}`, bytes, x!);
    case 'FLOOR':
    case 'CEIL':
    case 'TRUNC':
    case 'ROUND':
      return ([x]) => b.op(`vround${p}`, bytes, x!, roundings[op]!);
    case 'NEG':
      return ([x]) => b.op('vxorps', bytes, x!, b.bits(sign, width));
    case 'ABS':
      return ([x]) => b.op('vandps', bytes, x!, b.bits(sign - 1n, width));
    case 'RECIP':
      return ([x]) => b.op(`vdiv${p}`, bytes, b.float(1, width), x!);
    case 'MULADD':
    case 'FMA':
      return ([x, y, z]) => multiplyAdd(ctx, p, bytes, x!, y!, z!, n);
    default:
      return refuse(`${op} on floats is not an instruction of this engine; decompose it first`);
  }
}

function integers(ctx: Context, n: KNode, kind: Kind, bytes: number): Make | null {
  const { b, masks, target } = ctx;
  const { op } = n;
  const v4 = target.isa === 'x64-v4';
  const width = widthOf(kind);
  const letter = width === 4 ? 'd' : 'q';
  const signed = kind[0] === 'i';
  switch (op) {
    case 'ADD':
    case 'SUB':
      return ([x, y]) => b.op(`vp${op.toLowerCase()}${letter}`, bytes, x!, y!);
    case 'MUL':
      if (width === 4) return ([x, y]) => b.op('vpmulld', bytes, x!, y!);
      return ([x, y]) => (v4 ? b.op('vpmullq', bytes, x!, y!) : longProduct(ctx, x!, y!, bytes));
    case 'AND':
    case 'OR':
    case 'XOR':
      return ([x, y]) => b.op(`v${op.toLowerCase()}ps`, bytes, x!, y!);
    case 'NOT':
      return ([x]) => b.op('vxorps', bytes, x!, b.bits(-1, 4));
    case 'NEG':
      return ([x]) => b.op(`vpsub${letter}`, bytes, b.bits(0, 4), x!);
    case 'ABS':
      if (!signed) return ([x]) => x!;
      if (width === 4) return ([x]) => b.op('vpabsd', bytes, x!);
      return v4 ? ([x]) => b.op('vpabsq', bytes, x!) : null;
    case 'FLOOR':
    case 'CEIL':
    case 'TRUNC':
    case 'ROUND':
      return ([x]) => x!;
    case 'MAX':
    case 'MIN': {
      const key = `vp${op.toLowerCase()}${signed ? 's' : 'u'}${letter}`;
      if (width === 4 || v4) return ([x, y]) => b.op(key, bytes, x!, y!);
      return ([x, y]) => {
        const less = masks.compare(kind, 'LT', [x!], [y!], n.lanes);
        const [yes, no] = op === 'MAX' ? [y!, x!] : [x!, y!];
        return masks.select(less, [yes], [no], n.lanes, 8)[0]!;
      };
    }
    case 'SHL':
    case 'SHR': {
      const way = op === 'SHL' ? 'll' : signed ? 'ra' : 'rl';
      if (way === 'ra' && width === 8 && !v4) return null;
      const count = n.src[1]!;
      if (count.op === 'CONST') {
        const by = Number(BigInt.asUintN(width === 4 ? 5 : 6, BigInt(count.arg.value)));
        return ([x]) => b.op(`vps${way}${letter}`, bytes, x!, by);
      }
      return ([x, y]) => {
        const by = b.op('vandps', bytes, y!, b.bits(width * 8 - 1, width));
        return b.op(`vps${way}v${letter}`, bytes, x!, by);
      };
    }
    case 'IDIV':
    case 'IREM':
      return divideByConstant(ctx, n, kind, bytes);
    case 'MULHI':
      return ([x, y]) => {
        const odd = b.op('vpmuludq', bytes, b.op('vpsrlq', bytes, x!, 32), b.op('vpsrlq', bytes, y!, 32));
        const upper = b.op('vandps', bytes, odd, b.bits(0xffffffff00000000n, 8));
        return b.op('vorps', bytes, upper, b.op('vpsrlq', bytes, b.op('vpmuludq', bytes, x!, y!), 32));
      };
    case 'MULADD': {
      const multiply = integers(ctx, { ...n, op: 'MUL' } as KNode, kind, bytes)!;
      return ([x, y, z]) => b.op(`vpadd${letter}`, bytes, multiply([x!, y!]), z!);
    }
    default:
      return refuse(`${op} on integers is not an instruction of this engine; decompose it first`);
  }
}

/** The lower halves of products of 64 bits, from products of 32. */
function longProduct({ b }: Context, x: Reg, y: Reg, bytes: number): Reg {
  const cross = b.op(
    'vpaddq',
    bytes,
    b.op('vpmuludq', bytes, b.op('vpsrlq', bytes, x, 32), y),
    b.op('vpmuludq', bytes, x, b.op('vpsrlq', bytes, y, 32)),
  );
  return b.op('vpaddq', bytes, b.op('vpmuludq', bytes, x, y), b.op('vpsllq', bytes, cross, 32));
}

/** Division by a constant above zero: shifts for powers of two, the reciprocal for what is known not to be negative; otherwise lane by lane. */
function divideByConstant(ctx: Context, n: KNode, kind: Kind, bytes: number): Make | null {
  const { b } = ctx;
  const by = n.src[1]!;
  const d = by.op === 'CONST' && widthOf(kind) === 4 ? Number(by.arg.value) : 0;
  if (d <= 0 || d > 0x7fffffff) return null;
  const bits = Math.ceil(Math.log2(d));
  const isQuotient = n.op === 'IDIV';
  const rest = (x: Reg, q: Reg): Reg => b.op('vpsubd', bytes, x, b.op('vpmulld', bytes, q, b.bits(d, 4)));
  if (d === 2 ** bits) {
    if (isSmall(n.src[0]!) || kind === 'u32') {
      return ([x]) => (isQuotient ? b.op('vpsrld', bytes, x!, bits) : b.op('vandps', bytes, x!, b.bits(d - 1, 4)));
    }
    if (bits === 0) return ([x]) => (isQuotient ? x! : b.bits(0, 4));
    return ([x]) => {
      // Shifts round down; d - 1 is added to negative numbers first.
      const bias = b.op('vpsrld', bytes, b.op('vpsrad', bytes, x!, 31), 32 - bits);
      const q = b.op('vpsrad', bytes, b.op('vpaddd', bytes, x!, bias), bits);
      return isQuotient ? q : b.op('vpsubd', bytes, x!, b.op('vpslld', bytes, q, bits));
    };
  }
  if (!isSmall(n.src[0]!)) return null;
  const p = 31 + bits;
  const factor = b.bits((2n ** BigInt(p) + BigInt(d - 1)) / BigInt(d), 4);
  return ([x]) => {
    const even = b.op('vpsrlq', bytes, b.op('vpmuludq', bytes, x!, factor), p);
    const odd = b.op('vpsrlq', bytes, b.op('vpmuludq', bytes, b.op('vpsrlq', bytes, x!, 32), factor), p);
    const q = b.op('vorps', bytes, even, b.op('vpsllq', bytes, odd, 32));
    return isQuotient ? q : rest(x!, q);
  };
}
