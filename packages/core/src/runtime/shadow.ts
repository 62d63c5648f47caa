/**
 * Copies in host memory of tensors that must survive a lost device: protect(), and all parameters with `shadow`.
 *
 * All of them are read at one point of the device's order, so a copy is one state of a training, never a mixture. One round of
 * reads is under way at a time, behind the steps and without anybody waiting; the copy is replaced only when all of a round has
 * arrived. After a loss, what lived on the lost device gets the values of the last complete copy.
 */
import { type BufferPool, type PoolBuffer, poolOf } from '../engine/pool.ts';
import { engines, getEngine } from '../engine/registry.ts';
import { type Node, realise } from '../graph/node.ts';
import { nodesBelow } from '../graph/print.ts';
import type { TypedArray } from '../shape/dtype.ts';
import { isGone } from './placement.ts';
import { upload } from './upload.ts';

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

/** What has copies, and the copies: a part of the runtime. */
export class Copies {
  /** Those given to protect(). */
  readonly named: WeakList = new WeakList();
  /** Those that belong to the state of a training. */
  readonly states: WeakList = new WeakList();
  values: WeakMap<Protectable, TypedArray> = new WeakMap();
  /** The round of reads under way, and when it began. */
  reading: Promise<void> | null = null;
  last: number = Number.NEGATIVE_INFINITY;
  /** Losses after which tensors have been brought back. */
  losses: number = 0;
}

/** The copies in use. */
export let copies: Copies = new Copies();

/** Other copies take their place. */
export function useCopies(next: Copies): void {
  copies = next;
}

/** Adds tensors to those with copies. */
export function protectHandles(tensors: readonly Protectable[]): void {
  for (const tensor of tensors) copies.named.add(tensor);
  copies.last = Number.NEGATIVE_INFINITY;
}

/** Takes tensors out again and forgets their copies. */
export function unprotectHandles(tensors: readonly Protectable[]): void {
  for (const tensor of tensors) {
    copies.named.delete(tensor);
    copies.values.delete(tensor);
  }
}

/** A tensor that belongs to the state of a training: copied if the policy says `shadow`. */
export function addState(tensor: Protectable): void {
  copies.states.add(tensor);
}

function covered(): readonly Protectable[] {
  const { named, states } = copies;
  const all = named.alive();
  return engines.policy.shadow ? [...new Set([...all, ...states.alive()])] : all;
}

/** True if the value is gone, or would be computed from one that is. */
function needsLost(node: Node): boolean {
  return nodesBelow([node]).some((n) => n.storage !== null && isGone(n));
}

const isFar = ({ engine, lost }: BufferPool): boolean => engine.name !== 'cpu' && lost === null;
const poolOfNode = (node: Node): PoolBuffer['pool'] => (node.storage!.buffer as PoolBuffer).pool;

/** Called at the end of every global flush: starts a round of reads if it is time for one. */
export function shadow(read: (node: Node) => Promise<TypedArray>): void {
  const c = copies;
  if ((c.named.size === 0 && !engines.policy.shadow) || c.reading !== null) return;
  restoreLost();
  const now = performance.now();
  if (now - c.last < engines.policy.interval) return;
  const tensors = covered();
  // Half a step is no state: wait until all of it is in memory, but for what is lost already.
  if (tensors.some(({ node }) => node.storage === null && !needsLost(node))) return;
  const far = tensors.filter(({ node }) => node.storage !== null && isFar(poolOfNode(node)) && !node.shape.includes(0));
  if (far.length === 0) return;
  c.last = now;
  c.reading = Promise.all(far.map(({ node }) => read(node))).then(
    (values) => {
      c.values = new WeakMap(far.map((tensor, i) => [tensor, values[i]!]));
      c.reading = null;
    },
    () => {
      // The last complete copy stays.
      c.reading = null;
    },
  );
}

/** Resolves when no copy is being made. For tests, and before a program ends with what it has. */
export async function shadowed(): Promise<void> {
  await copies.reading;
}

/**
 * Once after a loss, as soon as another engine works: gives protected tensors that lived on the lost device the values of the last
 * complete copy. True if it did something.
 */
export function restoreLost(): boolean {
  const { losses } = engines;
  if (copies.losses === losses || poolOf(getEngine()).lost !== null) return false;
  copies.losses = losses;
  let found = false;
  for (const tensor of covered()) {
    const { node } = tensor;
    const values = copies.values.get(tensor);
    if (values === undefined || !needsLost(node)) continue;
    const storage = upload(values, node.shape, node.dtype, () => undefined);
    if (node.storage === null) realise(node, storage);
    else {
      const old = node.storage.buffer;
      node.storage = storage;
      old.release();
    }
    found = true;
  }
  return found;
}
