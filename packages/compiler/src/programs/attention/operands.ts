/**
 * Operands of attention programs and how they are addressed: matrices of heads, masks, causal bounds, and arithmetic of scores.
 *
 * Queries are [...lead, G, L, E]: G heads share a head of keys and values, [...lead, S, E] and [...lead, S, V]. A mask
 * has the axes of the scores, [...lead, G, L, S], some of size 1. A row of a forward program's result is the values of a query,
 * and behind them the logarithm of its sum of exponentials.
 *
 * Numbers of heads, queries and keys may be sizes that are bound at each run. Programs are written for their capacities, and `now`
 * gives the bound numbers.
 */
import { decompose } from '../../arithmetic/decompose/decompose.ts';
import type { CodegenCaps } from '../../codegen/lowering.ts';
import type { Exprs } from '../../ir/expr.ts';
import type { KNode } from '../../ir/ir.ts';
import { type DType, dtypeInfo, isFloat } from '../../shape/dtype.ts';
import { type Shape, sizeOf } from '../../shape/view.ts';
import { positionOf, type ProgramSizes, type ProgramWriter, type Temp, type TensorView } from '../program-set.ts';
import type { SlotView } from '../scan/scan.ts';

/** What attention is to do, as far as programs differ by it. */
export interface AttentionAttr {
  /** Keys before the first query, or null where all queries see all keys. */
  readonly causal: number | null;
  /** Numbers of a mask at or below this mask. */
  readonly bound: number;
  /** Factor of the scores; 1 where the queries carry it. */
  readonly scale: number;
}

/** Which gradients a program makes: of queries; of keys and values in one row; or all in one row, if there are as many queries as keys. */
export type GradientPart = 'all' | 'queries' | 'keys';

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

/** A tensor of the kernel, or a temporary of its programs. */
export interface Operand extends SlotView {
  readonly temp?: Temp;
}

export interface AttentionSpec extends AttentionAttr, AttentionSizes {
  /** Slot 0: what the programs make, in the dtype they compute in. */
  readonly out: TensorView;
  readonly q: Operand;
  readonly k: Operand;
  readonly v: Operand;
  readonly mask: Operand | null;
  /** Which of its numbers are bound at each run; null: none. */
  readonly sizes: ProgramSizes | null;
}

/** The spec of a gradient program: that of attention, the forward result, and gradients. */
export interface GradientSpec extends AttentionSpec {
  readonly part: GradientPart;
  /** What the forward program made. */
  readonly made: Operand;
  /** Gradient of the values, [...lead, G, L, V]. */
  readonly flow: Operand;
  /** The term that softmax subtracts from each weight's gradient: the row's weighted mean of those, [...lead, G, L, 1]. */
  readonly back: Operand;
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

/** Elements of a row of the forward result: whole vectors; the one behind the values begins with the logarithm. */
export function madeWidth(width: number): number {
  return 4 * Math.ceil((width + 1) / 4);
}

/** Below every score, but finite, so that differences from it are no NaN. */
export const lowest = { float32: -1.7e38, float64: -8e307 } as const;

/** float32 or float64: what is computed in. */
export type Wide = keyof typeof lowest;

/** Where the elements of a matrix are. */
export interface Place {
  readonly start: KNode;
  /** Distances of neighbours in a column and in a row. */
  readonly row: KNode;
  readonly column: KNode;
}

/** One matrix in memory. */
export interface Matrix extends Place {
  readonly memory: KNode;
}

/** Where an element of a matrix is. */
export function placeOf(e: Exprs, { start, row, column }: Place, i: KNode, j: KNode): KNode {
  return e.add(e.add(start, e.mul(i, row)), e.mul(j, column));
}

/** The matrix from a column on. */
export function fromColumn<M extends Place>(e: Exprs, matrix: M, first: KNode | number): M {
  return { ...matrix, start: e.add(matrix.start, e.mul(matrix.column, first)) };
}

/** True if a distance is this number whatever the sizes are. */
export function isDistance(distance: KNode, n: number): boolean {
  return distance.op === 'CONST' && distance.arg.value === n;
}

/** Operands of one program while it is written, and the arithmetic of its target. */
export class Operands<S extends AttentionSpec = AttentionSpec> {
  readonly w: ProgramWriter;
  readonly spec: S;
  readonly wide: Wide;
  readonly #access: 'write' | 'readwrite';
  readonly #caps: CodegenCaps;
  readonly #memories: Map<number, KNode> = new Map();
  readonly #done: Map<KNode, KNode> = new Map();

  /** `access`: 'readwrite' for a program that sums up in its results. */
  constructor(w: ProgramWriter, spec: S, caps: CodegenCaps, access: 'write' | 'readwrite' = 'write') {
    this.w = w;
    this.spec = spec;
    this.wide = spec.out.dtype as Wide;
    this.#caps = caps;
    this.#access = access;
  }

  /** Memory of the results. */
  get out(): KNode {
    const { dtype, span, held } = this.spec.out;
    const memory = this.#memories.get(0) ?? this.w.param(0, dtype, this.#access, span, held);
    this.#memories.set(0, memory);
    return memory;
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

  /** True where threads copy to group memory beside other work. */
  get copies(): boolean {
    return this.#caps.copies === true;
  }

  number(value: number): KNode {
    return this.w.e.constant(this.wide, value);
  }

  // --- sizes

  /** How many there are of `n` at the sizes that are bound. */
  now(n: number): KNode {
    return this.spec.sizes?.bound(this.w.e, n) ?? this.w.e.i32(n);
  }

  /** True if there are `n`, and a multiple of `unit`, whatever sizes are bound. */
  isWhole(n: number, unit: number): boolean {
    return n % unit === 0 && this.isFixed(n);
  }

  isFixed(n: number): boolean {
    return (this.spec.sizes?.factorOf(n) ?? 0) === 0;
  }

  /**
   * Writes what a unit of the program does, where there is such a head and such a position of `count`: units are counted at capacity. Heads are
   * those of the axes of an operand before its last two.
   */
  ifThere({ view: { shape } }: SlotView, head: KNode, first: KNode | null, count: number, write: () => void): void {
    const { b, e } = this.w;
    const conditions: KNode[] = [];
    let rest = head;
    for (const n of shape.slice(0, -2).reverse()) {
      if (!this.isFixed(n)) conditions.push(e.lt(e.irem(rest, n), this.now(n)));
      rest = e.idiv(rest, n);
    }
    if (first !== null && !this.isFixed(count)) conditions.push(e.lt(first, this.now(count)));
    if (conditions.length === 0) write();
    else b.ifThen(conditions.reduce((x, y) => e.and(x, y)), write); // biome-ignore format: one condition
  }

  // --- memory

  memory({ slot, view, temp }: Operand): KNode {
    if (slot === 0) return this.out;
    const known = this.#memories.get(slot);
    if (known !== undefined) return known;
    const memory =
      temp === undefined ? this.w.param(slot, view.dtype, 'read', view.span, view.held) : this.w.temp(temp, 'read');
    this.#memories.set(slot, memory);
    return memory;
  }

  /** The matrix of a head: what the last two axes are for an index of those before, counted in row-major order. */
  matrix(operand: Operand, head: KNode): Matrix {
    return { memory: this.memory(operand), ...this.placeOfHead(operand, head) };
  }

  /** Where that matrix is. */
  placeOfHead({ view }: SlotView, head: KNode): Place {
    const { e } = this.w;
    const lead: TensorView = { ...view, shape: view.shape.slice(0, -2), strides: view.strides.slice(0, -2) };
    const distance = (stride: number): KNode => (view.held === true ? this.now(stride) : e.i32(stride));
    const [row, column] = view.strides.slice(-2).map(distance) as [KNode, KNode];
    const start = view.held === true ? this.#heldStart(lead, head) : positionOf(e, lead, head);
    return { start, row, column };
  }

  /** `positionOf` in what is laid out for the sizes that are bound. */
  #heldStart({ shape, strides, shift }: TensorView, head: KNode): KNode {
    const { e } = this.w;
    let [at, rest]: [KNode, KNode] = [e.i32(shift), head];
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      at = e.add(at, e.mul(e.irem(rest, shape[axis]!), this.now(strides[axis]!)));
      rest = e.idiv(rest, shape[axis]!);
    }
    return at;
  }

  /** What is made for a head of as many rows as an operand has. */
  made(head: KNode): Matrix {
    return this.matrix({ slot: 0, view: this.spec.out }, head);
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

  // --- scores

  /** A product of a query and a key as a score. */
  scaled(product: KNode): KNode {
    const { scale } = this.spec;
    return scale === 1 ? product : this.w.e.mul(product, scale);
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
    return causal === null ? this.now(columns) : e.max(0, e.min(this.now(columns), e.add(end, causal)));
  }

  /** The first query that sees a key. */
  firstRow(column: KNode): KNode {
    const { causal, rows } = this.spec;
    const { e } = this.w;
    return causal === null ? e.i32(0) : e.max(0, e.min(this.now(rows), e.sub(column, causal)));
  }

  /** True where the query sees the key by their positions. */
  sees(row: KNode, column: KNode): KNode {
    const { causal } = this.spec;
    const { e } = this.w;
    return causal === null ? e.bool(true) : e.le(column, e.add(row, causal));
  }
}

/** The results of gradients of a head of queries, the `sharing`-th of a head of keys. */
export function queriesMade(o: Operands<GradientSpec>, head: KNode, keyHead: KNode, sharing: KNode): Matrix {
  const { part, depth } = o.spec;
  return part === 'all' ? fromColumn(o.w.e, o.made(keyHead), o.w.e.mul(sharing, depth)) : o.made(head);
}

/** Those of a head of keys, in front of those of its values. */
export function keysMade(o: Operands<GradientSpec>, keyHead: KNode): Matrix {
  const { part, depth, shared } = o.spec;
  return fromColumn(o.w.e, o.made(keyHead), part === 'all' ? shared * depth : 0);
}

/** Bytes of an element that is computed with. */
export function wideBytes({ out }: AttentionSpec): number {
  return dtypeInfo[out.dtype].bytes;
}
