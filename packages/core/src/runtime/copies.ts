/**
 * Copies of tensors in host memory, and which tensors are to have them. shadow.ts makes the copies and restores tensors from
 * them. Programs load shadow.ts with the functions that ask for copies; this file is always there and knows no device.
 */
import type { Node } from '../graph/node.ts';
import type { TypedArray } from '@polygrad/compiler/shape/dtype';

/** The part of a tensor that copies need. */
export interface Protectable {
  readonly node: Node;
  readonly disposed: boolean;
}

/** Tensors held weakly, in the order they were added. */
class WeakList {
  #refs: WeakRef<Protectable>[] = [];
  #known = new WeakSet<Protectable>();
  #pruneAt = 64;

  add(tensor: Protectable): void {
    if (this.#known.has(tensor)) return;
    this.#known.add(tensor);
    this.#refs.push(new WeakRef(tensor));
    if (this.#refs.length < this.#pruneAt) return;
    this.alive();
    this.#pruneAt = 2 * this.#refs.length + 64;
  }

  delete(tensor: Protectable): void {
    if (!this.#known.delete(tensor)) return;
    this.#refs = this.#refs.filter((ref) => ref.deref() !== tensor);
  }

  alive(): Protectable[] {
    // Until this turn of the event loop ends, the next call finds the same tensors alive.
    this.#refs = this.#refs.filter((ref) => ref.deref()?.disposed === false);
    return this.#refs.map((ref) => ref.deref()!);
  }

  get size(): number {
    return this.#refs.length;
  }
}

/** Makes the copies, and restores tensors from them after a loss. */
export interface Keeper {
  /** Called at the end of every global flush: starts a round of reads if one is due. */
  shadow(read: (node: Node) => Promise<TypedArray>): void;
  /**
   * Called once after a loss, when another engine works: gives protected tensors of the lost device values again. True if it changed
   * something. Where the values are older ones, `takeUntold` says so.
   */
  restoreLost(): boolean;
}

/** Tensors with copies, and the copies: a part of the runtime. */
export class Copies {
  /** Null until a tensor is to have copies. */
  keeper: Keeper | null = null;
  /** Tensors given to protect(). */
  readonly named: WeakList = new WeakList();
  /** Tensors of a training's state. */
  readonly states: WeakList = new WeakList();
  values: WeakMap<Protectable, TypedArray> = new WeakMap();
  /** The copies by node. A node keeps its value unless it is overwritten in place. */
  ofNodes: WeakMap<Node, TypedArray> = new WeakMap();
  /** When the last complete round began. */
  since: number = 0;
  /** Nodes overwritten in place (replay/) when it began, and so far. */
  overwrittenThen: number = 0;
  overwritten: number = 0;
  /** How often tensors went back to their copies: a round that began before is discarded. */
  rewinds: number = 0;
  /** The current round of reads, and when it began. */
  reading: Promise<void> | null = null;
  last: number = Number.NEGATIVE_INFINITY;
  /** Losses after which tensors were restored. */
  losses: number = 0;

  /** Has the effects of a loss checked again, because tensors now name older values. */
  lookAgain(): void {
    this.losses = -1;
  }
}

/** The copies in use. */
export let copies: Copies = new Copies();

/** Replaces the copies in use. */
export function useCopies(next: Copies): void {
  copies = next;
}

/** Adds a tensor of a training's state: copied if the policy says `shadow`. */
export function addState(tensor: Protectable): void {
  copies.states.add(tensor);
}
