/**
 * The door between tensors and the machinery that computes them: the only file of the front end that knows of it.
 *
 * Tests put a machinery of their own here with `useRuntime`.
 */
import type { Node } from '../graph/node.ts';
import { deviceOf, readNode, readNodeSync, uploadNode } from '../runtime/runtime.ts';
import type { DType, TypedArray } from '../shape/dtype.ts';
import type { Shape } from '../shape/view.ts';

/** What tensors need of the scheduler. */
export interface GraphRuntime {
  /** Copies host data into device memory; the array may change right after. */
  uploadNode(data: TypedArray, shape: Shape, dtype: DType): Node;
  /** Realises the node and copies its elements, row-major, into a new host array. */
  readNode(node: Node): Promise<TypedArray>;
  /** The same at once; throws where the engine cannot. */
  readNodeSync(node: Node): TypedArray;
  /** Name of the engine that holds, or would hold, the node's value. */
  deviceOf(node: Node): string;
}

let current: GraphRuntime = { uploadNode, readNode, readNodeSync, deviceOf };

/** Replaces the machinery; returns the one before. */
export function useRuntime(next: GraphRuntime): GraphRuntime {
  const before = current;
  current = next;
  return before;
}

/** The machinery in use. */
export function runtime(): GraphRuntime {
  return current;
}
