/**
 * Inputs of golden cases: numbers from a counter and a name, bit for bit those of tooling/goldens/draw.py, and views of them.
 * The file says which kind of numbers, which shape, and how they lie in memory.
 */
import { type DType, type Tensor, expand, flip, permute, scope, slice, tensor } from '@polygrad/core';
import { count } from '../oracle/ndarray.ts';
import { seedOf } from '../oracle/random.ts';

/** Kind of numbers and its limits: uniform, signed, integer, grid, choice, literal, or numbers of the file. */
export type Kind =
  | readonly ['u' | 's' | 'i', number, number]
  | readonly ['g', number, number, number]
  | readonly ['c' | 'l', readonly (number | string)[]]
  | readonly ['b'];

/** A step from the numbers in memory to the argument. */
export type ViewStep =
  | readonly ['permute' | 'flip' | 'expand', readonly number[]]
  | readonly ['slice', readonly (readonly [number, number, number])[]];

/** A tensor argument as the index describes it. */
export interface Drawn {
  /** Shape in memory. */
  readonly s: readonly number[];
  readonly k: Kind;
  /** Dtype; the case's if left out. */
  readonly d?: DType;
  readonly v?: readonly ViewStep[];
}

/** A bijection of 32-bit words (C. Wellons, hash prospector, `lowbias32`, public domain). */
function mix(word: number): number {
  let x = word;
  x ^= x >>> 16;
  x = Math.imul(x, 0x7feb352d);
  x ^= x >>> 15;
  x = Math.imul(x, 0x846ca68b);
  return (x ^ (x >>> 16)) >>> 0;
}

function numberOf(value: number | string): number | bigint {
  if (typeof value === 'number') return value;
  const special = { nan: Number.NaN, inf: Number.POSITIVE_INFINITY, '-inf': Number.NEGATIVE_INFINITY, '-0': -0 }[value];
  return special ?? BigInt(value);
}

function drawer(kind: Exclude<Kind, readonly ['b']>): (word: number, i: number) => number | bigint {
  switch (kind[0]) {
    case 'u':
      return (w) => Math.fround(kind[1] + (kind[2] - kind[1]) * ((w >>> 8) * 2 ** -24));
    case 's':
      return (w) => Math.fround((w & 1 ? -1 : 1) * (kind[1] + (kind[2] - kind[1]) * ((w >>> 8) * 2 ** -24)));
    case 'i':
      return (w) => (w % (kind[2] - kind[1] + 1)) + kind[1];
    case 'g':
      return (w) => ((w % (kind[2] - kind[1] + 1)) + kind[1]) / kind[3];
    case 'c':
      return (w) => numberOf(kind[1][w % kind[1].length] as number | string);
    case 'l':
      return (_, i) => numberOf(kind[1][i] as number | string);
    default:
      return kind satisfies never;
  }
}

/** The numbers of a kind for a name. Floats are rounded to float32. */
export function draw(
  kind: Exclude<Kind, readonly ['b']>,
  name: string,
  size: number,
  floating = true,
): (number | bigint)[] {
  const key = mix(seedOf(name));
  const value = drawer(kind);
  return Array.from({ length: size }, (_, i) => {
    const x = value(mix((i + key) >>> 0), i);
    return floating ? Math.fround(Number(x)) : x;
  });
}

/** Shape of the argument: that of its numbers after the view. */
export function viewedShape({ s, v = [] }: Drawn): readonly number[] {
  let shape = s;
  for (const [step, what] of v) {
    if (step === 'permute') shape = what.map((axis) => shape[axis]!);
    else if (step === 'expand') shape = what;
    else if (step === 'slice') shape = what.map(([start, stop, by]) => Math.ceil((stop - start) / by));
  }
  return shape;
}

function viewed(t: Tensor, [step, what]: ViewStep): Tensor {
  switch (step) {
    case 'permute':
      return permute(t, what);
    case 'flip':
      return flip(t, what);
    case 'expand':
      return expand(t, what);
    case 'slice':
      return slice(
        t,
        what.map(([start, stop, by]) => ({ start, stop, step: by })),
      );
    default:
      return step satisfies never;
  }
}

/** The tensor of an argument; `given` are its numbers if the file holds them. */
export function makeArgument(about: Drawn, dtype: DType, name: string, given: readonly number[]): Tensor {
  const own = about.d ?? dtype;
  const values = about.k[0] === 'b' ? given : draw(about.k, name, count(about.s), own.includes('float'));
  const data = own.endsWith('int64') ? values.map((x) => BigInt(x)) : values.map(Number);
  return scope(() => (about.v ?? []).reduce<Tensor>(viewed, tensor(data, { dtype: own, shape: [...about.s] })));
}
