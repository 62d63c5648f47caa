/**
 * Who is told what a compiled function does while it is recorded (replay/). And `hostValue` and `hostEffect`, by which functions declare what a
 * recording cannot see: values and effects of JavaScript.
 */
import type { TypedArray } from '@polygrad/compiler/shape/dtype';
import { checkFunction } from '@polygrad/compiler/shape/options';
import type { KnownRange } from './known-range.ts';
import type { Node, StorageBuffer } from './node.ts';
import type { TrackedHandle } from './recorder.ts';
import { graph } from './state.ts';
import { isRehearsing, onRollback } from './transactions.ts';

/** Receives the events of a function that is being recorded. */
export interface Observer {
  /** A tensor was made. */
  made(handle: TrackedHandle): void;
  /** A tensor is about to be assigned, or becomes a leaf of gradients. */
  assign(handle: TrackedHandle): void;
  disposed(handle: TrackedHandle): void;
  /** Values are read. Throws OperationError, because a replay would not read them. */
  read(): void;
  /** Host data has become a leaf. */
  upload(leaf: Node, data: TypedArray): void;
  /** A generated key is split into several. */
  split(key: readonly number[], parts: readonly (readonly number[])[]): void;
  /** Nodes are the two words of a random key. */
  words(nodes: readonly Node[], key: readonly number[]): void;
  /** A node is a number that is read at every call. */
  number(node: Node, read: () => number): void;
  /** `hostValue` was called, and its value now. */
  value(read: () => unknown, value: unknown): void;
  /** `hostEffect` was called. */
  effect(run: () => void, undo: (() => void) | undefined): void;
  /** Integers from the host were checked to lie from `least` to `most`. */
  within(range: KnownRange, least: number, most: number): void;
  /** A buffer is allocated. */
  alloc(buffer: StorageBuffer): void;
  /** A plan is about to run for a captured subgraph: the `Cone` of planner/capture/cone.ts. */
  plan(plan: unknown, cone: unknown): void;
}

/**
 * A JavaScript value that decides what a function records, such as a mode. A function of `compile` reads it before each replay,
 * and records again if it has changed.
 *
 * @param read called for the value, now and before every replay
 * @returns its present value
 * @throws ArgumentError if `read` is no function
 *
 * @example
 * let training = true;
 * const step = compile((x: Tensor) => (hostValue(() => training) ? x.mul(2) : x));
 * step(tensor([3])); // [6]
 */
export function hostValue<T>(read: () => T): T {
  checkFunction('hostValue', read);
  const value = read();
  graph.observer?.value(read, value);
  return value;
}

/**
 * Runs a function with an effect in JavaScript, now and at every replay of a function of `compile`: counting steps, for instance.
 *
 * @param run the effect
 * @param undo undoes it if the work recorded with it cannot be computed. If given, `warmup` does not run the effect
 * @throws ArgumentError if either is no function
 *
 * @example
 * let steps = 0;
 * const step = compile((x: Tensor) => {
 *   hostEffect(
 *     () => void steps++,
 *     () => void steps--,
 *   );
 *   return x.mul(2);
 * });
 * step(tensor([3])); // [6]
 * steps; // 1
 */
export function hostEffect(run: () => void, undo?: () => void): void {
  checkFunction('hostEffect', run);
  if (undo !== undefined) {
    checkFunction('hostEffect', undo);
    if (isRehearsing()) return;
  }
  run();
  if (undo !== undefined) onRollback(undo);
  graph.observer?.effect(run, undo);
}
