/**
 * An observer (graph/state.ts) for calls without a script: it only refuses reads of values, because later calls would not make them.
 */
import type { TypedArray } from '@polygrad/compiler/shape/dtype';
import { OperationError } from '@polygrad/compiler/shape/errors';
import type { KnownRange, Observer } from '../graph/state.ts';
import type { Node, StorageBuffer, TrackedHandle } from '../graph/node.ts';

export class Watch implements Observer {
  /** The refused read; the function may have caught the error. */
  refused: OperationError | null = null;
  made(_: TrackedHandle): void {}
  assign(_: TrackedHandle): void {}
  disposed(_: TrackedHandle): void {}
  upload(_: Node, _data: TypedArray): void {}
  split(_: readonly number[], _parts: readonly (readonly number[])[]): void {}
  words(_: readonly Node[], _key: readonly number[]): void {}
  number(_: Node, _read: () => number): void {}
  value(_: () => unknown, _value: unknown): void {}
  effect(_: () => void, _undo: (() => void) | undefined): void {}
  within(_: KnownRange, _least: number, _most: number): void {}
  alloc(_: StorageBuffer): void {}
  plan(_: unknown, _captured: unknown): void {}

  read(): never {
    this.refused = new OperationError(
      'compile',
      'a value is read inside a compiled function, which later calls would not do; return the tensor and read it after the call, or choose by value with where()',
    );
    throw this.refused;
  }
}
