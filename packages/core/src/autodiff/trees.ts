/** Nested arrays and plain objects of tensors: the form in which functions take parameters and give back gradients. */
import { isHandle } from '../graph/scope.ts';
import { ArgumentError } from '../shape/errors.ts';
import { mapNested } from '../shape/nested.ts';
import { shown } from '../shape/options.ts';
import { say } from '../shape/shown.ts';
import type { Tensor } from '../tensor/types.ts';

/** A tensor, or arrays and plain objects of such. */
export type TensorTree = Tensor | readonly TensorTree[] | { readonly [key: string]: TensorTree };

/** The same structure with every tensor replaced. Order of visits: array order, then key order. Throws for anything else, and for cycles. */
export function mapTree(op: string, tree: unknown, f: (t: Tensor) => unknown): unknown {
  const leaf = (item: unknown): unknown => {
    if (isHandle(item)) return f(item as unknown as Tensor);
    throw new ArgumentError(
      op,
      say`argument holds ${shown(item)}: needs tensors, or arrays and plain objects of tensors`,
    );
  };
  return mapNested(op, tree, null, leaf, () => null);
}

/** All tensors of a tree, in order. */
export function leavesOf(op: string, tree: unknown): Tensor[] {
  const leaves: Tensor[] = [];
  mapTree(op, tree, (t) => leaves.push(t));
  return leaves;
}
