/**
 * What a program gives by its formulas: every result rounded to its dtype, and how far results move where roundings fall otherwise.
 *
 * The second is found by running the formulas again with roundings chosen at random. What is ill-conditioned or next to a jump moves
 * much, and is compared with as much patience. Source: J. Vignes, A stochastic arithmetic for reliable scientific computation,
 * Mathematics and Computers in Simulation 35, 1993.
 */
import type { DType } from '@polygrad/core';
import { integerFormat, isSmallFloat, nearest, wrap } from '../oracle/formats.ts';
import { map, type NDArray } from '../oracle/ndarray.ts';
import type { Random } from '../oracle/random.ts';
import { observed, type Program, type Step, uses } from './program.ts';

/** Half the distance of 1 to the next number of a float dtype; 0 for the others. */
export function unit(dtype: DType): number {
  switch (dtype) {
    case 'float64':
      return 2 ** -53;
    case 'float32':
      return 2 ** -24;
    case 'float16':
      return 2 ** -11;
    case 'bfloat16':
      return 2 ** -8;
    default:
      return 0;
  }
}

/** The value as the dtype holds it; null for an integer that the formulas, in float64, cannot know. */
export function hold(dtype: DType, x: number): number | null {
  if (dtype === 'float64') return x;
  if (dtype === 'float32') return Math.fround(x);
  if (isSmallFloat(dtype)) return nearest(dtype, x);
  if (dtype === 'bool') return x !== 0 ? 1 : 0;
  if (!Number.isSafeInteger(x) || integerFormat(dtype) === null) return null;
  const held = Number(wrap(dtype, BigInt(x)));
  return Number.isSafeInteger(held) ? held : null;
}

/** All elements as the dtype holds them, or null. */
export function holdAll(dtype: DType, a: NDArray): NDArray | null {
  const data = a.data.map((x) => hold(dtype, x));
  return data.includes(null) ? null : { shape: a.shape, data: data as number[] };
}

/**
 * Every value of the program, by number. `random` moves each result within its rounding, `scale` times over.
 *
 * @param base the values without `random`: a result that differs from them by as much as it is has no digit that is sure, and may be 0
 */
export function evaluate(
  program: Program,
  random?: Random,
  scale = 1,
  base?: ReadonlyMap<number, NDArray>,
): Map<number, NDArray> {
  const values = new Map<number, NDArray>();
  const dtypes = new Map<number, DType>();
  const get = (id: number): NDArray => values.get(id) as NDArray;
  for (const step of program.steps) {
    if (step.kind === 'input') {
      values.set(step.id, { shape: step.shape, data: step.data });
      dtypes.set(step.id, step.dtype);
    } else if (step.kind === 'assign') {
      values.set(step.id, get(step.value));
      dtypes.set(step.id, dtypes.get(step.value) as DType);
    } else if (step.kind === 'call') {
      const inputs = uses(step).map((id) =>
        random && (step.noise === 'all' || step.noise === 'steps')
          ? shaken(get(id), unit(dtypes.get(id) as DType) * scale, random)
          : get(id),
      );
      let result = step.formula(...inputs);
      if (random && step.noise !== 'none') result = shaken(result, unit(step.dtype) * 2 * scale, random);
      if (random && step.terms) result = displaced(result, step.terms(...inputs), unit(step.dtype) * 2 * scale, random);
      if (random && step.noise === 'steps') result = drifted(result, unit(step.dtype) * scale, random);
      if (random && base && step.noise !== 'none') result = cancelled(result, base.get(step.id) as NDArray, random);
      values.set(step.id, holdAll(step.dtype, result) ?? result);
      dtypes.set(step.id, step.dtype);
    }
  }
  return values;
}

function shaken(a: NDArray, by: number, random: Random): NDArray {
  return by === 0 ? a : map(a, (x) => (Number.isFinite(x) ? x * (1 + by * (2 * random() - 1)) : x));
}

/** As if terms of these sizes, which make up each element, had been rounded. */
function displaced(a: NDArray, terms: NDArray, by: number, random: Random): NDArray {
  const data = a.data.map((x, i) => (Number.isFinite(x) ? x + by * terms.data[i]! * (2 * random() - 1) : x));
  return { shape: a.shape, data };
}

/** As if every one of as many steps had rounded what is as large as the largest. */
function drifted(a: NDArray, by: number, random: Random): NDArray {
  const largest = a.data.reduce((m, x) => (Number.isFinite(x) ? Math.max(m, Math.abs(x)) : m), 0);
  const far = by * largest * Math.sqrt(a.data.length);
  return map(a, (x) => (Number.isFinite(x) ? x + far * (2 * random() - 1) : x));
}

/** Every other one of the elements of which nothing is left but rounding is 0: terms that differ in rounding alone may cancel. */
function cancelled(a: NDArray, base: NDArray, random: Random): NDArray {
  const data = a.data.map((x, i) => (Math.abs(x - base.data[i]!) >= Math.abs(x) / 2 && random() < 0.5 ? 0 : x));
  return { shape: a.shape, data };
}

/** Per value and element how far it moves; Infinity where it is not finite in some runs only. */
export function sensitivity(
  program: Program,
  base: ReadonlyMap<number, NDArray>,
  random: Random,
  runs: number,
  scale = 1,
): Map<number, NDArray> {
  const moved = new Map<number, number[]>(
    observed(program).map((id) => [id, (base.get(id) as NDArray).data.map(() => 0)]),
  );
  for (let run = 0; run < runs; run++) {
    const other = evaluate(program, random, scale, base);
    for (const id of moved.keys()) {
      const [a, b] = [base.get(id) as NDArray, other.get(id) as NDArray];
      const worst = moved.get(id) as number[];
      a.data.forEach((x, i) => {
        const y = b.data[i]!;
        const difference = Object.is(x, y) || x === y ? 0 : Math.abs(x - y);
        worst[i] = Math.max(worst[i]!, Number.isNaN(difference) ? Number.POSITIVE_INFINITY : difference);
      });
    }
  }
  return new Map([...moved].map(([id, data]) => [id, { shape: (base.get(id) as NDArray).shape, data }]));
}

/** Values whose bits do not depend on what is fused: nothing they are computed from leaves an order of sums open. */
export function orderedValues(steps: readonly Step[]): Set<number> {
  const ordered = new Set<number>();
  for (const step of steps) {
    if (step.kind === 'input') ordered.add(step.id);
    else if (step.kind === 'assign' && ordered.has(step.value)) ordered.add(step.id);
    else if (step.kind === 'call' && step.ordered && uses(step).every((id) => ordered.has(id))) ordered.add(step.id);
  }
  return ordered;
}
