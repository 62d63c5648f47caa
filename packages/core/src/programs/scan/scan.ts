/**
 * Scans along an axis: running sums, products, extremes and linear recurrences, with linear work.
 *
 * Lines are independent. A group runs through several of them side by side, so that one element need not wait for the one before it:
 * as vectors where lines lie next to each other in memory, else interleaved. Few long lines are cut into segments: totals of the
 * segments, a scan of the totals, then every segment from where the one before it ends. The cuts depend on the shape alone.
 * On engines with groups of threads a group scans a line together (groups.ts), or each of its threads has a line.
 */
import type { CodegenCaps, Lowered } from '../../codegen/lowering.ts';
import type { KNode } from '../../ir/ir.ts';
import { dtypeInfo } from '../../shape/dtype.ts';
import { lineStart, linesOf, narrowed, type TensorView, without } from '../lines.ts';
import { ProgramSet } from '../program-set.ts';
import { scanGroups, scanThreads, strideOf } from './groups.ts';
import { carryOn, inSegments, lines } from './lines.ts';
import { memoryOf, placed, runningValue, scanIdentity, type ScanSpec, type SlotView } from './parts.ts';

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
    inSegments(set, spec, Math.min(mostSegments, Math.floor(n / segmentElements)));
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
    lines(set, rest, '_lines', 1, null);
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
  if (op === 'linear' || sharedIsMemory === true) {
    const segments = segmentsOf(count, n, sharedIsMemory === true);
    if (segments > 1) inSegments(set, spec, segments, 1);
    else lines(set, spec, '_lines', 1, null, null, 1);
    return;
  }
  if (n < groupLine || (apart && count >= manyLines)) {
    lines(set, spec, '_lines', 1, null, null, 1);
    return;
  }
  const threads = scanThreads(n, maxGroup);
  const stride = strideOf(threads);
  const most = count < enoughGroups ? Math.ceil(wantedGroups / count) : 1;
  const wanted = Math.min(most, Math.floor(n / (leastStrides * stride)));
  const segments = Math.ceil(n / (Math.ceil(n / Math.max(1, wanted) / stride) * stride));
  if (segments === 1) {
    scanGroups(set, spec, '_groups', threads, 1, null, null);
    return;
  }
  const ends = set.temp(out.dtype, count * segments);
  scanGroups(set, spec, '_totals', threads, segments, null, ends);
  carryOn(set, spec, count, segments, { end: ends, scale: null });
  scanGroups(set, spec, '_segments', threads, segments, ends, null);
}

/**
 * Segments of a line that are each done by one thread: few lines only, since products of coefficients over a segment may overflow where
 * the recurrence does not. A device gets no more of them than one thread adds up in the time of the two passes over a segment.
 */
function segmentsOf(count: number, n: number, sharedIsMemory: boolean): number {
  if (count >= enoughGroups) return 1;
  const most = sharedIsMemory ? mostEmulated : Math.max(mostEmulated, Math.ceil(Math.sqrt(2 * n)));
  return Math.min(most, Math.floor(n / leastSegment));
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
  const { op, axis, reverse, out, x, factor } = spec;
  const last = out.shape.length - 1;
  const n = out.shape[axis]!;
  const across = out.shape[last]!;
  const blocks = Math.ceil(across / width);
  const others = linesOf(without(out, axis).shape, last - 1);
  set.add('_vectors', others * blocks, (w) => {
    const { b, e, group } = w;
    const memory = memoryOf(w, spec, 'readwrite');
    const line = e.idiv(group, blocks);
    const column = e.mul(e.irem(group, blocks), width);
    const start = (view: TensorView): KNode => e.add(lineStart(e, without(view, axis), last - 1, line), column);
    const starts = { out: start(out), x: start(x.view), factor: factor && start(factor.view) };
    const left = e.idiv(e.sub(across, column), lanes);
    const vectorsHere = across % width === 0 ? e.i32(width / lanes) : e.min(width / lanes, left);
    const row = (p: KNode, before: (shift: KNode) => KNode): void => {
      b.loop(vectorsHere, (v) => {
        const shift = e.mul(v, lanes);
        const at = (view: TensorView, from: KNode): KNode => e.add(placed(w, view, axis, from, p, reverse), shift);
        const value = b.load(memory.x, at(x.view, starts.x), lanes);
        const scale = factor && b.load(memory.factor!, at(factor.view, starts.factor!), lanes);
        b.store(memory.out, at(out, starts.out), runningValue(w, op, before(shift), value, scale));
      });
    };
    row(e.i32(0), () => e.constant(out.dtype, scanIdentity(op, out.dtype), lanes));
    b.loop(n - 1, (p) => {
      const at = placed(w, out, axis, starts.out, p, reverse);
      row(e.add(p, 1), (shift) => b.load(memory.out, e.add(at, shift), lanes));
    });
  });
}
