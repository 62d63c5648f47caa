/** Operations on scalars: integers and bools in general registers, floats in the lowest lane of vectors. Integers of 32 bits have zeros above. */
import type { KNode } from '@polygrad/core/kernel';
import type { Condition, Reg } from '../form/code.ts';
import type { Context } from '../form/machine.ts';
import { constantOf, isSmall } from '../lower/numbers.ts';
import { isFloat, type Kind, refuse, widthOf } from '../target.ts';
import { extremum, multiplyAdd } from './floats.ts';

const compares = { LT: ['l', 'b'], LE: ['le', 'be'], EQ: ['e', 'e'] } as const;
/** The same with the operands exchanged. */
const turned = { LT: ['g', 'a'], LE: ['ge', 'ae'], EQ: ['e', 'e'] } as const;
const floatCompares = { LT: 1, LE: 2, EQ: 0, ISNAN: 3, NE: 4 } as const;

/** One operation. `n`: the node, where its sources may tell more than the registers. */
export function scalarOperation(ctx: Context, op: string, kind: Kind, args: readonly Reg[], n: KNode | null): Reg {
  if (op === 'WHERE') return choose(ctx, kind, args as [Reg, Reg, Reg]);
  if (isFloat(kind)) return floatOperation(ctx, op, kind, args, n);
  return integerOperation(ctx, op, kind, args, n);
}

/** Compares integers; the condition that holds where the comparison is true. */
export function compareIntegers(
  { b }: Context,
  op: keyof typeof compares,
  kind: Kind,
  x: Reg,
  y: Reg | null,
  n: KNode | null,
): Condition {
  const [left, right] = n === null ? [null, null] : [constantOf(n.src[0]), constantOf(n.src[1])];
  const by = kind[0] === 'i' ? 0 : 1;
  if (left !== null && right === null && y !== null) {
    b.ins('cmp:constant', widthOf(kind), y, left);
    return turned[op][by];
  }
  if (right !== null) b.ins('cmp:constant', widthOf(kind), x, right);
  else b.ins('cmp', widthOf(kind), x, y!);
  return compares[op][by];
}

/** The flag of a condition as a bool. */
export function flag({ b }: Context, condition: Condition): Reg {
  return b.op('movzx:byte', 4, b.op(`set${condition}`, 4));
}

/** A comparison of floats as a bool. */
export function compareFloats({ b, target }: Context, op: keyof typeof floatCompares, kind: Kind, x: Reg, y: Reg): Reg {
  const key = kind === 'f32' ? 'vcmpss' : 'vcmpsd';
  if (target.isa === 'x64-v4') return b.op('kmovd:get', 8, b.op(`${key}:k`, 16, x, y, floatCompares[op]));
  return b.two('and:constant', 4, b.op('vmovd:get', 16, b.op(key, 16, x, y, floatCompares[op])), 1);
}

function choose(ctx: Context, kind: Kind, [cond, yes, no]: readonly [Reg, Reg, Reg]): Reg {
  const { b, target } = ctx;
  if (!isFloat(kind)) {
    const d = b.copy(no);
    b.ins('test', 4, cond, cond);
    b.ins('cmovne', 8, d, yes);
    return d;
  }
  if (target.isa === 'x64-v4') {
    const d = b.reg('v');
    b.masked(kind === 'f32' ? 'vblendmps' : 'vblendmpd', 16, b.op('kmovd', 8, cond), false, d, no, yes);
    return d;
  }
  const all = b.copy(cond);
  b.ins('neg', 8, all);
  return b.op('vblendvps', 16, no, yes, b.op('vmovq', 16, all));
}

const roundings: Readonly<Record<string, number>> = { ROUND: 8, FLOOR: 9, CEIL: 10, TRUNC: 11 };

function floatOperation(ctx: Context, op: string, kind: Kind, operands: readonly Reg[], n: KNode | null): Reg {
  const { b } = ctx;
  const [x, y] = operands;
  const width = widthOf(kind);
  const suffix = kind === 'f32' ? 'ss' : 'sd';
  const a = x!;
  switch (op) {
    case 'ADD':
    case 'SUB':
    case 'MUL':
    case 'DIV':
      return b.op(`v${op.toLowerCase()}${suffix}`, 16, a, y!);
    case 'MAX':
    case 'MIN':
      return extremum(ctx, op, kind, operands, 16, n);
    case 'SQRT':
      return b.op(`vsqrt${suffix}`, 16, a, a);
    case 'FLOOR':
    case 'CEIL':
    case 'TRUNC':
    case 'ROUND':
      return b.op(`vround${suffix}`, 16, a, a, roundings[op]!);
    case 'NEG':
      return b.op('vxorps', 16, a, b.bits(1n << BigInt(width * 8 - 1), width));
    case 'ABS':
      return b.op('vandps', 16, a, b.bits((1n << BigInt(width * 8 - 1)) - 1n, width));
    case 'RECIP':
      return b.op(`vdiv${suffix}`, 16, b.float(1, width), a);
    case 'LT':
    case 'LE':
    case 'EQ':
      return compareFloats(ctx, op, kind, a, y!);
    case 'ISNAN':
      return compareFloats(ctx, op, kind, a, a);
    case 'MULADD':
    case 'FMA':
      return multiplyAdd(ctx, suffix, 16, operands, n);
    default:
      return refuse(`${op} on floats is not an instruction of this engine; decompose it first`);
  }
}

function integerOperation(ctx: Context, op: string, kind: Kind, args: readonly Reg[], n: KNode | null): Reg {
  const { b } = ctx;
  const size = widthOf(kind);
  const signed = kind[0] === 'i';
  const bool = kind === 'bool';
  const [x, y] = args as [Reg, Reg];
  const right = n === null ? null : constantOf(n.src[1]);
  const two = (key: string): Reg =>
    right === null ? b.two(key, size, x, y) : b.two(`${key}:constant`, size, x, right);
  switch (op) {
    case 'ADD':
      return two(bool ? 'or' : 'add');
    case 'SUB':
      return two('sub');
    case 'MUL':
      if (bool) return two('and');
      return right === null ? b.two('imul', size, x, y) : b.op('imul:constant', size, x, right);
    case 'AND':
    case 'OR':
    case 'XOR':
      return two(op.toLowerCase());
    case 'NOT':
      if (bool) return b.two('xor:constant', 4, x, 1);
      return alone(ctx, 'not', size, x);
    case 'NEG':
      return alone(ctx, 'neg', size, x);
    case 'ABS': {
      if (!signed) return b.copy(x);
      const d = alone(ctx, 'neg', size, x);
      b.ins('cmovs', 8, d, x);
      return d;
    }
    case 'FLOOR':
    case 'CEIL':
    case 'TRUNC':
    case 'ROUND':
      return b.copy(x);
    case 'ISNAN':
      return b.integer(0);
    case 'SHL':
    case 'SHR': {
      const key = op === 'SHL' ? 'shl' : signed ? 'sar' : 'shr';
      if (right !== null) return b.two(key, size, x, right & (size * 8 - 1));
      return b.op(`${key}x`, size, x, y);
    }
    case 'LT':
    case 'LE':
    case 'EQ':
      return flag(ctx, compareIntegers(ctx, op, kind, x, y, n));
    case 'MAX':
    case 'MIN': {
      if (bool) return two(op === 'MAX' ? 'or' : 'and');
      const d = b.copy(x);
      b.ins('cmp', size, x, y);
      const take = op === 'MAX' ? (signed ? 'l' : 'b') : signed ? 'g' : 'a';
      b.ins(`cmov${take}`, 8, d, y);
      return d;
    }
    case 'MULHI': {
      const product = b.two('imul', 8, x, y);
      return b.two('shr', 8, product, 32);
    }
    case 'IDIV':
    case 'IREM':
      return divide(ctx, op, kind, x, y, n);
    case 'MULADD': {
      const product = b.two('imul', size, x, y);
      return b.two('add', size, product, args[2]!);
    }
    default:
      return refuse(`${op} on integers is not an instruction of this engine; decompose it first`);
  }
}

function alone({ b }: Context, key: string, size: number, x: Reg): Reg {
  const d = b.copy(x);
  b.ins(key, size, d);
  return d;
}

/** Divides by a constant above zero what is known not to be negative, or null. */
function divideByConstant(ctx: Context, op: 'IDIV' | 'IREM', x: Reg, n: KNode): Reg | null {
  const { b } = ctx;
  const by = n.src[1]!;
  const d = by.op === 'CONST' && (n.dtype === 'int32' || n.dtype === 'uint32') ? Number(by.arg.value) : 0;
  const power = d > 0 && Number.isInteger(Math.log2(d));
  if (d <= 0 || d > 0x7fffffff || !(isSmall(n.src[0]!) || (power && n.dtype === 'uint32'))) return null;
  const bits = Math.ceil(Math.log2(d));
  if (power) return op === 'IDIV' ? b.two('shr', 4, x, bits) : b.two('and:constant', 4, x, d - 1);
  // x / d = x * ceil(2^p / d) >> p for x below 2^31 and p = 31 + ceil(log2 d).
  const p = 31 + bits;
  const factor = b.integer(Number((2n ** BigInt(p) + BigInt(d - 1)) / BigInt(d)));
  const q = b.two('imul', 8, x, factor);
  b.ins('shr', 8, q, p);
  if (op === 'IDIV') return q;
  return b.two('sub', 4, x, b.op('imul:constant', 4, q, d));
}

/** Division truncates; by zero it gives 0, and the smallest number by -1 wraps. */
function divide(ctx: Context, op: 'IDIV' | 'IREM', kind: Kind, x: Reg, y: Reg, n: KNode | null): Reg {
  const { b } = ctx;
  const quick = n === null ? null : divideByConstant(ctx, op, x, n);
  if (quick !== null) return quick;
  const rest = op === 'IREM';
  const size = widthOf(kind);
  const signed = kind[0] === 'i';
  const by = b.copy(y);
  const one = b.integer(1);
  b.ins('test', size, y, y);
  b.ins('cmove', 8, by, one);
  let d: Reg;
  if (kind === 'i32') {
    // In 64 bits nothing overflows.
    const wide = b.divide(b.op('movsxd', 8, x), b.op('movsxd', 8, by), { signed, rest, size: 8 });
    d = b.op('mov', 4, wide);
  } else if (kind === 'i64') {
    b.ins('cmp:constant', 8, y, -1);
    b.ins('cmove', 8, by, one);
    d = b.copy(b.divide(x, by, { signed, rest, size }));
    if (!rest) {
      const negative = alone(ctx, 'neg', 8, x);
      b.ins('cmp:constant', 8, y, -1);
      b.ins('cmove', 8, d, negative);
    }
  } else d = b.copy(b.divide(x, by, { signed, rest, size }));
  const zero = b.integer(0);
  b.ins('test', size, y, y);
  b.ins('cmove', 8, d, zero);
  return d;
}
