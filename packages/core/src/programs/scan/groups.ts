/**
 * Scans by groups of threads: each group runs through a line, or a segment of one, in strides of as many elements as it has
 * threads, times a few.
 *
 * A thread scans its few neighbours, the group scans the totals of its threads in group memory (Hillis and Steele, log2 steps), and
 * carries the total on. Linear recurrences are not done this way: products of their coefficients may overflow where the
 * recurrence does not.
 */
import type { KNode } from '../../ir/ir.ts';
import { lineStart, linesOf } from '../lines.ts';
import type { ProgramSet, Temp } from '../program-set.ts';
import { memoryOf, placed, runningValue, scanIdentity, type ScanSpec } from './parts.ts';

/** Neighbours a thread scans by itself. */
const own = 4;

/** Elements of one stride of a group. */
export function strideOf(threads: number): number {
  return threads * own;
}

/** Threads that suit lines of `n` elements. */
export function scanThreads(n: number, most: number): number {
  return Math.min(2 ** Math.floor(Math.log2(most)), 256, Math.max(32, 2 ** Math.ceil(Math.log2(n / own))));
}

/**
 * One program over all lines in `segments` each. With `from` a segment starts at the value kept there; with `to` only its total is
 * stored. Segments are whole strides, but for the last.
 */
export function scanGroups(
  set: ProgramSet,
  spec: ScanSpec,
  suffix: string,
  threads: number,
  segments: number,
  from: Temp | null,
  to: Temp | null,
): void {
  const { op, axis, reverse, out, x } = spec;
  const n = out.shape[axis]!;
  const stride = strideOf(threads);
  const strides = Math.ceil(n / segments / stride);
  set.addGroups(suffix, linesOf(out.shape, axis) * segments, threads, (w, thread) => {
    const { b, e, group } = w;
    const memory = memoryOf(w, spec, to === null ? 'write' : null);
    const totals = b.shared('totals', out.dtype, threads);
    const carry = b.reg('carry', out.dtype);
    const identity = e.constant(out.dtype, scanIdentity(op, out.dtype));
    const both = (before: KNode, after: KNode): KNode => runningValue(w, op, before, after, null);
    const line = segments === 1 ? group : e.idiv(group, segments);
    const first = e.mul(e.irem(group, segments), strides * stride);
    const [start, target] = [lineStart(e, x.view, axis, line), lineStart(e, out, axis, line)];
    b.store(carry, 0, from === null ? identity : b.load(w.temp(from, 'read'), group));
    b.loop(strides, (step) => {
      const base = e.add(e.add(first, e.mul(step, stride)), e.mul(thread, own));
      const states: KNode[] = [];
      const inside: KNode[] = [];
      for (let u = 0; u < own; u++) {
        const p = e.add(base, u);
        const gate = e.lt(p, n);
        const value = b.load(memory.x, placed(w, x.view, axis, start, p, reverse), 1, gate, identity);
        states.push(b.place(u === 0 ? value : both(states[u - 1]!, value)));
        inside.push(gate);
      }
      b.store(totals, thread, states[own - 1]!);
      b.barrier();
      b.loop(Math.log2(threads), (doubling) => {
        const distance = e.shl(1, doubling);
        const mine = b.load(totals, thread);
        const before = b.load(totals, e.max(e.sub(thread, distance), 0));
        const sum = b.place(e.where(e.lt(thread, distance), mine, both(before, mine)));
        b.barrier();
        b.store(totals, thread, sum);
        b.barrier();
      });
      const so = b.load(carry, 0);
      const previous = b.load(totals, e.max(e.sub(thread, 1), 0));
      const begin = b.place(both(so, e.where(e.lt(thread, 1), identity, previous)));
      b.store(carry, 0, both(so, b.load(totals, threads - 1)));
      if (to === null) {
        states.forEach((state, u) => {
          const p = e.add(base, u);
          b.store(memory.out, placed(w, out, axis, target, p, reverse), both(begin, state), inside[u]);
        });
      }
      b.barrier();
    });
    if (to !== null) b.ifThen(e.lt(thread, 1), () => b.store(w.temp(to, 'write'), group, b.load(carry, 0)));
  });
}
