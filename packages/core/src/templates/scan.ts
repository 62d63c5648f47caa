/**
 * Scans along an axis: running sums, products, extremes and linear recurrences, with linear work.
 *
 * Lines are independent. A group runs through several of them side by side, so that one element need not wait for the one before it:
 * as vectors where lines lie next to each other in memory, else interleaved. Few long lines are cut into segments: totals of the
 * segments, a scan of the totals, then every segment from where the one before it ends. The cuts depend on the shape alone.
 */
import type { EngineCaps } from '../engine/engine.ts';
import type { KNode } from '../kernel/ir.ts';
import { type DType, dtypeInfo, highest, isFloat, lowest } from '../shape/dtype.ts';
import type { Lowered } from './contract.ts';
import { lineStart, linesOf, narrowed, type TensorView, without } from './lines.ts';
import { ProgramSet, type ProgramWriter, type Temp } from './program-set.ts';

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

/** Lines done side by side without vectors. */
const sideBySide = 4;
/** Elements next to each other that one group does, at least and at most. */
const leastAcross = 128;
const mostAcross = 1024;
/** Elements a group should have at least. */
const groupElements = 4096;
/** Fewer lines than this, each at least so long, are cut into segments of at least so many elements, at most so many. */
const fewLines = 4;
const longLine = 1 << 15;
const segmentElements = 1 << 13;
const mostSegments = 64;

export function lowerScan(spec: ScanSpec, caps: EngineCaps): Lowered {
  const set = new ProgramSet(`scan_${spec.op}_${spec.out.shape.join('x')}`, caps);
  const { axis, out } = spec;
  const n = out.shape[axis] as number;
  if (linesOf(out.shape, axis) < fewLines && n >= longLine) {
    inSegments(set, spec, Math.min(mostSegments, Math.floor(n / segmentElements)));
    return set.result();
  }
  const last = out.shape.length - 1;
  const lanes = caps.vectorBytes / dtypeInfo[out.dtype].bytes;
  const across = out.shape[last] as number;
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

function part(spec: ScanSpec, axis: number, start: number, length: number): ScanSpec {
  const cut = (view: TensorView): TensorView => narrowed(view, axis, start, length);
  const cutSlot = ({ slot, view }: SlotView): SlotView => ({ slot, view: cut(view) });
  return { ...spec, out: cut(spec.out), x: cutSlot(spec.x), factor: spec.factor && cutSlot(spec.factor) };
}

/** What a scan starts from; the next element combined with it is that element. */
export function scanIdentity(op: ScanOp, dtype: DType): number | bigint {
  switch (op) {
    case 'sum':
      return isFloat(dtype) ? -0 : 0;
    case 'linear':
      return 0;
    case 'prod':
      return 1;
    case 'max':
      return lowest(dtype);
    case 'min':
      return highest(dtype);
    default:
      return op satisfies never;
  }
}

function combined({ e }: ProgramWriter, op: ScanOp, running: KNode, x: KNode, factor: KNode | null): KNode {
  switch (op) {
    case 'sum':
      return e.add(running, x);
    case 'prod':
      return e.mul(running, x);
    case 'max':
      return e.max(running, x);
    case 'min':
      return e.min(running, x);
    case 'linear':
      return e.add(e.mul(factor as KNode, running), x);
    default:
      return op satisfies never;
  }
}

interface Memory {
  readonly out: KNode;
  readonly x: KNode;
  readonly factor: KNode | null;
}

function memoryOf(w: ProgramWriter, { out, x, factor }: ScanSpec, access: 'write' | 'readwrite' | null): Memory {
  return {
    out: access === null ? w.e.i32(0) : w.param(0, out.dtype, access, out.span),
    x: w.param(x.slot, x.view.dtype, 'read', x.view.span),
    factor: factor && w.param(factor.slot, factor.view.dtype, 'read', factor.view.span),
  };
}

/** Where an element of a line is: the p-th in the order of the scan. */
function placed(w: ProgramWriter, view: TensorView, axis: number, start: KNode, p: KNode, reverse: boolean): KNode {
  const { e } = w;
  const n = view.shape[axis] as number;
  const at = reverse ? e.sub(e.i32(n - 1), p) : p;
  return e.add(start, e.mul(at, e.i32(view.strides[axis] as number)));
}

/**
 * Lines next to each other in memory, as vectors: the result before is read back, from the nearest cache, so that memory is walked row
 * by row and not column by column.
 */
function vectors(set: ProgramSet, spec: ScanSpec, width: number, lanes: number): void {
  const { op, axis, reverse, out, x, factor } = spec;
  const last = out.shape.length - 1;
  const n = out.shape[axis] as number;
  const across = out.shape[last] as number;
  const blocks = Math.ceil(across / width);
  const others = linesOf(without(out, axis).shape, last - 1);
  set.add('_vectors', others * blocks, (w) => {
    const { b, e, group } = w;
    const memory = memoryOf(w, spec, 'readwrite');
    const line = e.idiv(group, e.i32(blocks));
    const column = e.mul(e.irem(group, e.i32(blocks)), e.i32(width));
    const start = (view: TensorView): KNode => e.add(lineStart(e, without(view, axis), last - 1, line), column);
    const starts = { out: start(out), x: start(x.view), factor: factor && start(factor.view) };
    const left = e.idiv(e.sub(e.i32(across), column), e.i32(lanes));
    const vectorsHere = across % width === 0 ? e.i32(width / lanes) : e.min(e.i32(width / lanes), left);
    const row = (p: KNode, before: (shift: KNode) => KNode): void => {
      b.loop(vectorsHere, (v) => {
        const shift = e.mul(v, e.i32(lanes));
        const at = (view: TensorView, from: KNode): KNode => e.add(placed(w, view, axis, from, p, reverse), shift);
        const value = b.load(memory.x, at(x.view, starts.x), lanes);
        const scale = factor && b.load(memory.factor as KNode, at(factor.view, starts.factor as KNode), lanes);
        b.store(memory.out, at(out, starts.out), combined(w, op, before(shift), value, scale));
      });
    };
    row(e.i32(0), () => e.constant(out.dtype, scanIdentity(op, out.dtype), lanes));
    b.loop(n - 1, (p) => {
      const at = placed(w, out, axis, starts.out, p, reverse);
      row(e.add(p, e.i32(1)), (shift) => b.load(memory.out, e.add(at, shift), lanes));
    });
  });
}

/** What segments hand on: the running value at their end, and for recurrences the product of their coefficients. */
interface Totals {
  readonly end: Temp;
  readonly scale: Temp | null;
}

/**
 * Lines, or segments of lines, several side by side. With `from` every segment starts at the value kept there; with `to` only the
 * totals of segments are computed.
 */
function lines(
  set: ProgramSet,
  spec: ScanSpec,
  suffix: string,
  segments: number,
  from: Totals | null,
  to: Totals | null = null,
): void {
  const { op, axis, reverse, out, x, factor } = spec;
  const n = out.shape[axis] as number;
  const length = Math.floor(n / segments);
  const tail = n - length * segments;
  const total = linesOf(out.shape, axis) * segments;
  const side = Math.min(sideBySide, total);
  const turns = Math.max(1, Math.min(Math.floor(groupElements / (length * side)), Math.ceil(total / side)));
  const groups = Math.ceil(total / (side * turns));
  set.add(suffix, groups, (w) => {
    const { b, e, group } = w;
    const memory = memoryOf(w, spec, to === null ? 'write' : null);
    const ends = from && w.temp(from.end, 'read');
    const target = to && w.temp(to.end, 'write');
    const scales = to?.scale ? w.temp(to.scale, 'write') : null;
    const running = b.reg('running', out.dtype, 1, side);
    const product = scales === null ? null : b.reg('product', out.dtype, 1, side);
    const identity = e.constant(out.dtype, scanIdentity(op, out.dtype));
    b.loop(turns, (turn) => {
      // Past the end the last line is done again, by the same group.
      const first = e.mul(e.add(e.mul(group, e.i32(turns)), turn), e.i32(side));
      const which = Array.from({ length: side }, (_, u) => {
        const at = e.add(first, e.i32(u));
        return total % (side * turns) === 0 ? at : e.min(at, e.i32(total - 1));
      });
      const own = which.map((at) => {
        const line = segments === 1 ? at : e.idiv(at, e.i32(segments));
        const segment = e.irem(at, e.i32(segments));
        const start = (view: TensorView): KNode => lineStart(e, view, axis, line);
        const offset = e.mul(segment, e.i32(length));
        return { at, segment, offset, out: start(out), x: start(x.view), factor: factor && start(factor.view) };
      });
      own.forEach(({ at }, u) => {
        b.store(running, u, ends === null ? identity : b.load(ends, at));
        if (product !== null) b.store(product, u, e.constant(out.dtype, 1));
      });
      const step = (u: number, i: KNode): void => {
        const line = own[u] as (typeof own)[number];
        const p = e.add(line.offset, i);
        const value = b.load(memory.x, placed(w, x.view, axis, line.x, p, reverse));
        const scale =
          factor && b.load(memory.factor as KNode, placed(w, factor.view, axis, line.factor as KNode, p, reverse));
        const next = b.place(combined(w, op, b.load(running, u), value, scale));
        b.store(running, u, next);
        if (product !== null) b.store(product, u, e.mul(b.load(product, u), scale as KNode));
        if (to === null) b.store(memory.out, placed(w, out, axis, line.out, p, reverse), next);
      };
      b.loop(length, (i) => {
        for (let u = 0; u < side; u++) step(u, i);
      });
      if (tail > 0 && to === null) {
        own.forEach(({ segment }, u) => {
          b.ifThen(e.eq(segment, e.i32(segments - 1)), () => {
            b.loop(tail, (i) => step(u, e.add(i, e.i32(length))));
          });
        });
      }
      own.forEach(({ at }, u) => {
        if (target !== null) b.store(target, at, b.load(running, u));
        if (scales !== null) b.store(scales, at, b.load(product as KNode, u));
      });
    });
  });
}

/** Few long lines: three programs, the second one short. */
function inSegments(set: ProgramSet, spec: ScanSpec, segments: number): void {
  const { op, axis, out } = spec;
  const count = linesOf(out.shape, axis);
  const totals: Totals = {
    end: set.temp(out.dtype, count * segments),
    scale: op === 'linear' ? set.temp(out.dtype, count * segments) : null,
  };
  lines(set, spec, '_totals', segments, null, totals);
  set.add('_carry', count, (w) => {
    const { b, e, group } = w;
    const ends = w.temp(totals.end, 'readwrite');
    const scales = totals.scale && w.temp(totals.scale, 'read');
    const carry = b.reg('carry', out.dtype);
    b.store(carry, 0, e.constant(out.dtype, scanIdentity(op, out.dtype)));
    b.loop(segments, (s) => {
      const at = e.add(e.mul(group, e.i32(segments)), s);
      const before = b.load(carry, 0);
      const end = b.load(ends, at);
      b.store(ends, at, before);
      b.store(carry, 0, combined(w, op, before, end, scales && b.load(scales, at)));
    });
  });
  lines(set, spec, '_segments', segments, totals);
}
