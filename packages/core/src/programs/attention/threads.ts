/**
 * Attention by groups of threads, with tiles in group memory: forward, gradient of the queries, gradients of keys and values.
 *
 * A group has a block of rows of one head and goes through blocks of columns. What it keeps of its rows is in registers of its threads:
 * the values being summed, and forward the running maximum and sum of the exponentials (Dao et al., "FlashAttention", 2022; backward by
 * columns and by rows as in FlashAttention-2, 2023). Scores exist for one block at a time, where they are made.
 *
 * Threads stand in `down` lines of `across`. A thread has rows `down` apart and columns `across` apart, so that neighbours read neighbouring
 * lines of a tile. Lines are 16 bytes longer than what they hold, so that those lie in different banks.
 */
import type { CodegenCaps } from '../../codegen/lowering.ts';
import { enoughGroups } from '../../codegen/costs/gpu.ts';
import {
  attentionBytes,
  attentionEmulated,
  attentionRows,
  attentionTiles,
  attentionWords,
  type ThreadTile,
} from '../../codegen/costs/attention.ts';
import type { KNode } from '../../ir/ir.ts';
import type { ProgramSet, ProgramWriter } from '../program-set.ts';
import {
  type AttentionSpec,
  type GradientSpec,
  lowest,
  type Matrix,
  Operands,
  placeOf,
  wideBytes,
} from './operands.ts';

/** Elements of a vector that is read from a tile. */
const lanes = 4;

const up = (n: number, unit: number): number => Math.ceil(n / unit) * unit;

/** Elements of a line of a tile that holds so many. */
const lineOf = (n: number): number => up(n, lanes) + lanes;

/** Elements of a line of values that all threads across have whole vectors of. */
const spread = (n: number, { across }: ThreadTile): number => up(n, lanes * across);

/** Tiles of a program in group memory. */
interface Room {
  /** Of rows and of columns, each as wide as the wider of its operands, and of weights. */
  readonly rows: number;
  readonly columns: number;
  readonly weights: number;
}

const forwardRoom: Room = { rows: 1, columns: 1, weights: 1 };
const queriesRoom: Room = { rows: 2, columns: 2, weights: 1 };
const keysRoom: Room = { rows: 2, columns: 2, weights: 2 };

/** Group memory of a program, in elements. */
function elementsOf(tile: ThreadTile, spec: AttentionSpec, room: Room): number {
  const { across, down, rows, columns } = tile;
  const line = Math.max(lineOf(spread(spec.depth, tile)), lineOf(spread(spec.width, tile)));
  const [high, wide] = [down * rows, across * columns];
  return (room.rows * high + room.columns * wide) * line + room.weights * high * lineOf(wide) + high * across;
}

/** Registers of a thread for its rows of results of these widths. */
function wordsOf(tile: ThreadTile, spec: AttentionSpec, widths: readonly number[]): number {
  const elements = widths.reduce((sum, width) => sum + spread(width, tile) / tile.across, 0);
  return (elements * tile.rows * wideBytes(spec)) / 4;
}

/** The tile for `count` rows of each of `heads` heads, with tiles in group memory and results of these widths in registers. */
function tileFor(
  caps: CodegenCaps,
  spec: AttentionSpec,
  heads: number,
  count: number,
  room: Room,
  widths: readonly number[],
): ThreadTile {
  const fits = attentionTiles.filter(
    (tile) =>
      tile.across * tile.down <= caps.maxGroup &&
      (caps.sharedIsMemory !== true || tile.across * tile.down <= attentionEmulated) &&
      wordsOf(tile, spec, widths) <= attentionWords &&
      elementsOf(tile, spec, room) * wideBytes(spec) <= Math.min(caps.sharedBytes, attentionBytes),
  );
  const heightOf = ({ down, rows }: ThreadTile): number => down * rows;
  const many = fits.find(
    (tile) => heightOf(tile) < 2 * count && heads * Math.ceil(count / heightOf(tile)) >= enoughGroups,
  );
  // Few groups: as many rows as there are, or so many that there are more groups.
  const few =
    count < attentionRows
      ? fits.findLast((tile) => heightOf(tile) >= count)
      : fits.find((tile) => heightOf(tile) <= attentionRows);
  return many ?? few ?? fits.at(-1) ?? attentionTiles.at(-1)!;
}

/** A tile in group memory. */
interface Tile {
  readonly cells: KNode;
  readonly line: number;
}

/** What the programs share: tiles, products of them, and who has what. */
class Group {
  readonly o: Operands;
  readonly w: ProgramWriter;
  readonly tile: ThreadTile;
  readonly tx: KNode;
  readonly ty: KNode;

  constructor(w: ProgramWriter, o: Operands, tile: ThreadTile) {
    this.w = w;
    this.o = o;
    this.tile = tile;
    this.tx = w.e.irem(w.thread, tile.across);
    this.ty = w.e.idiv(w.thread, tile.across);
  }

  /** Rows of the block. */
  get height(): number {
    return this.tile.down * this.tile.rows;
  }

  /** Columns of a block. */
  get breadth(): number {
    return this.tile.across * this.tile.columns;
  }

  each<T>(count: number, make: (i: number) => T): T[] {
    return Array.from({ length: count }, (_, i) => make(i));
  }

  row(i: number): KNode {
    return this.w.e.add(this.ty, this.tile.down * i);
  }

  column(j: number): KNode {
    return this.w.e.add(this.tx, this.tile.across * j);
  }

  shared(name: string, rows: number, width: number): Tile {
    const line = lineOf(width);
    return { cells: this.w.b.shared(name, this.o.wide, rows * line), line };
  }

  /** Copies `rows` rows of a matrix from `first` on to a tile: zeros for rows from `end` on, and behind the matrix's `width` up to `padded`. */
  fill(to: Tile, from: Matrix, rows: number, first: KNode, end: number, width: number, padded: number): void {
    const { b, e, thread, threads } = this.w;
    const vectors = padded / lanes;
    const count = rows * vectors;
    b.loop(Math.ceil(count / threads), (turn) => {
      const at = e.add(e.mul(turn, threads), thread);
      b.ifThen(count % threads === 0 ? e.bool(true) : e.lt(at, count), () => {
        const [row, start] = [e.idiv(at, vectors), e.mul(e.irem(at, vectors), lanes)];
        const source = e.add(first, row);
        const inside = e.lt(source, end);
        const whole = from.column === 1 && width % lanes === 0;
        const read = (column: KNode, n: number): KNode => {
          const gate = b.place(e.and(inside, e.lt(column, width)));
          return this.o.read(from.memory, placeOf(e, from, source, column), n, gate);
        };
        const value = whole ? read(start, lanes) : e.vec(this.each(lanes, (i) => read(e.add(start, i), 1)));
        b.store(to.cells, e.add(e.mul(row, to.line), start), value);
      });
    });
  }

  /** Products of the thread's rows of one tile with its columns, which are rows of another, along `length` elements. */
  products(name: string, left: Tile, right: Tile, length: number): KNode[][] {
    const { b, e } = this.w;
    const { rows, columns } = this.tile;
    const sums = b.reg(name, this.o.wide, 1, rows * columns);
    for (let i = 0; i < rows * columns; i++) b.store(sums, i, this.o.number(0));
    b.loop(up(length, lanes) / lanes, (step) => {
      const at = e.mul(step, lanes);
      const x = this.each(rows, (i) => b.load(left.cells, e.add(e.mul(this.row(i), left.line), at), lanes));
      const y = this.each(columns, (j) => b.load(right.cells, e.add(e.mul(this.column(j), right.line), at), lanes));
      for (let i = 0; i < rows; i++)
        for (let j = 0; j < columns; j++) {
          let sum = b.load(sums, i * columns + j);
          for (let l = 0; l < lanes; l++) sum = this.o.product(e.lane(x[i]!, l), e.lane(y[j]!, l), sum);
          b.store(sums, i * columns + j, sum);
        }
    });
    return this.each(rows, (i) => this.each(columns, (j) => b.load(sums, i * columns + j)));
  }

  /** Registers for the thread's rows of results of `width`: vectors `across` apart. */
  results(name: string, width: number): KNode {
    const { b, e } = this.w;
    const count = this.tile.rows * this.#vectors(width);
    const registers = b.reg(name, this.o.wide, lanes, count);
    for (let i = 0; i < count; i++) b.store(registers, i, e.splat(this.o.number(0), lanes));
    return registers;
  }

  #vectors(width: number): number {
    return spread(width, this.tile) / lanes / this.tile.across;
  }

  /** Adds the thread's rows of the weights times the rows of a tile. */
  accumulate(results: KNode, weights: Tile, values: Tile, width: number): void {
    const { b, e } = this.w;
    const { across, rows } = this.tile;
    const vectors = this.#vectors(width);
    const unit = this.breadth % lanes === 0 ? lanes : 1;
    b.loop(this.breadth / unit, (step) => {
      const at = e.mul(step, unit);
      const x = this.each(rows, (i) => b.load(weights.cells, e.add(e.mul(this.row(i), weights.line), at), unit));
      for (let l = 0; l < unit; l++)
        for (let j = 0; j < vectors; j++) {
          const column = e.mul(e.add(this.tx, across * j), lanes);
          const y = b.load(values.cells, e.add(e.mul(e.add(at, l), values.line), column), lanes);
          for (let i = 0; i < rows; i++) {
            const sum = b.load(results, i * vectors + j, lanes);
            b.store(results, i * vectors + j, this.o.product(e.splat(e.lane(x[i]!, l), lanes), y, sum));
          }
        }
    });
  }

  /** Every register of results by what `change` makes of it for its row. */
  change(results: KNode, width: number, change: (value: KNode, row: number) => KNode): void {
    const vectors = this.#vectors(width);
    for (let i = 0; i < this.tile.rows; i++)
      for (let j = 0; j < vectors; j++) {
        const at = i * vectors + j;
        this.w.b.store(results, at, change(this.w.b.load(results, at, lanes), i));
      }
  }

  /** Writes results row by row: `start` is where the matrix of rows of `width` begins, `first` the row of the block's first. */
  write(results: KNode, start: KNode, first: KNode, end: number, width: number, more: KNode | null = null): void {
    const { b, e } = this.w;
    const { across, rows } = this.tile;
    const vectors = this.#vectors(width);
    for (let i = 0; i < rows; i++) {
      const row = e.add(first, this.row(i));
      const inside = this.isWhole(end) ? null : e.lt(row, end);
      for (let j = 0; j < vectors; j++) {
        const column = e.mul(e.add(this.tx, across * j), lanes);
        const value = b.load(results, i * vectors + j, lanes);
        const at = e.add(e.add(start, e.mul(row, width)), column);
        const stored = (place: KNode, one: KNode, limit: KNode | null): void => {
          const gates = [inside, limit, more].filter((gate) => gate !== null);
          b.store(this.o.out, place, one, gates.length === 0 ? undefined : gates.reduce((x, y) => e.and(x, y)));
        };
        const full = width % (lanes * across) === 0;
        if (width % lanes === 0) stored(at, value, full ? null : e.lt(column, width));
        else
          for (let l = 0; l < lanes; l++) {
            const own = e.add(column, l);
            stored(e.add(at, l), e.lane(value, l), e.lt(own, width));
          }
      }
    }
  }

  /** True if blocks of rows end where the rows do. */
  isWhole(count: number): boolean {
    return count % this.height === 0;
  }

  /** Stores what the thread has of a block of weights. */
  keep(weights: Tile, values: readonly (readonly KNode[])[]): void {
    const { b, e } = this.w;
    values.forEach((row, i) => {
      row.forEach((value, j) => {
        b.store(weights.cells, e.add(e.mul(this.row(i), weights.line), this.column(j)), value);
      });
    });
  }

  /** One number of each of the thread's rows from all threads of a line, in their order. */
  acrossLine(cells: KNode, values: readonly KNode[], both: (x: KNode, y: KNode) => KNode): KNode[] {
    const { b, e } = this.w;
    const { across } = this.tile;
    const start = (i: number): KNode => e.mul(this.row(i), across);
    values.forEach((value, i) => {
      b.store(cells, e.add(start(i), this.tx), value);
    });
    b.barrier();
    return values.map((_, i) =>
      b.place(this.each(across, (x) => b.load(cells, e.add(start(i), x))).reduce((x, y) => both(x, y))),
    );
  }
}

/** Blocks of rows of one head after the other: the head, and the first row. */
function blockOf({ group, e }: ProgramWriter, blocks: number, height: number): { head: KNode; first: KNode } {
  return { head: e.idiv(group, blocks), first: e.mul(e.irem(group, blocks), height) };
}

/** Values and logarithms of all queries. */
export function forwardByThreads(set: ProgramSet, spec: AttentionSpec, caps: CodegenCaps): void {
  const { shared, rows, columns, depth, width } = spec;
  const heads = spec.keyHeads * shared;
  const tile = tileFor(caps, spec, heads, rows, forwardRoom, [width]);
  const [height, breadth] = [tile.down * tile.rows, tile.across * tile.columns];
  const blocks = Math.ceil(rows / height);
  const write = (w: ProgramWriter): void => {
    const { b, e } = w;
    const o = new Operands(w, spec, caps);
    const g = new Group(w, o, tile);
    const { head, first } = blockOf(w, blocks, height);
    const [q, k, v] = [o.matrix(spec.q, head), o.matrix(spec.k, e.idiv(head, shared)), o.matrix(spec.v, e.idiv(head, shared))]; // biome-ignore format: three alike
    const mask = o.mask(head);
    const [inDepth, inWidth] = [up(depth, lanes), spread(width, tile)];
    const queries = g.shared('queries', height, inDepth);
    const others = g.shared('others', breadth, Math.max(inDepth, inWidth));
    const weights = g.shared('weights', height, breadth);
    const cells = b.shared('line', o.wide, height * tile.across);
    g.fill(queries, q, height, first, rows, depth, inDepth);
    const results = g.results('results', width);
    const [top, total] = [b.reg('top', o.wide, 1, tile.rows), b.reg('total', o.wide, 1, tile.rows)];
    for (let i = 0; i < tile.rows; i++) {
      b.store(top, i, o.number(lowest[o.wide]));
      b.store(total, i, o.number(0));
    }
    const seen = o.columnsSeen(e.min(rows, e.add(first, height)));
    b.loop(e.idiv(e.add(seen, breadth - 1), breadth), (turn) => {
      const from = e.mul(turn, breadth);
      g.fill(others, k, breadth, from, columns, depth, inDepth);
      b.barrier();
      const scores = g.products('scores', queries, others, inDepth);
      const found = scores.map((line, i) =>
        line.map(
          (score, j): Masked => maskedAt(o, g, mask, score, e.add(first, g.row(i)), e.add(from, g.column(j)), false),
        ),
      );
      const highest = found.map((line) =>
        line
          .map(({ score, allowed }): KNode => b.place(e.where(allowed, score, o.number(lowest[o.wide]))))
          .reduce((x, y) => o.greater(x, y)),
      );
      const tops = g
        .acrossLine(cells, highest, (x, y) => o.greater(x, y))
        .map((high, i): KNode => b.place(o.greater(b.load(top, i), high)));
      const shrink = tops.map((now, i): KNode => b.place(o.exp(e.sub(b.load(top, i), now))));
      const shares = found.map((line, i) =>
        line.map(({ score, allowed }): KNode => b.place(e.where(allowed, o.exp(e.sub(score, tops[i]!)), o.number(0)))),
      );
      for (let i = 0; i < tile.rows; i++) {
        const own = shares[i]!.reduce((x, y) => e.add(x, y));
        b.store(total, i, o.product(b.load(total, i), shrink[i]!, own));
        b.store(top, i, tops[i]!);
      }
      g.change(results, width, (value, i) => e.mul(value, e.splat(shrink[i]!, lanes)));
      g.keep(weights, shares);
      g.fill(others, v, breadth, from, columns, width, inWidth);
      b.barrier();
      g.accumulate(results, weights, others, width);
      b.barrier();
    });
    const sums = g.acrossLine(
      cells,
      g.each(tile.rows, (i) => b.load(total, i)),
      (x, y) => e.add(x, y),
    );
    const isMasked = mask !== null || spec.causal !== null;
    const none = sums.map((sum) => (isMasked ? e.eq(sum, 0) : e.bool(false)));
    const divisors = sums.map((sum, i) => e.where(none[i]!, o.number(1), sum));
    g.change(results, width, (value, i) => e.div(value, e.splat(divisors[i]!, lanes)));
    g.write(results, e.mul(head, rows * width), first, rows, width);
    b.ifThen(e.eq(g.tx, 0), () =>
      divisors.forEach((divisor, i) => {
        const row = e.add(first, g.row(i));
        const logarithm = e.where(none[i]!, o.number(0), e.add(b.load(top, i), o.log(divisor)));
        const at = e.add(e.add(heads * rows * width, e.mul(head, rows)), row);
        b.store(o.out, at, logarithm, g.isWhole(rows) ? undefined : e.lt(row, rows));
      }),
    );
  };
  set.add('', heads * blocks, write, tile.across * tile.down);
}

/** A score, and whether it counts. */
interface Masked {
  readonly score: KNode;
  readonly allowed: KNode;
}

/** A score of a query and a key by their positions, with the mask; `turned`: rows of the block are keys. */
function maskedAt(
  o: Operands,
  g: Group,
  mask: Matrix | null,
  value: KNode,
  own: KNode,
  other: KNode,
  turned: boolean,
): Masked {
  const { e } = o.w;
  const { rows, columns } = o.spec;
  const [row, column] = turned ? [other, own] : [own, other];
  const [rowUnit, columnUnit] = turned ? [g.breadth, g.height] : [g.height, g.breadth];
  let inside = o.sees(row, column);
  if (rows % rowUnit !== 0) inside = e.and(inside, e.lt(row, rows));
  if (columns % columnUnit !== 0) inside = e.and(inside, e.lt(column, columns));
  const at = mask === null ? null : placeOf(e, mask, row, column);
  const { score, allowed } = o.masked(value, mask, at, inside);
  return { score: o.w.b.place(score), allowed: o.w.b.place(allowed) };
}

/** What both programs of gradients read for a query, and what they make of it. */
function rowFacts(
  o: Operands,
  spec: GradientSpec,
  head: KNode,
  row: KNode,
  inside: KNode,
): { log: KNode; back: KNode } {
  const { e, b } = o.w;
  const { rows, width } = spec;
  const gate = inside.op === 'CONST' ? undefined : b.place(inside);
  const heads = spec.keyHeads * spec.shared;
  const at = e.add(e.add(spec.made.view.shift + heads * rows * width, e.mul(head, rows)), row);
  const back = o.matrix(spec.back, head);
  return {
    log: b.place(o.read(o.memory(spec.made), at, 1, gate)),
    back: b.place(o.read(back.memory, placeOf(e, back, row, e.i32(0)), 1, gate)),
  };
}

/** The weight of a score by the logarithm of its row's sum, and its gradient by that of the weight. */
function slopeOf(
  o: Operands,
  { score, allowed }: Masked,
  { log, back }: { log: KNode; back: KNode },
  byWeight: KNode,
): { weight: KNode; slope: KNode } {
  const { e, b } = o.w;
  const weight = b.place(e.where(allowed, o.exp(e.sub(score, log)), o.number(0)));
  return { weight, slope: b.place(e.where(allowed, e.mul(weight, e.sub(byWeight, back)), o.number(0))) };
}

/** Gradients of the queries. */
export function queriesByThreads(set: ProgramSet, spec: GradientSpec, caps: CodegenCaps): void {
  const { shared, rows, columns, depth, width } = spec;
  const heads = spec.keyHeads * shared;
  const tile = tileFor(caps, spec, heads, rows, queriesRoom, [depth]);
  const [height, breadth] = [tile.down * tile.rows, tile.across * tile.columns];
  const blocks = Math.ceil(rows / height);
  const write = (w: ProgramWriter): void => {
    const { b, e } = w;
    const o = new Operands(w, spec, caps);
    const g = new Group(w, o, tile);
    const { head, first } = blockOf(w, blocks, height);
    const keyHead = e.idiv(head, shared);
    const [q, flow, k, v] = [o.matrix(spec.q, head), o.matrix(spec.flow, head), o.matrix(spec.k, keyHead), o.matrix(spec.v, keyHead)]; // biome-ignore format: four alike
    const mask = o.mask(head);
    const [inDepth, inWidth, outDepth] = [up(depth, lanes), up(width, lanes), spread(depth, tile)];
    const queries = g.shared('queries', height, inDepth);
    const flows = g.shared('flows', height, inWidth);
    const [keys, values] = [g.shared('keys', breadth, outDepth), g.shared('values', breadth, inWidth)];
    const weights = g.shared('weights', height, breadth);
    g.fill(queries, q, height, first, rows, depth, inDepth);
    g.fill(flows, flow, height, first, rows, width, inWidth);
    const facts = g.each(tile.rows, (i) => {
      const row = e.add(first, g.row(i));
      return rowFacts(o, spec, head, row, g.isWhole(rows) ? e.bool(true) : e.lt(row, rows));
    });
    const results = g.results('results', depth);
    const seen = o.columnsSeen(e.min(rows, e.add(first, height)));
    b.loop(e.idiv(e.add(seen, breadth - 1), breadth), (turn) => {
      const from = e.mul(turn, breadth);
      g.fill(keys, k, breadth, from, columns, depth, outDepth);
      g.fill(values, v, breadth, from, columns, width, inWidth);
      b.barrier();
      const scores = g.products('scores', queries, keys, inDepth);
      const byWeights = g.products('by_weights', flows, values, inWidth);
      const found = scores.map((line, i) =>
        line.map((score, j) => {
          const masked = maskedAt(o, g, mask, score, e.add(first, g.row(i)), e.add(from, g.column(j)), false);
          return slopeOf(o, masked, facts[i]!, byWeights[i]![j]!).slope;
        }),
      );
      g.keep(weights, found);
      b.barrier();
      g.accumulate(results, weights, keys, depth);
      b.barrier();
    });
    g.write(results, e.mul(head, rows * depth), first, rows, depth);
  };
  set.add('_queries', heads * blocks, write, tile.across * tile.down);
}

/** Gradients of keys and values: blocks of keys, which go through the queries of all heads that share them. */
export function keysByThreads(set: ProgramSet, spec: GradientSpec, caps: CodegenCaps): void {
  const { keyHeads, shared, rows, columns, depth, width } = spec;
  const tile = tileFor(caps, spec, keyHeads, columns, keysRoom, [depth, width]);
  const [height, breadth] = [tile.down * tile.rows, tile.across * tile.columns];
  const blocks = Math.ceil(columns / height);
  const write = (w: ProgramWriter): void => {
    const { b, e } = w;
    const o = new Operands(w, spec, caps);
    const g = new Group(w, o, tile);
    const { head: keyHead, first } = blockOf(w, blocks, height);
    const [k, v] = [o.matrix(spec.k, keyHead), o.matrix(spec.v, keyHead)];
    const [outDepth, outWidth] = [spread(depth, tile), spread(width, tile)];
    const [inDepth, inWidth] = [up(depth, lanes), up(width, lanes)];
    const keys = g.shared('keys', height, inDepth);
    const values = g.shared('values', height, inWidth);
    const [queries, flows] = [g.shared('queries', breadth, outDepth), g.shared('flows', breadth, outWidth)];
    const [weights, slopes] = [g.shared('weights', height, breadth), g.shared('slopes', height, breadth)];
    g.fill(keys, k, height, first, columns, depth, inDepth);
    g.fill(values, v, height, first, columns, width, inWidth);
    const [byKeys, byValues] = [g.results('by_keys', depth), g.results('by_values', width)];
    const start = e.idiv(o.firstRow(first), breadth);
    const turns = e.max(0, e.sub(Math.ceil(rows / breadth), start));
    b.loop(shared, (sharing) => {
      const head = e.add(e.mul(keyHead, shared), sharing);
      const [q, flow, mask] = [o.matrix(spec.q, head), o.matrix(spec.flow, head), o.mask(head)];
      b.loop(turns, (turn) => {
        const from = e.mul(e.add(start, turn), breadth);
        g.fill(queries, q, breadth, from, rows, depth, outDepth);
        g.fill(flows, flow, breadth, from, rows, width, outWidth);
        b.barrier();
        const scores = g.products('scores', keys, queries, inDepth);
        const byWeights = g.products('by_weights', values, flows, inWidth);
        const facts = g.each(tile.columns, (j) => {
          const row = e.add(from, g.column(j));
          return rowFacts(o, spec, head, row, rows % breadth === 0 ? e.bool(true) : e.lt(row, rows));
        });
        const found = scores.map((line, i) =>
          line.map((score, j) => {
            const masked = maskedAt(o, g, mask, score, e.add(first, g.row(i)), e.add(from, g.column(j)), true);
            return slopeOf(o, masked, facts[j]!, byWeights[i]![j]!);
          }),
        );
        g.keep(
          weights,
          found.map((line) => line.map(({ weight }) => weight)),
        );
        g.keep(
          slopes,
          found.map((line) => line.map(({ slope }) => slope)),
        );
        b.barrier();
        g.accumulate(byValues, weights, flows, width);
        g.accumulate(byKeys, slopes, queries, depth);
        b.barrier();
      });
    });
    const ofKeys = keyHeads * shared * rows * depth;
    const ofValues = ofKeys + keyHeads * columns * depth;
    g.write(byKeys, e.add(ofKeys, e.mul(keyHead, columns * depth)), first, columns, depth);
    g.write(byValues, e.add(ofValues, e.mul(keyHead, columns * width)), first, columns, width);
  };
  set.add('_keys', keyHeads * blocks, write, tile.across * tile.down);
}
