/**
 * Scans along an axis: running sums, products, extremes and linear recurrences, with linear work.
 *
 * Lines are independent. A group runs through several of them side by side, so that one element need not wait for the one before it. They
 * are vectors where lines lie next to each other in memory, else interleaved. Few long lines are cut into segments: totals of the
 * segments, a scan of the totals, then every segment from where the one before it ends. The cuts depend on the shape alone. On engines
 * with groups of threads a group scans a line together (groups.ts), or each of its threads has a line.
 */
import { combined } from '../../codegen/linearize/reduce.ts';
import type { CodegenCaps, Lowered } from '../../codegen/lowering.ts';
import type { KNode } from '../../ir/ir.ts';
import { dtypeInfo, isFloat, neutral } from '../../shape/dtype.ts';
import { groupReduce, groupScan, scanList } from '../groups.ts';
import {
  linesOf,
  lineStart,
  narrowed,
  ProgramSet,
  type ProgramWriter,
  type Temp,
  type TensorView,
  without,
} from '../program-set.ts';

// What all ways of scanning share: the description of a scan, its arithmetic, where elements are.

export type ScanOp = 'sum' | 'prod' | 'max' | 'min' | 'linear';

/** A tensor that the kernel is given in a slot. */
export interface SlotView {
  readonly slot: number;
  readonly view: TensorView;
}

export interface ScanSpec {
  readonly op: ScanOp;
  readonly axis: number;
  readonly reverse: boolean;
  /** Slot 0, row-major. */
  readonly out: TensorView;
  readonly x: SlotView;
  /** Coefficients of 'linear'. */
  readonly factor: SlotView | null;
}

/** What values of a scan make; `factor`: the coefficient of a recurrence. */
interface ScanCombining {
  readonly identity: KNode;
  both(before: KNode, value: KNode, factor?: KNode): KNode;
}

function combiningOf({ e }: ProgramWriter, { op, out: { dtype } }: ScanSpec): ScanCombining {
  const none = op === 'linear' ? 0 : op === 'sum' && isFloat(dtype) ? -0 : neutral(op, dtype);
  return {
    identity: e.constant(dtype, none),
    both: (before, value, factor) =>
      op === 'linear' ? e.add(e.mul(factor!, before), value) : combined(e, op, before, value),
  };
}

/** A tensor of a scan in a program. */
interface Opened {
  readonly memory: KNode;
  readonly view: TensorView;
  /** Where a line begins. */
  start(line: KNode): KNode;
  /** Where the p-th element in the order of the scan is. */
  at(start: KNode, p: KNode): KNode;
}

function opened(
  { e, ...w }: ProgramWriter,
  { axis, reverse }: ScanSpec,
  { slot, view }: SlotView,
  access: 'read' | 'write' | 'readwrite' = 'read',
): Opened {
  return {
    memory: w.param(slot, view.dtype, access, view.span),
    view,
    start: (line) => lineStart(e, view, axis, line),
    at: (start, p) => e.add(start, e.mul(reverse ? e.sub(view.shape[axis]! - 1, p) : p, view.strides[axis]!)),
  };
}

/** The result, unless `access` is null, the elements, and the coefficients of a recurrence. */
function tensorsOf(
  w: ProgramWriter,
  spec: ScanSpec,
  access: 'write' | 'readwrite' | null,
): readonly [Opened | null, Opened, Opened | null] {
  return [
    access && opened(w, spec, { slot: 0, view: spec.out }, access),
    opened(w, spec, spec.x),
    spec.factor && opened(w, spec, spec.factor),
  ];
}

/** What segments hand on: the running value at their end, and for recurrences the product of their coefficients. */
type Totals = readonly Temp[];

/** A pass over all lines. With `from` a segment starts at the value kept there; with `to` only totals are computed. */
type Pass = (suffix: string, from: Totals | null, to: Totals | null) => void;

/** Lines in one pass; few long ones, cut into segments, in two, with a short program between them. */
function inPasses(set: ProgramSet, spec: ScanSpec, segments: number, suffix: string, pass: Pass): void {
  if (segments === 1) {
    pass(suffix, null, null);
    return;
  }
  const { dtype, shape } = spec.out;
  const count = linesOf(shape, spec.axis);
  const totals = (spec.op === 'linear' ? [0, 1] : [0]).map(() => set.temp(dtype, count * segments));
  pass('_totals', null, totals);
  // Totals of segments become the values that segments start from.
  set.add('_carry', count, (w) => {
    const { b, e, group } = w;
    const [memory, scales] = totals.map((t, i) => w.temp(t, i === 0 ? 'readwrite' : 'read'));
    const { identity, both } = combiningOf(w, spec);
    const at = (segment: KNode): KNode => e.add(e.mul(group, segments), segment);
    scanList(
      w,
      { memory: memory!, length: segments, at },
      { identity, both: (x, y, i) => both(x, y, scales && b.load(scales, at(i!))) },
    );
  });
  pass('_segments', totals, null);
}

// Scans line by line: several lines, or segments of lines, interleaved by one thread.

/** Lines done side by side without vectors. */
const sideBySide = 4;
/** Elements a group should have at least. */
const groupElements = 4096;

/** Lines, or segments of lines, `most` of them side by side. */
function lines(
  set: ProgramSet,
  spec: ScanSpec,
  most: number,
  segments: number,
  ...[suffix, from, to]: Parameters<Pass>
): void {
  const { shape, dtype } = spec.out;
  const n = shape[spec.axis]!;
  const length = Math.floor(n / segments);
  const tail = n - length * segments;
  const total = linesOf(shape, spec.axis) * segments;
  const side = Math.min(most, total);
  const turns =
    side === 1 ? 1 : Math.max(1, Math.min(Math.floor(groupElements / (length * side)), Math.ceil(total / side)));
  set.add(suffix, Math.ceil(total / (side * turns)), (w) => {
    const { b, e, group } = w;
    const tensors = tensorsOf(w, spec, to === null ? 'write' : null);
    const [out, x, factor] = tensors;
    const { identity, both } = combiningOf(w, spec);
    const start = from && w.temp(from[0]!, 'read');
    const totals = (to ?? []).map((t) => w.temp(t, 'write'));
    const running = b.reg('running', dtype, 1, side);
    const product = totals.length < 2 ? null : b.reg('product', dtype, 1, side);
    b.loop(turns, (turn) => {
      const first = e.mul(e.add(e.mul(group, turns), turn), side);
      const own = Array.from({ length: side }, (_, u) => {
        // Past the end the last line is done again, by the same group.
        const at = total % (side * turns) === 0 ? e.add(first, u) : e.min(e.add(first, u), total - 1);
        const line = segments === 1 ? at : e.idiv(at, segments);
        b.store(running, u, start === null ? identity : b.load(start, at));
        if (product !== null) b.store(product, u, e.constant(dtype, 1));
        return { at, segment: e.irem(at, segments), lines: tensors.map((t) => t?.start(line)) };
      });
      const step = (u: number, i: KNode): void => {
        const { segment, lines } = own[u]!;
        const p = e.add(e.mul(segment, length), i);
        const [target, value, scale] = tensors.map((t, k) => t?.at(lines[k]!, p));
        const coefficient = scale && b.load(factor!.memory, scale);
        const next = b.place(both(b.load(running, u), b.load(x.memory, value!), coefficient));
        b.store(running, u, next);
        if (product !== null) b.store(product, u, e.mul(b.load(product, u), coefficient!));
        if (out !== null) b.store(out.memory, target!, next);
      };
      b.loop(length, (i) => {
        for (let u = 0; u < side; u++) step(u, i);
      });
      own.forEach(({ at, segment }, u) => {
        if (tail > 0 && to === null)
          b.ifThen(e.eq(segment, segments - 1), () => b.loop(tail, (i) => step(u, e.add(i, length))));
        for (const [k, memory] of totals.entries()) b.store(memory, at, b.load([running, product!][k]!, u));
      });
    });
  });
}

// Scans by groups of threads: each group runs through a line, or a segment of one, in strides of as many elements as it has
// threads, times a few.
//
// A thread scans its few neighbours. The group scans the totals of its threads in group memory (Hillis and Steele, log2 steps), and
// carries the total on. Linear recurrences are not done this way: products of their coefficients may overflow where the
// recurrence does not.

/** Neighbours a thread scans by itself. */
const own = 4;

/** Threads that suit lines of `n` elements. */
function scanThreads(n: number, most: number): number {
  return Math.min(2 ** Math.floor(Math.log2(most)), 256, Math.max(32, 2 ** Math.ceil(Math.log2(n / own))));
}

/** Lines, or segments of lines, a group to each. Segments are whole strides, but for the last. */
function groups(
  set: ProgramSet,
  spec: ScanSpec,
  threads: number,
  segments: number,
  ...[suffix, from, to]: Parameters<Pass>
): void {
  const { shape, dtype } = spec.out;
  const n = shape[spec.axis]!;
  const stride = threads * own;
  const strides = Math.ceil(n / segments / stride);
  const write = (w: ProgramWriter): void => {
    const { b, e, group, thread } = w;
    const [out, x] = tensorsOf(w, spec, to === null ? 'write' : null);
    const combining = combiningOf(w, spec);
    const { identity, both } = combining;
    const carry = b.reg('carry', dtype);
    const line = segments === 1 ? group : e.idiv(group, segments);
    const first = e.mul(e.irem(group, segments), strides * stride);
    b.store(carry, 0, from === null ? identity : b.load(w.temp(from[0]!, 'read'), group));
    b.loop(strides, (step) => {
      const base = e.add(e.add(first, e.mul(step, stride)), e.mul(thread, own));
      const places = Array.from({ length: own }, (_, u) => e.add(base, u));
      const states: KNode[] = [];
      for (const [u, p] of places.entries()) {
        const value = b.load(x.memory, x.at(x.start(line), p), 1, e.lt(p, n), identity);
        states.push(b.place(u === 0 ? value : both(states[u - 1]!, value)));
      }
      const mine = states[own - 1]!;
      const so = b.load(carry, 0);
      if (out === null) b.store(carry, 0, both(so, groupReduce(w, mine, combining)));
      else {
        const { before, whole } = groupScan(w, mine, combining);
        const begin = b.place(both(so, before));
        b.store(carry, 0, both(so, whole));
        for (const [u, p] of places.entries())
          b.store(out.memory, out.at(out.start(line), p), both(begin, states[u]!), e.lt(p, n));
      }
      b.barrier();
    });
    if (to !== null) b.ifThen(e.lt(thread, 1), () => b.store(w.temp(to[0]!, 'write'), group, b.load(carry, 0)));
  };
  set.add(suffix, linesOf(shape, spec.axis) * segments, write, threads);
}

/** Elements next to each other that one group does, at least and at most. */
const leastAcross = 128;
const mostAcross = 1024;
/** Fewer lines than this, each at least so long, are cut into segments of at least so many elements, at most so many. */
const fewLines = 4;
const longLine = 1 << 15;
const segmentElements = 1 << 13;
const mostSegments = 64;

export function lowerScan(spec: ScanSpec, caps: CodegenCaps): Lowered {
  const set = new ProgramSet(`scan_${spec.op}_${spec.out.shape.join('x')}`, caps);
  const { axis, out } = spec;
  const n = out.shape[axis]!;
  if (caps.simt) {
    byThreads(set, spec, caps);
    return set.result();
  }
  if (linesOf(out.shape, axis) < fewLines && n >= longLine) {
    const segments = Math.min(mostSegments, Math.floor(n / segmentElements));
    inPasses(set, spec, segments, '_lines', lines.bind(null, set, spec, sideBySide, segments));
    return set.result();
  }
  const last = out.shape.length - 1;
  const lanes = caps.vectorBytes / dtypeInfo[out.dtype].bytes;
  const across = out.shape[last]!;
  const next = [out, spec.x.view, spec.factor?.view].every((view) => view === undefined || view.strides[last] === 1);
  const whole = axis !== last && lanes > 1 && next ? across - (across % lanes) : 0;
  if (whole > 0) {
    // Wide groups walk memory in long strides, but every worker should have one. Values do not depend on it.
    const share =
      Math.ceil((whole * linesOf(without(out, last).shape, axis)) / caps.parallelism / leastAcross) * leastAcross;
    vectors(set, part(spec, last, 0, whole), Math.min(whole, mostAcross, share), lanes);
  }
  if (whole < across || axis === last) {
    const rest = whole === 0 ? spec : part(spec, last, whole, across - whole);
    lines(set, rest, sideBySide, 1, '_lines', null, null);
  }
  return set.result();
}

/** Shortest line that a group scans; lines side by side from which on one thread to a line is enough. */
const groupLine = 64;
const manyLines = 4096;
/** Groups that keep a small device busy: fewer lines are cut into segments, for as many groups as a large one takes. */
const enoughGroups = 64;
const wantedGroups = 256;
/** Strides of a group in one segment, at least. */
const leastStrides = 4;
/** Elements of a segment, at least, where each is done by one thread: recurrences, and all scans where groups gain nothing. */
const leastSegment = 256;
/** Most segments of a line where threads of a group run one after another. */
const mostEmulated = 512;

/** On engines with groups of threads: one thread to a line, one group to a line, or several to each of few long ones. */
function byThreads(set: ProgramSet, spec: ScanSpec, { maxGroup, sharedIsMemory }: CodegenCaps): void {
  const { op, axis, out, x } = spec;
  const n = out.shape[axis]!;
  const count = linesOf(out.shape, axis);
  const apart = Math.abs(x.view.strides[axis]!) !== 1;
  const alone = op === 'linear' || sharedIsMemory === true;
  if (alone || n < groupLine || (apart && count >= manyLines)) {
    const segments = alone ? segmentsOf(count, n, sharedIsMemory === true) : 1;
    inPasses(set, spec, segments, '_lines', lines.bind(null, set, spec, 1, segments));
    return;
  }
  const threads = scanThreads(n, maxGroup);
  const stride = threads * own;
  const most = count < enoughGroups ? Math.ceil(wantedGroups / count) : 1;
  const wanted = Math.min(most, Math.floor(n / (leastStrides * stride)));
  const segments = Math.ceil(n / (Math.ceil(n / Math.max(1, wanted) / stride) * stride));
  inPasses(set, spec, segments, '_groups', groups.bind(null, set, spec, threads, segments));
}

/**
 * Segments of a line that are each done by one thread: few lines only, since products of coefficients over a segment may overflow where
 * the recurrence does not. A device gets no more of them than one thread adds up in the time of the two passes over a segment.
 */
function segmentsOf(count: number, n: number, sharedIsMemory: boolean): number {
  if (count >= enoughGroups) return 1;
  const most = sharedIsMemory ? mostEmulated : Math.max(mostEmulated, Math.ceil(Math.sqrt(2 * n)));
  return Math.max(1, Math.min(most, Math.floor(n / leastSegment)));
}

function part(spec: ScanSpec, axis: number, start: number, length: number): ScanSpec {
  const cut = (view: TensorView): TensorView => narrowed(view, axis, start, length);
  const cutSlot = ({ slot, view }: SlotView): SlotView => ({ slot, view: cut(view) });
  return { ...spec, out: cut(spec.out), x: cutSlot(spec.x), factor: spec.factor && cutSlot(spec.factor) };
}

/**
 * Lines next to each other in memory, as vectors: the result before is read back, from the nearest cache, so that memory is walked row
 * by row and not column by column.
 */
function vectors(set: ProgramSet, spec: ScanSpec, width: number, lanes: number): void {
  const { axis, out } = spec;
  const last = out.shape.length - 1;
  const [n, across] = [out.shape[axis]!, out.shape[last]!];
  const blocks = Math.ceil(across / width);
  const others = linesOf(without(out, axis).shape, last - 1);
  set.add('_vectors', others * blocks, (w) => {
    const { b, e, group } = w;
    const tensors = tensorsOf(w, spec, 'readwrite');
    const target = tensors[0]!;
    const { identity, both } = combiningOf(w, spec);
    const line = e.idiv(group, blocks);
    const column = e.mul(e.irem(group, blocks), width);
    const starts = tensors.map((t) => t && e.add(lineStart(e, without(t.view, axis), last - 1, line), column));
    const left = e.idiv(e.sub(across, column), lanes);
    const vectorsHere = across % width === 0 ? e.i32(width / lanes) : e.min(width / lanes, left);
    /** Row p, each vector from where the row before has it. */
    const row = (p: KNode, before: KNode | null): void => {
      b.loop(vectorsHere, (v) => {
        const shift = e.mul(v, lanes);
        const [to, x, factor] = tensors.map((t, i) => t && e.add(t.at(starts[i]!, p), shift));
        const so = before === null ? e.splat(identity, lanes) : b.load(target.memory, e.add(before, shift), lanes);
        const [value, scale] = [x, factor].map((at, i) => at && b.load(tensors[i + 1]!.memory, at, lanes));
        b.store(target.memory, to!, both(so, value!, scale!));
      });
    };
    row(e.i32(0), null);
    b.loop(n - 1, (p) => row(e.add(p, 1), target.at(starts[0]!, p)));
  });
}
