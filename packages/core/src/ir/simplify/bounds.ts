/**
 * Bounds of integer and bool expressions, from the bounds of their operands.
 *
 * Called once per node. Anything that might wrap, and anything not listed, has the bounds of its dtype.
 */
import type { KNode } from '../ir.ts';
import type { Known, NodeObject } from '../node.ts';
import { dtypeRange } from './fold.ts';

type Interval = readonly [number, number];

/** Sets `lo` and `hi` of a new node. Floats keep infinite bounds. */
export function setBounds(n: NodeObject): void {
  const { dtype } = n;
  // Most nodes are floats or int32.
  if (dtype === 'float32' || dtype === 'void' || dtype.includes('float')) return;
  const full = dtypeRange[dtype];
  const found = dtype !== 'int32' && dtype.endsWith('64') ? null : boundsOf(n as unknown as KNode);
  const fits = found !== null && found[0] >= full[0] && found[1] <= full[1];
  n.lo = fits ? found[0] : full[0];
  n.hi = fits ? found[1] : full[1];
}

function boundsOf(n: KNode): Interval | null {
  const { src } = n;
  const a = src[0] as unknown as NodeObject;
  const b = src[1] as unknown as NodeObject;
  switch (n.op) {
    case 'CONST':
      return [n.arg.value as number, n.arg.value as number];
    case 'RANGE':
      return [0, Math.max(0, n.arg.extent - 1)];
    case 'LOOP':
      return [0, Math.max(0, a.hi - 1)];
    case 'IOTA':
      return [0, n.lanes - 1];
    case 'SPECIAL':
      return [0, 2147483647];
    case 'LANE':
      return [a.lo, a.hi];
    case 'VEC': {
      let { lo, hi } = a;
      for (let i = 1; i < src.length; i++) {
        const s = src[i] as Known;
        lo = Math.min(lo, s.lo);
        hi = Math.max(hi, s.hi);
      }
      return [lo, hi];
    }
    case 'CAST':
      return a.dtype === 'bool' || (a.dtype !== 'void' && !a.dtype.includes('float')) ? [a.lo, a.hi] : null;
    case 'NEG':
      return [-a.hi, -a.lo];
    case 'ABS':
      return a.lo >= 0 ? [a.lo, a.hi] : [0, Math.max(a.hi, -a.lo)];
    case 'NOT':
      return n.dtype === 'bool' ? [1 - a.hi, 1 - a.lo] : null;
    case 'ADD':
      return [a.lo + b.lo, a.hi + b.hi];
    case 'SUB':
      return [a.lo - b.hi, a.hi - b.lo];
    case 'MUL': {
      const p = a.lo * b.lo;
      const q = a.lo * b.hi;
      const r = a.hi * b.lo;
      const s = a.hi * b.hi;
      return [Math.min(p, q, r, s), Math.max(p, q, r, s)];
    }
    case 'IDIV': {
      if (b.lo > 0) {
        return [Math.trunc(a.lo / (a.lo < 0 ? b.lo : b.hi)), Math.trunc(a.hi / (a.hi < 0 ? b.hi : b.lo))];
      }
      return a.lo >= 0 && b.lo >= 0 ? [0, a.hi] : null;
    }
    case 'IREM': {
      if (a.lo >= 0) return [0, b.lo > 0 ? Math.min(a.hi, b.hi - 1) : a.hi];
      if (b.lo <= 0) return null;
      return [Math.max(a.lo, 1 - b.hi), Math.max(0, Math.min(a.hi, b.hi - 1))];
    }
    case 'MAX':
      return [Math.max(a.lo, b.lo), Math.max(a.hi, b.hi)];
    case 'MIN':
      return [Math.min(a.lo, b.lo), Math.min(a.hi, b.hi)];
    case 'AND':
      if (n.dtype === 'bool') return [Math.min(a.lo, b.lo), Math.min(a.hi, b.hi)];
      if (a.lo >= 0 && b.lo >= 0) return [0, Math.min(a.hi, b.hi)];
      return a.lo >= 0 ? [0, a.hi] : b.lo >= 0 ? [0, b.hi] : null;
    case 'OR':
      return n.dtype === 'bool' ? [Math.max(a.lo, b.lo), Math.max(a.hi, b.hi)] : null;
    case 'SHR':
      return a.lo >= 0 && b.lo === b.hi ? [Math.floor(a.lo / 2 ** b.lo), Math.floor(a.hi / 2 ** b.lo)] : null;
    case 'SHL':
      return b.lo === b.hi && b.lo >= 0 && b.lo < 31 ? [a.lo * 2 ** b.lo, a.hi * 2 ** b.lo] : null;
    case 'WHERE': {
      const c = n.src[2] as Known;
      return [Math.min(b.lo, c.lo), Math.max(b.hi, c.hi)];
    }
    case 'REDUCE':
      switch (n.arg.op) {
        case 'max':
        case 'min':
          return [a.lo, a.hi];
        case 'argmax':
        case 'argmin':
          return [0, Math.max(0, rangesSize(n.src) - 1)];
        default:
          return null;
      }
    default:
      return null;
  }
}

function rangesSize(src: readonly KNode[]): number {
  let size = 1;
  for (let i = 1; i < src.length; i++) {
    const r = src[i]!;
    if (r.op === 'RANGE') size *= r.arg.extent;
  }
  return size;
}
