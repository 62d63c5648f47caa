/**
 * Loops whose lengths are known only at dispatch, merged with those around them: a tensor of several sizes that is read as it lies is one loop, as one of fixed
 * lengths is (`mergeRanges`). Short rows would each cost what a loop costs, and vectors would end with each.
 */
import type { Exprs } from '../../ir/expr.ts';
import { endsAlone, isSized, iterationsOf, ownRanges, type Range, sizeLimit, sizeOf } from '../../ir/free-ranges.ts';
import type { KNode, LoopKernel, Transform } from '../../ir/ir.ts';
import { idOf, type Linear, sameNodes } from '../../ir/node.ts';
import { isArg } from '../../ir/operations.ts';
import { flattened, type Replacement, Rewriter, step } from '../../ir/rewrite.ts';
import { linearOf } from '../../ir/simplify/integers.ts';

/** An index, and the form in which ranges are in it. */
interface Use {
  readonly index: KNode;
  readonly form: Linear;
}

/** A product: a number, and nodes in the order of their numbers. */
interface Factors {
  readonly number: number;
  readonly nodes: readonly KNode[];
}

function times(a: Factors, b: Factors): Factors {
  return { number: a.number * b.number, nodes: [...a.nodes, ...b.nodes].sort((x, y) => idOf(x) - idOf(y)) };
}

function factorsOf(n: KNode): Factors {
  if (n.op === 'CONST') return { number: Number(n.arg.value), nodes: [] };
  return n.op === 'MUL' ? times(factorsOf(n.src[0]), factorsOf(n.src[1])) : { number: 1, nodes: [n] };
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
function factorOf({ terms, coefs }: Linear, r: Range): Factors | null | undefined {
  let found: Factors | null = null;
  for (const [i, term] of terms.entries()) {
    if (term !== r && !(isStride(term) && factorsOf(term).nodes.includes(r))) continue;
    if (found !== null) return undefined;
    const { number, nodes } = factorsOf(term);
    found = { number: number * coefs[i]!, nodes: nodes.filter((n) => n !== r) };
  }
  return found;
}

/** All indices with ranges in their forms, sources first; null for kernels with a STAGE. */
function findSizedUses(
  kernel: LoopKernel,
): { readonly uses: Use[]; readonly lists: (readonly Range[])[]; readonly fixed: Set<Range> } | null {
  const lists: (readonly Range[])[] = kernel.stores.map(({ ranges }) => ranges);
  const fixed = new Set<Range>();
  const uses: Use[] = [];
  const seen = new Set<KNode>();
  const stack: KNode[] = kernel.stores.map(({ store }) => store);
  for (let n = stack.pop(); n !== undefined; n = stack.pop()) {
    if (seen.has(n)) continue;
    seen.add(n);
    if (n.op === 'STAGE') return null;
    if (n.op === 'REDUCE') {
      lists.push(ownRanges(n));
      // The place of the best is counted by the ranges that there are.
      if (isArg(n.arg.op)) for (const r of ownRanges(n)) fixed.add(r);
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
export function mergeSized(kernel: LoopKernel, e: Exprs): LoopKernel {
  const inner = (list: readonly Range[]): boolean => list.slice(1).some(isSized);
  const found = kernel.scalars.length > 0 ? findSizedUses(kernel) : null;
  if (found === null || !found.lists.some(inner)) return kernel;
  const { uses, lists, fixed } = found;
  const fits = (a: Range, b: Range): boolean => {
    if (!endsAlone(a) || !endsAlone(b) || a.arg.kind !== b.arg.kind || fixed.has(a) || fixed.has(b)) return false;
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
      if (outer === null) return true;
      const wanted = times(within!, length);
      return outer.number === wanted.number && sameNodes(outer.nodes, wanted.nodes);
    });
  };
  const merged = new Map<Range, { readonly one: Range; readonly last: Range }>();
  const changes = new Map<Range, Replacement>();
  const done: Transform[] = [];
  for (const list of lists)
    for (let from = 0, i = 1; i <= list.length; i++) {
      const chain = list.slice(from, i);
      if (i < list.length && fits(list[i - 1]!, list[i]!) && sizeOf(chain) * list[i]!.arg.extent <= 2 ** 30) continue;
      from = i;
      if (!inner(chain) || merged.has(chain[0]!)) continue;
      const one = e.range(sizeOf(chain), chain[0]!.arg.kind, iterationsOf(e, chain));
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
