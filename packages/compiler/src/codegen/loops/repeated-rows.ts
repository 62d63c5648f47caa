/**
 * Rows whose length is known only at dispatch, beside values that are the same in each, such as a bias: several rows at a time as one stretch of memory, which
 * vectors fill. The values are laid out in group memory as often as there are rows, once for a group; a vector along a row would hardly be full, and each row
 * would have an end.
 *
 * It imports no code, for the reason that sized.ts gives.
 */
import type { Exprs } from '../../ir/expr.ts';
import type { Range } from '../../ir/free-ranges.ts';
import type { KNode, LoopKernel, LoopStore } from '../../ir/ir.ts';
import type { Replacement } from '../../ir/rewrite.ts';
import { factorOf, isProductOf, type LoopTools } from './sized.ts';

/** Rows at a time: whole vectors of up to as many elements. */
const together = 16;
/** Fewest rows: laying out the values of one takes longer than its results. */
const fewest: number = 8 * together;
/** Most elements in group memory: a group may lay them out anew (`repeatable` in costs/cpu.ts). */
const most = 1024;
/** Longest typical row: of longer ones an end is a small part. */
const longest = 64;
/** Most values that are laid out. */
const mostValues = 4;
/** Quotients of numbers up to `most` are exact if reciprocals have this many steps. */
const steps: number = 2 ** 20;

/** The kernel with such rows as stretches: blocks of rows, and what is left of them. */
export function repeatRows(kernel: LoopKernel, e: Exprs, tools: LoopTools): LoopKernel {
  const found = rowsIn(kernel, tools);
  if (found === null) return kernel;
  const { row, column, width } = found;
  const { extent, kind } = row.arg;
  const end = tools.sizeLimit(row);
  const blocks = e.range(Math.floor(extent / together), kind, end === null ? undefined : e.idiv(end, together));
  const inBlocks = stretch(
    kernel,
    e,
    tools,
    found,
    { value: e.mul(blocks, together), ranges: [blocks] },
    together,
    null,
  );
  const transforms = [
    ...(kernel.transforms ?? []),
    tools.step('repeat', [row, column], [blocks, ...inBlocks.own], [together]),
  ];
  const rest = end === null ? extent % together : together - 1;
  if (rest === 0) return { ...kernel, stores: inBlocks.stores, transforms };
  const rows = end ?? e.i32(extent);
  const start = e.mul(e.idiv(rows, together), together);
  const left = stretch(
    kernel,
    e,
    tools,
    found,
    { value: start, ranges: [] },
    rest,
    e.mul(e.irem(rows, together), width),
  );
  return { ...kernel, stores: [...inBlocks.stores, ...left.stores], transforms };
}

/** The stores for stretches of `count` rows. `end`: where they end; null: with these rows. */
function stretch(
  kernel: LoopKernel,
  e: Exprs,
  { Rewriter, assumeBounds, sizeLimit }: LoopTools,
  { row, column, width, values }: Rows,
  rows: Replacement,
  count: number,
  end: KNode | null,
): { readonly stores: readonly LoopStore[]; readonly own: readonly Range[] } {
  const { extent, kind } = column.arg;
  const element = e.range(count * extent, kind, end ?? e.mul(width, count));
  const changes = new Map<Range, Replacement>([
    [row, rows],
    [column, { value: element, ranges: [element] }],
  ]);
  // What is left shares no loop with the blocks.
  if (end !== null)
    for (const r of kernel.stores[0]!.ranges.slice(0, -2)) {
      const own = e.range(r.arg.extent, r.arg.kind, sizeLimit(r) ?? undefined);
      changes.set(r, { value: own, ranges: [own] });
    }
  const rewriter = new Rewriter(e, changes);
  // Four at a time, not by vectors: their lanes would be written out one by one.
  const fours = e.range((together / 4) * extent, 'reduce', e.mul(width, together / 4));
  const inFour = e.range(4, 'unroll');
  const own = e.add(e.mul(fours, 4), inFour);
  const reciprocal = e.idiv(e.add(width, steps - 1), width);
  const place = e.sub(own, e.mul(e.idiv(e.mul(own, reciprocal), steps), width));
  assumeBounds(place, 0, extent - 1);
  const inRow = new Rewriter(e, new Map([...changes, [column, { value: place, ranges: [] }]]));
  for (const value of values) {
    const once = inRow.node(value);
    // Conditions are kept as numbers.
    const isCondition = once.dtype === 'bool';
    const read = e.load(e.stage('shared', isCondition ? e.cast(once, 'int32') : once, [fours, inFour]), element);
    rewriter.set(value, isCondition ? e.ne(read, 0) : read);
  }
  return { stores: kernel.stores.map((s) => rewriter.store(s)), own: [element] };
}

interface Rows {
  readonly row: Range;
  readonly column: Range;
  /** Where a row ends. */
  readonly width: KNode;
  /** What is the same in each row, as far as it is computed from elements of its own. */
  readonly values: ReadonlySet<KNode>;
}

/** Rows that lie one after another in all that is stored, and in all that is read but values which are the same in each; null where there are none. */
function rowsIn({ stores }: LoopKernel, tools: LoopTools): Rows | null {
  const { sizeLimit, typicalOf, lowOf, linearOf } = tools;
  const list = stores[0]?.ranges ?? [];
  const [row, column] = list.slice(-2) as [Range?, Range?];
  if (row === undefined || column === undefined) return null;
  const width = sizeLimit(column);
  if (width === null || lowOf(width) < 1 || typicalOf(column) > longest || together * column.arg.extent > most)
    return null;
  if (typicalOf(row) < fewest || row.arg.extent < together || (row.src.length > 0 && sizeLimit(row) === null))
    return null;
  if (stores.some(({ ranges }) => ranges.length !== list.length || ranges.some((r, i) => r !== list[i]))) return null;
  const dependsOn = dependence(
    [row, column],
    stores.map(({ store }) => store),
    tools,
  );
  const isFlat = (index: KNode): boolean => {
    const form = linearOf(index);
    const [across, along] = [factorOf(form, row), factorOf(form, column)];
    if (across == null || along == null || !isProductOf(across, along, width)) return false;
    // No other term depends on the two.
    return form.terms.filter((t) => dependsOn(t) > 0).length === 2;
  };
  const values = new Set<KNode>();
  const seen = new Set<KNode>();
  const stack: KNode[] = [];
  for (const { store } of stores) {
    const [, index, value, gate] = store.src;
    if (gate !== undefined || !isFlat(index)) return null;
    stack.push(value);
  }
  for (let n = stack.pop(); n !== undefined; n = stack.pop()) {
    if (seen.has(n) || dependsOn(n) === 0) continue;
    seen.add(n);
    if (dependsOn(n) === 2) {
      if (!isPlain(n)) return null;
      values.add(n);
    } else if (n.op === 'LOAD') {
      const [, index, gate] = n.src;
      if (gate !== undefined || !isFlat(index)) return null;
    } else if (n.op === 'RANGE' || n.op === 'REDUCE' || n.op === 'STAGE') return null;
    else stack.push(...n.src);
  }
  return values.size > 0 && values.size <= mostValues ? { row, column, width, values } : null;
}

/** Which of two ranges nodes depend on: 1, 2, or both as a sum. */
function dependence(
  [a, b]: readonly [Range, Range],
  roots: readonly KNode[],
  { idOf }: LoopTools,
): (n: KNode) => number {
  const seen = new Set(roots);
  for (const n of seen) for (const s of n.src) seen.add(s);
  const found = new Map<KNode, number>();
  for (const n of [...seen].sort((x, y) => idOf(x) - idOf(y)))
    found.set(n, n === a ? 1 : n === b ? 2 : n.src.reduce((all, s) => all | (found.get(s) ?? 0), 0));
  return (n) => found.get(n) ?? 0;
}

/** True for values of four bytes, or conditions, that are read from memory which nothing writes, and nothing is reduced for. */
function isPlain(root: KNode): boolean {
  if (!['float32', 'int32', 'uint32', 'bool'].includes(root.dtype)) return false;
  const seen = new Set([root]);
  for (const n of seen) {
    if (n.op === 'REDUCE' || n.op === 'STAGE' || (n.op === 'PARAM' && n.arg.access !== 'read')) return false;
    for (const s of n.src) seen.add(s);
  }
  return true;
}
