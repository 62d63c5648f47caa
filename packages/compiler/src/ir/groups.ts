/** How many groups of a program run, where loops end at a size that is given at dispatch. */
import type { KNode, Program } from './ir.ts';
import { nodesOf } from './node.ts';

/** The groups of a program at sizes, along each axis of its grid; null for all of them. */
export function groupsAt({ grid, groups }: Program, sizes: readonly number[]): Program['grid'] | null {
  if (groups === undefined) return null;
  const count = valueAt(groups, sizes);
  return [Math.min(count, grid[0]), Math.ceil(count / grid[0]), 1];
}

const counting: ReadonlySet<string> = new Set([
  'CONST',
  'SCALAR',
  'ADD',
  'SUB',
  'MUL',
  'IDIV',
  'IREM',
  'NEG',
  'MIN',
  'MAX',
]);

/** True for what `groupsAt` computes: an int32 expression of sizes alone. */
export function isCount(n: KNode): boolean {
  return [...nodesOf([n])].every(({ op, dtype, lanes }) => counting.has(op) && dtype === 'int32' && lanes === 1);
}

/** An int32 expression of sizes alone. */
function valueAt(n: KNode, sizes: readonly number[]): number {
  if (n.op === 'CONST') return n.arg.value as number;
  if (n.op === 'SCALAR') return sizes[n.arg.slot]!;
  const [x = 0, y = 0] = n.src.map((s) => valueAt(s, sizes));
  switch (n.op) {
    case 'ADD':
      return x + y;
    case 'SUB':
      return x - y;
    case 'MUL':
      return x * y;
    case 'IDIV':
      return Math.trunc(x / y);
    case 'IREM':
      return x % y;
    case 'NEG':
      return -x;
    case 'MIN':
      return Math.min(x, y);
    case 'MAX':
      return Math.max(x, y);
    default:
      throw new Error(`[plan] ${n.op} in a number of groups`);
  }
}
