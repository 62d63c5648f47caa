/**
 * Scans line by line: several lines, or segments of lines, interleaved by one thread.
 */
import type { KNode } from '../../ir/ir.ts';
import { lineStart, linesOf, type TensorView } from '../lines.ts';
import type { ProgramSet, Temp } from '../program-set.ts';
import { memoryOf, placed, runningValue, scanIdentity, type ScanSpec } from './parts.ts';

/** Lines done side by side without vectors. */
const sideBySide = 4;
/** Elements a group should have at least. */
const groupElements = 4096;

/** What segments hand on: the running value at their end, and for recurrences the product of their coefficients. */
export interface Totals {
  readonly end: Temp;
  readonly scale: Temp | null;
}

/**
 * Lines, or segments of lines, several side by side. With `from` every segment starts at the value kept there; with `to` only the
 * totals of segments are computed.
 */
export function lines(
  set: ProgramSet,
  spec: ScanSpec,
  suffix: string,
  segments: number,
  from: Totals | null,
  to: Totals | null = null,
  most: number = sideBySide,
): void {
  const { op, axis, reverse, out, x, factor } = spec;
  const n = out.shape[axis]!;
  const length = Math.floor(n / segments);
  const tail = n - length * segments;
  const total = linesOf(out.shape, axis) * segments;
  const side = Math.min(most, total);
  const turns =
    side === 1 ? 1 : Math.max(1, Math.min(Math.floor(groupElements / (length * side)), Math.ceil(total / side)));
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
      const first = e.mul(e.add(e.mul(group, turns), turn), side);
      const which = Array.from({ length: side }, (_, u) => {
        const at = e.add(first, u);
        return total % (side * turns) === 0 ? at : e.min(at, total - 1);
      });
      const own = which.map((at) => {
        const line = segments === 1 ? at : e.idiv(at, segments);
        const segment = e.irem(at, segments);
        const start = (view: TensorView): KNode => lineStart(e, view, axis, line);
        const offset = e.mul(segment, length);
        return { at, segment, offset, out: start(out), x: start(x.view), factor: factor && start(factor.view) };
      });
      own.forEach(({ at }, u) => {
        b.store(running, u, ends === null ? identity : b.load(ends, at));
        if (product !== null) b.store(product, u, e.constant(out.dtype, 1));
      });
      const step = (u: number, i: KNode): void => {
        const line = own[u]!;
        const p = e.add(line.offset, i);
        const value = b.load(memory.x, placed(w, x.view, axis, line.x, p, reverse));
        const scale = factor && b.load(memory.factor!, placed(w, factor.view, axis, line.factor!, p, reverse));
        const next = b.place(runningValue(w, op, b.load(running, u), value, scale));
        b.store(running, u, next);
        if (product !== null) b.store(product, u, e.mul(b.load(product, u), scale!));
        if (to === null) b.store(memory.out, placed(w, out, axis, line.out, p, reverse), next);
      };
      b.loop(length, (i) => {
        for (let u = 0; u < side; u++) step(u, i);
      });
      if (tail > 0 && to === null) {
        own.forEach(({ segment }, u) => {
          b.ifThen(e.eq(segment, segments - 1), () => {
            b.loop(tail, (i) => step(u, e.add(i, length)));
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
export function inSegments(set: ProgramSet, spec: ScanSpec, segments: number, side: number = sideBySide): void {
  const { op, axis, out } = spec;
  const count = linesOf(out.shape, axis);
  const totals: Totals = {
    end: set.temp(out.dtype, count * segments),
    scale: op === 'linear' ? set.temp(out.dtype, count * segments) : null,
  };
  lines(set, spec, '_totals', segments, null, totals, side);
  carryOn(set, spec, count, segments, totals);
  lines(set, spec, '_segments', segments, totals, null, side);
}

/** Totals of segments become the values that segments start from. */
export function carryOn(set: ProgramSet, { op, out }: ScanSpec, count: number, segments: number, totals: Totals): void {
  set.add('_carry', count, (w) => {
    const { b, e, group } = w;
    const ends = w.temp(totals.end, 'readwrite');
    const scales = totals.scale && w.temp(totals.scale, 'read');
    const carry = b.reg('carry', out.dtype);
    b.store(carry, 0, e.constant(out.dtype, scanIdentity(op, out.dtype)));
    b.loop(segments, (s) => {
      const at = e.add(e.mul(group, segments), s);
      const before = b.load(carry, 0);
      const end = b.load(ends, at);
      b.store(ends, at, before);
      b.store(carry, 0, runningValue(w, op, before, end, scales && b.load(scales, at)));
    });
  });
}
