/**
 * Loops in the graph: one node for the loop, whose sources are its inputs, and one node for each value that it produces.
 *
 * The body of a loop, what one step does, is a graph of its own. Its nodes add nothing to the counts of their sources and are never pending:
 * runtime/loops.ts computes them step by step. A bound node stands for a carry or a slice of that step. Any node may be bound, so the body of
 * a derivative shares nodes with the body it comes from.
 */
import type { DType } from '@polygrad/compiler/shape/dtype';
import type { BatchContext, GradientContext, TangentContext } from './definition.ts';
import type { GradientSlot, Node } from './node.ts';

declare module './node.ts' {
  interface Attrs {
    /** Sources: initial carries, the inputs of the steps ([length, ...]), and the values of `body.constants`. It has no value itself. */
    loop: LoopAttr;
    /** A value produced by a loop, its only source. */
    loopOutput: LoopOutputAttr;
    /** The gradient of an output on its way to the loop. Gradients of several outputs are collected but not summed with each other. */
    loopGradient: { readonly output: Node<'loopOutput'> };
  }
}

export interface LoopAttr {
  readonly body: LoopBody;
  readonly length: number;
  /** True to run from the last slice to the first. */
  readonly reverse: boolean;
}

/** `last`: the value of that carry after the last step. Else `each`: the value of a node of the body at every step, [length, ...]. */
export interface LoopOutputAttr {
  readonly last: number;
  readonly each: Node | null;
}

/** How derivatives of loops are made (control/derivatives.ts). */
export interface LoopRules {
  gradient(c: GradientContext<'loop'>): readonly (Node | null)[];
  tangent(c: TangentContext<'loop'>): Node | null;
  batch(c: BatchContext<'loop'>): Node;
  outputTangent(output: Node<'loopOutput'>, tangent: Node): Node | null;
  outputBatch(output: Node<'loopOutput'>, batch: Node): Node;
}

/** What one step does. */
export class LoopBody {
  /** Bound nodes: the carries before a step, and the slices it reads. */
  readonly carries: readonly Node[];
  readonly items: readonly Node[];
  /** The carries after a step. */
  readonly next: readonly Node[];
  /** Nodes from outside that the body reads, equal at each step. */
  readonly constants: readonly Node[];
  /** A float dtype that an engine holds only if it holds all dtypes of the body. */
  readonly dtype: DType;
  /** True if derivatives recompute everything except carries, instead of keeping it for each step. */
  readonly recompute: boolean;
  readonly rules: LoopRules;
  /** All outputs requested so far. Those that are needed when the loop runs are computed together. */
  readonly outputs: Node<'loopOutput'>[] = [];
  /** For the body of a tangent or a batch: nodes of the original body, and their counterparts here. */
  readonly from: ReadonlyMap<Node, Node>;

  constructor(parts: Omit<LoopBody, 'outputs'>) {
    this.carries = parts.carries;
    this.items = parts.items;
    this.next = parts.next;
    this.constants = parts.constants;
    this.dtype = parts.dtype;
    this.recompute = parts.recompute;
    this.rules = parts.rules;
    this.from = parts.from;
  }

  toString(): string {
    return `${this.carries.length} carried, ${this.items.length} sliced, ${this.constants.length} constant`;
  }
}

/** The `slot` of nodes of a body: only a mark. Such nodes are no leaves, and it never holds a gradient. */
const inLoop: GradientSlot = { grad: null };

/**
 * Makes nodes part of a body: they count in no source, releasing a handle does not free them, and no tape records them. The loop's node holds
 * what they read from outside.
 */
export function putInLoop(nodes: Iterable<Node>): void {
  for (const node of nodes) {
    if (node.slot !== inLoop) {
      node.slot = inLoop;
      // Never taken back, so disposing a handle does not free the node.
      node.uses++;
    }
    node.pins = 0;
    node.requiresGrad = false;
    const { edges } = node;
    if (edges === 'dead') continue;
    // Rules of derivatives name them for a while: that counts in no source either.
    node.edges = 'body';
    if (edges !== 'uses' && edges !== 'handles') continue;
    for (const source of node.src) {
      if (edges === 'handles') source.handles--;
      else source.uses--;
    }
  }
}
