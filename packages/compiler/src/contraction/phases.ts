/**
 * Copies of an image by phases, for convolutions with steps; pages do not load this.
 *
 * Positions of a convolution with a step of two read every second element of a line, which are no vectors. The copy has the even elements of a line
 * and then the odd ones: for any element of the kernel neighbouring positions are neighbours in memory. The loop over that kernel axis walks the phases, then
 * goes one position further (`Fold`). That is a loop of the sum, or in gradients by the kernel one around the tiles.
 */
import type { Range } from '../ir/free-ranges.ts';
import { type Axis, type Fold, isFixed, type Operand } from './access.ts';
import { copyCost, stridesOver, type Way } from './packing.ts';

/** The copy in which a range with a step has its elements side by side; null where its axis has other members than an axis of the kernel. */
export function phased(x: Operand, along: Range): Way | null {
  const axis = x.axisOf(along);
  const own = axis?.members.find((m) => m.range === along);
  const kernel = axis?.members.find((m) => m.range !== along);
  if (axis?.members.length !== 2 || own === undefined || kernel === undefined) return null;
  const [every, taps] = [own.step, kernel.range.arg.extent];
  if (every < 2 || kernel.step !== 1 || !isFixed(along) || !isFixed(kernel.range)) return null;
  // Phases of different lengths: the last place of some lies beyond the domain.
  const isRagged = taps % every !== 0;
  if (isRagged && x.value.op !== 'LOAD') return null;
  const whole = every * (along.arg.extent - 1) + taps;
  const single = (range: Range, extent: number): Axis => ({ members: [{ range, step: 1 }], low: 0, extent });
  const phase = single(kernel.range, Math.min(every, taps));
  const position = single(along, along.arg.extent + Math.floor((taps - 1) / every));
  const outside = [...x.axes.filter((a) => a !== axis), phase, position];
  return {
    kind: 'domain',
    outside,
    inside: [],
    copy: copyCost(x, along),
    strides: stridesOver(outside, 1),
    folds: new Map<Range, Fold>([[kernel.range, { every, step: 1 }]]),
    apart: 0,
    kept: isRagged ? (e, loopOf) => e.lt(e.add(e.mul(loopOf(position), every), loopOf(phase)), whole) : undefined,
  };
}
