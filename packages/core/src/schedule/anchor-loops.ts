/**
 * The loops of a kernel that may become a contraction's: those of its result, whatever shape it has been given on the way.
 *
 * A kernel runs through the elements of what it stores. If that is a contraction's result in another shape - images as vectors, heads
 * side by side, channels last - its axes are made of pieces of the contraction's, and each piece gets a loop of its own. With one loop for all
 * of them the contraction would find its rows and columns by division, and no template takes that.
 */
import type { Shape } from '../shape/view.ts';
import type { Facts } from './cost.ts';
import { isPlanOp, type PlanNode } from './plan-graph.ts';

/** A piece of an axis of the contraction's result. */
interface Piece {
  readonly extent: number;
  /** Distance of its elements in the contraction's result. */
  readonly stride: number;
  /** Pieces of one kind next to each other may be one loop. */
  readonly kind: number;
}

/** For each axis of `node`, the extents of the loops it consists of, outermost first; nothing where it is not known. */
export function anchorLoops(facts: Facts, node: PlanNode): number[][] {
  const anchor = facts.origin[node.index];
  if (anchor == null) return [];
  const way: PlanNode[] = [];
  for (let at = node; at !== anchor; ) {
    const next = at.src.find((s) => s.size === at.size && (s === anchor || facts.origin[s.index] === anchor));
    if (next === undefined) return [];
    way.push(at);
    at = next;
  }
  let axes: Piece[][] | null = piecesOf(anchor);
  for (let before = anchor, at = way.pop(); at !== undefined; before = at, at = way.pop()) {
    const from: Piece[][] = axes;
    if (isPlanOp(at, 'permute')) axes = at.attr.axes.map((axis) => from[axis] as Piece[]);
    else if (at.op === 'reshape') axes = regrouped(from.flat(), at.shape);
    else if (at.shape.length !== before.shape.length || at.shape.some((n, axis) => n !== before.shape[axis]))
      axes = null;
    if (axes === null) return [];
  }
  return axes.map((pieces) => joined(pieces).map(({ extent }) => extent));
}

/** The axes of a contraction's result. The features of a convolution lie in groups; only what comes from one operand may be joined. */
function piecesOf(anchor: PlanNode): Piece[][] {
  const { shape } = anchor;
  let groups = 1;
  let kindOf = (axis: number): number => -1 - axis;
  if (isPlanOp(anchor, 'conv')) groups = anchor.attr.groups * anchor.attr.batchGroups;
  else if (isPlanOp(anchor, 'dotGeneral')) {
    const { lhsBatch, lhsContract } = anchor.attr;
    const left = (anchor.src[0] as PlanNode).shape.length - lhsContract.length;
    kindOf = (axis) => (axis < lhsBatch.length ? 0 : axis < left ? 1 : 2);
  }
  let stride = anchor.size;
  return shape.map((extent, axis): Piece[] => {
    if (extent <= 1) return [];
    stride /= extent;
    const kind = kindOf(axis);
    if (axis !== 1 || groups === 1) return [{ extent, stride, kind }];
    const inner = extent / groups;
    // Groups stay apart from what is in them.
    return [
      { extent: groups, stride: stride * inner, kind: -10 },
      { extent: inner, stride, kind },
    ];
  });
}

/** Pieces in a row as axes of another shape, cut where it has to be; null where it does not go. */
function regrouped(pieces: readonly Piece[], shape: Shape): Piece[][] | null {
  const left = [...pieces].reverse();
  const axes: Piece[][] = [];
  for (const extent of shape) {
    const axis: Piece[] = [];
    for (let missing = extent; missing > 1; ) {
      const piece = left.pop();
      if (piece === undefined) return null;
      if (missing % piece.extent === 0) {
        axis.push(piece);
        missing /= piece.extent;
      } else if (piece.extent % missing === 0) {
        const inner = piece.extent / missing;
        axis.push({ ...piece, extent: missing, stride: piece.stride * inner });
        left.push({ ...piece, extent: inner });
        missing = 1;
      } else return null;
    }
    axes.push(axis);
  }
  return axes;
}

/** Neighbours of one kind as one piece. */
function joined(pieces: readonly Piece[]): Piece[] {
  const found: Piece[] = [];
  for (const piece of pieces) {
    const last = found[found.length - 1];
    if (last === undefined || last.kind !== piece.kind || last.stride !== piece.extent * piece.stride)
      found.push(piece);
    else found[found.length - 1] = { ...piece, extent: last.extent * piece.extent };
  }
  return found;
}
