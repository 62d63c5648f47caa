/** Nested arrays and plain objects of tensors: the form in which functions take parameters and give back gradients. */
import { isHandle } from '../graph/scope.ts';
import { ArgumentError } from '../shape/errors.ts';
import { shown } from '../shape/options.ts';
import type { Tensor } from '../tensor/types.ts';

/** A tensor, or arrays and plain objects of such. */
export type TensorTree = Tensor | readonly TensorTree[] | { readonly [key: string]: TensorTree };

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** The same structure with every tensor replaced. Order of visits: array order, then key order. Throws for anything else. */
export function mapTree(op: string, tree: unknown, f: (t: Tensor) => unknown): unknown {
  if (isHandle(tree)) return f(tree as unknown as Tensor);
  if (Array.isArray(tree)) return tree.map((item) => mapTree(op, item, f));
  if (typeof tree === 'object' && tree !== null && isPlain(tree)) {
    return Object.fromEntries(Object.entries(tree).map(([key, item]) => [key, mapTree(op, item, f)]));
  }
  throw new ArgumentError(op, `argument holds ${shown(tree)}: needs tensors, or arrays and plain objects of tensors`);
}

/** All tensors of a tree, in order. */
export function leavesOf(op: string, tree: unknown): Tensor[] {
  const leaves: Tensor[] = [];
  mapTree(op, tree, (t) => leaves.push(t));
  return leaves;
}
