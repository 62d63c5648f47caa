/** Operations on scalars in arm64: integers and bools in general registers, floats in the lowest lane of vectors. Integers of 32 bits have zeros above. */
import type { KNode } from '@polygrad/core/kernel';
import type { Builder } from '../form/builder.ts';
import type { Condition, Reg } from '../form/code.ts';
import type { Context } from '../form/machine.ts';
import { constantOf, reciprocalOf } from '../lower/numbers.ts';
import { isFloat, type Kind, refuse, widthOf } from '../target.ts';
import { powerOf } from './basics.ts';
import { conditions } from './rows.ts';

/** The register that is always zero. */
const zero = 31;

const compares = { LT: ['l', 'b'], LE: ['le', 'be'], EQ: ['e', 'e'] } as const;
/** Condition codes of float comparisons: the first three are false if one operand is NaN. */
const floatCompares = { LT: 's', LE: 'be', EQ: 'e', NE: 'ne', UNORD: 'p' } as const;

/** One operation. `n`: the node, because its sources may tell more than the registers. */
export function scalarOperation(ctx: Context, op: string, kind: Kind, args: readonly Reg[], n: KNode | null): Reg {
  if (op === 'WHERE') {
    const [condition, yes, no] = args as [Reg, Reg, Reg];
    return ctx.machine.access.choose(ctx, condition, yes, no);
  }
  return isFloat(kind) ? floatOperation(ctx, op, kind, args) : integerOperation(ctx, op, kind, args, n);
}

/** Compares integers; returns the condition under which the comparison is true. */
export function compareIntegers(
  { b }: Context,
  op: keyof typeof compares,
  kind: Kind,
  x: Reg,
  y: Reg,
  n: KNode | null,
): Condition {
  b.compare(widthOf(kind), x, (n === null ? null : constantOf(n.src[1])) ?? y);
  return compares[op][kind[0] === 'i' ? 0 : 1];
}

/** A condition as a bool. */
export function flag(b: Builder, condition: Condition): Reg {
  return b.op('cset', 4, conditions[condition]);
}

/** A comparison of floats as a bool. */
export function compareFloats(b: Builder, op: keyof typeof floatCompares, kind: Kind, x: Reg, y: Reg): Reg {
  b.ins(kind === 'f32' ? 'fcmp:s' : 'fcmp:d', 16, x, y);
  return flag(b, floatCompares[op]);
}

/** Names of operations on floats that are one instruction. */
export const floatNames: Readonly<Record<string, string>> = {
  ADD: 'fadd',
  SUB: 'fsub',
  MUL: 'fmul',
  DIV: 'fdiv',
  // NaN if an operand is NaN, and -0 is below 0.
  MAX: 'fmax',
  MIN: 'fmin',
  SQRT: 'fsqrt',
  FLOOR: 'frintm',
  CEIL: 'frintp',
  TRUNC: 'frintz',
  ROUND: 'frintn',
  NEG: 'fneg',
  ABS: 'fabs',
};

function floatOperation({ b }: Context, op: string, kind: Kind, args: readonly Reg[]): Reg {
  const suffix = kind === 'f32' ? 's' : 'd';
  const [x, y] = args as [Reg, Reg];
  const name = floatNames[op];
  if (name !== undefined) return b.op(`${name}:${suffix}`, 16, args[0], args[1], args[2]);
  switch (op) {
    case 'RECIP':
      return b.op(`fdiv:${suffix}`, 16, b.float(1, widthOf(kind)), x);
    case 'LT':
    case 'LE':
    case 'EQ':
      return compareFloats(b, op, kind, x, y);
    case 'ISNAN':
      return compareFloats(b, 'UNORD', kind, x, x);
    case 'MULADD':
    case 'FMA':
      return b.op(`fmadd:${suffix}`, 16, args[0], args[1], args[2]);
    default:
      return refuse(`${op} on floats is not an instruction of this engine; decompose it first`);
  }
}

function integerOperation(ctx: Context, op: string, kind: Kind, args: readonly Reg[], n: KNode | null): Reg {
  const { b, machine } = ctx;
  const size = widthOf(kind);
  const signed = kind[0] === 'i';
  const bool = kind === 'bool';
  const [x, y] = args as [Reg, Reg];
  const right = n === null ? null : constantOf(n.src[1]);
  switch (op) {
    case 'ADD':
      if (bool) return b.op('orr', 4, x, y, 0);
      return right !== null && Math.abs(right) < 4096
        ? b.op(right < 0 ? 'sub:constant' : 'add:constant', size, x, Math.abs(right))
        : b.op('add', size, x, y, 0);
    case 'SUB':
      return right !== null && Math.abs(right) < 4096
        ? b.op(right < 0 ? 'add:constant' : 'sub:constant', size, x, Math.abs(right))
        : b.op('sub', size, x, y, 0);
    case 'MUL':
      return bool ? b.op('and', 4, x, y, 0) : b.op('mul', size, x, y);
    case 'AND': {
      const bits = right === null ? -1 : powerOf(right + 1);
      return bits > 0 ? b.op('and:ones', size, x, bits) : b.op('and', size, x, y, 0);
    }
    case 'OR':
      return b.op('orr', size, x, y, 0);
    case 'XOR':
      return b.op('eor', size, x, y, 0);
    case 'NOT':
      return bool ? b.op('eor:ones', 4, x, 1) : b.op('mvn', size, x);
    case 'NEG':
      return b.op('neg', size, x);
    case 'ABS': {
      if (!signed) return b.copy(x);
      const negative = b.op('neg', size, x);
      b.compare(size, x, 0);
      return b.op('csel', size, x, negative, conditions.ge);
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
      const name = op === 'SHL' ? 'lsl' : signed ? 'asr' : 'lsr';
      return right !== null ? b.op(`${name}:constant`, size, x, right & (size * 8 - 1)) : b.op(name, size, x, y);
    }
    case 'LT':
    case 'LE':
    case 'EQ':
      return flag(b, machine.operations.compare(ctx, op, kind, x, y, n));
    case 'MAX':
    case 'MIN': {
      if (bool) return b.op(op === 'MAX' ? 'orr' : 'and', 4, x, y, 0);
      b.compare(size, x, y);
      const keep = op === 'MAX' ? (signed ? 'ge' : 'ae') : signed ? 'le' : 'be';
      return b.op('csel', size, x, y, conditions[keep]);
    }
    case 'MULHI':
      return b.op('lsr:constant', 8, b.op('umull', 8, x, y), 32);
    case 'IDIV':
    case 'IREM':
      return divide(b, op, kind, x, y, n);
    case 'MULADD':
      return b.op('madd', size, x, y, args[2]!);
    default:
      return refuse(`${op} on integers is not an instruction of this engine; decompose it first`);
  }
}

/** Division truncates, gives 0 for divisor 0, and wraps for the smallest number by -1, as the instructions do. */
function divide(b: Builder, op: 'IDIV' | 'IREM', kind: Kind, x: Reg, y: Reg, n: KNode | null): Reg {
  const size = widthOf(kind);
  const by = n === null ? null : reciprocalOf(n);
  if (by !== null && by.power >= 0 && (by.small || kind === 'u32'))
    return op === 'IDIV'
      ? b.op('lsr:constant', 4, x, by.power)
      : by.power === 0
        ? b.integer(0)
        : b.op('and:ones', 4, x, by.power);
  if (by !== null && by.power < 0 && by.small) {
    const product = b.op('mul', 8, x, b.integer(by.factor, 8));
    const quotient = b.op('lsr:constant', 8, product, by.shift);
    return op === 'IDIV' ? quotient : b.op('msub', 4, quotient, b.integer(by.divisor), x);
  }
  const quotient = b.op(kind[0] === 'i' ? 'sdiv' : 'udiv', size, x, y);
  if (op === 'IDIV') return quotient;
  const rest = b.op('msub', size, quotient, y, x);
  b.compare(size, y, 0);
  return b.op('csel', size, rest, zero, conditions.ne);
}
