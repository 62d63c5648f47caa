/** Vectors of bool with AVX2: the instructions on their lanes. */
import type { LaneForms } from '../lower/lane-masks.ts';
import { partBytes, usedBytes } from '../form/vector-parts.ts';
import { isFloat, widthOf } from '../target.ts';
import type { Reg } from '../form/code.ts';
import { comparisonCodes } from './bit-masks.ts';

const keys = { AND: 'vandps', OR: 'vorps', XOR: 'vxorps', ANDNOT: 'vandnps' } as const;

export const laneForms: LaneForms = {
  compare(b, kind, op, bytes) {
    const width = widthOf(kind);
    if (isFloat(kind)) {
      const key = width === 4 ? 'vcmpps' : 'vcmppd';
      return { make: ([x, y]) => b.op(key, bytes, x!, y!, comparisonCodes[op]), inverse: false };
    }
    const letter = width === 4 ? 'd' : 'q';
    const unsigned = kind[0] === 'u';
    // Unsigned numbers compare as signed ones with the highest bit inverted.
    const sign = unsigned ? b.bits(1n << BigInt(width * 8 - 1), width) : null;
    const ordered = (v: Reg): Reg => (sign === null ? v : b.op('vxorps', bytes, v, sign));
    return {
      make: ([x, y]) => {
        if (op === 'EQ' || op === 'NE') return b.op(`vpcmpeq${letter}`, bytes, x!, y!);
        const [p, q] = [ordered(x!), ordered(y!)];
        return op === 'LT' ? b.op(`vpcmpgt${letter}`, bytes, q, p) : b.op(`vpcmpgt${letter}`, bytes, p, q);
      },
      inverse: op === 'NE' || op === 'LE',
    };
  },
  // andn inverts its first operand.
  logic: (b, op, bytes, x, y) => (op === 'ANDNOT' ? b.op(keys[op], bytes, y, x) : b.op(keys[op], bytes, x, y)),
  not(b, bytes) {
    const ones = b.bits(-1, 4);
    return ([x]) => b.op('vxorps', bytes, x!, ones);
  },
  select: (b, bytes, mask, yes, no) => b.op('vblendvps', bytes, no, yes, mask),
  widen: (b, bytes, mask) => b.op('vpmovsxdq', bytes, mask),
  negated(b, bool) {
    const r = b.copy(bool);
    b.ins('neg', 4, r);
    return r;
  },
  lowest: (b, bits) => b.two('and:constant', 4, bits, 1),
  fromNumbers(b, bytes) {
    const zero = b.bits(0, 4);
    return ([v]) => b.op('vpsubd', bytes, zero, v!);
  },
  toNumbers: (b, bytes, mask) => b.op('vpsrld', bytes, mask, 31),
  some(ctx, mask, lanes, inverse) {
    const { b } = ctx;
    const bytes = partBytes(ctx, lanes, mask.width);
    const full = 2 ** (usedBytes(ctx, lanes, mask.width) / 4) - 1;
    return mask.parts
      .map((v) => {
        const bits = b.op('vmovmskps', bytes, v);
        const cut = b.two('and:constant', 4, bits, full);
        return inverse ? b.two('xor:constant', 4, cut, full) : cut;
      })
      .reduce((x, y) => b.two('or', 4, x, y));
  },
};
