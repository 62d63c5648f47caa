/** Basic instructions in arm64: moves, constants, flags, index sums, addresses. */
import type { Builder, Basics } from '../form/builder.ts';
import { type Memory, Reg } from '../form/code.ts';
import { conditions } from './rows.ts';

function integer(b: Builder, value: bigint, size: 4 | 8): Reg {
  const d = b.reg('g');
  const exact = size === 4 || BigInt(Number(value)) === value;
  if (exact && Number.isSafeInteger(Number(value))) {
    b.ins('mov:constant', size, d, Number(value));
    return d;
  }
  // Doubles cannot hold all numbers of 64 bits, so two halves are combined.
  const bits = BigInt.asUintN(64, value);
  b.ins('mov:constant', 8, d, Number(bits & 0xffffffffn));
  b.ins('movk', 8, d, Number((bits >> 32n) & 0xffffn), 32);
  b.ins('movk', 8, d, Number(bits >> 48n), 48);
  return d;
}

/** The exponent if a number is a power of two, or -1. */
export function powerOf(x: number): number {
  const power = x > 0 ? Math.log2(x) : -1;
  return Number.isInteger(power) ? power : -1;
}

function add(b: Builder, x: Reg, by: number, size: 4 | 8 = 4): Reg {
  const most = Math.abs(by);
  const name = by < 0 ? 'sub' : 'add';
  if (most < 4096) return b.op(`${name}:constant`, size, x, most);
  if (most % 4096 === 0 && most < 2 ** 24) return b.op(`${name}:high`, size, x, most / 4096);
  return b.op('add', size, x, b.integer(by, size), 0);
}

function addProduct(b: Builder, sum: Reg | null, x: Reg, by: number): Reg {
  const power = powerOf(Math.abs(by));
  if (sum !== null && power >= 0) return b.op(by < 0 ? 'sub' : 'add', 4, sum, x, power);
  if (sum !== null) return b.op('madd', 4, x, b.integer(by), sum);
  if (by === 1) return x;
  return power > 0 && by > 0 ? b.op('lsl:constant', 4, x, power) : b.op('mul', 4, x, b.integer(by));
}

function address(b: Builder, { base, index, scale, offset }: Memory): Reg {
  if (!(base instanceof Reg)) return b.op('adr', 8, { base, index, scale, offset });
  const at = index === null ? base : b.op('add', 8, base, index, Math.log2(scale));
  return offset === 0 ? at : add(b, at, offset, 8);
}

export const basics: Basics = {
  bytes: () => 16,
  move: (b, to, from) => (from.cls === 'g' ? b.ins('mov', 8, to, from) : b.ins('mov:16b', 16, to, from)),
  integer,
  pointer(b, from, to = b.reg('g')) {
    b.ins('ldr:x', 8, to, from);
    return to;
  },
  constants: (b, to, from) => b.ins('ldr:q', 16, to, from),
  test: (b, bool) => b.ins('cmp:constant', 4, bool, 0),
  sign: (b, x) => b.ins('cmp:constant', 4, x, 0),
  compare(b, size, x, y) {
    if (typeof y !== 'number') b.ins('cmp', size, x, y);
    else if (y >= 0 && y < 4096) b.ins('cmp:constant', size, x, y);
    else if (y < 0 && y > -4096) b.ins('cmn:constant', size, x, -y);
    else b.ins('cmp', size, x, b.integer(y, size === 8 ? 8 : 4));
  },
  take: (b, condition, to, from) => b.ins('csel', 8, to, from, to, conditions[condition]),
  count: (b, counter, by) => b.ins('add:constant', 4, counter, counter, by),
  divide(b, x, by, rest) {
    const quotient = b.op('udiv', 4, x, by);
    return rest ? b.op('msub', 4, quotient, by, x) : quotient;
  },
  add: (b, x, by) => add(b, x, by),
  addProduct,
  extend: (b, x) => b.op('sxtw', 8, x),
  address,
  indexes: false,
};
