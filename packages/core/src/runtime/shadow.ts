/**
 * Copies in host memory of tensors that must survive a lost device: protect(), and all parameters with `shadow`.
 *
 * All of them are read at one point of the device's order, so a copy is one state of a training, never a mixture. One round of
 * reads is under way at a time, behind the steps and without anybody waiting; the copy is replaced only when all of a round has
 * arrived. After a loss, what lived on the lost device gets the values of the last complete copy.
 */
import { type BufferPool, type PoolBuffer, poolOf } from '../engine/pool.ts';
import { onLost, recoveryPolicy } from '../engine/recovery.ts';
import { getEngine } from '../engine/registry.ts';
import type { Node, NodeStorage } from '../graph/node.ts';
import { nodesBelow } from '../graph/order.ts';
import { realise } from '../graph/counting.ts';
import type { TypedArray } from '../shape/dtype.ts';
import { download } from './reading.ts';
import { isGone } from './lost.ts';
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
    const found: Protectable[] = [];
    this.#refs = this.#refs.filter((ref) => {
      const tensor = ref.deref();
      if (tensor === undefined || tensor.disposed) return false;
      found.push(tensor);
      return true;
    });
    return found;
  }

  get size(): number {
    return this.#refs.length;
  }
}

const named = new WeakList();
const states = new WeakList();
let copies = new WeakMap<Protectable, TypedArray>();
let reading: Promise<void> | null = null;
let last = Number.NEGATIVE_INFINITY;

/** Adds tensors to those with copies. */
export function protectHandles(tensors: readonly Protectable[]): void {
  for (const tensor of tensors) named.add(tensor);
  last = Number.NEGATIVE_INFINITY;
}

/** Takes tensors out again and forgets their copies. */
export function unprotectHandles(tensors: readonly Protectable[]): void {
  for (const tensor of tensors) {
    named.delete(tensor);
    copies.delete(tensor);
  }
}

/** A tensor that belongs to the state of a training: copied if the policy says `shadow`. */
export function addState(tensor: Protectable): void {
  states.add(tensor);
}

function covered(): readonly Protectable[] {
  const all = named.size > 0 ? named.alive() : [];
  return recoveryPolicy().shadow ? [...new Set([...all, ...states.alive()])] : all;
}

/** True if the value is gone, or would be computed from one that is. */
function needsLost(node: Node): boolean {
  return nodesBelow([node]).some((n) => n.storage !== null && isGone(n));
}

const isFar = ({ engine, lost }: BufferPool): boolean => engine.name !== 'cpu' && lost === null;
const poolOfNode = (node: Node): PoolBuffer['pool'] => ((node.storage as NodeStorage).buffer as PoolBuffer).pool;

/** Called at the end of every global flush: starts a round of reads if it is time for one. */
export function shadow(): void {
  if ((named.size === 0 && !recoveryPolicy().shadow) || reading !== null) return;
  restoreLost();
  const now = performance.now();
  if (now - last < recoveryPolicy().interval) return;
  const tensors = covered();
  // Half a step is no state: wait until all of it is in memory, but for what is lost already.
  if (tensors.some(({ node }) => node.storage === null && !needsLost(node))) return;
  const far = tensors.filter(({ node }) => node.storage !== null && isFar(poolOfNode(node)) && !node.shape.includes(0));
  if (far.length === 0) return;
  last = now;
  reading = Promise.all(far.map(({ node }) => download(node))).then(
    (values) => {
      copies = new WeakMap(far.map((tensor, i) => [tensor, values[i] as TypedArray]));
      reading = null;
    },
    () => {
      // The last complete copy stays.
      reading = null;
    },
  );
}

/** Resolves when no copy is being made. For tests, and before a program ends with what it has. */
export async function shadowed(): Promise<void> {
  await reading;
}

/** A loss whose tensors have not been brought back yet. */
let owed = false;
onLost(() => {
  owed = true;
});

/**
 * Once after a loss, as soon as another engine works: gives protected tensors that lived on the lost device the values of the last
 * complete copy. True if it did something.
 */
export function restoreLost(): boolean {
  if (!owed || poolOf(getEngine()).lost !== null) return false;
  owed = false;
  let found = false;
  for (const tensor of covered()) {
    const { node } = tensor;
    const values = copies.get(tensor);
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
