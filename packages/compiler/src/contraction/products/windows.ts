/**
 * How a factor of a convolution reads an image: along which loops its windows slide, and where they reach past its ends.
 *
 * In: the load of a factor. Out: `Windowed`. An index is a sum of positions times strides, one position for each axis of memory. The
 * position of a window is `perLoop * loop + perSum * sum - low`, divided by `hole` where the image is dilated. The load's gate says
 * which positions exist. All of it is read off linear forms, so what is found is what the nest computes, whatever made it.
 */
import { coefficient, greatestDivisor, type Range, sizeOf } from '../../ir/free-ranges.ts';
import type { KNode, KNodeOf } from '../../ir/ir.ts';
import type { Linear } from '../../ir/node.ts';
import { combine, isLiteral, linearOf } from '../../ir/simplify/integers.ts';

/** An axis of memory along which a window slides: at most one loop around the sum, and one of the sum. */
export interface Window {
  readonly loop: Range | null;
  readonly sum: Range | null;
  /** Steps of the position for one of the loop. */
  readonly perLoop: number;
  readonly perSum: number;
  /** The position is `perLoop * loop + perSum * sum - low`; elements are at multiples of `hole`. */
  readonly low: number;
  readonly hole: number;
  /** How many elements of the axis are read at most: all positions from 0 on that the gate lets through. */
  readonly size: number;
  /** From one element to the next in memory. */
  readonly stride: number;
}

/** An image as windows read it: element 0 of all axes is at `offset`. */
export interface Windowed {
  readonly memory: KNodeOf<'PARAM'>;
  readonly offset: number;
  /** Two at most, the one with the longer stride first. */
  readonly windows: readonly Window[];
  /** The loop and the loop of the sum that are in no window. */
  readonly loop: Range | null;
  readonly sum: Range | null;
  strideOf(r: Range | null): number;
}

/** Ranges that slide together; for a dilated axis also the linear form of the position before the division. */
interface Axis {
  loop: Range | null;
  sum: Range | null;
  readonly dilated: { readonly position: Linear; readonly hole: number; readonly stride: number } | null;
  /** Forms that are at least 0 wherever there is an element. */
  readonly bounds: Linear[];
}

/** A load with the parts of its index and of its gate. */
interface Access {
  readonly memory: KNodeOf<'PARAM'>;
  readonly offset: number;
  readonly strides: ReadonlyMap<Range, number>;
  readonly dilated: readonly NonNullable<Axis['dilated']>[];
  readonly bounds: readonly Linear[];
}

const isRange = (n: KNode): n is Range => n.op === 'RANGE';

/** The parts of a load that is 0 where its gate is false; null for loads of another form. */
function accessOf(value: KNode): Access | null {
  if (value.op !== 'LOAD') return null;
  const [memory, index, gate, other] = value.src;
  if (memory.op !== 'PARAM' || memory.arg.access !== 'read') return null;
  if (gate !== undefined && (other === undefined || !isLiteral(other, 0))) return null;
  const form = linearOf(index);
  const strides = new Map<Range, number>();
  const dilated: NonNullable<Axis['dilated']>[] = [];
  for (const [i, term] of form.terms.entries()) {
    const stride = form.coefs[i]!;
    if (stride <= 0) return null;
    if (isRange(term)) strides.set(term, stride);
    else {
      const position = quotient(term, 'IDIV');
      if (position === null) return null;
      dilated.push({ ...position, stride });
    }
  }
  const bounds: Linear[] = [];
  const divided = new Set<object>();
  for (const test of gate === undefined ? [] : conjuncts(gate)) {
    const multiple = test.op === 'EQ' && isLiteral(test.src[1], 0) ? quotient(test.src[0], 'IREM') : null;
    const same = dilated.find(({ position, hole }) => position === multiple?.position && hole === multiple.hole);
    const bound = same === undefined ? boundOf(test) : null;
    if (same !== undefined) divided.add(same);
    else if (bound !== null) bounds.push(bound);
    else return null;
  }
  if (divided.size !== dilated.length) return null;
  return { memory, offset: form.offset, strides, dilated, bounds };
}

/** A position divided by a literal, or the rest of that. */
function quotient(n: KNode, op: 'IDIV' | 'IREM'): { readonly position: Linear; readonly hole: number } | null {
  if (n.op !== op) return null;
  const [dividend, divisor] = n.src;
  const hole = divisor.op === 'CONST' ? Number(divisor.arg.value) : 0;
  const position = linearOf(dividend);
  return hole > 1 && position.terms.every((t, i) => isRange(t) && position.coefs[i]! > 0) ? { position, hole } : null;
}

function conjuncts(gate: KNode): KNode[] {
  const all: KNode[] = [];
  const stack = [gate];
  for (let n = stack.pop(); n !== undefined; n = stack.pop()) {
    if (n.op === 'AND') stack.push(...n.src);
    else all.push(n);
  }
  return all;
}

/** `less < more` as a form of ranges that is at least 0. */
function boundOf(test: KNode): Linear | null {
  if (test.op !== 'LT') return null;
  const form = combine(linearOf(test.src[1]), 1, linearOf(test.src[0]), -1);
  return form?.terms.every(isRange) ? { ...form, offset: form.offset - 1 } : null;
}

/**
 * What a factor reads, where `loops` are its own around the sum, and `sums` those of the sum: none where that is no image under windows, several where
 * loops may slide together or not.
 */
export function windowed(value: KNode, loops: readonly Range[], sums: readonly Range[]): Windowed[] {
  const access = accessOf(value);
  if (access === null) return [];
  return [false, true].flatMap((sideBySide) => {
    const axes = axesOf(access, loops, sums, sideBySide);
    return (axes && windowedBy(access, axes, loops, sums)) ?? [];
  });
}

function windowedBy(
  access: Access,
  axes: readonly Axis[],
  loops: readonly Range[],
  sums: readonly Range[],
): Windowed | null {
  const inAxes = (r: Range): boolean => axes.some(({ loop, sum }) => loop === r || sum === r);
  const [loop = null, ...otherLoops] = loops.filter((r) => !inAxes(r));
  const [sum = null, ...otherSums] = sums.filter((r) => !inAxes(r));
  if (axes.length > 2 || otherLoops.length > 0 || otherSums.length > 0) return null;
  let { offset } = access;
  const windows: Window[] = [];
  for (const axis of axes) {
    const window = windowOf(axis, access);
    if (window === null) return null;
    windows.push(window);
    if (axis.dilated === null) offset += window.low * window.stride;
  }
  windows.sort((x, y) => y.stride - x.stride);
  const { memory, strides } = access;
  if (offset < 0) return null;
  return { memory, offset, windows, loop, sum, strideOf: (r) => (r === null ? 0 : (strides.get(r) ?? 0)) };
}

/** Which loops slide together: those of one quotient or bound do, others where their windows overlap in memory. */
function axesOf(access: Access, loops: readonly Range[], sums: readonly Range[], sideBySide: boolean): Axis[] | null {
  const axes: Axis[] = [];
  const of = ({ terms }: Linear, dilated: Axis['dilated']): Axis | null => {
    const own = { loops: loops.filter((r) => terms.includes(r)), sums: sums.filter((r) => terms.includes(r)) };
    if (own.loops.length > 1 || own.sums.length > 1 || own.loops.length + own.sums.length !== terms.length) return null;
    return { loop: own.loops[0] ?? null, sum: own.sums[0] ?? null, dilated, bounds: [] };
  };
  for (const dilated of access.dilated) {
    const axis = of(dilated.position, dilated);
    // A range in two positions is none of a window.
    if (axis === null || shared(axes, axis) || dilated.position.terms.some((t) => access.strides.has(t as Range)))
      return null;
    axes.push(axis);
  }
  for (const bound of [...access.bounds].sort((x, y) => y.terms.length - x.terms.length)) {
    const axis = of(bound, null);
    if (axis === null) return null;
    const known = shared(axes, axis);
    if (known === undefined) axes.push({ ...axis, bounds: [bound] });
    else if ((axis.loop ?? known.loop) !== known.loop || (axis.sum ?? known.sum) !== known.sum) return null;
    else known.bounds.push(bound);
  }
  pairUp(axes, access.strides, loops, sums, sideBySide);
  return axes;
}

/** The axis that has a range of another one. */
function shared(axes: readonly Axis[], { loop, sum }: Axis): Axis | undefined {
  return axes.find((a) => (loop !== null && a.loop === loop) || (sum !== null && a.sum === sum));
}

/**
 * Adds axes of ranges without bounds, until one loop of each kind is left. Any choice reads the same elements; the natural one has windows that
 * overlap, or short steps. `sideBySide`: windows need not overlap.
 */
function pairUp(
  axes: Axis[],
  strides: ReadonlyMap<Range, number>,
  loops: readonly Range[],
  sums: readonly Range[],
  sideBySide: boolean,
): void {
  const rest = (list: readonly Range[]): Range[] => list.filter((r) => !axes.some((a) => a.loop === r || a.sum === r));
  const at = (r: Range): number => strides.get(r) ?? 0;
  const farthest = (list: readonly Range[]): Range | undefined =>
    list.reduce<Range | undefined>((far, r) => (far === undefined || at(r) > at(far) ? r : far), undefined);
  const nearest = (overlapping: boolean): Axis | undefined => {
    // The loops of images and channels have the longest strides.
    const inner = (list: readonly Range[]): Range[] =>
      overlapping || list.length + axes.length < 3 ? [...list] : list.filter((r) => r !== farthest(list));
    let best: { readonly axis: Axis; readonly step: number } | undefined;
    for (const loop of inner(rest(loops)))
      for (const sum of inner(rest(sums))) {
        const unit = greatestDivisor(at(loop), at(sum));
        const [perLoop, perSum] = [at(loop) / unit, at(sum) / unit];
        const overlap = perLoop < perSum * sum.arg.extent && perSum < perLoop * loop.arg.extent;
        const step = Math.max(perLoop, perSum);
        if ((overlap || !overlapping) && step < (best?.step ?? Number.POSITIVE_INFINITY))
          best = { axis: { loop, sum, dilated: null, bounds: [] }, step };
      }
    return best?.axis;
  };
  for (let next = nearest(true); next !== undefined && axes.length < 2; next = nearest(true)) axes.push(next);
  while (sideBySide && axes.length < 2 && rest(sums).length > 1) {
    const next = nearest(false);
    if (next === undefined) break;
    axes.push(next);
  }
  for (const list of [sums, loops])
    while (axes.length < 2 && rest(list).length > 1) {
      const far = farthest(rest(list));
      const near = rest(list).filter((r) => r !== far)[0]!;
      axes.push({ loop: list === loops ? near : null, sum: list === sums ? near : null, dilated: null, bounds: [] });
    }
}

function windowOf(axis: Axis, { strides }: Access): Window | null {
  const { loop, sum, dilated, bounds } = axis;
  const steps = (r: Range | null): number =>
    r === null ? 0 : dilated === null ? (strides.get(r) ?? 0) : coefficient(dilated.position, r);
  const stride = dilated?.stride ?? greatestDivisor(steps(loop), steps(sum));
  // An axis of one element has gates, and no place in the index.
  if (stride === 0) return null;
  const unit = dilated === null ? stride : 1;
  const [perLoop, perSum] = [steps(loop) / unit, steps(sum) / unit];
  const common = greatestDivisor(perLoop, perSum);
  // Of perLoop * loop + perSum * sum.
  let [least, most] = [0, lastOf(loop) * perLoop + lastOf(sum) * perSum];
  for (const bound of bounds) {
    const [x, y] = [loop, sum].map((r) => (r === null ? 0 : coefficient(bound, r))) as [number, number];
    const by = greatestDivisor(Math.abs(x), Math.abs(y));
    const sign = x + y < 0 ? -1 : 1;
    if ((sign * x * common) / by !== perLoop || (sign * y * common) / by !== perSum) return null;
    const limit = Math.floor(bound.offset / by) * common;
    if (sign < 0) most = Math.min(most, limit);
    else least = Math.max(least, -limit);
  }
  const low = dilated === null ? least : -dilated.position.offset;
  // Along a dilated axis, the gate must admit all positions from the first on.
  if (least !== Math.max(0, low) || most < low) return null;
  const hole = dilated?.hole ?? 1;
  const size = Math.floor((most - low) / hole) + 1;
  return { loop, sum, perLoop: perLoop || 1, perSum: perSum || 1, low, hole, size, stride };
}

const lastOf = (r: Range | null): number => (r === null ? 0 : r.arg.extent - 1);

/** Elements of the loops of some windows: of those around the sum, or of the sum. */
export function areaOf(windows: readonly Window[], of: 'loop' | 'sum'): number {
  return sizeOf(windows.flatMap((w) => w[of] ?? []));
}
