/**
 * Copies in host memory of tensors that must survive a lost device: those of protect(), and with `shadow` all parameters.
 *
 * All are read at one point of the device's order, so a copy is one state of a training, never a mixture. One round of reads is in
 * progress at a time, in the background. The copy is replaced only when a whole round has arrived.
 *
 * After a loss, values that have not changed since they were copied are restored, and pending work is computed from them: nothing is
 * lost. That is impossible where something was assigned since, or pending work needs more than the copies. Then all protected tensors go back to the
 * last complete copy together, and so do counters of their assignments (`onRollback`). The program must learn of that: the next flush, read or `idle()` throws.
 *
 * Programs load this with the functions that ask for copies, of which `setRecovery` is one; copies.ts knows which tensors have them.
 */
import type { DeviceLostError } from '../engine/errors.ts';
import { type BufferPool, type PoolBuffer, poolOf } from '../engine/pool.ts';
import { engines, getEngine, type RecoveryPolicy, usualPolicy } from '../engine/registry.ts';
import { checkFields, numberFrom, oneOf } from '@polygrad/compiler/shape/options';
import { type Node, type NodeStorage, realise, type TrackedHandle } from '../graph/node.ts';
import { nodesBelow } from '../graph/print.ts';
import { transactions } from '../graph/transactions.ts';
import type { TypedArray } from '@polygrad/compiler/shape/dtype';
import { copies, type Keeper, type Protectable } from './copies.ts';
import { goneError, isGone } from './placement.ts';
import { upload } from './upload.ts';

/** Makes copies from now on: of tensors given to `protectHandles`, and of those of a training if the policy says `shadow`. */
function keepCopies(): void {
  copies.keeper = keeper;
}

/** Adds tensors to those with copies. */
export function protectHandles(tensors: readonly Protectable[]): void {
  keepCopies();
  for (const tensor of tensors) copies.named.add(tensor);
  copies.last = Number.NEGATIVE_INFINITY;
}

/** Removes tensors and forgets their copies. */
export function unprotectHandles(tensors: readonly Protectable[]): void {
  for (const tensor of tensors) {
    copies.named.delete(tensor);
    copies.values.delete(tensor);
  }
}

function covered(): readonly Protectable[] {
  const { named, states } = copies;
  const all = named.alive();
  return engines.policy.shadow ? [...new Set([...all, ...states.alive()])] : all;
}

/** The lost values that a node is, or would be computed from. */
function lostBelow(node: Node): Node[] {
  return nodesBelow([node]).filter((n) => n.storage !== null && isGone(n));
}

/** True if the node's value is lost, or would be computed from a lost one. */
function needsLost(node: Node): boolean {
  return lostBelow(node).length > 0;
}

const keeper: Keeper = { shadow, restoreLost };

const isFar = ({ engine, lost }: BufferPool): boolean => engine.name !== 'cpu' && lost === null;
const poolOfNode = (node: Node): PoolBuffer['pool'] => (node.storage!.buffer as PoolBuffer).pool;

function shadow(read: (node: Node) => Promise<TypedArray>): void {
  const c = copies;
  const log = transactions;
  if (c.named.size === 0 && !engines.policy.shadow) {
    if (log.committed !== null) forget();
    return;
  }
  if (c.reading !== null) return;
  restoreLost();
  const now = performance.now();
  if (now - c.last < engines.policy.interval) return;
  const tensors = covered();
  // Half a step is no state: wait until all is in memory, except what is lost already.
  if (tensors.some(({ node }) => node.storage === null && !needsLost(node))) return;
  const there = tensors.filter(
    ({ node }) => node.storage !== null && poolOfNode(node).lost === null && !node.shape.includes(0),
  );
  if (!there.some(({ node }) => isFar(poolOfNode(node)))) return;
  c.last = now;
  log.committed ??= [];
  const nodes = there.map(({ node }) => node);
  const { overwritten, rewinds } = c;
  const undoers = log.committed.length;
  c.reading = Promise.all(nodes.map((node) => read(node))).then(
    (values) => {
      c.reading = null;
      if (c.rewinds !== rewinds) return;
      c.values = new WeakMap(there.map((tensor, i) => [tensor, values[i]!]));
      c.ofNodes = new WeakMap(nodes.map((node, i) => [node, values[i]!]));
      c.overwrittenThen = overwritten;
      c.since = now;
      log.committed?.splice(0, undoers);
    },
    () => {
      // The last complete copy stays.
      c.reading = null;
    },
  );
}

/** Ends the protection of all tensors. */
function forget(): void {
  transactions.committed = null;
  copies.values = new WeakMap();
  copies.ofNodes = new WeakMap();
}

/** Resolves when no copy is being made. For tests, and for programs before they end. */
export async function shadowed(): Promise<void> {
  await copies.reading;
}

/** A node and its new memory. */
type Placed = readonly [node: Node, storage: NodeStorage];

/** Uploads values for nodes, all or none. */
function uploaded(nodes: Iterable<readonly [Node, TypedArray]>): Placed[] {
  const placed: Placed[] = [];
  try {
    for (const [node, values] of nodes) placed.push([node, upload(values, node.shape, node.dtype, () => undefined)]);
  } catch (error) {
    for (const [, { buffer }] of placed) buffer.release();
    throw error;
  }
  return placed;
}

function place(placed: readonly Placed[]): void {
  for (const [node, storage] of placed) {
    if (node.storage === null) realise(node, storage);
    else {
      const old = node.storage.buffer;
      node.storage = storage;
      old.release();
    }
  }
}

function restoreLost(): boolean {
  const c = copies;
  const { losses } = engines;
  if (losses === 0 || poolOf(getEngine()).lost !== null) return false;
  // After recovery a program may still assign values that it computed on the lost device.
  if (c.losses === losses && !covered().some(({ node }) => node.storage !== null && isGone(node))) return false;
  const tensors = covered().filter((tensor) => c.values.has(tensor));
  const same = c.overwritten === c.overwrittenThen ? c.ofNodes : new WeakMap<Node, TypedArray>();
  const found = new Map<Node, TypedArray>();
  for (const { node } of tensors)
    for (const leaf of nodesBelow([node])) {
      const values = leaf.storage === null ? undefined : same.get(leaf);
      if (values !== undefined && isGone(leaf)) found.set(leaf, values);
    }
  place(uploaded(found));
  const stale = tensors.flatMap(({ node }) => lostBelow(node))[0];
  if (stale === undefined) {
    c.losses = losses;
    return found.size > 0;
  }
  const older = new Map<Node, TypedArray>();
  for (const tensor of tensors) if (!same.has(tensor.node)) older.set(tensor.node, c.values.get(tensor)!);
  const placed = uploaded(older);
  const loss = goneError(stale).cause as DeviceLostError;
  place(placed);
  // Their earlier values are older still, or gone.
  for (const tensor of tensors) transactions.forget(tensor as TrackedHandle);
  c.losses = losses;
  c.rewinds++;
  // From now on the copies are the current state.
  c.overwrittenThen = c.overwritten;
  c.ofNodes = new WeakMap(tensors.map((tensor) => [tensor.node, c.values.get(tensor)!]));
  transactions.rewind();
  const age = Math.round(performance.now() - c.since);
  const count = `${older.size} protected tensor${older.size === 1 ? ' has' : 's have'}`;
  engines.untold = loss.because(`${loss.reason}; ${count} the values of ${age} ms before again`);
  return true;
}

/**
 * Sets what happens when a device is lost or full; entries that are left out get their defaults. Returns the policy before.
 *
 * @throws ArgumentError for entries that are not known, and values that do not fit
 * @example
 * setRecovery({ fallback: 'error', shadow: true });
 * setRecovery({}); // as it was at the start
 */
export function setRecovery(next: Partial<RecoveryPolicy> = {}): RecoveryPolicy {
  checkFields('setRecovery', next, {
    retry: numberFrom(0, 1000, true),
    fallback: oneOf('cpu', 'error'),
    outOfMemory: oneOf('error', 'cpu'),
    shadow: oneOf(true, false),
    interval: numberFrom(0),
    patience: numberFrom(0, 2 ** 31 - 1),
    timeout: numberFrom(1),
  });
  const before = engines.policy;
  const policy = { ...usualPolicy };
  for (const [name, value] of Object.entries(next)) if (value !== undefined) Object.assign(policy, { [name]: value });
  engines.policy = policy;
  if (policy.shadow) keepCopies();
  return before;
}
