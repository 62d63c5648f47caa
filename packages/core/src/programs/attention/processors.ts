/**
 * Attention by processors: forward, gradient of the queries, gradients of keys and values.
 *
 * A group has a strip: some queries (for the gradients of keys and values, some keys) of one head, turned, so that they lie side by side in vectors.
 * It goes through blocks of the others, whose elements are read where they are and spread over vectors. So maxima and sums of rows are those of
 * vectors, and nothing has to be turned but the strip. Strip, scores of a block and what is being summed stay in a second-level cache.
 */
import type { CodegenCaps } from '../../codegen/lowering.ts';
import { attentionBlock, attentionHeads, attentionStrip } from '../../codegen/costs/attention.ts';
import { productCosts } from '../../codegen/costs/cpu.ts';
import type { KNode } from '../../ir/ir.ts';
import { assumeBounds } from '../../ir/node.ts';
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

const up = (n: number, unit: number): number => Math.ceil(n / unit) * unit;

/** How strips are cut and gone through. */
interface Shape {
  /** Positions of a strip, side by side, and in a vector. */
  readonly strip: number;
  readonly lanes: number;
  /** Others in a block. */
  readonly block: number;
  /** Others, or elements of them, and vectors whose sums are in registers together. */
  readonly tile: readonly [height: number, vectors: number];
}

function shapeFor(caps: CodegenCaps, spec: AttentionSpec, positions: number, others: number): Shape {
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

/** What the programs share. */
class Strip {
  readonly o: Operands;
  readonly w: ProgramWriter;
  readonly s: Shape;
  /** The first position, and how many there are of all. */
  readonly first: KNode;
  readonly positions: number;

  constructor(w: ProgramWriter, o: Operands, s: Shape, first: KNode, positions: number) {
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
    if (this.positions % this.s.strip === 0) return at;
    const inside = e.min(at, this.positions - 1);
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

  /** The strip's rows of a matrix, turned: line `i` has element `i` of each. */
  turned(name: string, matrix: Matrix, width: number): KNode {
    const { b, e } = this.w;
    const lines = this.lines(name, width);
    b.loop(this.s.strip, (x) => {
      const row = b.place(this.position(x));
      b.loop(width, (i) => b.store(lines, this.at(i, x), this.o.read(matrix.memory, placeOf(e, matrix, row, i))));
    });
    return lines;
  }

  /** The sums of a tile: `terms` gives what each step multiplies, of which there are `steps`. */
  #sums(
    start: (i: number, j: number) => KNode,
    steps: number | KNode,
    scalar: (i: number, step: KNode) => KNode,
    vector: (j: number, step: KNode) => KNode,
    store: (i: number, j: number, value: KNode) => void,
    name: string,
    [height, width]: readonly [number, number] = this.s.tile,
  ): void {
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

  /** Products of `length` rows of a matrix from `from` on with the strip, along `depth` elements: a line for each row. */
  products(
    name: string,
    to: KNode,
    matrix: Matrix,
    from: KNode,
    length: KNode,
    rows: number,
    depth: number,
    lines: KNode,
  ): void {
    const { b, e } = this.w;
    const [height, width] = this.s.tile;
    b.loop(e.idiv(e.add(length, height - 1), height), (group) => {
      const first = e.mul(group, height);
      const starts = Array.from({ length: height }, (_, i) => {
        const row = e.min(e.add(e.add(from, first), i), rows - 1);
        return b.place(placeOf(e, matrix, row, e.i32(0)));
      });
      b.loop(this.s.strip / this.s.lanes / width, (turn) => {
        const x = (j: number): KNode => e.mul(e.add(e.mul(turn, width), j), this.s.lanes);
        this.#sums(
          () => e.splat(this.o.number(0), this.s.lanes),
          depth,
          (i, step) => this.o.read(matrix.memory, e.add(starts[i]!, e.mul(step, matrix.column))),
          (j, step) => this.load(lines, this.at(step, x(j))),
          (i, j, value) => b.store(to, this.at(e.add(first, i), x(j)), value),
          name,
        );
      });
    });
  }

  /** Adds to lines, one for each of `width` columns, the `length` rows of a matrix from `from` on, weighed by lines. `shrink`: what lines become before. */
  accumulate(
    name: string,
    to: KNode,
    matrix: Matrix,
    from: KNode,
    length: KNode,
    width: number,
    weights: KNode,
    shrink: KNode | null,
  ): void {
    const { b, e } = this.w;
    const [height, vectors] = this.s.tile;
    b.loop(Math.ceil(width / height), (group) => {
      const column = (i: number): KNode => e.min(e.add(e.mul(group, height), i), width - 1);
      b.loop(this.s.strip / this.s.lanes / vectors, (turn) => {
        const x = (j: number): KNode => e.mul(e.add(e.mul(turn, vectors), j), this.s.lanes);
        const factors = Array.from({ length: vectors }, (_, j) => shrink && this.load(shrink, x(j)));
        this.#sums(
          (i, j) => {
            const before = this.load(to, this.at(column(i), x(j)));
            const factor = factors[j] ?? null;
            return factor === null ? before : e.mul(before, factor);
          },
          length,
          (i, step) => this.o.read(matrix.memory, placeOf(e, matrix, e.add(from, step), column(i))),
          (j, step) => this.load(weights, this.at(step, x(j))),
          (i, j, value) => b.store(to, this.at(column(i), x(j)), value),
          name,
        );
      });
    });
  }

  /**
   * Adds to rows of `width` elements in the results, from `start` on, one for each of `length` lines, the strip's rows of a matrix weighed by the line.
   * Vectors are elements of rows, so that nothing has to be turned.
   */
  gather(name: string, start: KNode, weights: KNode, matrix: Matrix, length: KNode, width: number): void {
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
        const at = (i: number, j: number): KNode => e.add(e.add(start, e.mul(line(i), width)), column(j));
        this.#sums(
          (i, j) => this.load(this.o.out, at(i, j)),
          this.count,
          (i, step) => b.load(weights, this.at(line(i), step)),
          (j, step) => this.load(matrix.memory, e.add(e.add(rows, e.mul(step, matrix.row)), column(j))),
          (i, j, value) => b.store(this.o.out, at(i, j), value),
          `${name}_${height}`,
          [height, vectors],
        );
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
    if (this.positions % strip === 0) return e.i32(strip);
    return e.min(strip, e.sub(this.positions, this.first));
  }

  /** Writes lines as rows of `width` elements; `start` is where the matrix begins. */
  write(lines: KNode, start: KNode, width: number): void {
    const { b, e } = this.w;
    b.loop(this.count, (x) => {
      const row = b.place(e.add(start, e.mul(e.add(this.first, x), width)));
      b.loop(width, (i) => b.store(this.o.out, e.add(row, i), b.load(lines, this.at(i, x))));
    });
  }

  /** Positions from `x` on, as numbers of a vector. */
  positionsFrom(x: KNode): KNode {
    const { e } = this.w;
    return e.add(e.add(this.first, x), e.iota(this.s.lanes));
  }

  /**
   * A vector of scores with the mask, the strip's positions from `x` on against `other`; those that do not count are `lowest`. `turned`: the strip's
   * are keys.
   */
  masked(scores: KNode, mask: Matrix | null, x: KNode, other: KNode, turned: boolean): KNode {
    const { b, e } = this.w;
    const { lanes } = this.s;
    const hidden = e.splat(this.o.number(lowest[this.o.wide]), lanes);
    let masked = scores;
    if (this.o.spec.causal !== null) {
      const [row, column] = turned ? [other, this.positionsFrom(x)] : [this.positionsFrom(x), other];
      masked = e.where(this.o.sees(row, column), masked, hidden);
    }
    if (mask === null) return masked;
    const [across, along] = turned ? [mask.row, mask.column] : [mask.column, mask.row];
    const one = (l: number): KNode => {
      const position = this.position(e.add(x, l));
      const at = e.add(e.add(mask.start, e.mul(other, across)), e.mul(position, along));
      const { score, allowed } = this.o.masked(this.o.number(0), mask, at, e.bool(true));
      return b.place(e.where(allowed, score, this.o.number(lowest[this.o.wide])));
    };
    const added = along === 0 ? e.splat(one(0), lanes) : e.vec(Array.from({ length: lanes }, (_, l) => one(l)));
    const isHidden = e.eq(added, hidden);
    return e.where(isHidden, hidden, e.add(masked, added));
  }

  /** Weights in the place of scores, where they are asked for, and the scores' gradients in that of the weights'. */
  slopes(
    scores: KNode,
    byWeights: KNode,
    { logs, backs }: RowFacts,
    mask: Matrix | null,
    from: KNode,
    length: KNode,
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

/** Strips of one head after the other: the head, and the first position. */
function stripOf({ group, e }: ProgramWriter, strips: number, strip: number): { head: KNode; first: KNode } {
  return { head: e.idiv(group, strips), first: e.mul(e.irem(group, strips), strip) };
}

/** Goes through blocks of the others from `start` to `end`: where each begins, and how long it is. */
function eachBlock(
  w: ProgramWriter,
  block: number,
  most: number,
  start: KNode,
  end: KNode,
  body: (from: KNode, length: KNode) => void,
): void {
  const { b, e } = w;
  const isAll = start.op === 'CONST' && start.arg.value === 0 && end.op === 'CONST' && end.arg.value === most;
  const isWhole = isAll && most % block === 0;
  const whole = Math.ceil(most / block);
  const turns = e.max(0, e.idiv(e.add(e.sub(end, start), block - 1), block));
  b.loop(turns.op === 'CONST' ? turns : w.typical(turns, isAll ? whole : Math.ceil(whole / 2)), (turn) => {
    const from = b.place(e.add(start, e.mul(turn, block)));
    assumeBounds(from, 0, isWhole ? most - block : most - 1);
    body(from, isWhole ? e.i32(block) : w.typical(e.min(block, e.sub(end, from)), block));
  });
}

/** Values and logarithms of all queries. */
export function forwardByProcessors(set: ProgramSet, spec: AttentionSpec, caps: CodegenCaps): void {
  const { shared, rows, columns, depth, width } = spec;
  const heads = spec.keyHeads * shared;
  const shape = shapeFor(caps, spec, rows, columns);
  const strips = Math.ceil(rows / shape.strip);
  set.add('', heads * strips, (w) => {
    const { b, e } = w;
    const o = new Operands(w, spec, caps);
    const { head, first } = stripOf(w, strips, shape.strip);
    const s = new Strip(w, o, shape, first, rows);
    const keyHead = e.idiv(head, shared);
    const [k, v, mask] = [o.matrix(spec.k, keyHead), o.matrix(spec.v, keyHead), o.mask(head)];
    const queries = s.turned('queries', o.matrix(spec.q, head), depth);
    const scores = s.lines('scores', up(shape.block, shape.tile[0]));
    const results = s.lines('results', width);
    const [top, total, shrink] = [s.lines('top', 1), s.lines('total', 1), s.lines('shrink', 1)];
    s.clear(results, width, 0);
    s.clear(total, 1, 0);
    s.clear(top, 1, lowest[o.wide]);
    const end = o.columnsSeen(e.min(rows, e.add(first, shape.strip)));
    eachBlock(w, shape.block, columns, e.i32(0), end, (from, length) => {
      s.products('products', scores, k, from, length, columns, depth, queries);
      s.eachVector((x) => {
        const [high, sum] = [b.reg('high', o.wide, shape.lanes), b.reg('sum', o.wide, shape.lanes)];
        const before = s.load(top, x);
        b.store(high, 0, before);
        b.loop(length, (c) => {
          const at = s.at(c, x);
          const score = s.load(scores, at);
          const masked = b.place(s.masked(score, mask, x, e.add(from, c), false));
          if (s.isMasked) b.store(scores, at, masked);
          b.store(high, 0, o.greater(b.load(high, 0, shape.lanes), masked));
        });
        const now = b.load(high, 0, shape.lanes);
        const factor = b.place(o.exp(e.sub(before, now)));
        b.store(shrink, x, factor);
        b.store(top, x, now);
        b.store(sum, 0, e.mul(s.load(total, x), factor));
        b.loop(length, (c) => {
          const at = s.at(c, x);
          const weight = b.place(s.weight(s.load(scores, at), now));
          b.store(scores, at, weight);
          b.store(sum, 0, e.add(b.load(sum, 0, shape.lanes), weight));
        });
        b.store(total, x, b.load(sum, 0, shape.lanes));
      });
      s.accumulate('values', results, v, from, length, width, scores, shrink);
    });
    s.eachVector((x) => {
      const sum = s.load(total, x);
      const zero = e.splat(o.number(0), shape.lanes);
      const none = s.isMasked ? e.eq(sum, zero) : e.bool(false, shape.lanes);
      const divisor = b.place(e.where(none, e.splat(o.number(1), shape.lanes), sum));
      b.loop(width, (i) => b.store(results, s.at(i, x), e.div(s.load(results, s.at(i, x)), divisor)));
      b.store(shrink, x, e.where(none, zero, e.add(s.load(top, x), o.log(divisor))));
    });
    s.write(results, e.mul(head, rows * width), width);
    s.write(shrink, e.add(heads * rows * width, e.mul(head, rows)), 1);
  });
}

/** Where the logarithms of a head begin. */
function logarithmsOf(o: Operands, spec: GradientSpec, head: KNode): Matrix {
  const { e } = o.w;
  const { keyHeads, shared, rows, width, made } = spec;
  const start = e.add(made.view.shift + keyHeads * shared * rows * width, e.mul(head, rows));
  return { memory: o.memory(made), start, row: 1, column: 1 };
}

/**
 * Gradients of queries, keys and values. A group has a head of keys to itself and computes every score once; where that leaves workers without a group, or
 * rows are no whole vectors, queries and keys have programs of their own. The bits are the same: sums are taken in the same order.
 */
export function gradientByProcessors(set: ProgramSet, spec: GradientSpec, caps: CodegenCaps): void {
  const { lanes } = shapeFor(caps, spec, spec.rows, spec.columns);
  const inVectors = [spec.depth, spec.width].every((n) => n % lanes === 0);
  const inRows = [spec.q, spec.flow].every(({ view }) => view.strides.at(-1) === 1 && view.dtype === spec.out.dtype);
  if (inVectors && inRows && (caps.parallelism === 1 || spec.keyHeads >= attentionHeads * caps.parallelism))
    headsByProcessors(set, spec, caps);
  else {
    queriesByProcessors(set, spec, caps);
    keysByProcessors(set, spec, caps);
  }
}

/** All gradients of a head of keys. */
function headsByProcessors(set: ProgramSet, spec: GradientSpec, caps: CodegenCaps): void {
  const { keyHeads, shared, rows, columns, depth, width } = spec;
  const shape = shapeFor(caps, spec, rows, columns);
  set.add('', keyHeads, (w) => {
    const { b, e, group: keyHead } = w;
    const o = new Operands(w, spec, caps, 'readwrite');
    const ofKeys = e.add(keyHeads * shared * rows * depth, e.mul(keyHead, columns * depth));
    const ofValues = e.add(keyHeads * (shared * rows + columns) * depth, e.mul(keyHead, columns * width));
    for (const [start, length] of [
      [ofKeys, columns * depth],
      [ofValues, columns * width],
    ] as const)
      b.loop(length / shape.lanes, (i) =>
        b.store(o.out, e.add(start, e.mul(i, shape.lanes)), e.splat(o.number(0), shape.lanes)),
      );
    const [k, v] = [o.matrix(spec.k, keyHead), o.matrix(spec.v, keyHead)];
    b.loop(shared, (sharing) => {
      const head = e.add(e.mul(keyHead, shared), sharing);
      const [q, flow, mask] = [o.matrix(spec.q, head), o.matrix(spec.flow, head), o.mask(head)];
      b.loop(Math.ceil(rows / shape.strip), (turn) => {
        const s = new Strip(w, o, shape, e.mul(turn, shape.strip), rows);
        const [queries, flows] = [s.turned('queries', q, depth), s.turned('flows', flow, width)];
        const facts = rowFacts(s, spec, head);
        const lines = up(shape.block, shape.tile[0]);
        const [scores, byWeights, results] = [s.lines('scores', lines), s.lines('by_weights', lines), s.lines('results', depth)]; // biome-ignore format: three alike
        s.clear(results, depth, 0);
        const end = o.columnsSeen(e.min(rows, e.add(s.first, shape.strip)));
        eachBlock(w, shape.block, columns, e.i32(0), end, (from, length) => {
          s.products('products', scores, k, from, length, columns, depth, queries);
          s.products('flowing', byWeights, v, from, length, columns, width, flows);
          s.slopes(scores, byWeights, facts, mask, from, length, true);
          s.accumulate('slopes', results, k, from, length, depth, byWeights, null);
          s.gather('by_keys', e.add(ofKeys, e.mul(from, depth)), byWeights, q, length, depth);
          s.gather('by_values', e.add(ofValues, e.mul(from, width)), scores, flow, length, width);
        });
        s.write(results, e.mul(head, rows * depth), depth);
      });
    });
  });
}

/** Logarithms of a strip of queries, and what is taken back of their weights' gradients. */
interface RowFacts {
  readonly logs: KNode;
  readonly backs: KNode;
}

function rowFacts(s: Strip, spec: GradientSpec, head: KNode): RowFacts {
  return {
    logs: s.turned('logarithms', logarithmsOf(s.o, spec, head), 1),
    backs: s.turned('backs', s.o.matrix(spec.back, head), 1),
  };
}

/** Gradients of the queries. */
function queriesByProcessors(set: ProgramSet, spec: GradientSpec, caps: CodegenCaps): void {
  const { shared, rows, columns, depth, width } = spec;
  const heads = spec.keyHeads * shared;
  const shape = shapeFor(caps, spec, rows, columns);
  const strips = Math.ceil(rows / shape.strip);
  set.add('_queries', heads * strips, (w) => {
    const { e } = w;
    const o = new Operands(w, spec, caps);
    const { head, first } = stripOf(w, strips, shape.strip);
    const s = new Strip(w, o, shape, first, rows);
    const keyHead = e.idiv(head, shared);
    const [k, v, mask] = [o.matrix(spec.k, keyHead), o.matrix(spec.v, keyHead), o.mask(head)];
    const queries = s.turned('queries', o.matrix(spec.q, head), depth);
    const flows = s.turned('flows', o.matrix(spec.flow, head), width);
    const facts = rowFacts(s, spec, head);
    const lines = up(shape.block, shape.tile[0]);
    const [scores, byWeights, results] = [
      s.lines('scores', lines),
      s.lines('by_weights', lines),
      s.lines('results', depth),
    ];
    s.clear(results, depth, 0);
    const end = o.columnsSeen(e.min(rows, e.add(first, shape.strip)));
    eachBlock(w, shape.block, columns, e.i32(0), end, (from, length) => {
      s.products('products', scores, k, from, length, columns, depth, queries);
      s.products('flowing', byWeights, v, from, length, columns, width, flows);
      s.slopes(scores, byWeights, facts, mask, from, length, false);
      s.accumulate('slopes', results, k, from, length, depth, byWeights, null);
    });
    s.write(results, e.mul(head, rows * depth), depth);
  });
}

/** Gradients of keys and values: strips of keys, which go through the queries of all heads that share them. */
function keysByProcessors(set: ProgramSet, spec: GradientSpec, caps: CodegenCaps): void {
  const { keyHeads, shared, rows, columns, depth, width } = spec;
  const shape = shapeFor(caps, spec, columns, rows);
  const strips = Math.ceil(columns / shape.strip);
  set.add('_keys', keyHeads * strips, (w) => {
    const { b, e } = w;
    const o = new Operands(w, spec, caps);
    const { head: keyHead, first } = stripOf(w, strips, shape.strip);
    const s = new Strip(w, o, shape, first, columns);
    const keys = s.turned('keys', o.matrix(spec.k, keyHead), depth);
    const values = s.turned('values', o.matrix(spec.v, keyHead), width);
    const lines = up(shape.block, shape.tile[0]);
    const [scores, byWeights] = [s.lines('scores', lines), s.lines('by_weights', lines)];
    const [byKeys, byValues] = [s.lines('by_keys', depth), s.lines('by_values', width)];
    s.clear(byKeys, depth, 0);
    s.clear(byValues, width, 0);
    const start = o.firstRow(first);
    b.loop(shared, (sharing) => {
      const head = e.add(e.mul(keyHead, shared), sharing);
      const [q, flow, mask] = [o.matrix(spec.q, head), o.matrix(spec.flow, head), o.mask(head)];
      const [logs, backs] = [logarithmsOf(o, spec, head), o.matrix(spec.back, head)];
      eachBlock(w, shape.block, rows, start, e.i32(rows), (from, length) => {
        s.products('products', scores, q, from, length, rows, depth, keys);
        s.products('flowing', byWeights, flow, from, length, rows, width, values);
        b.loop(length, (c) => {
          const row = e.add(from, c);
          const [log, back] = [logs, backs].map((m) =>
            e.splat(b.place(o.read(m.memory, placeOf(e, m, row, e.i32(0)))), shape.lanes),
          ) as [KNode, KNode];
          s.eachVector((x) => {
            const at = s.at(c, x);
            const score = b.place(s.masked(s.load(scores, at), mask, x, row, true));
            const weight = b.place(s.weight(score, log));
            b.store(scores, at, weight);
            b.store(byWeights, at, e.mul(weight, e.sub(s.load(byWeights, at), back)));
          });
        });
        s.accumulate('weights', byValues, flow, from, length, width, scores, null);
        s.accumulate('slopes', byKeys, q, from, length, depth, byWeights, null);
      });
    });
    const ofKeys = keyHeads * shared * rows * depth;
    s.write(byKeys, e.add(ofKeys, e.mul(keyHead, columns * depth)), depth);
    s.write(byValues, e.add(ofKeys + keyHeads * columns * depth, e.mul(keyHead, columns * width)), width);
  });
}
