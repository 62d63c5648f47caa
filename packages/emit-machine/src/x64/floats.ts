/** Operations on floats of more than one instruction, the same for scalars and vectors. */
import type { KNode } from '@polygrad/core/kernel';
import type { Reg } from '../form/code.ts';
import { type Kind, widthOf } from '../target.ts';
import type { Context } from '../form/machine.ts';

/**
 * MAX or MIN: NaN if an operand is NaN, and -0 is below 0. The instructions return their second operand for NaN and for equal numbers.
 */
export function extremum(
  ctx: Context,
  op: 'MAX' | 'MIN',
  kind: Kind,
  operands: readonly Reg[],
  bytes: number,
  n: KNode | null,
): Reg {
  const { b, target } = ctx;
  const x = operands[0]!;
  const y = operands[1]!;
  const p = kind === 'f32' ? 'ps' : 'pd';
  const key = op === 'MAX' ? `vmax${p}` : `vmin${p}`;
  const at = n === null ? -1 : n.src[1]!.op === 'CONST' ? 1 : n.src[0]!.op === 'CONST' ? 0 : -1;
  if (n !== null && at >= 0) {
    const c = Number((n.src[at]!.arg as { readonly value: number | bigint }).value);
    if (!Number.isNaN(c) && !(op === 'MIN' && Object.is(c, -0))) {
      const [value, limit] = at === 1 ? [x, y] : [y, x];
      const r = b.op(key, bytes, limit, value);
      // -0 is what remains of max(-0, 0).
      return op === 'MAX' && Object.is(c, 0) ? b.op(`vadd${p}`, bytes, r, limit) : r;
    }
  }
  // Both orders differ if one operand is NaN, which one result then is, and for zeros. Then OR keeps a NaN and -0, and AND of the signs finds 0.
  const [m, w] = [b.op(key, bytes, x, y), b.op(key, bytes, y, x)];
  if (op === 'MIN') return b.op('vorps', bytes, m, w);
  const width = widthOf(kind);
  const sign = b.bits(1n << BigInt(width * 8 - 1), width);
  if (target.isa === 'x64-v4') {
    const d = b.copy(m, bytes);
    // AND of the others where the third operand has a bit set, OR elsewhere.
    b.ins('vpternlogd', bytes, d, w, sign, 0xd4);
    return d;
  }
  const digits = b.op('vandnps', bytes, sign, b.op('vorps', bytes, m, w));
  return b.op('vorps', bytes, digits, b.op('vandps', bytes, m, w));
}

/** x * y + z, rounded once. The result overwrites an operand without other uses, if there is one. */
export function multiplyAdd(
  ctx: Context,
  suffix: string,
  bytes: number,
  operands: readonly Reg[],
  n: KNode | null,
): Reg {
  const { b } = ctx;
  const x = operands[0]!;
  const y = operands[1]!;
  const z = operands[2]!;
  const single = (i: number): boolean => {
    const s = n?.src[i];
    return s !== undefined && s.op !== 'CONST' && ctx.uses(s) === 1;
  };
  const over = (to: Reg, key: string, p: Reg, q: Reg): Reg => {
    const d = b.copy(to, bytes);
    b.ins(`${key}${suffix}`, bytes, d, p, q);
    return d;
  };
  // A constant, or a value that stays elsewhere, may come from memory, as the last operand.
  if (z.mutable || (single(2) && !(single(0) && n?.src[2]?.op === 'CONST'))) {
    return x.home === null ? over(z, 'vfmadd231', x, y) : over(z, 'vfmadd231', y, x);
  }
  if (single(0)) return over(x, 'vfmadd213', y, z);
  if (single(1)) return over(y, 'vfmadd213', x, z);
  return x.home === null ? over(z, 'vfmadd231', x, y) : over(z, 'vfmadd231', y, x);
}

/** Replaces NaN by zero. */
export function withoutNaN(ctx: Context, kind: Kind, x: Reg, lanes: number): Reg {
  const { b, masks } = ctx;
  const width = widthOf(kind);
  const ordered = masks.compare(kind, 'ORD', [x], [x], lanes);
  return masks.select(ordered, [x], [b.bits(0, width)], lanes, width)[0]!;
}
