/**
 * Where gradients are 0 because `where` did not take a branch. There an infinite slope would make them NaN: 0 times infinity. So the rules of elementwise
 * operations see the gradient without its masks, and the masks go around what they give.
 *
 * Masks are found through elementwise operations, sums of gradients, movements, and sums over axes along which the mask is the same. Products of matrices,
 * convolutions and picks by index mix elements: behind them a 0 is a number like others.
 */
import * as p from '../graph/primitives.ts';
import { isOp, type Node } from '../graph/node.ts';

/** A condition outside of which a gradient is 0. */
interface Mask {
  readonly condition: Node;
  /** The 0, which keeps the shape the mask gave. */
  readonly zero: Node;
  /** Whether the gradient is where the condition is true. */
  readonly first: boolean;
}

/** Most nested masks of `where` that are moved around a rule. */
const mostMasks = 2;
/** What is 0 where its operands are, and whose shape tells how the operands lie in it. */
const seenThrough: ReadonlySet<string> = new Set('add neg cast expand reshape permute reduce'.split(' '));
/** Most operations that are looked through for a mask. */
const mostSteps = 64;

/** True if the node is a constant 0. */
function isZero(node: Node): boolean {
  return isOp(node, 'constant') && node.attr.value === 0;
}

/** Operations whose slopes are infinite only where an operand is: for their sake no mask is looked for behind movements, which would cost kernels a read. */
const flat: ReadonlySet<string> = new Set('mul sub neg cast where abs maximum minimum exp'.split(' '));

/** The gradient that a rule of `op` is to see, without its masks, and those. */
export function unmasked(op: string, gradient: Node): { readonly inner: Node; readonly masks: readonly Mask[] } {
  const masks: Mask[] = [];
  let inner = gradient;
  while (masks.length < mostMasks && isOp(inner, 'where') && inner.src.length === 3) {
    const [condition, a, b] = inner.src as [Node, Node, Node];
    if (isZero(b)) masks.push({ condition, zero: b, first: true });
    else if (isZero(a)) masks.push({ condition, zero: a, first: false });
    else break;
    inner = masks[masks.length - 1]?.first ? a : b;
  }
  if (masks.length === 0 && (isOp(inner, 'add') || !flat.has(op))) {
    // A mask further inside stays where it is: only what the rule makes of its zeros is masked again.
    const condition = supportOf(inner, { left: mostSteps });
    if (condition !== null) masks.push({ condition, zero: p.constant(0, inner.dtype), first: true });
  }
  return { inner, masks };
}

/** Puts masks around what a rule gave, in their order. */
export function masked(result: Node, masks: readonly Mask[]): Node {
  let around = result;
  for (let i = masks.length - 1; i >= 0; i--) {
    const { condition, zero, first } = masks[i]!;
    // The dtype of the zero follows a cast.
    const none = zero.dtype === around.dtype ? zero : p.constant(0, around.dtype, zero.shape);
    around = first ? p.where(condition, around, none) : p.where(condition, none, around);
  }
  return around;
}

/** A condition, of a shape that broadcasts to that of the node, outside of which the node is 0; null if none is found in the steps that are left. */
function supportOf(node: Node, steps: { left: number }): Node | null {
  const [x, y, z] = node.src;
  if (x === undefined || --steps.left < 0) return null;
  if (isOp(node, 'where')) {
    const first = isZero(z!);
    if (!first && !isZero(y!)) return null;
    const outer = first ? x : p.not(x);
    // The outer condition alone may hold everywhere, as that of a sum over both branches does.
    const inner = supportOf(first ? y! : z!, steps);
    return inner === null || inner === outer ? outer : p.binary('and', outer, inner);
  }
  if (!seenThrough.has(node.op)) return null;
  const inside = supportOf(x, steps);
  if (inside === null) return null;
  if (isOp(node, 'add')) {
    const other = supportOf(y!, steps);
    return other === null || other === inside ? other : p.binary('or', inside, other);
  }
  if (isOp(node, 'reshape')) return p.reshape(p.broadcastTo(inside, x.shape), node.shape);
  if (isOp(node, 'permute')) return p.permute(p.broadcastTo(inside, x.shape), node.attr.axes);
  if (!isOp(node, 'reduce')) return inside;
  // Of a sum over axes along which the condition is the same.
  const sizes = x.shape.map((_, i) => inside.shape[i - x.shape.length + inside.shape.length] ?? 1);
  const left = sizes.filter((size, i) => size !== 1 || !node.attr.axes.includes(i));
  return node.attr.op === 'sum' && left.length === node.shape.length ? p.reshape(inside, left) : null;
}
