/**
 * Classes with both short and long rows: no way to take rows fits all of them, so a kernel has a nest for each, of which one has nothing to do. In each of the two
 * the size is between narrower bounds, by which all that shapes loops goes.
 *
 * It imports no code, for the reason that sized.ts gives.
 */
import type { Exprs } from '../../ir/expr.ts';
import type { Range } from '../../ir/free-ranges.ts';
import type { KNode, KNodeOf, LoopKernel, LoopStore } from '../../ir/ir.ts';
import type { Replacement } from '../../ir/rewrite.ts';
import { isUnit, type LoopTools, nodesIn } from './sized.ts';

/** Long rows have at least as many elements; short ones may be this short. Where positions are found, vectors go across rows for longer. */
const leastOfLong = 32;
const leastOfPositions = 96;
const mostLeast = 16;
/** Fewest elements of all loops around rows. */
const fewest = 16;

type Size = KNodeOf<'SCALAR'>;

/** The kernel with each of its rows shaped by `shape`, in a nest for short ones and one for long ones where both may come. */
export function shortAndLong(
  kernel: LoopKernel,
  e: Exprs,
  tools: LoopTools,
  shape: (part: LoopKernel) => LoopKernel,
): LoopKernel {
  const { step } = tools;
  const all = nodesIn(kernel.stores.flatMap(({ store, ranges }) => [store, ...ranges]));
  const isPosition = (n: KNode): boolean => n.op === 'REDUCE' && (n.arg.op === 'argmax' || n.arg.op === 'argmin');
  const reduced = reductionsIn(kernel);
  const leastLong = reduced.length > 0 && reduced.every(isPosition) ? leastOfPositions : leastOfLong;
  const size = sizeOfRows(kernel, all, leastLong, tools);
  if (size === null) return shape(kernel);
  const { low, high } = size.arg as { readonly low: number; readonly high: number };
  const isLong = e.min(e.max(e.sub(size, leastLong - 1), 0), 1);
  const sized = (from: number, to: number): Size => e.scalar(size.arg.slot, 'int32', from, to);
  const [shortSize, longSize] = [sized(low, leastLong - 1), sized(leastLong, high)];
  const short = withSize(kernel, e, tools, size, shortSize);
  const inShort = shape(short);
  // What is done elementwise is done so for any length.
  if (inShort === short && reduced.length === 0) return shape(kernel);
  const parts = [
    // What a nest without work has outside of its loops is within its bounds too.
    withSize(inShort, e, tools, shortSize, e.min(size, leastLong - 1), e.sub(1, isLong)),
    withSize(withSize(kernel, e, tools, size, longSize), e, tools, longSize, e.max(size, leastLong), isLong),
  ];
  return {
    ...kernel,
    stores: parts.flatMap(({ stores }) => stores),
    transforms: [...(inShort.transforms ?? []), step('lengths', [], [], [leastLong])],
  };
}

function reductionsIn({ stores }: { readonly stores: readonly Pick<LoopStore, 'store'>[] }): KNode[] {
  return [...nodesIn(stores.map(({ store }) => store))].filter(({ op }) => op === 'REDUCE' || op === 'STAGE');
}

/**
 * The length of rows, if they may be short and long, and there are several; else null. The elements of a row are next to each other. Columns take vectors across,
 * whatever their length.
 */
function sizeOfRows(
  { stores }: LoopKernel,
  all: ReadonlySet<KNode>,
  leastLong: number,
  { typicalOf, sizeLimit, linearOf }: LoopTools,
): Size | null {
  // A reduction outside of all loops would run in a nest without work.
  const isInside = ({ store, ranges: [outer] }: LoopStore): boolean =>
    outer !== undefined && reductionsIn({ stores: [{ store }] }).every((n) => nodesIn([n]).has(outer));
  if (!stores.every(isInside)) return null;
  let found: Size | null = null;
  let isAlong = false;
  for (const n of all) {
    if (n.op !== 'RANGE' || n.src.length === 0) continue;
    const limit = sizeLimit(n);
    if (limit === null) return null;
    if (limit.op !== 'SCALAR') continue;
    const { low, high } = limit.arg;
    if (low === undefined || high === undefined || low > mostLeast || low < 1 || high < 2 * leastLong) continue;
    const rows = ({ ranges }: LoopStore): number =>
      ranges.reduce((p, r, i) => (i === ranges.length - 1 && r.src[0] === limit ? p : p * typicalOf(r)), 1);
    const isRow = stores.every((s) => s.ranges[0] !== n && rows(s) >= fewest);
    if (!isRow) continue;
    if (found !== null && found !== limit) return null;
    found = limit;
    for (const x of all) {
      if (x.op !== 'LOAD' && x.op !== 'STORE') continue;
      const form = linearOf(x.src[1]);
      isAlong ||= form.terms.length > 1 && isUnit(form, n);
    }
  }
  return isAlong ? found : null;
}

/** The kernel with another size. `count`: 1, and 0 where it is to have no work. */
function withSize(
  kernel: LoopKernel,
  e: Exprs,
  { Rewriter, sizeLimit, highOf }: LoopTools,
  from: Size,
  to: KNode,
  count: KNode | null = null,
): LoopKernel {
  const limits = new Rewriter(e, new Map());
  limits.set(from, to);
  const outer = new Set(kernel.stores.map(({ ranges }) => ranges[0]));
  const changes = new Map<Range, Replacement>();
  for (const r of nodesIn(kernel.stores.flatMap(({ store, ranges }) => [store, ...ranges]))) {
    // Where another loop decides where one ends, the rewriter makes it again.
    if (r.op !== 'RANGE' || (r.src.length > 0 && sizeLimit(r) === null)) continue;
    const given = sizeLimit(r);
    const limit = given === null ? null : limits.node(given);
    const extent = limit === null ? r.arg.extent : Math.min(r.arg.extent, highOf(limit));
    const end = count !== null && outer.has(r) ? e.mul(limit ?? e.i32(extent), count) : (limit ?? undefined);
    const now = e.range(extent, r.arg.kind, end);
    changes.set(r, { value: now, ranges: [now] });
  }
  const rewriter = new Rewriter(e, changes);
  rewriter.set(from, to);
  return rewriter.kernel(kernel);
}
