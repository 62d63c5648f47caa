/**
 * How a range of kind 'vector' is cut: unrolled vectors, single vectors, scalars.
 *
 * The extent may be any number. The same body is generated for each part: `count` vectors of `lanes`
 * side by side, then single vectors, then one element at a time.
 */
import { type DType, dtypeInfo } from '../../shape/dtype.ts';
import { type Count, greatestDivisor, ownRanges, typicalOf } from '../../ir/free-ranges.ts';
import type { CodegenCaps } from '../lowering.ts';
import type { ProgramBuilder } from '../../ir/builder/builder.ts';
import type { KNode, KNodeOf, LoopStore, RangeKind } from '../../ir/ir.ts';
import { highOf, lowOf } from '../../ir/node.ts';
import { linearOf } from '../../ir/simplify/integers.ts';

/** One way of iterating over a part of the range. */
export interface Mode {
  readonly count: number;
  readonly lanes: number;
  /** Set if it runs at most once, over the last elements of the range, some of which were counted already. */
  readonly again?: true;
  /** Set if it runs to the end of the range: its last step is moved back to end there, and counts some elements twice. */
  readonly moved?: true;
}

/** Lanes of the narrowest vectors of all processors, of 32 bits each. */
const leastNarrow = 4;

const scalarMode: Mode = { count: 1, lanes: 1 };

/** How the elements that fill no whole step are computed. */
export interface Remainder {
  /**
   * For a fixed length: the last elements that fill no vector side by side, or with `all` everything that remains, whole vectors too. Separate
   * reductions over each would wait for their own sums.
   */
  readonly together?: 'elements' | 'all' | null;
  /**
   * Elements may be computed twice: a remainder becomes the end of a last vector. For lengths known at dispatch it is the end of a last step
   * of several vectors, which saves a loop and a body.
   */
  readonly again?: boolean | undefined;
  /** The body need not know which elements are counted twice: the last step is one more iteration of the loop before it. */
  readonly alike?: boolean;
  /** Where the least length is shorter than a vector, narrower vectors take what is left, for two bodies more. */
  readonly narrower?: boolean;
}

/** The modes of a vector range, widest first: steps of `unroll` vectors, and what they leave. */
export function vectorModes(length: Count, lanes: number, unroll: number, rest: Remainder = {}): readonly Mode[] {
  const modes = separateModes(length, lanes, unroll, rest);
  const [before, last] = modes.slice(-2);
  if (!rest.alike || !last?.again || before?.count !== last.count || before.lanes !== last.lanes) return modes;
  return [...modes.slice(0, -2), { ...before, moved: true }];
}

function separateModes(
  length: Count,
  lanes: number,
  unroll: number,
  { together = null, again, narrower }: Remainder,
): readonly Mode[] {
  const { most, least } = length;
  if (lanes <= 1) return most > 0 ? [scalarMode] : [];
  const exact = most === least;
  const modes: Mode[] = [];
  const wide = lanes * unroll;
  const isWide = unroll > 1 && most >= wide;
  if (isWide) modes.push({ count: unroll, lanes });
  const rest = isWide ? restOf(length, wide) : most;
  const tail = restOf(length, lanes);
  if (!exact && again && tail > 0 && least >= lanes) {
    if (isWide && least >= wide) return [...modes, { count: unroll, lanes, again }];
    if (rest >= lanes) modes.push({ count: 1, lanes });
    return [...modes, { count: 1, lanes, again }];
  }
  const narrow = 1 << (31 - Math.clz32(Math.max(1, least)));
  if (narrower && !exact && narrow < lanes && narrow >= leastNarrow) {
    // Lengths below one vector are not taken element by element.
    if (rest >= lanes) modes.push({ count: 1, lanes });
    return [...modes, ...separateModes({ ...length, most: Math.min(most, lanes - 1) }, narrow, 1, { again, narrower })];
  }
  const all = Math.ceil(rest / lanes);
  if (again && exact && tail > 0 && together === 'all' && all * lanes <= most) {
    modes.push({ count: all, lanes, again });
    return modes;
  }
  if (rest >= lanes) modes.push({ count: exact && together === 'all' ? Math.floor(rest / lanes) : 1, lanes });
  if (again && exact && tail > (together === 'elements' ? 0 : 1) && modes.length > 0)
    modes.push({ count: 1, lanes, again });
  else if (tail > 0) modes.push(exact && together !== null && tail < 4 ? { count: tail, lanes: 1 } : scalarMode);
  return modes;
}

/** Most elements that remain after steps of `by`. */
function restOf({ most, least, step }: Count, by: number): number {
  if (most === least) return most % by;
  const unit = greatestDivisor(step, by);
  return Math.min(most, by - unit);
}

/** Iterations of a vector loop before the next one takes its turn: 256 bytes of float32. */
const interleavedSteps = 4;

/**
 * Writes the loops of the modes over `total` elements; `body` gets the mode, the first element of its step and, if some elements of that are
 * counted twice, the first new one. `eachInterleaved` calls its argument for every row that is interleaved in the loop.
 */
export function runModes(
  b: ProgramBuilder,
  total: KNode,
  modes: readonly Mode[],
  body: (mode: Mode, first: KNode, from: KNode | null) => void,
  eachInterleaved: ((run: () => void) => void) | null = null,
): void {
  const { e } = b;
  let done: KNode = e.i32(0);
  for (const mode of modes) {
    if (mode.again) {
      // If the length is not fixed there may be no remainder.
      const from = done;
      const last = (): void => body(mode, e.sub(total, mode.count * mode.lanes), from);
      if (isFixed(total)) last();
      else b.ifThen(e.lt(done, total), last);
      continue;
    }
    const step = e.i32(mode.count * mode.lanes);
    const left = e.sub(total, done);
    const trips = e.idiv(mode.moved ? e.add(left, e.sub(step, 1)) : left, step);
    const start = done;
    const run = (i: KNode): void => {
      const first = e.add(start, e.mul(i, step));
      body(mode, mode.moved ? e.min(first, e.sub(total, step)) : first, null);
    };
    if (eachInterleaved === null) b.loop(trips, run);
    else {
      const steps = e.i32(interleavedSteps);
      const stretches = e.idiv(trips, steps);
      b.loop(stretches, (q) => eachInterleaved(() => b.loop(steps, (i) => run(e.add(e.mul(q, steps), i)))));
      const whole = e.mul(stretches, steps);
      eachInterleaved(() => b.loop(e.sub(trips, whole), (i) => run(e.add(whole, i))));
    }
    done = e.add(done, e.mul(trips, step));
  }
}

/** True if a number of elements is always the same. */
export function isFixed(total: KNode): boolean {
  return lowOf(total) === highOf(total);
}

/**
 * Lanes of the vectors in some stores: enough that the smallest numbers computed there or in memory fill the hardware vector.
 * But the widest take at most four registers, and the ranges that may become vectors fill them (masks do not count). Wider
 * numbers then take several registers. Indices and gates are scalars anyway.
 */
export function vectorLanes(stores: readonly LoopStore[], caps: CodegenCaps): number {
  let least = 8;
  let most = 4;
  let masks = true;
  const count = (dtype: DType, computed: boolean): void => {
    if (dtype === 'bool') return;
    const { bytes } = dtypeInfo[dtype];
    least = Math.min(least, bytes);
    most = Math.max(most, bytes);
    if (computed) masks = false;
  };
  const seen = new Set<KNode>();
  const stack: KNode[] = [];
  const indices: KNode[] = [];
  const reduced = new Set<KNode>();
  for (const { store } of stores) {
    const [mem, index, value] = store.src;
    stack.push(value);
    indices.push(index);
    count(mem.dtype, false);
  }
  for (let n = stack.pop(); n !== undefined; n = stack.pop()) {
    if (seen.has(n)) continue;
    seen.add(n);
    count(n.dtype as DType, true);
    if (n.op === 'LOAD') {
      const [mem, index, , alt] = n.src;
      indices.push(index);
      if (mem.op === 'STAGE') stack.push(mem);
      if (alt !== undefined) stack.push(alt);
    } else if (n.op === 'REDUCE' || n.op === 'STAGE') {
      if (n.op === 'REDUCE') for (const r of ownRanges(n)) reduced.add(r);
      stack.push(n.src[0]);
    } else stack.push(...n.src);
  }
  if (masks) least = caps.boolBytes ?? 4;
  const run = longestRun(indices, 'vector');
  const elements = run === null ? 0 : typicalOf(run);
  const vectorBytes = caps.fittingBytes?.(elements, least, run !== null && reduced.has(run)) ?? caps.vectorBytes;
  if (least >= 4 || caps.simt) {
    const lanes = Math.max(1, Math.floor(vectorBytes / Math.max(4, least)));
    return caps.lowering.wider?.(seen, lanes, elements) ?? lanes;
  }
  const wanted = Math.max(1, Math.min(vectorBytes / least, (4 * vectorBytes) / most));
  const long = longestRun(indices);
  const longest = long === null ? 0 : typicalOf(long);
  let lanes = Math.max(1, Math.floor(vectorBytes / 4));
  while (lanes * 2 <= wanted && longest >= lanes * 2) lanes *= 2;
  return lanes;
}

/** The longest range along which memory is contiguous, or null; preferably of kind `kind`. A range that ends at a size counts at a typical one. */
function longestRun(indices: readonly KNode[], kind?: RangeKind): KNodeOf<'RANGE'> | null {
  let longest: KNodeOf<'RANGE'> | null = null;
  let among: KNodeOf<'RANGE'> | null = null;
  let [most, mostAmong] = [-1, -1];
  const all = [...indices];
  for (const index of all) {
    const { terms, coefs } = linearOf(index);
    terms.forEach((term, i) => {
      // A sum that is too long for a form.
      if (term === index && term.op === 'ADD') all.push(...term.src);
      if (term.op !== 'RANGE' || coefs[i] !== 1) return;
      const extent = typicalOf(term);
      if (extent > most) [longest, most] = [term, extent];
      if (term.arg.kind === kind && extent > mostAmong) [among, mostAmong] = [term, extent];
    });
  }
  return among ?? longest;
}
