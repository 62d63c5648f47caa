/**
 * Attention without its score matrix: block by block, forward with a running maximum and sum, backward by computing blocks again.
 *
 * Source: Dao et al., "FlashAttention: fast and memory-efficient exact attention with IO-awareness" (2022). The result is kept with the logarithm
 * of each row's sum, from which the backward pass gets the weights of a block at once. That pass goes through the blocks twice: by rows for the
 * gradient of the queries, by columns for those of keys and values. So each block is used up where it is made, and no partial gradient
 * waits for another. The three passes differ in which operand has the scale and comes first. Otherwise the planner would find equal blocks,
 * compute them once and keep them in memory.
 */
import * as p from '../../graph/primitives.ts';
import { customGradient } from '../../autodiff/custom-gradient.ts';
import { makeNode } from '../../graph/primitives.ts';
import type { Node } from '../../graph/node.ts';
import { compose } from '../../graph/scope.ts';
import { sizeOf, whole } from '@polygrad/compiler/shape/view';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { type RandomKey, splitKey, wordsOf } from '../../tensor/random-key.ts';
import type { Tensor } from '../../tensor/types.ts';

// Tiles of the scores of attention: some queries against some keys. What both forms of attention share: products, masks, dropout.
//
// Queries are [...lead, G, L, E] (G heads share a head of keys), keys and values [...lead, S, E]. Scores are [...lead, G, L, S], or with keys
// first [...lead, S, G, L]. A mask has the axes of the scores, some of size 1.

/** What attention is to do, as numbers. */
export interface AttentionSettings {
  readonly scale: number;
  /** Keys before the first query, or null where all queries see all keys. */
  readonly causal: number | null;
  /** A number in the mask at or below this hides the key. */
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

/** Queries from `row`, `rows` of them, against keys from `column`, `columns` of them. */
export interface Tile {
  readonly row: number;
  readonly rows: number;
  readonly column: number;
  readonly columns: number;
  /** The scores are [...lead, S, G, L]. */
  readonly keysFirst: boolean;
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
function toKeysFirst(x: Node): Node {
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

/** Weights, keys first, [...lead, S, G, L] times rows [...lead, G, L, n]: [...lead, S, n]. */
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
    const placed = tile.keysFirst ? toKeysFirst(node) : node;
    allowed = allowed === null ? placed : p.binary('and', allowed, placed);
  };
  if (causal !== null) {
    if (tile.column > tile.row + tile.rows - 1 + causal) return 'nothing';
    if (tile.column + tile.columns - 1 > tile.row + causal) {
      const first = tile.row + causal - tile.column;
      // An offset other than 0 is a scalar bound at each run. So the next token of a text has the plan of this one.
      const query = p.add(p.iota(tile.rows), causal === 0 ? p.constant(first, 'int32') : p.scalar(first, 'int32'));
      also(p.le(p.reshape(p.iota(tile.columns), [1, 1, tile.columns]), p.reshape(query, [1, tile.rows, 1])));
    }
  }
  if (mask !== null) {
    const rank = mask.shape.length;
    const own = part(part(mask, rank - 2, tile.row, tile.rows), rank - 1, tile.column, tile.columns);
    if (mask.dtype === 'bool') also(own);
    else {
      also(p.not(p.le(own, p.like(own, bound))));
      added = tile.keysFirst ? toKeysFirst(own) : own;
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

/** The weights with some of them dropped. `full` is the shape of the tile with queries first. */
export function dropped(
  weights: Node,
  full: readonly number[],
  tile: Tile,
  dropout: { readonly rate: number; readonly key: RandomKey } | null,
): Node {
  if (dropout === null) return weights;
  const { rate, key } = dropout;
  const bits = makeNode('randomBits', wordsOf(key), { shape: full });
  const limit = p.scalar(Math.min(2 ** 32 - 1, Math.round((1 - rate) * 2 ** 32)), 'uint32');
  const keep = p.lt(bits, limit);
  const scale = p.scalar(rate === 1 ? 0 : 1 / (1 - rate), weights.dtype);
  return p.where(tile.keysFirst ? toKeysFirst(keep) : keep, p.mul(weights, scale), p.like(weights, 0));
}

/** Reduced along the last axis, which stays. */
export function alongLast(x: Node, op: 'sum' | 'max'): Node {
  const last = x.shape.length - 1;
  return p.insertAxes(p.reduce(x, op, [last]), [last]);
}

/** Elements of a block of scores, unless that makes too many blocks. */
const blockElements = 1 << 20;
/** Most blocks: every one is some ten nodes of the graph. */
const mostBlocks = 64;

/** Queries and keys per block for `heads` score matrices of rows x columns. */
export function blockSizes(heads: number, rows: number, columns: number): readonly [number, number] {
  const area = Math.max(blockElements, (heads * rows * columns) / mostBlocks) / heads;
  const power = (n: number): number => 2 ** Math.max(4, Math.round(Math.log2(n)));
  const height = Math.min(rows, power(Math.sqrt(area)));
  const width = Math.min(columns, power(area / height));
  return [whole(Math.min(rows, power(area / width))), whole(width)];
}

export interface Blocks extends AttentionSettings {
  readonly size: readonly [number, number];
}

/** Attention of operands in the axes of tiles: [...lead, G, L, V]. */
export function blockwise(operands: AttentionOperands, settings: Blocks): Node {
  const { q, k, v, mask } = operands;
  const run = customGradient(
    (...inputs) => inOp(() => forward(nodesOf(inputs), settings)),
    (gradient, { inputs, output }) => backward(nodesOf(inputs), nodeOf(output), nodeOf(gradient), settings),
  );
  const packed = nodeOf(run(...[q, k, v, ...(mask === null ? [] : [mask])].map(wrap)));
  return part(packed, packed.shape.length - 1, 0, v.shape[v.shape.length - 1]!);
}

function nodesOf(inputs: readonly Tensor[]): AttentionOperands {
  const [q, k, v, mask] = inputs.map((t) => nodeOf(t)) as [Node, Node, Node, Node | undefined];
  return { q, k, v, mask: mask ?? null };
}

const inOp = (body: () => Node): Tensor => compose('scaledDotProductAttention', () => wrap(body()));

/** Ranges [from, count] of `size` that cover 0 .. n-1. */
function ranges(n: number, size: number): [number, number][] {
  return Array.from({ length: Math.ceil(n / size) }, (_, i) => [i * size, Math.min(size, n - i * size)]);
}

/** What the passes over the blocks share. */
class Pass {
  readonly operands: AttentionOperands;
  readonly settings: Blocks;
  readonly rank: number;
  readonly rows: [number, number][];
  readonly columns: [number, number][];
  readonly scale: Node;
  readonly keysFirst: boolean;
  /** A key of random numbers for each block. */
  readonly #keys: readonly RandomKey[];

  constructor(operands: AttentionOperands, settings: Blocks, keysFirst: boolean) {
    const { q, k } = operands;
    this.operands = operands;
    this.settings = settings;
    this.keysFirst = keysFirst;
    this.rank = q.shape.length;
    this.rows = ranges(q.shape[this.rank - 2]!, settings.size[0]);
    this.columns = ranges(k.shape[this.rank - 3]!, settings.size[1]);
    // Bound at each run, so that a scale of 1 leaves products in their places too.
    this.scale = p.scalar(settings.scale, q.dtype);
    const { dropout } = settings;
    this.#keys = dropout === null ? [] : splitKey(dropout.key, this.rows.length * this.columns.length);
  }

  /** The tile of a block, its mask and its dropout; null if nothing in it takes part. */
  tile(r: number, c: number): { tile: Tile; mask: TileMask; drop: (weights: Node) => Node } | null {
    const [row, rows] = this.rows[r]!;
    const [column, columns] = this.columns[c]!;
    const tile: Tile = { row, rows, column, columns, keysFirst: this.keysFirst };
    const mask = maskOf(this.operands.mask, tile, this.settings);
    if (mask === 'nothing') return null;
    const full = [...this.operands.q.shape.slice(0, -2), rows, columns];
    const { dropout } = this.settings;
    const own = dropout && { rate: dropout.rate, key: this.#keys[r * this.columns.length + c]! };
    return { tile, mask, drop: (weights) => dropped(weights, full, tile, own) };
  }

  /** Queries, or what has their axes, of a block. */
  ofRows(x: Node, r: number): Node {
    return part(x, this.rank - 2, ...this.rows[r]!);
  }

  /** Keys or values of a block. */
  ofColumns(x: Node, c: number): Node {
    return part(x, this.rank - 3, ...this.columns[c]!);
  }
}

/** [...lead, G, L, V + 1]: the result, and behind it the logarithm of the sum of each row's exponentials (0 for a row of nothing). */
function forward(operands: AttentionOperands, settings: Blocks): Node {
  const { q, k, v } = operands;
  const pass = new Pass(operands, settings, false);
  const scaled = p.mul(q, pass.scale);
  const across = pass.rank - 2;
  // A column of ones behind the values: their product with the weights ends in the weights' sum, as long as no weight is dropped. So
  // nothing but that product reads a block of weights, and the block is used up at once.
  const withOnes = p.concat([v, p.constant(1, v.dtype, [...v.shape.slice(0, -1), 1])], across);
  const parts = pass.rows.map((_, r) => {
    const queries = pass.ofRows(scaled, r);
    let sofar: { top: Node; sums: Node } | null = null;
    pass.columns.forEach((__, c) => {
      const block = pass.tile(r, c);
      if (block === null) return;
      const scores = maskedScores(products(queries, pass.ofColumns(k, c)), block.mask);
      const highest = alongLast(scores, 'max');
      const top: Node = sofar === null ? highest : p.binary('maximum', sofar.top, highest);
      const weights = onlyAllowed(p.unary('exp', p.sub(scores, top)), block.mask);
      const sums =
        settings.dropout === null
          ? weighed(weights, pass.ofColumns(withOnes, c))
          : p.concat([weighed(block.drop(weights), pass.ofColumns(v, c)), alongLast(weights, 'sum')], pass.rank - 1);
      sofar =
        sofar === null
          ? { top, sums }
          : { top, sums: p.add(p.mul(sofar.sums, p.unary('exp', p.sub(sofar.top, top))), sums) };
    });
    return packed(sofar as { top: Node; sums: Node } | null, queries, v);
  });
  return joinedRows(parts, across);
}

function packed(sofar: { top: Node; sums: Node } | null, queries: Node, v: Node): Node {
  const last = queries.shape.length - 1;
  const width = v.shape[v.shape.length - 1]!;
  if (sofar === null) return p.constant(0, queries.dtype, [...queries.shape.slice(0, -1), width + 1]);
  const sum = part(sofar.sums, last, width, 1);
  const none = p.eq(sum, p.like(sum, 0));
  const total = p.where(none, p.like(sum, 1), sum);
  const logarithm = p.where(none, p.like(total, 0), p.add(sofar.top, p.unary('log', total)));
  return p.concat([p.div(part(sofar.sums, last, 0, width), total), logarithm], last);
}

function backward(operands: AttentionOperands, output: Node, gradient: Node, settings: Blocks): (Tensor | null)[] {
  const { q, v, mask } = operands;
  const last = output.shape.length - 1;
  const width = v.shape[v.shape.length - 1]!;
  const logarithm = part(output, last, width, 1);
  const flow = part(gradient, last, 0, width);
  // How much of a weight's gradient is taken back by the division: the row's mean of it.
  const back = p.sub(alongLast(p.mul(flow, part(output, last, 0, width)), 'sum'), part(gradient, last, width, 1));
  const rows = byRows(operands, settings, { logarithm, flow, back });
  const columns = byColumns(operands, settings, { logarithm, flow, back });
  const across = columns.shape.length - 1;
  const depth = q.shape[last]!;
  const results = [rows.q, part(columns, across, 0, depth), part(columns, across, depth, width)];
  return [...results.map(wrap), ...(mask === null ? [] : [rows.mask && wrap(rows.mask)])];
}

interface Flow {
  readonly logarithm: Node;
  readonly flow: Node;
  readonly back: Node;
}

/** Gradients of queries and of a mask of numbers. */
function byRows(operands: AttentionOperands, settings: Blocks, f: Flow): { q: Node; mask: Node | null } {
  const pass = new Pass(operands, settings, false);
  const keys = p.mul(operands.k, pass.scale);
  const { mask } = operands;
  const added = mask !== null && mask.dtype !== 'bool' ? mask : null;
  const maskRows: Node[] = [];
  const parts = pass.rows.map((_, r) => {
    const queries = pass.ofRows(operands.q, r);
    const flow = pass.ofRows(f.flow, r);
    const masks: Node[] = [];
    let sum: Node | null = null;
    pass.columns.forEach(([column, columns], c) => {
      const own = added && part(pass.ofRows(added, r), pass.rank - 1, column, columns);
      const block = pass.tile(r, c);
      if (block === null) {
        if (own !== null) masks.push(p.zerosLike(own));
        return;
      }
      const scores = maskedScores(products(queries, pass.ofColumns(keys, c)), block.mask);
      const weights = onlyAllowed(p.unary('exp', p.sub(scores, pass.ofRows(f.logarithm, r))), block.mask);
      const byWeights = block.drop(products(flow, pass.ofColumns(operands.v, c)));
      const byScores = p.mul(weights, p.sub(byWeights, pass.ofRows(f.back, r)));
      const term = weighed(byScores, pass.ofColumns(keys, c));
      sum = sum === null ? term : p.add(sum, term);
      if (own !== null) masks.push(p.sumTo(byScores, own.shape));
    });
    if (added !== null) maskRows.push(joined(masks, pass.rank - 1, added.shape));
    return sum ?? p.zerosLike(queries);
  });
  return {
    q: joinedRows(parts, pass.rank - 2),
    mask: added === null ? null : joined(maskRows, pass.rank - 2, added.shape),
  };
}

/** Parts side by side, each stored by kernels of its own. In one kernel with the join, all terms of all parts would be in memory together. */
function joinedRows(parts: readonly Node[], axis: number): Node {
  return p.concat(parts.map(p.contiguous), axis);
}

/** Parts side by side, or added up where the whole has size 1. */
function joined(parts: readonly Node[], axis: number, whole: readonly number[]): Node {
  return whole[axis] === 1 ? parts.reduce(p.add) : p.concat(parts, axis);
}

/** Gradients of keys and values side by side, [...lead, S, E + V], so that one walk through the blocks makes both. */
function byColumns(operands: AttentionOperands, settings: Blocks, f: Flow): Node {
  const pass = new Pass(operands, settings, true);
  const scaled = p.mul(operands.q, pass.scale);
  const parts = pass.columns.map((_, c) => {
    const keys = pass.ofColumns(operands.k, c);
    const values = pass.ofColumns(operands.v, c);
    let sum: Node | null = null;
    pass.rows.forEach((__, r) => {
      const block = pass.tile(r, c);
      if (block === null) return;
      const queries = pass.ofRows(scaled, r);
      const flow = pass.ofRows(f.flow, r);
      const scores = maskedScores(products(keys, queries), block.mask);
      const weights = onlyAllowed(p.unary('exp', p.sub(scores, toKeysFirst(pass.ofRows(f.logarithm, r)))), block.mask);
      const byWeights = block.drop(products(values, flow));
      const byScores = p.mul(weights, p.sub(byWeights, toKeysFirst(pass.ofRows(f.back, r))));
      const both = p.concat([gathered(byScores, queries), gathered(block.drop(weights), flow)], pass.rank - 2);
      sum = sum === null ? both : p.add(sum, both);
    });
    return sum ?? p.concat([p.zerosLike(keys), p.zerosLike(values)], pass.rank - 2);
  });
  return joinedRows(parts, pass.rank - 3);
}

/** Heads of operands: how many score matrices there are. */
export function headsOf({ q }: AttentionOperands): number {
  return sizeOf(q.shape.slice(0, -2));
}
