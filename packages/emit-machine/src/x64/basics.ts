/** Basic instructions in x86-64: moves, constants, flags, index sums, addresses. */
import type { Builder, Basics } from '../form/builder.ts';
import type { Reg } from '../form/code.ts';

function integer(b: Builder, big: bigint, size: 4 | 8): Reg {
  if (size === 4) {
    const d = b.reg('g');
    b.ins('mov:constant', 4, d, Number(big));
    return d;
  }
  if (big >= -0x80000000n && big <= 0x7fffffffn) {
    const d = b.reg('g');
    b.ins('mov:constant', 8, d, Number(big));
    return d;
  }
  // Doubles cannot hold all numbers of 64 bits, so two halves are combined.
  const high = b.reg('g');
  b.ins('mov:constant', 4, high, Number(BigInt.asIntN(32, big >> 32n)));
  b.ins('shl', 8, high, 32);
  const low = b.reg('g');
  b.ins('mov:constant', 4, low, Number(BigInt.asIntN(32, big)));
  return b.two('or', 8, high, low);
}

function product(b: Builder, x: Reg, by: number): Reg {
  if (by === 1) return x;
  if (by > 0 && Number.isInteger(Math.log2(by))) return b.two('shl', 4, x, Math.log2(by));
  return b.op('imul:constant', 4, x, by);
}

export const basics: Basics = {
  bytes: ({ isa }, size) => Math.max(16, Math.min(size, isa === 'x64-v4' ? 64 : 32)),
  move(b, to, from, size) {
    if (from.cls === 'g') b.ins('mov', 8, to, from);
    else if (from.cls === 'k') b.ins('kmovq', 8, to, from);
    else b.ins('vmovaps', b.bytes(size), to, from);
  },
  integer,
  pointer(b, from, to = b.reg('g')) {
    b.ins('mov', 8, to, from);
    return to;
  },
  constants: (b, to, from) => b.ins('vmovups', b.bytes(64), to, from),
  test: (b, bool) => b.ins('test', 4, bool, bool),
  sign: (b, x) => b.ins('test', 4, x, x),
  compare: (b, size, x, y) => b.ins(typeof y === 'number' ? 'cmp:constant' : 'cmp', size, x, y),
  take: (b, condition, to, from) => b.ins(`cmov${condition}`, 8, to, from),
  count: (b, counter, by) => b.ins('add:constant', 4, counter, by),
  divide: (b, x, by, rest) => b.divide(x, by, { signed: false, rest, size: 4 }),
  add: (b, x, by) => b.two('add:constant', 4, x, by),
  addProduct(b, sum, x, by) {
    if (sum === null) return product(b, x, by);
    if (by === 1 || by === 2 || by === 4 || by === 8)
      return b.op('lea', 4, { base: sum, index: x, scale: by, offset: 0 });
    return b.op('lea', 4, { base: sum, index: product(b, x, by), scale: 1, offset: 0 });
  },
  extend: (b, x) => b.op('movsxd', 8, x),
  address: (b, at) => b.op('lea', 8, at),
  indexes: true,
};
