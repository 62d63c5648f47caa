/**
 * Loops as the graph sees them: a node of the loop, whose sources are what goes in, and one node for each value that comes out.
 *
 * The body is a graph of its own. Its nodes count in nothing and wait for nothing: they are computed by runtime/loops.ts, step by step, with its
 * bound nodes standing for slices. A bound node may be any node, so bodies of derivatives share the nodes of the body they are derivatives of.
 */
import type { DType } from '@polygrad/compiler/shape/dtype';
import type { BatchContext, GradientContext, TangentContext } from './definition.ts';
import type { GradientSlot, Node } from './node.ts';

declare module './node.ts' {
  interface Attrs {
    /** Sources: where the carries start, what steps are given ([length, ...]), and the values of `body.constants`. It has no value itself. */
    loop: LoopAttr;
    /** What comes out of a loop, its only source. */
    loopOutput: LoopOutputAttr;
    /** A gradient of an output, on its way to the loop: gradients of several outputs are added up, and stay apart. */
    loopGradient: { readonly output: Node<'loopOutput'> };
  }
}

export interface LoopAttr {
  readonly body: LoopBody;
  readonly length: number;
  /** From the last slice to the first. */
  readonly reverse: boolean;
}

/** `last`: the value of that carry after the last step. Else `each`: the value of a node of the body at each step, [length, ...]. */
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
  /** Bound nodes: the carries before a step, and its slices. */
  readonly carries: readonly Node[];
  readonly items: readonly Node[];
  /** What the carries become. */
  readonly next: readonly Node[];
  /** Nodes from outside that the body reads, the same at each step. */
  readonly constants: readonly Node[];
  /** A float dtype that an engine holds only if it holds all that the body computes in. */
  readonly dtype: DType;
  /** Derivatives compute again what is not a carry, rather than keep it of each step. */
  readonly recompute: boolean;
  readonly rules: LoopRules;
  /** All outputs asked for so far. Those that are needed when the loop runs are computed together. */
  readonly outputs: Node<'loopOutput'>[] = [];
  /** Nodes of the body that this one was made from, and what became of them here: of a tangent, of a batch. */
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

/** Stands in a node of a body: such nodes are no leaves, whatever they may be. */
const inLoop: GradientSlot = { grad: null };

/**
 * Makes nodes part of a body: they count in no source, no end of a handle takes them apart, and no tape knows them. What they read from outside is
 * held by the node of the loop.
 */
export function putInLoop(nodes: Iterable<Node>): void {
  for (const node of nodes) {
    if (node.slot !== inLoop) {
      node.slot = inLoop;
      // Never given back: who disposes a handle of it leaves it whole.
      node.uses++;
    }
    node.pins = 0;
    node.requiresGrad = false;
    const { edges } = node;
    if (edges !== 'uses' && edges !== 'handles') continue;
    node.edges = 'floating';
    for (const source of node.src) {
      if (edges === 'handles') source.handles--;
      else source.uses--;
    }
  }
}
