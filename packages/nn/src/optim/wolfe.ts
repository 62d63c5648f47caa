/**
 * The length of a step that meets the strong Wolfe conditions: the loss falls enough, and the slope does too. Source: Nocedal and Wright, "Numerical
 * optimization", algorithms 3.5 and 3.6, with the cubic interpolation and the limits that PyTorch's `LBFGS` has.
 */
import type { Tensor } from '@polygrad/core/functions';

/** A point on the line: its loss, its gradient, and the slope along the direction. */
export interface LinePoint {
  readonly loss: number;
  readonly gradient: Tensor;
  readonly slope: number;
}

interface Placed extends LinePoint {
  readonly length: number;
}

/** What is enough: a share of the first slope times the length for the loss, and a share of it for the slope. */
const [enough, flat] = [1e-4, 0.9];
const mostSteps = 25;

/** Where a cubic through two points with slopes is lowest, within bounds. */
function lowest(a: Placed, b: Placed, bounds: readonly [number, number]): number {
  const [low, high] = bounds;
  const [left, right] = a.length <= b.length ? [a, b] : [b, a];
  const d1 = a.slope + b.slope - (3 * (a.loss - b.loss)) / (a.length - b.length);
  const square = d1 ** 2 - a.slope * b.slope;
  if (!(square >= 0)) return (low + high) / 2;
  const d2 = Math.sqrt(square);
  const width = right.length - left.length;
  const at = right.length - width * ((right.slope + d2 - d1) / (right.slope - left.slope + 2 * d2));
  return Math.min(Math.max(at, low), high);
}

const between = (a: Placed, b: Placed): [number, number] => [
  Math.min(a.length, b.length),
  Math.max(a.length, b.length),
];

/**
 * Searches along a line.
 *
 * @param evaluate the point at a length
 * @param length the first try
 * @param first the point at 0
 * @param reach largest number of the direction
 * @param tolerance least change of a parameter
 * @returns the length, its point and the number of evaluations; gradients of the other points are disposed, but for the first one's
 */
export async function strongWolfe(
  evaluate: (length: number) => Promise<LinePoint>,
  length: number,
  first: LinePoint,
  reach: number,
  tolerance: number,
): Promise<Placed & { readonly count: number }> {
  const origin: Placed = { ...first, length: 0 };
  const seen: Placed[] = [];
  const at = async (where: number): Promise<Placed> => {
    const point = { ...(await evaluate(where)), length: where };
    seen.push(point);
    return point;
  };
  const fallsShort = (point: Placed): boolean => point.loss > first.loss + enough * point.length * first.slope;
  const isFlat = (point: Placed): boolean => Math.abs(point.slope) <= -flat * first.slope;

  // A bracket around a good length, or such a length itself.
  let before = origin;
  let point = await at(length);
  let steps = 0;
  let bracket: [Placed, Placed] | null = null;
  let done = false;
  for (; steps < mostSteps; steps++) {
    if (fallsShort(point) || (steps > 1 && point.loss >= before.loss)) {
      bracket = [before, point];
      break;
    }
    if (isFlat(point)) {
      done = true;
      break;
    }
    if (point.slope >= 0) {
      bracket = [before, point];
      break;
    }
    const next = lowest(before, point, [point.length + 0.01 * (point.length - before.length), point.length * 10]);
    before = point;
    point = await at(next);
  }
  let best = point;
  if (!done) {
    const [a, b] = bracket ?? [origin, point];
    let [low, high] = a.loss <= b.loss ? [a, b] : [b, a];
    // The order in which they were found decides how cubics are rounded.
    let isLowFirst = low === a;
    let isStuck = false;
    while (!done && steps < mostSteps) {
      const [least, most] = between(low, high);
      if ((most - least) * reach < tolerance) break;
      let next = isLowFirst ? lowest(low, high, [least, most]) : lowest(high, low, [least, most]);
      const margin = 0.1 * (most - least);
      if (Math.min(most - next, next - least) < margin) {
        if (isStuck || next >= most || next <= least) {
          next = Math.abs(next - most) < Math.abs(next - least) ? most - margin : least + margin;
          isStuck = false;
        } else isStuck = true;
      } else isStuck = false;
      const trial = await at(next);
      steps++;
      if (fallsShort(trial) || trial.loss >= low.loss) {
        const isTrialLower = isLowFirst ? trial.loss < low.loss : trial.loss <= low.loss;
        high = trial;
        if (isTrialLower) {
          [low, high] = [high, low];
          isLowFirst = !isLowFirst;
        }
      } else {
        if (isFlat(trial)) done = true;
        else if (trial.slope * (high.length - low.length) >= 0) high = low;
        low = trial;
      }
    }
    best = low;
  }
  for (const { gradient } of seen) if (gradient !== best.gradient) gradient.dispose();
  return { ...best, count: seen.length };
}
