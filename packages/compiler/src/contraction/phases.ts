/**
 * Copies of an image by phases, for convolutions with steps; pages do not load this.
 *
 * Positions of a convolution with a step of two read every second element of a line, which are no vectors. The copy has the even elements of a line
 * and then the odd ones: for any element of the kernel neighbouring positions are neighbours in memory. The loop over that kernel axis walks the phases, then
 * goes one position further (`Fold`). That is a loop of the sum, or in gradients by the kernel one around the tiles.
 */
import type { Exprs } from '../ir/expr.ts';
import type { Range } from '../ir/free-ranges.ts';
import type { KNode } from '../ir/ir.ts';
import { type Axis, type Fold, isFixed, type Operand } from './access.ts';
import { copyCost, stridesOver, type Way } from './packing.ts';

/** Most elements of a kernel in one phase along which sums run over vectors: a gradient of 7 x 7 in steps of two took 10.3 ms, and 11.2 so. */
const mostOfPhase = 2;

/** A load only where a condition holds, else zero. */
function loadWhere(e: Exprs, load: KNode, kept: KNode): KNode {
  const [memory, index, gate, other] = load.src as [KNode, KNode, KNode?, KNode?];
  return e.load(memory, index, gate === undefined ? kept : e.and(gate, kept), other);
}

/** The copy in which a range with a step has its elements side by side; null where its axis has other members than an axis of the kernel. */
export function phased(x: Operand, along: Range, tile: Range | null): Way | null {
  const axis = x.axisOf(along);
  const own = axis?.members.find((m) => m.range === along);
  const kernel = axis?.members.find((m) => m.range !== along);
  if (axis?.members.length !== 2 || own === undefined || kernel === undefined) return null;
  const [every, taps] = [own.step, kernel.range.arg.extent];
  if (every < 2 || kernel.step !== 1 || !isFixed(along) || !isFixed(kernel.range)) return null;
  // One of both is in the sum; elements of tiles walk no phases.
  const isSum = x.k.includes(along);
  if (isSum === x.k.includes(kernel.range) || kernel.range === tile) return null;
  if (isSum && taps > mostOfPhase * every) return null;
  // Phases of different lengths: the last place of some lies beyond the domain.
  const isRagged = taps % every !== 0;
  if (isRagged && x.value.op !== 'LOAD') return null;
  const whole = every * (along.arg.extent - 1) + taps;
  const single = (range: Range, extent: number): Axis => ({ members: [{ range, step: 1 }], low: 0, extent });
  const phase = single(kernel.range, Math.min(every, taps));
  const position = single(along, along.arg.extent + Math.floor((taps - 1) / every));
  const outside = [...x.axes.filter((a) => a !== axis), phase, position];
  const strides = stridesOver(outside, 1);
  const isInside = (e: Exprs, loopOf: (axis: Axis) => KNode): KNode =>
    e.lt(e.add(e.mul(loopOf(position), every), loopOf(phase)), whole);
  return {
    kind: 'domain',
    outside,
    inside: [],
    copy: copyCost(x, along),
    strides,
    folds: new Map<Range, Fold>([[kernel.range, { every, step: 1 }]]),
    apart: tile === null ? 0 : (strides.get(tile) ?? 0),
    kept: isRagged ? (e, copied, loopOf) => loadWhere(e, copied, isInside(e, loopOf)) : undefined,
  };
}
