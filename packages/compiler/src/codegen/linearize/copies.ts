/**
 * An epilogue over many results, such as an optimizer's update behind the tile of a product: written once, in a loop over the copies.
 *
 * Each copy would have the same nodes, and nodes are compile time. The results go through group memory, because registers have no indices at run time.
 * Only for targets where a group is one thread.
 */
import type { KNode } from '../../ir/ir.ts';
import type { Range } from '../../ir/free-ranges.ts';
import { nodesOf } from '../../ir/node.ts';
import { linearOf } from '../../ir/simplify/integers.ts';
import type { DType } from '../../shape/dtype.ts';
import { copiesOf, type Result, type Scope, type Tile, type Values } from './scope.ts';

/**
 * Least copies, and least nodes for one and for all of them, for which a loop pays. Products of 1024 x 32 by 32 on an AMD EPYC
 * take as long with an epilogue of Adam or tanh. They take 8 % longer if they are only stored.
 */
const fewestCopies = 4;
const leastWritten = 20;
const mostWritten = 160;

/**
 * Writes statements in loops over the open copies; false, with nothing done, if they should be unrolled. `roots`: for each statement the
 * value, the index and what else it needs; `write` writes all for the copies that are open then.
 */
export function writeCopies(values: Values, roots: readonly (readonly KNode[])[], write: () => void): boolean {
  const results = manyResults(values, roots);
  if (results === null) return false;
  copyByCopy(values, results, write);
  return true;
}

/** The reductions of which each open copy has a result, if enough depends on them; else null. */
function manyResults({ scope, results }: Values, roots: readonly (readonly KNode[])[]): readonly KNode[] | null {
  const { tiles, free } = scope;
  const copies = copiesOf(tiles);
  if (copies < fewestCopies || tiles.some((t) => t.range.arg.kind === 'interleaved')) return null;
  const depends = (n: KNode): boolean => tiles.some((t) => t.count > 1 && free.has(n, t.range));
  const within = [...nodesOf(roots.flat(), (n) => (n.op === 'REDUCE' ? [] : n.src.filter(depends)))].filter(depends);
  if (within.length < leastWritten || within.length * copies < mostWritten) return null;
  const vector = tiles.find((t) => t.lanes > 1)?.range;
  const indices = [...roots.map(([, index]) => index!), ...within.flatMap((n) => (n.op === 'LOAD' ? [n.src[1]] : []))];
  // Lanes that are not contiguous are gathered from several copies.
  if (vector !== undefined && !indices.every((index) => isWhole(scope, index, vector))) return null;
  if (within.some((n) => n.op === 'STAGE')) return null;
  const found = within.filter((n) => n.op === 'REDUCE');
  const hasCopies = (n: KNode): boolean => results.get(n)?.kind === 'values' && n.dtype !== 'bool';
  return found.length > 0 && found.every(hasCopies) ? found : null;
}

/** True for an index that is the same for all elements of a range, or one further for each. */
function isWhole({ free }: Scope, index: KNode, range: Range): boolean {
  const { terms, coefs } = linearOf(index);
  return terms.every((t, i) => (t === range ? coefs[i] === 1 : !free.has(t, range)));
}

function copyByCopy({ b, scope, results }: Values, nodes: readonly KNode[], write: () => void): void {
  const { e } = b;
  const kept = nodes.map((n) => {
    const result = results.get(n) as Extract<Result, { readonly kind: 'values' }>;
    const lanes = Math.max(...result.values.map((v) => v.lanes));
    if (result.memory !== undefined) return { n, result, lanes, memory: result.memory };
    const memory = b.shared('results', n.dtype as DType, result.values.length * lanes);
    for (const [k, v] of result.values.entries()) b.store(memory, k * lanes, e.splat(v, lanes));
    return { n, result, lanes, memory };
  });
  const copies = new Map<Tile, KNode>();
  const open = (tiles: readonly Tile[]): void => {
    const [tile, ...inner] = tiles;
    if (tile !== undefined) {
      b.loop(tile.count, (copy) => {
        copies.set(tile, copy);
        scope.atCopy(tile, copy, () => open(inner));
      });
      return;
    }
    for (const { n, result, lanes, memory } of kept) {
      const at = result.tiles.reduce<KNode>((at, t) => e.add(e.mul(at, t.count), copies.get(t) ?? 0), e.i32(0));
      results.set(n, { kind: 'values', tiles: [], values: [b.load(memory, e.mul(at, lanes), lanes)] });
    }
    write();
  };
  open(scope.tiles.filter((t) => t.count > 1));
  for (const { n, result } of kept) results.set(n, result);
}
