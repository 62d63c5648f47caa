/**
 * A strip on a processor: some queries of one head (for gradients of keys and values: some keys), transposed, so that the
 * positions are lanes of vectors.
 *
 * It goes through blocks of "the others" (keys, or queries), whose elements are read in place and broadcast. So maxima and sums of
 * rows are elementwise operations on vectors, and only the strip is transposed. The strip, the scores of a block and the sums stay
 * in a second-level cache.
 */
import { attentionBlock, attentionStrip } from '../../../codegen/costs/attention.ts';
import { productCosts } from '../../../codegen/costs/cpu.ts';
import type { CodegenCaps } from '../../../codegen/lowering.ts';
import type { KNode } from '../../../ir/ir.ts';
import { assumeBounds } from '../../../ir/node.ts';
import type { ProgramSet, ProgramWriter } from '../../program-set.ts';
import { type AttentionSpec, isDistance, lowest, type Matrix, Operands, placeOf, wideBytes } from '../operands.ts';

export const up = (n: number, unit: number): number => Math.ceil(n / unit) * unit;

/** How strips are cut and gone through. */
export interface StripShape {
  /** Positions of a strip, side by side, and in a vector. */
  readonly strip: number;
  readonly lanes: number;
  /** Others in a block. */
  readonly block: number;
  /** Others, or elements of them, and vectors whose sums are in registers together. */
  readonly tile: readonly [height: number, vectors: number];
}

export function shapeFor(caps: CodegenCaps, spec: AttentionSpec, positions: number, others: number): StripShape {
  const bytes = wideBytes(spec);
  const lanes = Math.max(1, (caps.fittingBytes?.(positions, bytes) ?? caps.vectorBytes) / bytes);
  const strip = up(Math.min(positions, Math.max(lanes, attentionStrip)), lanes);
  const vectors = strip / lanes;
  const costs = productCosts(caps);
  const [height, most] = costs.formula?.tile(8, vectors) ?? [4, 2];
  let width = Math.min(most, vectors);
  while (vectors % width !== 0) width--;
  return { strip, lanes, block: Math.min(others, attentionBlock), tile: [height, width] };
}

/** A block of the others: the first one, how many it has, and how many there are in all at most. */
export interface Block {
  readonly from: KNode;
  readonly length: KNode;
  readonly most: number;
}

/** The sums of a tile: what they begin with, the factors of each of `steps` steps, and where the results go. */
interface TileSums {
  /** Name of their registers. */
  readonly name: string;
  start(i: number, j: number): KNode;
  readonly steps: number | KNode;
  /** The factor of line `i`, which all lanes have alike. */
  scalar(i: number, step: KNode): KNode;
  /** The factor of vector `j`. */
  vector(j: number, step: KNode): KNode;
  store(i: number, j: number, value: KNode): void;
  /** Default: the strip's. */
  readonly tile?: readonly [height: number, vectors: number];
}

/** A strip in group memory, and the operations on it that forward and gradient programs share. */
export class Strip {
  readonly o: Operands;
  readonly w: ProgramWriter;
  readonly s: StripShape;
  /** The first position, and how many there are of all, at most. */
  readonly first: KNode;
  readonly positions: number;

  constructor(w: ProgramWriter, o: Operands, s: StripShape, first: KNode, positions: number) {
    this.w = w;
    this.o = o;
    this.s = s;
    this.first = first;
    this.positions = positions;
  }

  /** Memory for lines of the strip's positions. */
  lines(name: string, count: number): KNode {
    return this.w.b.shared(name, this.o.wide, count * this.s.strip);
  }

  /** Where a line goes on at a position. */
  at(line: KNode, x: KNode): KNode {
    return this.w.e.add(this.w.e.mul(line, this.s.strip), x);
  }

  /** A position of the strip among all, moved back to the last one. */
  position(x: KNode): KNode {
    const { e } = this.w;
    const at = e.add(this.first, x);
    if (this.o.isWhole(this.positions, this.s.strip)) return at;
    const inside = e.min(at, e.sub(this.o.now(this.positions), 1));
    assumeBounds(inside, 0, this.positions - 1);
    return inside;
  }

  load(memory: KNode, at: KNode): KNode {
    return this.w.b.load(memory, at, this.s.lanes);
  }

  /** Runs `body` for every vector of the strip, from its first position. */
  eachVector(body: (x: KNode) => void): void {
    this.w.b.loop(this.s.strip / this.s.lanes, (v) => body(this.w.e.mul(v, this.s.lanes)));
  }

  /** Sets lines to a number. */
  clear(memory: KNode, count: number, value: number): void {
    const { b, e } = this.w;
    b.loop((count * this.s.strip) / this.s.lanes, (v) =>
      b.store(memory, e.mul(v, this.s.lanes), e.splat(this.o.number(value), this.s.lanes)),
    );
  }

  /** The strip's rows of a matrix, transposed: line `i` has element `i` of each. */
  transposed(name: string, matrix: Matrix, width: number): KNode {
    const { b, e } = this.w;
    const lines = this.lines(name, width);
    b.loop(this.s.strip, (x) => {
      const row = b.place(this.position(x));
      b.loop(width, (i) => b.store(lines, this.at(i, x), this.o.read(matrix.memory, placeOf(e, matrix, row, i))));
    });
    return lines;
  }

  #sums({ name, start, steps, scalar, vector, store, tile: [height, width] = this.s.tile }: TileSums): void {
    const { b, e } = this.w;
    const sums = b.reg(name, this.o.wide, this.s.lanes, height * width);
    for (let i = 0; i < height; i++) for (let j = 0; j < width; j++) b.store(sums, i * width + j, start(i, j));
    const step = (at: KNode): void => {
      const vectors = Array.from({ length: width }, (_, j) => vector(j, at));
      for (let i = 0; i < height; i++) {
        const x = e.splat(scalar(i, at), this.s.lanes);
        for (let j = 0; j < width; j++) {
          const sum = b.load(sums, i * width + j, this.s.lanes);
          b.store(sums, i * width + j, this.o.product(x, vectors[j]!, sum));
        }
      }
    };
    b.loop(steps, step);
    for (let i = 0; i < height; i++)
      for (let j = 0; j < width; j++) store(i, j, b.load(sums, i * width + j, this.s.lanes));
  }

  /** Products of a block of a matrix's rows with the strip, along `depth` elements: a line for each row. */
  products(name: string, to: KNode, matrix: Matrix, block: Block, depth: number, lines: KNode): void {
    const { from, length, most } = block;
    const { b, e } = this.w;
    const [height, width] = this.s.tile;
    b.loop(e.idiv(e.add(length, height - 1), height), (group) => {
      const first = e.mul(group, height);
      const starts = Array.from({ length: height }, (_, i) => {
        const row = e.min(e.add(e.add(from, first), i), e.sub(this.o.now(most), 1));
        return b.place(placeOf(e, matrix, row, e.i32(0)));
      });
      b.loop(this.s.strip / this.s.lanes / width, (turn) => {
        const x = (j: number): KNode => e.mul(e.add(e.mul(turn, width), j), this.s.lanes);
        this.#sums({
          name,
          start: () => e.splat(this.o.number(0), this.s.lanes),
          steps: depth,
          scalar: (i, step) => this.o.read(matrix.memory, e.add(starts[i]!, e.mul(step, matrix.column))),
          vector: (j, step) => this.load(lines, this.at(step, x(j))),
          store: (i, j, value) => b.store(to, this.at(e.add(first, i), x(j)), value),
        });
      });
    });
  }

  /** Adds a block of a matrix's rows, weighted by lines, to lines, one for each of `width` columns. `shrink` rescales these first. */
  accumulate(
    name: string,
    to: KNode,
    matrix: Matrix,
    { from, length }: Block,
    width: number,
    { weights, shrink = null }: { readonly weights: KNode; readonly shrink?: KNode | null },
  ): void {
    const { b, e } = this.w;
    const [height, vectors] = this.s.tile;
    b.loop(Math.ceil(width / height), (group) => {
      const column = (i: number): KNode => e.min(e.add(e.mul(group, height), i), width - 1);
      b.loop(this.s.strip / this.s.lanes / vectors, (turn) => {
        const x = (j: number): KNode => e.mul(e.add(e.mul(turn, vectors), j), this.s.lanes);
        const factors = Array.from({ length: vectors }, (_, j) => shrink && this.load(shrink, x(j)));
        this.#sums({
          name,
          start: (i, j) => {
            const before = this.load(to, this.at(column(i), x(j)));
            const factor = factors[j] ?? null;
            return factor === null ? before : e.mul(before, factor);
          },
          steps: length,
          scalar: (i, step) => this.o.read(matrix.memory, placeOf(e, matrix, e.add(from, step), column(i))),
          vector: (j, step) => this.load(weights, this.at(step, x(j))),
          store: (i, j, value) => b.store(to, this.at(column(i), x(j)), value),
        });
      });
    });
  }

  /**
   * Adds to a block of rows of results, `width` elements of each, the strip's rows of another matrix, weighed by the row's line.
   * Vectors are elements of rows, so that nothing has to be transposed.
   */
  gather(name: string, to: Matrix, { from, length }: Block, weights: KNode, matrix: Matrix, width: number): void {
    const { b, e } = this.w;
    const { lanes } = this.s;
    const [high, most] = this.s.tile;
    const across = width / lanes;
    let vectors = Math.min(most, across);
    while (across % vectors !== 0) vectors--;
    const rows = b.place(placeOf(e, matrix, this.first, e.i32(0)));
    const some = (first: KNode, height: number): void =>
      b.loop(across / vectors, (turn) => {
        const column = (j: number): KNode => e.mul(e.add(e.mul(turn, vectors), j), lanes);
        const line = (i: number): KNode => e.add(first, i);
        const at = (i: number, j: number): KNode => placeOf(e, to, e.add(from, line(i)), column(j));
        this.#sums({
          name: `${name}_${height}`,
          start: (i, j) => this.load(this.o.out, at(i, j)),
          steps: this.count,
          scalar: (i, step) => b.load(weights, this.at(line(i), step)),
          vector: (j, step) => this.load(matrix.memory, e.add(e.add(rows, e.mul(step, matrix.row)), column(j))),
          store: (i, j, value) => b.store(this.o.out, at(i, j), value),
          tile: [height, vectors],
        });
      });
    const groups = b.place(e.idiv(length, high));
    b.loop(groups, (group) => some(e.mul(group, high), high));
    const done = e.mul(groups, high);
    b.loop(e.sub(length, done), (rest) => some(e.add(done, rest), 1));
  }

  /** How many of the strip's positions there are. */
  get count(): KNode {
    const { e } = this.w;
    const { strip } = this.s;
    if (this.o.isWhole(this.positions, strip)) return e.i32(strip);
    return e.min(strip, e.sub(this.o.now(this.positions), this.first));
  }

  /** Writes lines as the first elements of the strip's rows of a matrix. */
  write(lines: KNode, to: Matrix, width: number): void {
    const { b, e } = this.w;
    b.loop(this.count, (x) => {
      const row = b.place(placeOf(e, to, e.add(this.first, x), e.i32(0)));
      b.loop(width, (i) => b.store(this.o.out, e.add(row, i), b.load(lines, this.at(i, x))));
    });
  }

  /** Positions from `x` on, as numbers of a vector. */
  positionsFrom(x: KNode): KNode {
    const { e } = this.w;
    return e.add(e.add(this.first, x), e.iota(this.s.lanes));
  }

  /**
   * A vector of scores with the mask, the strip's positions from `x` on against `other`; those that do not count are `lowest`. `transposed`: the strip's
   * are keys.
   */
  masked(scores: KNode, mask: Matrix | null, x: KNode, other: KNode, transposed: boolean): KNode {
    const { b, e } = this.w;
    const { lanes } = this.s;
    const hidden = e.splat(this.o.number(lowest[this.o.wide]), lanes);
    let masked = scores;
    if (this.o.spec.causal !== null) {
      const [row, column] = transposed ? [other, this.positionsFrom(x)] : [this.positionsFrom(x), other];
      masked = e.where(this.o.sees(row, column), masked, hidden);
    }
    if (mask === null) return masked;
    const [across, along] = transposed ? [mask.row, mask.column] : [mask.column, mask.row];
    const one = (l: number): KNode => {
      const position = this.position(e.add(x, l));
      const at = e.add(e.add(mask.start, e.mul(other, across)), e.mul(position, along));
      const { score, allowed } = this.o.masked(this.o.number(0), mask, at, e.bool(true));
      return b.place(e.where(allowed, score, this.o.number(lowest[this.o.wide])));
    };
    const added = isDistance(along, 0)
      ? e.splat(one(0), lanes)
      : e.vec(Array.from({ length: lanes }, (_, l) => one(l)));
    const isHidden = e.eq(added, hidden);
    return e.where(isHidden, hidden, e.add(masked, added));
  }

  /** Weights in the place of scores, where they are asked for, and the scores' gradients in that of the weights'. */
  slopes(
    scores: KNode,
    byWeights: KNode,
    { logs, backs }: StripFacts,
    mask: Matrix | null,
    { from, length }: Block,
    keep: boolean,
  ): void {
    const { b, e } = this.w;
    this.eachVector((x) => {
      const [log, back] = [this.load(logs, x), this.load(backs, x)];
      b.loop(length, (c) => {
        const at = this.at(c, x);
        const score = b.place(this.masked(this.load(scores, at), mask, x, e.add(from, c), false));
        const weight = b.place(this.weight(score, log));
        if (keep) b.store(scores, at, weight);
        b.store(byWeights, at, e.mul(weight, e.sub(this.load(byWeights, at), back)));
      });
    });
  }

  /** True if some scores may be hidden. */
  get isMasked(): boolean {
    return this.o.spec.causal !== null || this.o.spec.mask !== null;
  }

  /** The weight of a score that may be hidden, by the number that is taken from the score. */
  weight(score: KNode, less: KNode): KNode {
    const { e } = this.w;
    const weight = this.o.exp(e.sub(score, less));
    if (!this.isMasked) return weight;
    const zero = e.splat(this.o.number(0), this.s.lanes);
    return e.where(e.eq(score, e.splat(this.o.number(lowest[this.o.wide]), this.s.lanes)), zero, weight);
  }
}

/** Logarithms of a strip of queries, and what is taken back of their weights' gradients, as lines. */
export interface StripFacts {
  readonly logs: KNode;
  readonly backs: KNode;
}

/** Strips of one head after the other: the head, and the first position. */
export function stripOf({ group, e }: ProgramWriter, strips: number, strip: number): { head: KNode; first: KNode } {
  return { head: e.idiv(group, strips), first: e.mul(e.irem(group, strips), strip) };
}

/** A strip of queries of a head, transposed, and what it meets. */
interface QueryStrip<S extends AttentionSpec> {
  readonly s: Strip;
  readonly o: Operands<S>;
  readonly head: KNode;
  readonly keyHead: KNode;
  readonly k: Matrix;
  readonly v: Matrix;
  readonly mask: Matrix | null;
  readonly queries: KNode;
  /** How many keys it sees, the first ones. */
  readonly end: () => KNode;
}

/** A program with a strip of queries for each group. */
export function stripsOfQueries<S extends AttentionSpec>(
  set: ProgramSet,
  suffix: string,
  spec: S,
  caps: CodegenCaps,
  body: (strip: QueryStrip<S>) => void,
): void {
  const { keyHeads, shared, rows, columns, depth } = spec;
  const shape = shapeFor(caps, spec, rows, columns);
  const strips = Math.ceil(rows / shape.strip);
  set.add(suffix, keyHeads * shared * strips, (w) => {
    const { e } = w;
    const o = new Operands(w, spec, caps);
    const { head, first } = stripOf(w, strips, shape.strip);
    o.ifThere(spec.q, head, first, rows, () => {
      const s = new Strip(w, o, shape, first, rows);
      const keyHead = e.idiv(head, shared);
      const [k, v, mask] = [o.matrix(spec.k, keyHead), o.matrix(spec.v, keyHead), o.mask(head)];
      const queries = s.transposed('queries', o.matrix(spec.q, head), depth);
      const end = (): KNode => o.columnsSeen(e.min(o.now(rows), e.add(first, shape.strip)));
      body({ s, o, head, keyHead, k, v, mask, queries, end });
    });
  });
}

/** Goes through blocks of the others, of which there are `most` at most, from `start` to `end`. */
export function eachBlock(
  w: ProgramWriter,
  block: number,
  most: number,
  start: KNode,
  end: KNode,
  body: (block: Block) => void,
): void {
  const { b, e } = w;
  const isAll = start.op === 'CONST' && start.arg.value === 0 && end.op === 'CONST' && end.arg.value === most;
  const isWhole = isAll && most % block === 0;
  const whole = Math.ceil(most / block);
  const turns = e.max(0, e.idiv(e.add(e.sub(end, start), block - 1), block));
  b.loop(turns.op === 'CONST' ? turns : w.typical(turns, isAll ? whole : Math.ceil(whole / 2)), (turn) => {
    const from = b.place(e.add(start, e.mul(turn, block)));
    assumeBounds(from, 0, isWhole ? most - block : most - 1);
    body({ from, length: isWhole ? e.i32(block) : w.typical(e.min(block, e.sub(end, from)), block), most });
  });
}
