/**
 * Reductions along short rows whose length is known only at dispatch, for vectors across rows: four elements of each row at a time, which emitters load row by
 * row and transpose (ir/windows.ts). A vector along such a row would hardly be full, and its lanes would be combined for each row.
 *
 * It imports no code, for the reason that sized.ts gives.
 */
import type { Exprs } from '../../ir/expr.ts';
import type { Range } from '../../ir/free-ranges.ts';
import type { KNode, KNodeOf, LoopKernel } from '../../ir/ir.ts';
import type { Replacement } from '../../ir/rewrite.ts';
import { factorOf, isUnit, type LoopTools, nodesIn } from './sized.ts';

/** Elements of a row at a time: a side of a square. */
const side = 4;
/** Fewest rows: those of the widest vectors. */
const fewest = 16;
/** Longest typical rows of a class, and where functions are computed for their elements: what a row leaves of a vector takes as long as a vector. */
const longest = 16;
const longestDear = 64;
/** Functions that take many operations. */
const dear = /^(EXP|LOG|TANH|ERF|POW|SIN|COS|TAN|ASIN|ACOS|ATAN)/;

type Reduce = KNodeOf<'REDUCE'>;

/** The kernel with such reductions in squares. */
export function reduceInSquares(kernel: LoopKernel, e: Exprs, tools: LoopTools): LoopKernel {
  const row = resultsAlong(kernel, tools);
  if (row === null) return kernel;
  const all = reductionsIn(kernel);
  const most = [...nodesIn(all.map(({ src }) => src[0]))].some(({ op }) => dear.test(op)) ? longestDear : longest;
  const found = all.filter((n) => isShort(n, row, most, tools));
  if (found.length === 0) return kernel;
  const { Rewriter, idOf, step } = tools;
  const rewriter = new Rewriter(e, new Map());
  // Inner ones come first.
  for (const n of found.sort((a, b) => idOf(a) - idOf(b))) {
    const r = n.src[1] as Range;
    const value = rewriter.node(n.src[0]);
    const part = ([change, mask]: Part): KNode => {
      const element = new Rewriter(e, new Map([[r, change]])).node(value);
      const { op } = n.arg;
      // An extremum may count an element twice.
      const isMasked = mask !== null && (op === 'sum' || op === 'prod');
      const neutral = e.constant(n.dtype as 'float32', op === 'prod' ? 1 : 0);
      return e.reduce(op, isMasked ? e.where(mask, element, neutral) : element, change.ranges);
    };
    const [whole, rest] = inSquares(e, r, tools).map(part) as [KNode, KNode];
    rewriter.set(n, combined(e, n, whole, rest));
  }
  const loops = found.map(({ src }) => src[1] as Range);
  const transforms = [...(kernel.transforms ?? []), step('squares', loops, [], [side])];
  return { ...rewriter.kernel(kernel), transforms };
}

function combined(e: Exprs, { arg: { op } }: Reduce, a: KNode, b: KNode): KNode {
  return op === 'sum' ? e.add(a, b) : op === 'prod' ? e.mul(a, b) : op === 'max' ? e.max(a, b) : e.min(a, b);
}

/** The loop along which all stores write, in order and at a fixed distance of one; null if there is none, or too few results. */
function resultsAlong({ stores }: LoopKernel, { linearOf, typicalOf }: LoopTools): Range | null {
  const row = stores[0]?.ranges.at(-1);
  if (row === undefined || typicalOf(row) < fewest) return null;
  const isAlong = ({ store, ranges }: LoopKernel['stores'][number]): boolean =>
    ranges.at(-1) === row && isUnit(linearOf(store.src[1]), row);
  return stores.every(isAlong) ? row : null;
}

function reductionsIn({ stores }: LoopKernel): Reduce[] {
  return [...nodesIn(stores.map(({ store }) => store))].filter((n): n is Reduce => n.op === 'REDUCE');
}

/** True for a reduction of numbers of four bytes along one short row for each element of `row`, which lies in memory in order. */
function isShort(
  { src, arg, dtype }: Reduce,
  row: Range,
  most: number,
  { sizeLimit, typicalOf, linearOf }: LoopTools,
): boolean {
  const [value, r, ...others] = src as readonly [KNode, Range, ...Range[]];
  if (others.length > 0 || sizeLimit(r) === null || typicalOf(r) > most || r.arg.kind !== 'reduce') return false;
  if (!['sum', 'prod', 'max', 'min'].includes(arg.op) || !['float32', 'int32', 'uint32'].includes(dtype)) return false;
  let isSquare = false;
  for (const n of nodesIn([value])) {
    if (n.op === 'STAGE' || (n.op === 'REDUCE' && nodesIn([n]).has(r))) return false;
    if (n.op !== 'LOAD') continue;
    const [, index, gate] = n.src;
    if (gate !== undefined && nodesIn([gate]).has(r)) return false;
    if (!nodesIn([index]).has(r)) continue;
    const form = linearOf(index);
    if (!isUnit(form, r) || form.terms.some((t) => t !== r && nodesIn([t]).has(r))) return false;
    isSquare ||= factorOf(form, row) != null && !isUnit(form, row);
  }
  return isSquare;
}

/** What stands for a loop, and the condition under which an element counts; null: all do. */
type Part = readonly [change: Replacement, mask: KNode | null];

/** A row as squares, and what is left: a square that ends with the row, or single elements if a row may be shorter than that. */
function inSquares(e: Exprs, r: Range, { sizeLimit, lowOf }: LoopTools): readonly Part[] {
  const end = sizeLimit(r)!;
  const isLong = lowOf(end) >= side;
  // The last square has one to four elements that count.
  const whole = e.idiv(isLong ? e.sub(end, 1) : end, side);
  const edge = e.mul(whole, side);
  const [i, k] = [e.range(Math.ceil(r.arg.extent / side), 'reduce', whole), e.range(side, 'unroll')];
  const all: Part = [{ value: e.add(e.mul(i, side), k), ranges: [i, k] }, null];
  if (!isLong) {
    const one = e.range(side - 1, 'reduce', e.irem(end, side));
    return [all, [{ value: e.add(edge, one), ranges: [one] }, null]];
  }
  const last = e.range(side, 'unroll');
  const value = e.add(e.sub(end, side), last);
  return [all, [{ value, ranges: [last] }, e.le(edge, value)]];
}
