/**
 * Where two engines differ in what a call comes to. Floats may differ by a tolerance, and where the call magnifies roundings by as much as it
 * does.
 */
import { type DType, showShape } from '@polygrad/core/functions';
import { getElement, isFloat } from '@polygrad/core/internals';
import { type Called, type Outcome, outcomeOf, type ReadTensor } from './call-outcomes.ts';
import { HostTensor, isPlain } from './changed-calls.ts';
import { numbers } from './random-program.ts';
import type { RightCall } from './right-calls.ts';

/** The call with the elements of its float tensors moved at random, by about as many roundings as `scale` says; null if it has none. */
function shaken(call: RightCall, random: () => number, scale: number): RightCall | null {
  let any = false;
  const units: Partial<Record<DType, number>> = {
    float64: 2 ** -52,
    float32: 2 ** -23,
    float16: 2 ** -10,
    bfloat16: 2 ** -7,
  };
  const shake = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(shake);
    if (isPlain(value)) return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, shake(v)]));
    if (!(value instanceof HostTensor)) return value;
    const by = (units[value.dtype] ?? 0) * scale;
    if (by === 0) return value;
    any = true;
    return new HostTensor(
      value.dtype,
      value.shape,
      value.values.map((x) => (Number.isFinite(x) ? Number(x) * (1 + by * (2 * random() - 1)) : x)),
    );
  };
  const other = { args: call.args.map(shake), next: call.next?.map(shake) ?? null };
  return any ? other : null;
}

/** Relative and absolute. */
export interface CallTolerance {
  readonly rtol: number;
  readonly atol: number;
}

/** By how much two engines may differ in a call. */
export interface CallTolerances {
  /** Of each float dtype; 0 where one is left out. */
  readonly tolerances: Readonly<Partial<Record<DType, CallTolerance>>>;
  /** Roundings of the engine are so many times those of float arithmetic (functions of GPUs). Default 1. */
  readonly scale?: number;
}

const shapeText = ({ dtype, shape }: ReadTensor): string => `${dtype} ${showShape(shape)}`;

/** How far an element of the expected outcome moves in the others. */
function movement(expected: ReadTensor, moved: readonly (ReadTensor | undefined)[], i: number): number {
  const at = (t: ReadTensor): number => Number(getElement(t.data!, t.dtype, i));
  const distances = moved.map((other) => {
    if (other === undefined || other.data === null || shapeText(other) !== shapeText(expected)) return Infinity;
    const [x, y] = [at(expected), at(other)];
    return Object.is(x, y) || x === y ? 0 : Math.abs(x - y);
  });
  return distances.some(Number.isNaN) ? Infinity : Math.max(0, ...distances);
}

/**
 * Where an outcome differs from the expected one; null if it does not. Floats may differ by the tolerance of their dtype. Anything may by four times
 * what it differs in `moved`: outcomes of the same call with inputs moved by their roundings.
 */
function outcomeDifference(
  actual: Outcome,
  expected: Outcome,
  tolerances: Readonly<Partial<Record<DType, CallTolerance>>>,
  moved: readonly Outcome[] = [],
): string | null {
  if (actual.refused?.message !== expected.refused?.message)
    return `${actual.refused?.message ?? 'accepted'} where it is ${expected.refused?.message ?? 'accepted'}`;
  if (actual.tensors.length !== expected.tensors.length)
    return `${actual.tensors.length} tensors where ${expected.tensors.length} are expected`;
  for (const [k, e] of expected.tensors.entries()) {
    const others = moved.map((outcome) => outcome.tensors[k]);
    const found = tensorDifference(actual.tensors[k]!, e, tolerances, others);
    if (found !== null) return found;
  }
  const at = expected.plain.findIndex((value, i) => !Object.is(value, actual.plain[i]));
  if (at < 0 && actual.plain.length === expected.plain.length) return null;
  if (moved.some(({ plain }) => !Object.is(plain[at], expected.plain[at]))) return null;
  return `${actual.plain.length} values, the one at ${at} ${String(actual.plain[at])} where ${expected.plain.length} and ${String(expected.plain[at])} are expected`;
}

function tensorDifference(
  actual: ReadTensor,
  expected: ReadTensor,
  tolerances: Readonly<Partial<Record<DType, CallTolerance>>>,
  moved: readonly (ReadTensor | undefined)[],
): string | null {
  const { dtype } = expected;
  if (shapeText(actual) !== shapeText(expected)) {
    // Sizes may depend on data.
    if (moved.some((other) => other !== undefined && shapeText(other) !== shapeText(expected))) return null;
    return `${shapeText(actual)} where ${shapeText(expected)} is expected`;
  }
  if (actual.data === null || expected.data === null) return null;
  const { rtol, atol } = (isFloat(dtype) ? tolerances[dtype] : undefined) ?? { rtol: 0, atol: 0 };
  for (let i = 0; i < expected.data.length; i++) {
    const [p, q] = [getElement(actual.data, dtype, i), getElement(expected.data, dtype, i)];
    if (Object.is(p, q) || p === q) continue;
    const error = Math.abs(Number(p) - Number(q));
    if (error > 0 && error <= atol + rtol * Math.abs(Number(q))) continue;
    const slack = 4 * movement(expected, moved, i);
    if (slack === Infinity || (error > 0 && error <= atol + rtol * Math.abs(Number(q)) + slack)) continue;
    return `element ${i} of ${shapeText(actual)} is ${String(p)} where ${String(q)} is expected`;
  }
  return null;
}

/** Calls with moved inputs that are made before a difference counts. */
const mostRuns = 60;

/**
 * Where an outcome of another engine differs from what the call comes to on the current one; null if it does not. The call's tensors are data.
 *
 * @example
 * const call = await hostCall({ args: [tensor([1, 2])], next: null });
 * await callDifference(exp, call, await outcomeOf(exp, call), { tolerances: {} }); // null
 */
export async function callDifference(
  f: Called,
  call: RightCall,
  outcome: Outcome,
  { tolerances, scale = 1 }: CallTolerances,
): Promise<string | null> {
  const expected = await outcomeOf(f, call);
  const moved: Outcome[] = [];
  let found = outcomeDifference(outcome, expected, tolerances, moved);
  // Few runs are enough where all is well.
  for (let run = 1; found !== null && outcome.refused === null && run <= mostRuns; run++) {
    const random = numbers(run);
    const other = shaken(call, () => random(2 ** 16) / 2 ** 16, scale);
    if (other === null) break;
    moved.push(await outcomeOf(f, other));
    found = outcomeDifference(outcome, expected, tolerances, moved);
  }
  return found;
}
