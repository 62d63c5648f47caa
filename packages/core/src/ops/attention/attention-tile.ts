/**
 * Tiles of the scores of attention: some queries against some keys. What both forms of attention share: products, masks, dropout.
 *
 * Queries are [...lead, G, L, E] (G heads share a head of keys), keys and values [...lead, S, E]; scores are [...lead, G, L, S], or turned,
 * [...lead, S, G, L]. A mask has the axes of the scores, some of size 1.
 */
import { makeNode } from '../../graph/build.ts';
import type { Node } from '../../graph/node.ts';
import * as p from '../../graph/primitives.ts';
import type { RandomKey } from '../../tensor/random-key.ts';

/** What attention is to do, as numbers. */
export interface AttentionSettings {
  readonly scale: number;
  /** Keys before the first query, or null where all queries see all keys. */
  readonly causal: number | null;
  /** Numbers of a mask at or below this mask. */
  readonly bound: number;
  readonly dropout: { readonly rate: number; readonly key: RandomKey } | null;
}

/** The operands of attention. */
export interface AttentionOperands {
  readonly q: Node;
  readonly k: Node;
  readonly v: Node;
  /** bool, or numbers to add. */
  readonly mask: Node | null;
}

/** Queries from `row`, `rows` of them, against keys from `column`, `columns` of them; `turned`: keys first. */
export interface Tile {
  readonly row: number;
  readonly rows: number;
  readonly column: number;
  readonly columns: number;
  readonly turned: boolean;
}

/** Stands for minus infinity: no engine needs infinity, and differences of two stay numbers. */
const largeNegative = -1e30;

const range = (from: number, count: number): number[] => Array.from({ length: count }, (_, i) => from + i);

/** `count` elements of an axis; axes of size 1 stay. */
export function part(x: Node, axis: number, from: number, count: number): Node {
  if (x.shape[axis] === 1) return x;
  return p.slice(
    x,
    x.shape.map((_, i) => (i === axis ? from : 0)),
    x.shape.map((n, i) => (i === axis ? count : n)),
    x.shape.map(() => 1),
  );
}

/** [...lead, G, L, S] as [...lead, S, G, L], and the same for what broadcasts with it. */
export function turn(x: Node): Node {
  const rank = x.shape.length;
  return p.permute(x, [...range(0, rank - 3), rank - 1, rank - 3, rank - 2]);
}

/** Products of the last axes: [...lead, ...free of a, ...free of b], where the shorter operand's lead says what is lead. */
export function products(a: Node, b: Node): Node {
  const lead = range(0, Math.min(a.shape.length, b.shape.length) - 2);
  return makeNode('dotGeneral', [a, b], {
    lhsBatch: lead,
    rhsBatch: lead,
    lhsContract: [a.shape.length - 1],
    rhsContract: [b.shape.length - 1],
  });
}

/** Weights [...lead, G, L, S] times rows [...lead, S, n]: [...lead, G, L, n]. */
export function weighed(weights: Node, rows: Node): Node {
  const lead = range(0, rows.shape.length - 2);
  return makeNode('dotGeneral', [weights, rows], {
    lhsBatch: lead,
    rhsBatch: lead,
    lhsContract: [weights.shape.length - 1],
    rhsContract: [rows.shape.length - 2],
  });
}

/** Turned weights [...lead, S, G, L] times rows [...lead, G, L, n]: [...lead, S, n]. */
export function gathered(weights: Node, rows: Node): Node {
  const rank = rows.shape.length;
  const lead = range(0, rank - 3);
  return makeNode('dotGeneral', [weights, rows], {
    lhsBatch: lead,
    rhsBatch: lead,
    lhsContract: [rank - 2, rank - 1],
    rhsContract: [rank - 3, rank - 2],
  });
}

/** Where queries may look in a tile, and what is added to the scores; null: everywhere, nothing. */
export interface TileMask {
  readonly allowed: Node | null;
  readonly added: Node | null;
}

/** The mask of a tile, or 'nothing' if all of it is masked by position. */
export function maskOf(mask: Node | null, tile: Tile, { causal, bound }: AttentionSettings): TileMask | 'nothing' {
  let allowed: Node | null = null;
  let added: Node | null = null;
  const also = (node: Node): void => {
    const placed = tile.turned ? turn(node) : node;
    allowed = allowed === null ? placed : p.binary('and', allowed, placed);
  };
  if (causal !== null) {
    if (tile.column > tile.row + tile.rows - 1 + causal) return 'nothing';
    if (tile.column + tile.columns - 1 > tile.row + causal) {
      const query = p.add(p.iota(tile.rows), p.constant(tile.row + causal - tile.column, 'int32'));
      also(p.le(p.reshape(p.iota(tile.columns), [1, 1, tile.columns]), p.reshape(query, [1, tile.rows, 1])));
    }
  }
  if (mask !== null) {
    const rank = mask.shape.length;
    const own = part(part(mask, rank - 2, tile.row, tile.rows), rank - 1, tile.column, tile.columns);
    if (mask.dtype === 'bool') also(own);
    else {
      also(p.not(p.le(own, p.like(own, bound))));
      added = tile.turned ? turn(own) : own;
    }
  }
  return { allowed, added };
}

/** The scores with the mask: what is masked has a large negative number. */
export function maskedScores(scores: Node, { allowed, added }: TileMask): Node {
  const sum = added === null ? scores : p.add(scores, added);
  return allowed === null ? sum : p.where(allowed, sum, p.like(sum, largeNegative));
}

/** Zeros where the mask hides. */
export function onlyAllowed(x: Node, { allowed }: TileMask): Node {
  return allowed === null ? x : p.where(allowed, x, p.like(x, 0));
}

/** The weights with some of them dropped. `full` is the shape of the tile before it is turned. */
export function dropped(
  weights: Node,
  full: readonly number[],
  tile: Tile,
  dropout: { readonly rate: number; readonly key: RandomKey } | null,
): Node {
  if (dropout === null) return weights;
  const { rate, key } = dropout;
  const bits = makeNode('randomBits', [p.scalar(key[0], 'uint32'), p.scalar(key[1], 'uint32')], { shape: full });
  const limit = p.scalar(Math.min(2 ** 32 - 1, Math.round((1 - rate) * 2 ** 32)), 'uint32');
  const keep = p.lt(bits, limit);
  const scale = p.scalar(rate === 1 ? 0 : 1 / (1 - rate), weights.dtype);
  return p.where(tile.turned ? turn(keep) : keep, p.mul(weights, scale), p.like(weights, 0));
}

/** Reduced along the last axis, which stays. */
export function alongLast(x: Node, op: 'sum' | 'max'): Node {
  const last = x.shape.length - 1;
  return p.insertAxes(p.reduce(x, op, [last]), [last]);
}
