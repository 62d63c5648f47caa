/**
 * Loops cut where conditions change at a size, as joints of concatenation and borders of padding are where their places come at dispatch. In each stretch the
 * condition is known, so that it runs as plain vector code. cuts.ts does so for loops of fixed length.
 *
 * It imports no code, for the reason that sized.ts gives.
 */
import type { Exprs } from '../../ir/expr.ts';
import type { Range } from '../../ir/free-ranges.ts';
import type { KNode, LoopKernel, LoopStore, Transform } from '../../ir/ir.ts';
import type { Replacement, Rewriter } from '../../ir/rewrite.ts';
import { isUnit, type LoopTools, nodesIn } from './sized.ts';

/** Most cuts of a loop, and the least elements that the longest stretch typically has: those of cuts.ts. */
const mostCuts = 4;
const leastSegment = 4;
/** Places are smaller numbers: differences of larger ones may not fit into 32 bits. */
const mostPlace: number = 2 ** 30 - 1;

/** A condition that changes once along a loop: at iteration `at`, from `before` to its opposite. */
export interface Change {
  readonly condition: KNode;
  readonly at: KNode;
  readonly before: boolean;
}

/**
 * The kernel with loops cut so: those along which memory lies, else those around them.
 *
 * @param full puts sizes that follow from others in terms of these
 */
export function cutJoints(kernel: LoopKernel, e: Exprs, tools: LoopTools, full: Rewriter): LoopKernel {
  const given = settled(kernel, e, tools, full);
  const done: Transform[] = [];
  const nests = new Map<Range | undefined, LoopStore[]>();
  for (const s of given.stores) nests.set(s.ranges[0], [...(nests.get(s.ranges[0]) ?? []), s]);
  const stores = [...nests.values()].flatMap((nest) => {
    const list = nest[0]!.ranges;
    if (nest.some(({ ranges }) => ranges.length !== list.length || ranges.some((r, i) => r !== list[i]))) return nest;
    for (const r of [...list].reverse()) {
      const stored = nest.map(({ store }) => store);
      const changes = changesAlong(stored, r, e, tools, full);
      if (changes.length === 0) continue;
      const cut = mayCut(nest, r, tools) ? cutAt(nest, r, changes, e, tools, full) : null;
      if (cut !== null) done.push(tools.step('cut', [r], cut.made));
      return cut?.stores ?? nest;
    }
    return nest;
  });
  if (done.length === 0) return given;
  return settled({ ...given, stores, transforms: [...(given.transforms ?? []), ...done] }, e, tools, full);
}

/** The int32 value that is below zero where a condition holds; null for other nodes. */
function belowZero(condition: KNode, e: Exprs, { lowOf, highOf }: LoopTools): KNode | null {
  if (condition.op !== 'LT' && condition.op !== 'LE') return null;
  const [a, b] = condition.src;
  if (a.dtype !== 'int32' || a.lanes !== 1 || [a, b].some((n) => lowOf(n) < -mostPlace || highOf(n) > mostPlace))
    return null;
  return condition.op === 'LT' ? e.sub(a, b) : e.sub(e.sub(a, b), 1);
}

/** The kernel without conditions that always hold, or never, as loops end where they do. */
function settled(kernel: LoopKernel, e: Exprs, tools: LoopTools, full: Rewriter): LoopKernel {
  const { linearOf, sizeLimit, lowOf, highOf } = tools;
  const rewriter = new tools.Rewriter(e, new Map());
  let found = false;
  for (const condition of nodesIn(kernel.stores.map(({ store }) => store))) {
    const d = belowZero(condition, e, tools);
    if (d === null) continue;
    const { terms, coefs, offset } = linearOf(d);
    const most = (isHigh: boolean): KNode =>
      full.node(
        terms.reduce((all: KNode, term, i) => {
          const end = term.op === 'RANGE' ? sizeLimit(term) : null;
          const at = end === null ? term : coefs[i]! > 0 === isHigh ? e.sub(end, 1) : e.i32(0);
          return e.add(all, e.mul(at, coefs[i]!));
        }, e.i32(offset)),
      );
    const isTrue = highOf(most(true)) < 0;
    if (!isTrue && lowOf(most(false)) < 0) continue;
    rewriter.set(condition, e.bool(isTrue));
    found = true;
  }
  return found ? rewriter.kernel(kernel) : kernel;
}

/** True unless something is reduced that stretches of the loop would each compute, or its end depends on another loop. */
function mayCut(nest: readonly LoopStore[], r: Range, { linearOf, sizeLimit }: LoopTools): boolean {
  const { ranges } = nest[0]!;
  if (sizeLimit(r) === null) return false;
  const reduced = [...nodesIn(nest.map(({ store }) => store))].some(({ op }) => op === 'REDUCE' || op === 'STAGE');
  if (r !== ranges.at(-1)) return !reduced && ranges.every((x) => x.src.length === 0 || sizeLimit(x) !== null);
  return nest.every(({ store }) => isUnit(linearOf(store.src[1]), r)) && (!reduced || ranges.length > 1);
}

/** The conditions that change once along a loop, where no other loop decides. */
export function changesAlong(roots: readonly KNode[], r: Range, e: Exprs, tools: LoopTools, full: Rewriter): Change[] {
  const found: Change[] = [];
  for (const condition of nodesIn(roots)) {
    const d = belowZero(condition, e, tools);
    if (d === null) continue;
    const { terms, coefs } = tools.linearOf(d);
    const step = coefs[terms.indexOf(r)];
    if (step !== 1 && step !== -1) continue;
    const at = full.node(step === 1 ? e.sub(r, d) : e.add(e.add(d, r), 1));
    if ([...nodesIn([at])].some(({ op }) => op === 'RANGE' || op === 'LOAD' || op === 'REDUCE')) continue;
    found.push({ condition, at, before: step === 1 });
  }
  return found;
}

/** The stores for each stretch of a loop. Loops around it are shared. Null where bounds do not say in which order conditions change, or stretches are short. */
function cutAt(
  nest: readonly LoopStore[],
  r: Range,
  changes: readonly Change[],
  e: Exprs,
  tools: LoopTools,
  full: Rewriter,
): { readonly stores: LoopStore[]; readonly made: readonly Range[] } | null {
  const { ranges } = nest[0]!;
  const inner = ranges.slice(ranges.indexOf(r) + 1);
  const stretches = stretchesOf(r, inner, changes, e, tools, full);
  if (stretches === null) return null;
  const stores = stretches.flatMap(({ rewriter }) => {
    if (inner.length > 0) spread(nest, r, rewriter, e, tools);
    return nest.map((s) => rewriter.store(s));
  });
  return { stores, made: stretches.map(({ own }) => own) };
}

/** A part of a loop in which no condition changes: where it begins, its loop, and what puts expressions in its terms. */
export interface Stretch {
  readonly from: KNode;
  readonly own: Range;
  readonly rewriter: Rewriter;
}

/** The stretches of a loop, with loops inside of it again. Null where bounds do not say in which order conditions change, or stretches are short. */
export function stretchesOf(
  r: Range,
  inner: readonly Range[],
  changes: readonly Change[],
  e: Exprs,
  { Rewriter, sizeLimit, typicalOf, lowOf, highOf, assumeBounds }: LoopTools,
  full: Rewriter,
): readonly Stretch[] | null {
  const end = full.node(sizeLimit(r) ?? e.i32(r.arg.extent));
  const isBefore = (a: KNode, b: KNode): boolean => lowOf(e.sub(b, a)) > 0;
  const edges: KNode[] = [];
  for (const { at } of changes) {
    if (edges.includes(at) || lowOf(at) < 1 || !isBefore(at, end)) continue;
    if (edges.every((x) => isBefore(x, at) || isBefore(at, x))) edges.push(at);
  }
  if (edges.length === 0 || edges.length > mostCuts) return null;
  edges.sort((a, b) => (isBefore(a, b) ? -1 : 1));
  const stretches = [...edges, end].map((to, i): Stretch => {
    const from = edges[i - 1] ?? e.i32(0);
    const length = e.sub(to, from);
    const extent = highOf(length);
    const own = e.range(extent, r.arg.kind, lowOf(length) === extent ? undefined : length);
    const value = e.add(own, from);
    assumeBounds(value, lowOf(from), r.arg.extent - 1);
    const replaced = new Map<Range, Replacement>([[r, { value, ranges: [own] }]]);
    for (const x of inner) {
      const again = e.range(x.arg.extent, x.arg.kind, sizeLimit(x) ?? undefined);
      replaced.set(x, { value: again, ranges: [again] });
    }
    const rewriter = new Rewriter(e, replaced);
    for (const { condition, at, before } of changes) {
      const edge = edges.indexOf(at);
      if (edge >= 0) rewriter.set(condition, e.bool(before !== edge < i));
    }
    return { from, own, rewriter };
  });
  return stretches.some(({ own }) => typicalOf(own) >= leastSegment) ? stretches : null;
}

/** Products of sums that a loop is in, as sums of products: where a loop begins further on, strides stay factors of its number alone. */
function spread(
  nest: readonly LoopStore[],
  r: Range,
  rewriter: Rewriter,
  e: Exprs,
  { linearOf, lowOf, highOf, assumeBounds, idOf }: LoopTools,
): void {
  const inside = new Set<KNode>([r]);
  for (const n of [...nodesIn(nest.map(({ store }) => store))].sort((a, b) => idOf(a) - idOf(b))) {
    if (!n.src.some((s) => inside.has(s))) continue;
    inside.add(n);
    if (n.op !== 'MUL' || n.dtype !== 'int32' || n.lanes !== 1) continue;
    const [a, b] = n.src.map((s) => rewriter.node(s)) as [KNode, KNode];
    const [sum, factor] = inside.has(n.src[0]) ? [a, b] : [b, a];
    const { terms, coefs, offset } = linearOf(sum);
    const product = terms.reduce(
      (all, term, i) => e.add(all, e.mul(e.mul(term, coefs[i]!), factor)),
      e.mul(factor, offset),
    );
    assumeBounds(product, lowOf(n), highOf(n));
    rewriter.set(n, product);
  }
}
