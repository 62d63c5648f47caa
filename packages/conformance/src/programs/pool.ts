/** What makers of random calls are given: decisions, the values there are, and new inputs. */
import type { DType } from '@polygrad/core';
import { broadcastShapes, type NDArray } from '../oracle/ndarray.ts';
import type { Choices } from './choices.ts';
import { type Arg, type Noise, type OwnCall, Ref, type Value } from './program.ts';

/** A call that fits the values it takes. What is left out: no noise, ordered, one result. */
export interface Made {
  readonly args: readonly Arg[];
  readonly dtype: DType;
  readonly formula: (...inputs: NDArray[]) => NDArray;
  readonly part?: number;
  /** What is called in place of the public function. */
  readonly run?: OwnCall;
  readonly noise?: Noise;
  readonly terms?: (...inputs: NDArray[]) => NDArray;
  readonly ordered?: boolean;
}

/** A way to call an operation at random. */
export interface RandomCall {
  /** Has derivatives almost everywhere, of float64 operands. */
  readonly smooth?: boolean;
  /** Null where no value fits. */
  readonly make: (pool: Pool) => Made | null;
}

export const floats: readonly DType[] = ['float32', 'float64', 'float16', 'bfloat16'];
export const integers: readonly DType[] = ['int32', 'int64', 'uint8', 'int8', 'int16', 'uint16', 'uint32', 'uint64'];

export const isFloat = (dtype: DType): boolean => floats.includes(dtype);
export const isInteger = (dtype: DType): boolean => integers.includes(dtype);
export const isNumber = (v: Value): boolean => v.dtype !== 'bool';

/** Dtype that floating-point functions give. */
export const floatOf = (dtype: DType): DType => (isFloat(dtype) ? dtype : 'float32');

/** Dtype that sums give. */
export const wide = (dtype: DType): DType =>
  dtype === 'bool' || dtype === 'int8' || dtype === 'int16'
    ? 'int32'
    : dtype === 'uint8' || dtype === 'uint16'
      ? 'uint32'
      : dtype;

/** The dtype two meet in, by the table of the Python Array API; null where it has none. */
export function meet(a: DType, b: DType): DType | null {
  if (a === b) return a;
  const bits = (d: DType): number => (d === 'bfloat16' ? 16 : Number(/\d+$/.exec(d)?.[0] ?? 0));
  if (isFloat(a) && isFloat(b)) return bits(a) === bits(b) ? 'float32' : bits(a) > bits(b) ? a : b;
  if (!isInteger(a) || !isInteger(b)) return null;
  if (a.startsWith('u') === b.startsWith('u')) return bits(a) > bits(b) ? a : b;
  const [signed, unsigned] = a.startsWith('u') ? [b, a] : [a, b];
  const size = bits(signed) > bits(unsigned) ? bits(signed) : bits(unsigned) * 2;
  return size > 64 ? null : (`int${size}` as DType);
}

export class Pool {
  readonly c: Choices;
  readonly #values: readonly Value[];
  readonly #input: (dtype: DType, shape: readonly number[], data: readonly number[]) => Value;

  constructor(c: Choices, values: readonly Value[], input: Pool['input']) {
    this.c = c;
    this.#values = values;
    this.#input = input;
  }

  /** A new input with these elements. */
  input(dtype: DType, shape: readonly number[], data: readonly number[]): Value {
    return this.#input(dtype, shape, data);
  }

  /** One of the values that fit, the latest ones more often. */
  pick(fits: (v: Value) => boolean = () => true): Value | null {
    const found = this.#values.filter(fits);
    const at = this.c.nat(found.length * 2);
    return found[found.length - 1 - (at % 2 === 0 ? at >> 2 : at >> 1)] ?? null;
  }

  /** Integers of low .. high in a shape, as a new int32 input. */
  indices(shape: readonly number[], low: number, high: number): Value {
    const [a, b] = [this.c.nat(97), this.c.nat(89)];
    const data = Array.from(
      { length: shape.reduce((p, n) => p * n, 1) },
      (_, i) => low + ((i * a + b + ((i * i) % 7) * (a % 3)) % Math.max(1, high - low + 1)),
    );
    return this.input(this.c.pick(['int32', 'int32', 'int64', 'uint8'] as const), shape, data);
  }

  /** An axis; as it is written, too: counted from the end now and then. */
  axis(rank: number): [axis: number, written: number] {
    const axis = this.c.nat(rank);
    return [axis, this.c.seldom(3) ? axis - rank : axis];
  }

  /** A value that broadcasts with another. */
  partner(a: Value, fits: (v: Value) => boolean): Value | null {
    return this.pick((b) => fits(b) && broadcast(a.shape, b.shape) !== null);
  }
}

export const ref = (v: Value): Ref => new Ref(v.id);

/** The shape that shapes broadcast to, or null. */
export function broadcast(...shapes: (readonly number[])[]): number[] | null {
  const out = broadcastShapes(...shapes);
  const fit = shapes.every((s) => s.every((n, i) => n === 1 || n === out[out.length - s.length + i]));
  return fit ? out : null;
}
