/**
 * What a call of a compiled function tells of itself while it is recorded (replay/), and how functions say what a recording cannot see:
 * numbers, values and effects of JavaScript.
 */
import type { TypedArray } from '@polygrad/compiler/shape/dtype';
import { checkFunction } from '@polygrad/compiler/shape/options';
import type { Node, StorageBuffer } from './node.ts';
import type { TrackedHandle } from './recorder.ts';
import { graph } from './state.ts';
import { isRehearsing, onRollback } from './transactions.ts';

/** Told of what happens in a function that is being recorded. */
export interface Observer {
  /** A tensor is an operand. */
  used(handle: TrackedHandle): void;
  made(handle: TrackedHandle): void;
  /** A tensor is about to be assigned, or becomes a leaf of gradients. */
  assign(handle: TrackedHandle): void;
  disposed(handle: TrackedHandle): void;
  /** Values are asked for. Throws. */
  read(): void;
  /** Data of the host has become a leaf. */
  upload(leaf: Node, data: TypedArray): void;
  /** A key that comes from the generator is made several. */
  split(key: readonly number[], parts: readonly (readonly number[])[]): void;
  /** Nodes are the two words of a random key. */
  words(nodes: readonly Node[], key: readonly number[]): void;
  /** A node is a number that is read at every call. */
  number(node: Node, read: () => number): void;
  value(read: () => unknown, value: unknown): void;
  effect(run: () => void, undo: (() => void) | undefined): void;
  /** Memory is handed out. */
  alloc(buffer: StorageBuffer): void;
  /** A plan is about to run on what a cone holds (planner/). */
  plan(plan: unknown, cone: unknown): void;
}

/**
 * A value of JavaScript on which it depends what a function records, such as a mode. A function of `compile` asks for it before it replays,
 * and records anew where it is another one.
 *
 * @param read asked for the value, now and before every replay
 * @returns what it gives now
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
 * Runs a function that changes something in JavaScript, now and at every replay of a function of `compile`: counts of steps, for instance.
 *
 * @param run what to do
 * @param undo undoes it, where what was recorded with it cannot be computed. With it, `warmup` does not run it
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
