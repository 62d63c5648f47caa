/**
 * Sums over pairs of elements that are no products: distances, as sums of (x - y)^2 or |x - y|. Tiles read both factors as those of products do;
 * only what is summed differs. In a plain loop nest each result reads both rows by itself, one of them element by element.
 */
import { mergeRanges } from '../codegen/loops/optimize.ts';
import type { CodegenCaps } from '../codegen/lowering.ts';
import type { Exprs } from '../ir/expr.ts';
import { FreeRanges, productOf, typicalOf } from '../ir/free-ranges.ts';
import type { KNode, LoopKernel } from '../ir/ir.ts';
import { nodesOf } from '../ir/node.ts';
import { Rewriter } from '../ir/rewrite.ts';
import type { DType } from '../shape/dtype.ts';
import { paysFor } from './choose.ts';
import { type Contraction, computes, contractionOf, onlySum } from './contraction.ts';

/** What is summed may consist of these: an instruction each, and at most one constant. */
const simple: ReadonlySet<string> = new Set(['ADD', 'SUB', 'MUL', 'NEG', 'ABS']);
/** Most operations for a pair: tiles have no registers for more. */
const mostSteps = 4;
/** How often each factor must be read for tiles to pay. */
const leastUses = 4;

interface SumOverPairs {
  readonly c: Contraction;
  /** Operations for a pair; a product has one, for it is added by the same instruction. */
  readonly steps: number;
}

/** The sum over pairs in a kernel, where tiles may be worth it. */
export function findPairs(kernel: LoopKernel, e: Exprs, caps: CodegenCaps): SumOverPairs | null {
  if (onlySum(kernel) === null) return null;
  const merged = mergeRanges(kernel, e);
  const sum = onlySum(merged)!;
  const root = sum.reduce.src[0]!;
  const factors = factorsOf(root, new Set(merged.stores[0]?.ranges));
  if (
    factors === null ||
    !computes(sum.reduce.dtype as DType, caps) ||
    [root, ...factors].some(({ dtype }) => dtype !== sum.reduce.dtype)
  )
    return null;
  const c = contractionOf(merged, sum, factors);
  if (c === null || c.factors.some(({ own }) => productOf(own, typicalOf) < leastUses) || !paysFor(c)) return null;
  const [x, y] = factors;
  const pair = (e: Exprs, a: KNode, b: KNode): KNode => {
    const rewriter = new Rewriter(e, new Map());
    rewriter.set(x, a);
    rewriter.set(y, b);
    return rewriter.node(root);
  };
  const steps = nodesBetween(root, factors).length;
  return steps > mostSteps ? null : { c: { ...c, pair }, steps: root.op === 'MUL' ? steps : steps + 1 };
}

/** The two largest parts of an expression that do not have all of its loops among `loops`; null if there are others, or what joins them is not simple. */
function factorsOf(root: KNode, loops: ReadonlySet<KNode>): readonly [KNode, KNode] | null {
  const free = new FreeRanges();
  const loopsOf = (n: KNode): number => free.of(n).filter((r) => loops.has(r)).length;
  const all = loopsOf(root);
  const found: KNode[] = [];
  const seen = new Set<KNode>();
  const stack = [root];
  for (let n = stack.pop(); n !== undefined; n = stack.pop()) {
    if (seen.has(n) || n.op === 'CONST') continue;
    seen.add(n);
    if (loopsOf(n) < all) found.push(n);
    else if (simple.has(n.op) && found.length <= 2) stack.push(...n.src);
    else return null;
  }
  return found.length === 2 ? (found as [KNode, KNode]) : null;
}

/** The operations that join two factors. */
function nodesBetween(root: KNode, factors: readonly KNode[]): KNode[] {
  return [...nodesOf([root], (n) => (factors.includes(n) ? [] : n.src))].filter(
    (n) => simple.has(n.op) && !factors.includes(n),
  );
}
