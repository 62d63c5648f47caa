/**
 * Which tensors have copies in host memory, or may be asked to have some, and the copies. How copies are made, and what they are for, is in
 * shadow.ts, which comes with what asks for them.
 */
import type { Node } from '../graph/node.ts';
import type { TypedArray } from '@polygrad/compiler/shape/dtype';

/** A tensor as far as copies go. */
export interface Protectable {
  readonly node: Node;
  readonly disposed: boolean;
}

/** Tensors held weakly, in the order they came. */
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
    // What one look finds, the next one finds too, until this turn of the event loop ends.
    this.#refs = this.#refs.filter((ref) => ref.deref()?.disposed === false);
    return this.#refs.map((ref) => ref.deref()!);
  }

  get size(): number {
    return this.#refs.length;
  }
}

/** What makes the copies, and what is made of them after a loss. */
export interface Keeper {
  /** Called at the end of every global flush: starts a round of reads if it is time for one. */
  shadow(read: (node: Node) => Promise<TypedArray>): void;
  /**
   * Once after a loss, as soon as another engine works: protected tensors that lived on the lost device have values again. True if it did
   * something. Where they are older ones, `takeUntold` says so.
   */
  restoreLost(): boolean;
}

/** What has copies, and the copies: a part of the runtime. */
export class Copies {
  /** Null until something is to have copies. */
  keeper: Keeper | null = null;
  /** Those given to protect(). */
  readonly named: WeakList = new WeakList();
  /** Those that belong to the state of a training. */
  readonly states: WeakList = new WeakList();
  values: WeakMap<Protectable, TypedArray> = new WeakMap();
  /** The same by the nodes that the tensors named, which keep their values unless they are written over in place. */
  ofNodes: WeakMap<Node, TypedArray> = new WeakMap();
  /** When the last complete round began, and how often nodes had been written over in place by then (replay/). */
  since: number = 0;
  overwrittenThen: number = 0;
  overwritten: number = 0;
  /** How often tensors went back to their copies: a round that began before is of no use. */
  rewinds: number = 0;
  /** The round of reads under way, and when it began. */
  reading: Promise<void> | null = null;
  last: number = Number.NEGATIVE_INFINITY;
  /** Losses after which tensors have been brought back. */
  losses: number = 0;

  /** What a loss has left must be looked at again: tensors name older values than they did then. */
  lookAgain(): void {
    this.losses = -1;
  }
}

/** The copies in use. */
export let copies: Copies = new Copies();

/** Other copies take their place. */
export function useCopies(next: Copies): void {
  copies = next;
}

/** A tensor that belongs to the state of a training: copied if the policy says `shadow`. */
export function addState(tensor: Protectable): void {
  copies.states.add(tensor);
}
