/** Operations on the parts of vectors in x86-64. */
import type { KNode } from '@polygrad/core/kernel';
import type { Reg } from '../form/code.ts';
import type { Context, Make } from '../form/machine.ts';
import { isSmall } from '../lower/numbers.ts';
import { isFloat, type Kind, refuse, widthOf } from '../target.ts';
import { extremum, multiplyAdd } from './floats.ts';

/** One operation, or null where it is done lane by lane. */
export function vectorOperation(ctx: Context, n: KNode, kind: Kind, bytes: number): Make | null {
  return isFloat(kind) ? floats(ctx, n, kind, bytes) : integers(ctx, n, kind, bytes);
}

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
      return (operands) => extremum(ctx, op, kind, operands, bytes, n);
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
      return (operands) => multiplyAdd(ctx, p, bytes, operands, n);
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
