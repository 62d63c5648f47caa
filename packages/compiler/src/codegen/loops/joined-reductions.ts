/**
 * Reductions of joined or padded rows, cut where conditions change at a size: one for each stretch, and what comes of them combined. A row
 * that is kept for several readers is kept in as many parts. So each tensor is read as it lies.
 *
 * It imports no code of the compiler, for the reason that sized.ts gives.
 */
import type { Exprs } from '../../ir/expr.ts';
import type { Range } from '../../ir/free-ranges.ts';
import type { KNode, KNodeOf, LoopKernel, Transform } from '../../ir/ir.ts';
import type { Rewriter } from '../../ir/rewrite.ts';
import { changesAlong, type Stretch, stretchesOf } from './joints.ts';
import { type LoopTools, nodesIn } from './sized.ts';

/** Loops of fixed length are cut where a stretch has as many elements. Shorter rows are written out. */
const leastFixed = 5;

/** The kernel with such reductions in parts. `fixed`: those over loops of fixed length, else those over loops that end at a size. */
export function cutReductions(
  kernel: LoopKernel,
  e: Exprs,
  tools: LoopTools,
  full: Rewriter,
  fixed = false,
): LoopKernel {
  const done: Transform[] = [];
  const cuts = new Map<Range, readonly Stretch[] | null>();
  let now = kernel;
  // The first whose operands have none: what reads a row in parts asks for these in its turn.
  for (;;) {
    const found = first(now, cuts, e, tools, full, fixed);
    if (found === null) break;
    const { node, stretches } = found;
    const rewriter = new tools.Rewriter(e, new Map());
    if (node.op === 'STAGE') readInParts(now, node, stretches, rewriter, e);
    else rewriter.set(node, combined(node, stretches, e));
    done.push(
      tools.step(
        'cut',
        node.src.slice(1) as Range[],
        stretches.map(({ own }) => own),
      ),
    );
    now = rewriter.kernel(now);
  }
  return done.length === 0 ? kernel : { ...now, transforms: [...(kernel.transforms ?? []), ...done] };
}

type Binder = KNodeOf<'REDUCE'> | KNodeOf<'STAGE'>;

/** The first reduction, or kept row, along one loop that has joints. Loops that several have are cut alike, so that they stay one. */
function first(
  kernel: LoopKernel,
  cuts: Map<Range, readonly Stretch[] | null>,
  e: Exprs,
  tools: LoopTools,
  full: Rewriter,
  fixed: boolean,
): { readonly node: Binder; readonly stretches: readonly Stretch[] } | null {
  const all = [...nodesIn(kernel.stores.map(({ store }) => store))];
  // What keeps rows of fixed length is cut in other ways.
  if (fixed && all.some(({ op }) => op === 'STAGE')) return null;
  const binders = all.filter((n): n is Binder => n.op === 'STAGE' || (n.op === 'REDUCE' && isPlain(n)));
  binders.sort((a, b) => tools.idOf(a) - tools.idOf(b));
  for (const node of binders) {
    const [r, ...others] = node.src.slice(1) as Range[];
    if (
      r === undefined ||
      others.length > 0 ||
      (tools.sizeLimit(r) === null) !== fixed ||
      r.src.length > Number(!fixed)
    )
      continue;
    if (!cuts.has(r)) {
      const values = binders.filter((n) => n.src[1] === r).map((n) => n.src[0]);
      const changes = changesAlong(values, r, e, tools, full);
      const stretches = changes.length === 0 ? null : stretchesOf(r, [], changes, e, tools, full);
      const isLong = !fixed || stretches?.some(({ own }) => own.arg.extent >= leastFixed);
      cuts.set(r, isLong ? stretches : null);
    }
    const stretches = cuts.get(r)!;
    if (stretches !== null) return { node, stretches };
  }
  return null;
}

/** True for sums, products and extrema of numbers that are accumulated as what they are. */
function isPlain({ arg: { op }, dtype }: KNodeOf<'REDUCE'>): boolean {
  return op !== 'argmax' && op !== 'argmin' && (dtype === 'float32' || dtype === 'int32');
}

/** The reduction of each stretch, and all of these as one. */
function combined(node: KNodeOf<'REDUCE'>, stretches: readonly Stretch[], e: Exprs): KNode {
  const { op } = node.arg;
  const parts = stretches.map(({ own, rewriter }) => {
    const value = rewriter.node(node.src[0]);
    // A stretch has an element at least, as a border that is all zeros.
    const isOne =
      value.op === 'CONST' && (op === 'max' || op === 'min' || (op === 'sum' && Number(value.arg.value) === 0));
    return isOne ? value : e.reduce(op, value, [own]);
  });
  return parts.reduce((a, b) =>
    op === 'sum' ? e.add(a, b) : op === 'prod' ? e.mul(a, b) : op === 'max' ? e.max(a, b) : e.min(a, b),
  );
}

/** Has all that reads a kept row read the part of it that has the element. */
function readInParts(
  kernel: LoopKernel,
  stage: KNodeOf<'STAGE'>,
  stretches: readonly Stretch[],
  rewriter: Rewriter,
  e: Exprs,
): void {
  const parts = stretches.map(({ own, rewriter: inPart }) =>
    e.stage(stage.arg.space, inPart.node(stage.src[0]), [own]),
  );
  for (const n of nodesIn(kernel.stores.map(({ store }) => store))) {
    if (n.op !== 'LOAD' || n.src[0] !== stage || n.src.length !== 2) continue;
    const at = n.src[1];
    let value: KNode | null = null;
    for (let i = parts.length - 1; i >= 0; i--) {
      const { from } = stretches[i]!;
      const end = stretches[i + 1]?.from;
      const isIn = end === undefined ? null : e.lt(at, end);
      const gate = i === 0 ? isIn! : isIn === null ? e.le(from, at) : e.and(e.le(from, at), isIn);
      const own = e.load(parts[i]!, e.sub(at, from), gate);
      value = value === null ? own : e.where(isIn!, own, value);
    }
    rewriter.set(n, value!);
  }
}
