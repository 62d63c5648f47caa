/** Operations on the parts of vectors in arm64: 16 bytes, lanes of 4 or 8. */
import type { KNode } from '@polygrad/core/kernel';
import type { Builder } from '../form/builder.ts';
import type { Reg } from '../form/code.ts';
import type { Context, Make } from '../form/machine.ts';
import { reciprocalOf } from '../lower/numbers.ts';
import { isFloat, type Kind, refuse, widthOf } from '../target.ts';
import { laneOf } from './lanes.ts';
import { floatNames } from './scalars.ts';

/** One operation, or null if it is done lane by lane. */
export function vectorOperation(ctx: Context, n: KNode, kind: Kind): Make | null {
  return isFloat(kind) ? floats(ctx, n, kind) : integers(ctx, n, kind);
}

function floats({ b }: Context, { op }: KNode, kind: Kind): Make {
  const lanes = kind === 'f32' ? '4s' : '2d';
  const name = floatNames[op];
  if (name !== undefined) return (args) => b.op(`${name}:${lanes}`, 16, args[0], args[1], args[2]);
  switch (op) {
    case 'RECIP':
      return ([x]) => b.op(`fdiv:${lanes}`, 16, b.float(1, widthOf(kind)), x!);
    case 'MULADD':
    case 'FMA':
      return ([x, y, z]) => {
        const sum = b.copy(z!, 16);
        const [left, right] = [laneOf(x!), laneOf(y!)];
        const key = `fmla:lane_${kind === 'f32' ? 's' : 'd'}`;
        if (left !== null) b.ins(key, 16, sum, y!, left, 0);
        else if (right !== null) b.ins(key, 16, sum, x!, right, 0);
        else b.ins(`fmla:${lanes}`, 16, sum, x!, y!);
        return sum;
      };
    default:
      return refuse(`${op} on floats is not an instruction of this engine; decompose it first`);
  }
}

const logic: Readonly<Record<string, string>> = { AND: 'and:16b', OR: 'orr:16b', XOR: 'eor:16b', NOT: 'mvn:16b' };

function integers(ctx: Context, n: KNode, kind: Kind): Make | null {
  const { b, masks } = ctx;
  const { op } = n;
  const width = widthOf(kind);
  const lanes = width === 4 ? '4s' : '2d';
  const signed = kind[0] === 'i';
  if (logic[op] !== undefined) return (args) => b.op(logic[op]!, 16, args[0], args[1], args[2]);
  switch (op) {
    case 'ADD':
    case 'SUB':
      return ([x, y]) => b.op(`${op.toLowerCase()}:${lanes}`, 16, x!, y!);
    case 'MUL':
      return ([x, y]) => product(b, width, x!, y!);
    case 'NEG':
      return ([x]) => b.op(`neg:${lanes}`, 16, x!);
    case 'ABS':
      return signed ? ([x]) => b.op(`abs:${lanes}`, 16, x!) : ([x]) => x!;
    case 'FLOOR':
    case 'CEIL':
    case 'TRUNC':
    case 'ROUND':
      return ([x]) => x!;
    case 'MAX':
    case 'MIN':
      if (width === 4) return ([x, y]) => b.op(`${signed ? 's' : 'u'}${op.toLowerCase()}:4s`, 16, x!, y!);
      return ([x, y]) => {
        const less = masks.compare(kind, 'LT', [x!], [y!], n.lanes);
        const [yes, no] = op === 'MAX' ? [y!, x!] : [x!, y!];
        return masks.select(less, [yes], [no], n.lanes, 8)[0]!;
      };
    case 'SHL':
    case 'SHR':
      return shift(b, n, kind);
    case 'IDIV':
    case 'IREM':
      return divideByConstant(b, n, kind);
    case 'MULHI':
      return ([x, y]) => b.op('uzp2:4s', 16, b.op('umull:2d', 16, x!, y!), b.op('umull2:2d', 16, x!, y!));
    case 'MULADD':
      return ([x, y, z]) => b.op(`add:${lanes}`, 16, product(b, width, x!, y!), z!);
    default:
      return refuse(`${op} on integers is not an instruction of this engine; decompose it first`);
  }
}

/** Products; for 64 bits from products of 32, because there is no instruction. */
function product(b: Builder, width: 4 | 8, x: Reg, y: Reg): Reg {
  if (width === 4) return b.op('mul:4s', 16, x, y);
  const crossed = b.op('uaddlp:2d', 16, b.op('mul:4s', 16, x, b.op('rev64:4s', 16, y)));
  const sum = b.op('shl:2d', 16, crossed, 32);
  b.ins('umlal:2d', 16, sum, b.op('xtn:2s', 16, x), b.op('xtn:2s', 16, y));
  return sum;
}

function shift(b: Builder, { op, src }: KNode, kind: Kind): Make {
  const width = widthOf(kind);
  const lanes = width === 4 ? '4s' : '2d';
  const letter = kind[0] === 'i' && op === 'SHR' ? 's' : 'u';
  const count = src[1]!;
  if (count.op === 'CONST') {
    const by = Number(BigInt.asUintN(width === 4 ? 5 : 6, BigInt(count.arg.value)));
    if (by === 0) return ([x]) => x!;
    return ([x]) => b.op(`${op === 'SHL' ? 'shl' : `${letter}shr`}:${lanes}`, 16, x!, by);
  }
  return ([x, y]) => {
    // A negative count shifts to the right.
    const by = b.op('and:16b', 16, y!, b.bits(width * 8 - 1, width));
    return b.op(`${letter}shl:${lanes}`, 16, x!, op === 'SHL' ? by : b.op(`neg:${lanes}`, 16, by));
  };
}

/** Division by a positive constant: shifts for powers of two, the reciprocal for dividends known to be non-negative; otherwise lane by lane. */
function divideByConstant(b: Builder, n: KNode, kind: Kind): Make | null {
  const by = reciprocalOf(n);
  if (by === null) return null;
  const { divisor, power, factor, shift, small } = by;
  const isQuotient = n.op === 'IDIV';
  if (power === 0) return ([x]) => (isQuotient ? x! : b.bits(0, 4));
  if (power > 0) {
    if (small || kind === 'u32')
      return ([x]) => (isQuotient ? b.op('ushr:4s', 16, x!, power) : b.op('and:16b', 16, x!, b.bits(divisor - 1, 4)));
    return ([x]) => {
      // Shifts round down, so d - 1 is added to negative numbers first.
      const bias = b.op('ushr:4s', 16, b.op('sshr:4s', 16, x!, 31), 32 - power);
      const quotient = b.op('sshr:4s', 16, b.op('add:4s', 16, x!, bias), power);
      return isQuotient ? quotient : b.op('sub:4s', 16, x!, b.op('shl:4s', 16, quotient, power));
    };
  }
  if (!small) return null;
  const factors = b.bits(factor, 4);
  return ([x]) => {
    const low = b.op('ushr:2d', 16, b.op('umull:2d', 16, x!, factors), shift);
    const high = b.op('ushr:2d', 16, b.op('umull2:2d', 16, x!, factors), shift);
    const quotient = b.op('uzp1:4s', 16, low, high);
    if (isQuotient) return quotient;
    return b.op('sub:4s', 16, x!, b.op('mul:4s', 16, quotient, b.bits(divisor, 4)));
  };
}
