/** Broadcasting of shapes by NumPy's rule: trailing axes are aligned, axes of size 1 stretch. */
import { ShapeError, showShape } from './errors.ts';
import { say } from './shown.ts';
import { sameShape, type Shape } from './view.ts';

/**
 * Shape that both operands stretch to. Returns one of the arguments where it already is the result.
 * Throws ShapeError in the name of `op`.
 */
export function broadcastShapes(op: string, a: Shape, b: Shape): Shape {
  if (a === b || b.length === 0) return a;
  if (a.length === 0) return b;
  if (sameShape(a, b)) return a;
  const rank = Math.max(a.length, b.length);
  const shape = new Array<number>(rank);
  for (let i = 1; i <= rank; i++) {
    const m = i <= a.length ? a[a.length - i]! : 1;
    const n = i <= b.length ? b[b.length - i]! : 1;
    if (m !== n && m !== 1 && n !== 1) {
      throw new ShapeError(
        op,
        say`shapes do not broadcast: ${showShape(a)} and ${showShape(b)} differ at axis -${i} (${m} and ${n}); ` +
          'sizes must be equal or 1, counted from the last axis',
        [a, b],
      );
    }
    shape[rank - i] = m === 1 ? n : m;
  }
  return shape;
}

/** True if `from` stretches to `to` without changing `to`. */
export function broadcastsTo(from: Shape, to: Shape): boolean {
  if (from.length > to.length) return false;
  for (let i = 1; i <= from.length; i++) {
    const n = from[from.length - i];
    if (n !== 1 && n !== to[to.length - i]) return false;
  }
  return true;
}
