/**
 * The planner's graph: a copy of a captured graph without tensors, buffers or history; equal nodes are merged, and simplified when made.
 *
 * A plan is built from this graph and must not keep user data alive, so nothing here points at a graph Node. Sources
 * come before users in `nodes`. Rules that replace a node by simpler ones are in rewrite.ts.
 */
import type { Attrs, ConvAttr, PrimitiveName } from '../../graph/node.ts';
import { definitionOf, type Role } from '../../graph/definition.ts';
import type { Exprs } from '@polygrad/compiler/ir/expr';
import type { LoopTools } from '@polygrad/compiler/codegen/loops/sized';
import type { KNode, LoopKernel } from '@polygrad/compiler/ir/ir';
import { type DType, dtypeInfo } from '@polygrad/compiler/shape/dtype';
import { type Shape, sizeOf } from '@polygrad/compiler/shape/view';
import { encodeAttr, IntWriter, textOf } from './cache.ts';

/** Reductions below this many elements per result stay whole (split.ts). */
export const splitLeast = 8192;
/** Results that are enough parallel work by themselves. */
export const manyResults = 64;
/** With that many results, reductions of fewer elements stay whole. */
export const longColumns: number = 2 ** 20;

/** Where a leaf's elements are, apart from the offset that is bound at each run. */
export interface LeafInfo {
  /** Position in the captured graph. */
  readonly local: number;
  readonly strides: readonly number[];
  /** Elements between the bound offset (aligned down) and the first element. */
  readonly shift: number;
  /** Elements from the first to the last one touched. */
  readonly span: number;
  /** Which of the flush's buffers, counted by first appearance. */
  readonly buffer: number;
  readonly donatable: boolean;
}

export interface PlanNode<P extends PrimitiveName = PrimitiveName> {
  readonly index: number;
  readonly op: P;
  readonly attr: Attrs[P];
  readonly src: readonly PlanNode[];
  readonly shape: Shape;
  readonly dtype: DType;
  readonly size: number;
  readonly role: Role;
  readonly leaf: LeafInfo | null;
  /** Position in the captured graph of the scalar that gives the value, or -1. */
  readonly scalar: number;
  /** Must be in memory, in row-major order. */
  forced: boolean;
  /** How many nodes use it; a node that uses it twice counts once. */
  users: number;
}

/**
 * The sizes that a plan is bound to, each between its `low` and `high`. Shapes hold their capacities instead: primes that divide no other
 * number in the shapes.
 */
export interface PlanSize {
  readonly capacities: readonly number[];
  readonly low: readonly number[];
  readonly high: readonly number[];
  /**
   * Extents that are stretches one after another: how many, and how long each is. [4, n] flattened is [4, n]; [n, 4] is not here. At capacity
   * each stretch has the length of the capacity. So positions along such an axis are (stretch, place in it), or have more such digits.
   */
  readonly stretches: ReadonlyMap<number, readonly number[]>;
  /** The number divided by the sizes in it; 0 for numbers that do not depend on them. */
  factorOf(n: number): number;
  /** The number of elements at sizes between the least and the greatest. Cost estimates use it. */
  typical(n: number): number;
  /** The number as an expression, with the bound sizes in place of capacities. */
  bound(e: Exprs, n: number): KNode;
  /** Throws SizesRefused for a node with an extent that is no size, and looks like one. */
  check(op: PrimitiveName, attr: unknown, src: readonly PlanNode[], shape: Shape): void;
  /**
   * Bytes of a leaf, of an output or of a temporary that was noted, as a function of the sizes, without those before `start`; null where they are fixed, and for
   * other nodes.
   */
  bytesOf(node: PlanNode, elementBytes: number, start: number): SizedBytes | null;
  /**
   * Notes a node that a loop nest stores: if it is a temporary, it is as long as from the first to the last element used. Without strides it is row-major.
   * Programs read all of a temporary, so none that they read is shorter.
   */
  noteTemporary(
    node: PlanNode,
    readers: ReadonlySet<{ readonly handwritten: boolean }>,
    strides?: readonly number[],
  ): void;
  /** True for a temporary whose strides are those of the bound size. */
  follows(node: PlanNode): boolean;
  /** Makes a sized axis the first in an order of axes, outermost first, unless strides follow the sizes. */
  outermost(shape: Shape, order: number[]): void;
  /**
   * Position in memory of an element of a leaf, an output or a temporary whose strides follow the bound size. Null where they do not depend on it.
   */
  placeIn(e: Exprs, node: PlanNode, index: readonly KNode[], strides: readonly number[]): KNode | null;
  /** From a position at capacity to the element's number at the bound size. */
  numberOf(e: Exprs, extent: number, position: KNode): KNode;
  /** From an element's number at the bound size to its position at capacity. */
  positionOf(e: Exprs, extent: number, number: KNode): KNode;
  /** Sources of an operation as its programs need them: copied to fixed strides, and padded to the capacity if programs visit all of it. */
  forPrograms(graph: PlanGraph, op: PrimitiveName, attr: unknown, src: readonly PlanNode[]): readonly PlanNode[];
  /** The product with one more summed axis in front of both factors. `plain`: attributes without that axis; a product with others already has it. */
  counted(graph: PlanGraph, product: Product, plain: Product['attr']): Product;
  /** True if a slice of an output starts at an element that depends on a size. Throws SizesRefused where its strides do. */
  startsLater(start: readonly number[], from: Shape, strides: readonly number[]): boolean;
  /** True if one of the sizes is among the nodes of a kernel, as the end of a loop. */
  isIn(nodes: ReadonlySet<KNode>): boolean;
  /** The kernel with loops that end at sizes merged, where tensors lie so, and reductions in squares, unless groups have threads. */
  merged(loop: LoopKernel, e: Exprs, tools: LoopTools): LoopKernel;
}

/** A product of matrices: its attributes and factors. */
export type Product = Pick<PlanNode<'dotGeneral'>, 'attr' | 'src'>;

/**
 * Bytes that depend on sizes: `unit` for each element of a shape (or, with strides, from the first to the last one touched), and
 * `more` besides.
 */
export interface SizedBytes {
  readonly unit: number;
  readonly shape: Shape;
  readonly strides: readonly number[] | null;
  readonly more: number;
  /** True where the strides are those at capacity, whatever the sizes are. */
  readonly fixed?: true;
}

/** A captured graph at the capacity of a class of sizes (planner/families/). */
export interface SizedGraph {
  readonly size: PlanSize;
  /** The plan's cache key: the key of the captured graph at capacity, and what the sizes are. */
  key(): Int32Array;
  shapeOf(local: number): Shape;
  stridesOf(local: number, strides: readonly number[]): readonly number[];
  attrOf(local: number): unknown;
  /** A constant whose value is bound at each run. */
  isBound(local: number): boolean;
}

/** Thrown for graphs that one plan cannot compute for all sizes of a class. */
export class SizesRefused extends Error {}

/** The number of elements for cost estimates: in a plan for several sizes, at one between the least and the greatest. */
export function typicalOf(size: PlanSize | null, n: number): number {
  return size === null ? n : size.typical(n);
}

/** The number divided by the sizes of a plan in it; 0 for numbers that do not depend on them. */
export function sizeFactor(size: PlanSize | null, n: number): number {
  return size?.factorOf(n) ?? 0;
}

/** True if the node is of this primitive; narrows `attr`. */
export function isPlanOp<P extends PrimitiveName>(node: PlanNode, op: P): node is PlanNode<P> {
  return node.op === op;
}

/** True for sources that the programs of a node (planner/lowering/rules.ts) do not read, because they are numbers written into the code. */
export function isBakedIn(node: PlanNode, source: PlanNode): boolean {
  return source.op === 'constant' && (node.op === 'scatter' || node.op === 'scatterAdd') && source !== node.src[1];
}

/** Tried before a node is made: returns an equivalent, simpler node, or null. */
export type Rewrite = (
  graph: PlanGraph,
  op: PrimitiveName,
  attr: Attrs[PrimitiveName],
  src: readonly PlanNode[],
  shape: Shape,
  dtype: DType,
) => PlanNode | null;

/**
 * A convolution whose input is dilated along some spatial axes, with stride 1 there, as one of the input itself; null where several are as good. `isMany`: those
 * would be too many.
 */
export type Phases = (
  graph: PlanGraph,
  attr: ConvAttr,
  src: readonly [PlanNode, PlanNode],
  shape: Shape,
  dtype: DType,
  axes: readonly number[],
  isMany: boolean,
) => PlanNode | null;

export class PlanGraph {
  readonly nodes: PlanNode[] = [];
  readonly #rewrite: Rewrite;
  readonly #known = new Map<string, PlanNode>();
  readonly #writer = new IntWriter();
  /** The sizes in its shapes; null for a plan of one size. */
  readonly size: PlanSize | null;
  /** The shape of the node that is being imported: which of its extents are sizes is known. */
  given: Shape | null = null;

  /** How the engine has dilated convolutions split, beside a convolution for each phase. */
  readonly phases: Phases | undefined;

  constructor(rewrite: Rewrite, size: PlanSize | null = null, phases?: Phases) {
    this.#rewrite = rewrite;
    this.size = size;
    this.phases = phases;
  }

  /** True if one of the axes depends on a size. */
  sizedAmong(shape: Shape, axes: readonly number[]): boolean {
    return this.size !== null && axes.some((axis) => sizeFactor(this.size, shape[axis]!) > 0);
  }

  leaf(shape: Shape, dtype: DType, info: LeafInfo): PlanNode {
    return Object.assign(this.#append('buffer', { shape, dtype }, [], shape, dtype), { leaf: info });
  }

  scalar(dtype: DType, local: number): PlanNode {
    return Object.assign(this.#append('scalar', { value: 0, dtype }, [], [], dtype), { scalar: local });
  }

  /** The node, or an equal or simpler one in its place. */
  make<P extends PrimitiveName>(op: P, attr: Attrs[P], src: readonly PlanNode[], shape: Shape, dtype: DType): PlanNode {
    return this.#rewrite(this, op, attr, src, shape, dtype) ?? this.exactly(op, attr, src, shape, dtype);
  }

  /** The node without rewrites; merged with an equal one, except random bits, which are never merged. */
  exactly<P extends PrimitiveName>(
    op: P,
    attr: Attrs[P],
    src: readonly PlanNode[],
    shape: Shape,
    dtype: DType,
  ): PlanNode {
    if (op === 'randomBits') return this.#append(op, attr, src, shape, dtype);
    const out = this.#writer;
    out.length = 0;
    out.reserve(shape.length * 8 + src.length + 64);
    out.push(definitionOf(op).id);
    out.push(dtypeInfo[dtype].id);
    if (attr !== null) encodeAttr(op, attr, out);
    if (src.length === 0) out.list(shape);
    for (let i = 0; i < src.length; i++) out.push(src[i]!.index);
    const key = textOf(out);
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const node = this.#append(op, attr, src, shape, dtype);
    this.#known.set(key, node);
    return node;
  }

  constant(value: number | bigint, shape: Shape, dtype: DType): PlanNode {
    return this.exactly('constant', { value, shape, dtype }, [], shape, dtype);
  }

  reshape(x: PlanNode, shape: Shape): PlanNode {
    return this.make('reshape', { shape }, [x], shape, x.dtype);
  }

  /** Removes nodes that no forced node needs, and counts users. */
  finish(): void {
    const needed = new Set<PlanNode>();
    for (let i = this.nodes.length - 1; i >= 0; i--) {
      const node = this.nodes[i]!;
      if (node.forced) needed.add(node);
      if (!needed.has(node)) continue;
      for (const s of new Set(node.src)) {
        needed.add(s);
        s.users++;
      }
    }
    const kept = this.nodes.filter((node) => needed.has(node));
    this.nodes.length = 0;
    for (const node of kept) {
      (node as { index: number }).index = this.nodes.length;
      this.nodes.push(node);
    }
    this.#known.clear();
  }

  #append(
    op: PrimitiveName,
    attr: Attrs[PrimitiveName],
    src: readonly PlanNode[],
    shape: Shape,
    dtype: DType,
  ): PlanNode {
    if (shape !== this.given) this.size?.check(op, attr, src, shape);
    const definition = definitionOf(op);
    const role = definition.roleOf?.(attr, src) ?? definition.role;
    const node = {
      index: this.nodes.length,
      op,
      attr,
      src,
      shape,
      dtype,
      size: sizeOf(shape),
      role,
      leaf: null,
      scalar: -1,
      forced: false,
      users: 0,
    };
    this.nodes.push(node);
    return node;
  }
}
