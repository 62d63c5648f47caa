/** Vectors of bool in arm64: the instructions on their lanes. */
import type { Reg } from '../form/code.ts';
import { usedBytes } from '../form/vector-parts.ts';
import type { LaneForms } from '../lower/lane-masks.ts';
import { isFloat, widthOf } from '../target.ts';

const keys = { AND: 'and:16b', OR: 'orr:16b', XOR: 'eor:16b', ANDNOT: 'bic:16b' } as const;

export const laneForms: LaneForms = {
  compare(b, kind, op) {
    const lanes = widthOf(kind) === 4 ? '4s' : '2d';
    const float = isFloat(kind);
    const equal = (x: Reg, y: Reg): Reg => b.op(`${float ? 'fcmeq' : 'cmeq'}:${lanes}`, 16, x, y);
    if (op === 'EQ' || op === 'NE') return { make: ([x, y]) => equal(x!, y!), inverse: op === 'NE' };
    if (op === 'ORD' || op === 'UNORD')
      return {
        make: ([x, y]) => (x === y ? equal(x!, x!) : b.op('and:16b', 16, equal(x!, x!), equal(y!, y!))),
        inverse: op === 'UNORD',
      };
    const [greater, least] = float ? ['fcmgt', 'fcmge'] : kind[0] === 'i' ? ['cmgt', 'cmge'] : ['cmhi', 'cmhs'];
    return { make: ([x, y]) => b.op(`${op === 'LT' ? greater : least}:${lanes}`, 16, y!, x!), inverse: false };
  },
  logic: (b, op, _bytes, x, y) => b.op(keys[op], 16, x, y),
  not:
    (b) =>
    ([x]) =>
      b.op('mvn:16b', 16, x!),
  select(b, _bytes, mask, yes, no) {
    const d = b.copy(mask, 16);
    b.ins('bsl:16b', 16, d, yes, no);
    return d;
  },
  widen: (b, _bytes, mask) => b.op('sxtl:2d', 16, mask),
  negated: (b, bool) => b.op('neg', 4, bool),
  lowest: (b, bits) => b.op('and:ones', 4, bits, 1),
  fromNumbers:
    (b) =>
    ([v]) =>
      b.op('neg:4s', 16, v!),
  toNumbers: (b, _bytes, mask) => b.op('ushr:4s', 16, mask, 31),
  some(ctx, mask, lanes, inverse) {
    const { b } = ctx;
    const all = mask.parts
      .map((v) => (inverse ? b.op('mvn:16b', 16, v) : v))
      .reduce((x, y) => b.op('orr:16b', 16, x, y));
    const most = usedBytes(ctx, lanes, mask.width) === 8 ? b.op('umaxp:2s', 16, all, all) : b.op('umaxv', 16, all);
    return b.op('fmov:ws', 4, most);
  },
};
