/** Carries of loops: checks that each step returns the structure, shapes and dtypes that it was given. */
import { leavesOf, mapTree } from '../autodiff/walk.ts';
import type { Node } from '../graph/node.ts';
import { ArgumentError, DTypeError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { say } from '@polygrad/compiler/shape/shown';
import { sameShape } from '@polygrad/compiler/shape/view';
import { nodeOf } from '../tensor/handle.ts';

/** The structure of a tree, as text. */
function formOf(op: string, tree: unknown): string {
  return JSON.stringify(mapTree(op, tree, () => 0));
}

function shownNode({ dtype, shape }: Node): string {
  return `${dtype} ${showShape(shape)}`;
}

/** Throws unless the carry that a step returned is like the one it was given. */
export function checkCarry(op: string, before: unknown, after: unknown): void {
  const forms = [formOf(op, before), formOf(op, after)] as const;
  if (forms[0] !== forms[1])
    throw new ArgumentError(
      op,
      say`the carry changes its structure: ${forms[0]} goes in, ${forms[1]} comes out (0 for a tensor); return it in the structure of init`,
    );
  const [given, returned] = [before, after].map((tree) => leavesOf(op, tree).map((t) => nodeOf(t, op))) as [
    Node[],
    Node[],
  ];
  given.forEach((node, i) => {
    const now = returned[i]!;
    const which = given.length === 1 ? 'the carry' : say`part ${i} of the carry`;
    if (now.dtype !== node.dtype)
      throw new DTypeError(
        op,
        say`${which} changes its dtype: ${shownNode(node)} goes in, ${shownNode(now)} comes out; cast one of them, so that every step is the same`,
        [node.dtype, now.dtype],
      );
    if (!sameShape(now.shape, node.shape))
      throw new ShapeError(
        op,
        say`${which} changes its shape: ${shownNode(node)} goes in, ${shownNode(now)} comes out; start with the shape that a step returns`,
        [node.shape, now.shape],
      );
  });
}
