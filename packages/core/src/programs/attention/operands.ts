/**
 * What programs of attention are given, and how they address it: matrices of heads, what a query may see, and arithmetic of scores.
 *
 * Queries are [...lead, G, L, E]: G heads share a head of keys and values, [...lead, S, E] and [...lead, S, V]. They carry the scale. A mask
 * has the axes of the scores, [...lead, G, L, S], some of size 1. Results of a forward program are the values of all heads and behind them
 * the logarithm of each row's sum of exponentials.
 */
import { decompose } from '../../arithmetic/decompose/decompose.ts';
import type { CodegenCaps } from '../../codegen/lowering.ts';
import type { Exprs } from '../../ir/expr.ts';
import type { KNode } from '../../ir/ir.ts';
import { type DType, dtypeInfo, isFloat } from '../../shape/dtype.ts';
import { type Shape, sizeOf } from '../../shape/view.ts';
import { positionOf, type ProgramWriter, type TensorView } from '../program-set.ts';
import type { SlotView } from '../scan/scan.ts';

/** What attention is to do, as far as programs differ by it. */
export interface AttentionAttr {
  /** Keys before the first query, or null where all queries see all keys. */
  readonly causal: number | null;
  /** Numbers of a mask at or below this mask. */
  readonly bound: number;
}

/** Sizes of attention. */
export interface AttentionSizes {
  /** Heads of keys, and how many of queries share each. */
  readonly keyHeads: number;
  readonly shared: number;
  readonly rows: number;
  readonly columns: number;
  readonly depth: number;
  readonly width: number;
}

export interface AttentionSpec extends AttentionAttr, AttentionSizes {
  /** Slot 0, flat: what the programs make, in the dtype they compute in. */
  readonly out: TensorView;
  readonly q: SlotView;
  readonly k: SlotView;
  readonly v: SlotView;
  readonly mask: SlotView | null;
}

/** What programs of gradients are given besides; they make those of queries, keys and values one behind the other. */
export interface GradientSpec extends AttentionSpec {
  /** What the forward program made. */
  readonly made: SlotView;
  /** Gradient of the values, [...lead, G, L, V]. */
  readonly flow: SlotView;
  /** What the division takes back of a weight's gradient: the row's mean of it, [...lead, G, L, 1]. */
  readonly back: SlotView;
}

/** The sizes of operands with these shapes. */
export function sizesOf(q: Shape, k: Shape, v: Shape): AttentionSizes {
  const rank = q.length;
  return {
    keyHeads: sizeOf(q.slice(0, -3)),
    shared: q[rank - 3]!,
    rows: q[rank - 2]!,
    columns: k[rank - 2 - 1]!,
    depth: q[rank - 1]!,
    width: v[rank - 2]!,
  };
}

/** Below every score, and its distance from them is still a number. */
export const lowest = { float32: -1.7e38, float64: -8e307 } as const;

/** float32 or float64: what is computed in. */
export type Wide = keyof typeof lowest;

/** One matrix in memory. */
export interface Matrix {
  readonly memory: KNode;
  readonly start: KNode;
  /** Distances of neighbours in a column and in a row. */
  readonly row: number;
  readonly column: number;
}

/** Where an element of a matrix is. */
export function placeOf(e: Exprs, { start, row, column }: Matrix, i: KNode, j: KNode): KNode {
  return e.add(e.add(start, e.mul(i, row)), e.mul(j, column));
}

/** Operands of one program while it is written, and the arithmetic of its target. */
export class Operands {
  readonly w: ProgramWriter;
  readonly spec: AttentionSpec;
  readonly wide: Wide;
  readonly out: KNode;
  readonly #caps: CodegenCaps;
  readonly #memories: Map<number, KNode> = new Map();
  readonly #done: Map<KNode, KNode> = new Map();

  /** `access`: 'readwrite' for a program that sums up in its results. */
  constructor(w: ProgramWriter, spec: AttentionSpec, caps: CodegenCaps, access: 'write' | 'readwrite' = 'write') {
    this.w = w;
    this.spec = spec;
    this.wide = spec.out.dtype as Wide;
    this.#caps = caps;
    this.out = w.param(0, spec.out.dtype, access, spec.out.span);
  }

  /** The expression in operations that the target has. */
  ready(n: KNode): KNode {
    return decompose([n], this.w.e, this.#caps, this.#done)[0]!;
  }

  exp(x: KNode): KNode {
    return this.ready(this.w.e.unary('EXP', x));
  }

  log(x: KNode): KNode {
    return this.ready(this.w.e.unary('LOG', x));
  }

  /** The greater of two; x where either is NaN, which a row's sum has from its exponentials. */
  greater(x: KNode, y: KNode): KNode {
    return this.w.e.where(this.w.e.lt(x, y), y, x);
  }

  /** x * y + z. */
  product(x: KNode, y: KNode, z: KNode): KNode {
    return this.ready(this.w.e.ternary('MULADD', x, y, z));
  }

  number(value: number): KNode {
    return this.w.e.constant(this.wide, value);
  }

  memory({ slot, view }: SlotView): KNode {
    const known = this.#memories.get(slot);
    if (known !== undefined) return known;
    const memory = this.w.param(slot, view.dtype, 'read', view.span);
    this.#memories.set(slot, memory);
    return memory;
  }

  /** The matrix of a head: what the last two axes are for an index of those before, counted in row-major order. */
  matrix(operand: SlotView, head: KNode): Matrix {
    const { view } = operand;
    const lead: TensorView = { ...view, shape: view.shape.slice(0, -2), strides: view.strides.slice(0, -2) };
    const [row, column] = view.strides.slice(-2) as [number, number];
    return { memory: this.memory(operand), start: positionOf(this.w.e, lead, head), row, column };
  }

  /** The mask of a head as a matrix of all scores; null where there is none. */
  mask(head: KNode): Matrix | null {
    const { mask, q, rows, columns } = this.spec;
    if (mask === null) return null;
    const { view } = mask;
    const shape = [...q.view.shape.slice(0, -2), rows, columns];
    const strides = view.strides.map((stride, i) => (view.shape[i] === 1 ? 0 : stride));
    return this.matrix({ slot: mask.slot, view: { ...view, shape, strides } }, head);
  }

  /** A value of memory in the dtype that is computed in. */
  read(memory: KNode, at: KNode, lanes = 1, gate?: KNode): KNode {
    return this.w.e.cast(this.w.b.load(memory, at, lanes, gate), this.wide);
  }

  /** A score with its mask, which is read at `at` where it is not null, and whether it counts; `inside`: what positions say. */
  masked(score: KNode, mask: Matrix | null, at: KNode | null, inside: KNode): { score: KNode; allowed: KNode } {
    const { b, e } = this.w;
    if (mask === null || at === null) return { score, allowed: inside };
    const gate = inside.op === 'CONST' ? undefined : b.place(inside);
    const own = b.load(mask.memory, at, 1, gate);
    if (!isFloat(mask.memory.dtype as DType)) return { score, allowed: e.and(inside, own) };
    const value = e.cast(own, this.wide);
    const hidden = e.le(value, this.number(this.spec.bound));
    return { score: e.add(score, value), allowed: e.and(inside, e.not(hidden)) };
  }

  /** Keys that any of the queries before `end` sees. */
  columnsSeen(end: KNode): KNode {
    const { causal, columns } = this.spec;
    const { e } = this.w;
    return causal === null ? e.i32(columns) : e.max(0, e.min(columns, e.add(end, causal)));
  }

  /** The first query that sees a key. */
  firstRow(column: KNode): KNode {
    const { causal, rows } = this.spec;
    const { e } = this.w;
    return causal === null ? e.i32(0) : e.max(0, e.min(rows, e.sub(column, causal)));
  }

  /** True where the query sees the key by their positions. */
  sees(row: KNode, column: KNode): KNode {
    const { causal } = this.spec;
    const { e } = this.w;
    return causal === null ? e.bool(true) : e.le(column, e.add(row, causal));
  }
}

/** Bytes of an element that is computed with. */
export function wideBytes({ out }: AttentionSpec): number {
  return dtypeInfo[out.dtype].bytes;
}
