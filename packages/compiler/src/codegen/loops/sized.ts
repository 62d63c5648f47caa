/**
 * Loops whose lengths are known only at dispatch, merged with those around them. A tensor of several sizes that is read as it lies is one
 * loop, as one of fixed lengths is (`mergeRanges`). Short rows would each cost what a loop costs, and vectors would end with each.
 *
 * It imports no code: pages load it with what sizes share plans by, and bundlers would put what it shares with the compiler into what they load first.
 */
import type { Exprs } from '../../ir/expr.ts';
import type { Range } from '../../ir/free-ranges.ts';
import type { KNode, LoopKernel, Transform } from '../../ir/ir.ts';
import type { Linear } from '../../ir/node.ts';
import type { flattened, Replacement, Rewriter, step } from '../../ir/rewrite.ts';

/** What the compiler brings along. */
export interface LoopTools {
  readonly Rewriter: typeof Rewriter;
  readonly flattened: typeof flattened;
  readonly step: typeof step;
  linearOf(n: KNode): Linear;
  sizeLimit(r: Range): KNode | null;
  typicalOf(r: Range): number;
  lowOf(n: KNode): number;
  highOf(n: KNode): number;
  assumeBounds(n: KNode, low: number, high: number): void;
  idOf(n: KNode): number;
}

/** An index, and the form in which ranges are in it. */
interface Use {
  readonly index: KNode;
  readonly form: Linear;
}

/** A product: a number, and nodes. */
interface Factors {
  readonly number: number;
  readonly nodes: readonly KNode[];
}

function times(a: Factors, b: Factors): Factors {
  return { number: a.number * b.number, nodes: [...a.nodes, ...b.nodes] };
}

function isEqual(a: Factors, b: Factors): boolean {
  const left = [...b.nodes];
  for (const n of a.nodes) {
    const at = left.indexOf(n);
    if (at < 0) return false;
    left.splice(at, 1);
  }
  return a.number === b.number && left.length === 0;
}

/** More factors than a stride has: powers in the values of a kernel may have billions. */
const mostFactors = 16;

/** The factors of an index, or of where a loop ends. A product that is no stride is one factor. */
function factorsOf(n: KNode): Factors {
  let number = 1;
  const nodes: KNode[] = [];
  const stack = [n];
  for (let x = stack.pop(); x !== undefined; x = stack.pop()) {
    if (x.op === 'MUL') stack.push(...x.src);
    else if (x.op === 'CONST') number *= Number(x.arg.value);
    else nodes.push(x);
    if (nodes.length + stack.length > mostFactors) return { number: 1, nodes: [n] };
  }
  return { number, nodes };
}

/** True for a range times sizes. */
function isStride(n: KNode): boolean {
  if (n.op !== 'MUL' || n.dtype !== 'int32' || n.lanes !== 1) return false;
  const { nodes } = factorsOf(n);
  return (
    nodes.every(({ op }) => op === 'RANGE' || op === 'SCALAR') && nodes.filter(({ op }) => op === 'RANGE').length === 1
  );
}

/** What a range is multiplied with in a form; null where it is not in it, undefined where it is in several terms. */
export function factorOf({ terms, coefs }: Linear, r: Range): Factors | null | undefined {
  let found: Factors | null = null;
  for (const [i, term] of terms.entries()) {
    if (term !== r && !(isStride(term) && factorsOf(term).nodes.includes(r))) continue;
    if (found !== null) return undefined;
    const { number, nodes } = factorsOf(term);
    found = { number: number * coefs[i]!, nodes: nodes.filter((n) => n !== r) };
  }
  return found;
}

/** True if a form grows by one with each iteration of a range. */
export function isUnit(form: Linear, r: Range): boolean {
  const factor = factorOf(form, r);
  return factor != null && factor.number === 1 && factor.nodes.length === 0;
}

/** Nodes, and all that they are made of. */
export function nodesIn(roots: readonly KNode[]): Set<KNode> {
  const seen = new Set(roots);
  for (const n of seen) for (const s of n.src) seen.add(s);
  return seen;
}

/** True if a factor is another one times a node. */
export function isProductOf(product: Factors, factor: Factors, n: KNode): boolean {
  return isEqual(product, times(factor, factorsOf(n)));
}

/** All indices with ranges in their forms, sources first; null for kernels with a STAGE. */
function findUses(
  kernel: LoopKernel,
  { linearOf, idOf }: LoopTools,
): { readonly uses: Use[]; readonly lists: (readonly Range[])[]; readonly fixed: Set<Range> } | null {
  const lists: (readonly Range[])[] = kernel.stores.map(({ ranges }) => ranges);
  const fixed = new Set<Range>();
  const uses: Use[] = [];
  const seen = new Set<KNode>();
  const stack: KNode[] = kernel.stores.map(({ store }) => store);
  for (let n = stack.pop(); n !== undefined; n = stack.pop()) {
    if (seen.has(n)) continue;
    seen.add(n);
    if (n.op === 'REDUCE' || n.op === 'STAGE') {
      const own = n.src.slice(1) as Range[];
      lists.push(own);
      // The place of the best, and of an element of a stage, is counted by the ranges that there are.
      if (n.op === 'STAGE' || n.arg.op === 'argmax' || n.arg.op === 'argmin') for (const r of own) fixed.add(r);
      stack.push(n.src[0]);
    } else if (n.dtype === 'int32' && n.lanes === 1 && n.op !== 'SCALAR' && n.op !== 'CONST') {
      const form = linearOf(n);
      uses.push({ index: n, form });
      for (const term of form.terms) {
        if (term.op === 'RANGE' || isStride(term)) continue;
        if (term === n) stack.push(...n.src);
        else stack.push(term);
      }
    } else stack.push(...n.src);
  }
  return { uses: uses.sort((a, b) => idOf(a.index) - idOf(b.index)), lists, fixed };
}

/**
 * The kernel with neighbouring ranges merged where the inner one ends at a size and all tensors lie so; the kernel itself where there are none.
 *
 * An outer range a and an inner one b are one if every index has b times a number and a times that number and the length of b. Positions of an argmax stay
 * counted by the loops that there are. The order in which a reduction adds changes, as where loops of fixed lengths are merged.
 */
export function mergeSized(kernel: LoopKernel, e: Exprs, tools: LoopTools): LoopKernel {
  const { Rewriter, flattened, sizeLimit, step } = tools;
  const inner = (list: readonly Range[]): boolean => list.slice(1).some((r) => sizeLimit(r) !== null);
  const found = kernel.scalars.length > 0 ? findUses(kernel, tools) : null;
  if (found === null || !found.lists.some(inner)) return kernel;
  const { uses, lists, fixed } = found;
  const fits = (a: Range, b: Range): boolean => {
    if (a.arg.kind !== b.arg.kind || fixed.has(a) || fixed.has(b)) return false;
    // The end of another kind of loop depends on loops around it.
    if ([a, b].some((r) => r.src.length > 0 && sizeLimit(r) === null)) return false;
    for (const list of lists) {
      const i = list.indexOf(a);
      const j = list.indexOf(b);
      if (i < 0 ? j >= 0 : j !== i + 1) return false;
    }
    const limit = sizeLimit(b);
    const length = limit === null ? { number: b.arg.extent, nodes: [] } : factorsOf(limit);
    return uses.every(({ form }) => {
      const [outer, within] = [factorOf(form, a), factorOf(form, b)];
      if (outer === undefined || within === undefined || (outer === null) !== (within === null)) return false;
      return outer === null || isEqual(outer, times(within!, length));
    });
  };
  const merged = new Map<Range, { readonly one: Range; readonly last: Range }>();
  const changes = new Map<Range, Replacement>();
  const done: Transform[] = [];
  for (const list of lists)
    for (let from = 0, i = 1; i <= list.length; i++) {
      const chain = list.slice(from, i);
      const extent = chain.reduce((product, r) => product * r.arg.extent, 1);
      if (i < list.length && extent * list[i]!.arg.extent <= 2 ** 30 && fits(list[i - 1]!, list[i]!)) continue;
      from = i;
      if (!inner(chain) || merged.has(chain[0]!)) continue;
      const end = chain.reduce((n: KNode, r) => e.mul(n, sizeLimit(r) ?? e.i32(r.arg.extent)), e.i32(1));
      const one = e.range(extent, chain[0]!.arg.kind, end);
      flattened(e, chain, { value: one, ranges: [one] }, changes);
      for (const r of chain) merged.set(r, { one, last: chain.at(-1)! });
      done.push(step('merge', chain, [one]));
    }
  if (merged.size === 0) return kernel;
  const rewriter = new Rewriter(e, changes);
  for (const { index, form } of uses) {
    const { terms, coefs, offset } = form;
    const ranges = terms.map((term) =>
      [...merged.keys()].find((r) => factorOf(form, r) && factorsOf(term).nodes.includes(r)),
    );
    if (ranges.every((r) => r === undefined)) continue;
    let now: KNode = e.i32(offset);
    for (const [i, term] of terms.entries()) {
      const r = ranges[i];
      const to = r === undefined ? undefined : merged.get(r)!;
      if (to !== undefined && to.last !== r) continue;
      let value = to === undefined ? rewriter.node(term) : to.one;
      if (r !== undefined) for (const n of factorsOf(term).nodes) if (n !== r) value = e.mul(value, n);
      const number = r === undefined ? coefs[i]! : coefs[i]! * factorsOf(term).number;
      now = e.add(now, e.mul(value, number));
    }
    rewriter.set(index, now);
  }
  return { ...rewriter.kernel(kernel), transforms: [...(kernel.transforms ?? []), ...done] };
}
