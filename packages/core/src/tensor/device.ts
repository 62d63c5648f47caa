/**
 * How tensors upload and read: the functions of runtime/runtime.ts for that, which tests replace with `useRuntime`. Flushes, profiles and warmups
 * are asked of runtime/ directly.
 */
import type { Node } from '../graph/node.ts';
import { deviceOf, readNode, readNodeSync, uploadNode } from '../runtime/runtime.ts';
import type { DType, TypedArray } from '../shape/dtype.ts';
import type { Shape } from '../shape/view.ts';

/** What tensors need of the runtime. */
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

/** Replaces the functions; returns those before. */
export function useRuntime(next: GraphRuntime): GraphRuntime {
  const before = current;
  current = next;
  return before;
}

/** The functions in use. */
export function runtime(): GraphRuntime {
  return current;
}
