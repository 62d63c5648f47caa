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
import type { LoopTools } from './sized.ts';

/** Long rows have at least as many elements; short ones may be this short. */
const leastLong = 32;
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
  const size = sizeOfRows(kernel, all, tools);
  if (size === null) return shape(kernel);
  const { low, high } = size.arg as { readonly low: number; readonly high: number };
  const isLong = e.min(e.max(e.sub(size, leastLong - 1), 0), 1);
  const short = within(kernel, all, e, tools, size, [low, leastLong - 1], e.sub(1, isLong));
  const inShort = shape(short);
  // What is done elementwise is done so for any length.
  const [row] = reducedTo(all, size);
  if (row === undefined && inShort === short) return shape(kernel);
  const inLong = shape(within(kernel, all, e, tools, size, [leastLong, high], isLong));
  const made = (part: LoopKernel): NonNullable<LoopKernel['transforms']> => part.transforms ?? [];
  const own = kernel.transforms ?? [];
  return {
    ...kernel,
    stores: [...inShort.stores, ...inLong.stores],
    transforms: [...made(inShort), ...made(inLong).slice(own.length), step('lengths', [], [], [leastLong])],
  };
}

function nodesIn(roots: readonly KNode[]): Set<KNode> {
  const seen = new Set(roots);
  for (const n of seen) for (const s of n.src) seen.add(s);
  return seen;
}

/** Loops of reductions along rows. */
function reducedTo(all: ReadonlySet<KNode>, size: Size): Range[] {
  return [...all].flatMap((n) =>
    n.op === 'REDUCE' || n.op === 'STAGE' ? (n.src.slice(1) as Range[]).filter(({ src }) => src[0] === size) : [],
  );
}

/** The length of rows, if they may be short and long, and there are several; else null. */
function sizeOfRows({ stores }: LoopKernel, all: ReadonlySet<KNode>, { typicalOf, sizeLimit }: LoopTools): Size | null {
  let found: Size | null = null;
  for (const n of all) {
    if (n.op !== 'RANGE' || n.src.length === 0) continue;
    const limit = sizeLimit(n);
    if (limit === null) return null;
    if (limit.op !== 'SCALAR') continue;
    const { low, high } = limit.arg;
    if (low === undefined || high === undefined || low > mostLeast || low < 1 || high < 2 * leastLong) continue;
    const rows = ({ ranges }: LoopStore): number => ranges.reduce((p, r) => (r === n ? p : p * typicalOf(r)), 1);
    const isRow = stores.every((s) => s.ranges[0] !== n && s.ranges.length > 0 && rows(s) >= fewest);
    if (!isRow) continue;
    if (found !== null && found !== limit) return null;
    found = limit;
  }
  return found;
}

/** The kernel for sizes within bounds. `count`: 1 for these, and 0 for others, which leave it without work. */
function within(
  kernel: LoopKernel,
  all: ReadonlySet<KNode>,
  e: Exprs,
  { Rewriter, sizeLimit, highOf }: LoopTools,
  size: Size,
  [low, high]: readonly [low: number, high: number],
  count: KNode,
): LoopKernel {
  const own = e.scalar(size.arg.slot, 'int32', low, high);
  const narrower = new Rewriter(e, new Map());
  narrower.set(size, own);
  const outer = new Set(kernel.stores.map(({ ranges }) => ranges[0]));
  const changes = new Map<Range, Replacement>();
  for (const r of all) {
    if (r.op !== 'RANGE') continue;
    const given = sizeLimit(r);
    let limit = given === null ? undefined : narrower.node(given);
    const extent = limit === undefined ? r.arg.extent : Math.min(r.arg.extent, highOf(limit));
    if (outer.has(r)) limit = e.mul(limit ?? e.i32(extent), count);
    const now = e.range(extent, r.arg.kind, limit);
    changes.set(r, { value: now, ranges: [now] });
  }
  const rewriter = new Rewriter(e, changes);
  rewriter.set(size, own);
  return rewriter.kernel(kernel);
}
