/** Number types that are ready: JavaScript's own numbers, booleans and bigints, and decimals of the library decimal.js. */
import { ArgumentError } from '@polygrad/core/functions';
import { checkFunction, say } from '@polygrad/core/internals';
import { defineNumberType, type NumberType } from './number-type.ts';

const order = (a: number | bigint, b: number | bigint): number => (a < b ? -1 : a > b ? 1 : a === b ? 0 : Number.NaN);

/** JavaScript numbers (IEEE 754 doubles). Positions, as argMax gives them, are of this type. */
export const numberType: NumberType<number> = /* @__PURE__ */ defineNumberType<number>({
  name: 'number',
  zero: 0,
  one: 1,
  add: (a, b) => a + b,
  sub: (a, b) => a - b,
  mul: (a, b) => a * b,
  div: (a, b) => a / b,
  floorDivide: (a, b) => Math.floor(a / b),
  remainder: (a, b) => a - b * Math.floor(a / b),
  neg: (a) => -a,
  equals: (a, b) => a === b,
  compare: order,
  from: Number,
  toNumber: (a) => a,
});

/** Truth values, as comparisons give them: add is "or", mul is "and". */
export const booleanType: NumberType<boolean> = /* @__PURE__ */ defineNumberType<boolean>({
  name: 'boolean',
  zero: false,
  one: true,
  add: (a, b) => a || b,
  mul: (a, b) => a && b,
  equals: (a, b) => a === b,
  compare: (a, b) => Number(a) - Number(b),
  from: (value) => value !== 'false' && Boolean(value),
  toNumber: Number,
});

/** Rounds down, as floorDivide of ordinary tensors does; JavaScript's own division cuts off. */
function floorDivide(a: bigint, b: bigint): bigint {
  const quotient = whole(a, b);
  return a % b !== 0n && a < 0n !== b < 0n ? quotient - 1n : quotient;
}

function whole(a: bigint, b: bigint): bigint {
  if (b === 0n) throw new ArgumentError('div', say`division by zero: ${a} / 0; bigints have no infinity`);
  return a / b;
}

/**
 * Integers of any size. `div` is exact and throws ArgumentError where a fraction would be left; floorDivide and remainder round down.
 */
export const bigintType: NumberType<bigint> = /* @__PURE__ */ defineNumberType<bigint>({
  name: 'bigint',
  zero: 0n,
  one: 1n,
  add: (a, b) => a + b,
  sub: (a, b) => a - b,
  mul: (a, b) => a * b,
  div: (a, b) => {
    const quotient = whole(a, b);
    if (quotient * b !== a)
      throw new ArgumentError('div', say`no integer: ${a} / ${b}; use floorDivide, or a type with fractions`);
    return quotient;
  },
  floorDivide,
  remainder: (a, b) => a - b * floorDivide(a, b),
  neg: (a) => -a,
  equals: (a, b) => a === b,
  compare: order,
  from: (value) => {
    if (typeof value === 'number' && !Number.isInteger(value))
      throw new ArgumentError('numberTensor', say`no integer: ${value}; round it first`);
    return BigInt(value);
  },
  toNumber: (a) => a,
});

/** What decimalType uses of a decimal number of decimal.js. */
export interface DecimalLike<D> {
  plus(other: D): D;
  minus(other: D): D;
  times(other: D): D;
  div(other: D): D;
  floor(): D;
  neg(): D;
  eq(other: D): boolean;
  cmp(other: D): number;
  toNumber(): number;
  toString(): string;
}

/** The class `Decimal` of decimal.js, or a clone of it with another precision. */
export type DecimalClass<D> = new (value: number | string) => D;

/**
 * Decimal numbers of any precision, by the library decimal.js, which is not part of this package: pass its class. Precision and rounding
 * are those of the class (`Decimal.clone({ precision: 50 })`).
 *
 * @param Decimal the class
 * @throws ArgumentError unless it is a class with the methods of decimal.js
 *
 * @example
 * import { decimalType, numberTensor } from '@polygrad/numbers';
 * import { Decimal } from 'decimal.js';
 * const decimals = decimalType(Decimal.clone({ precision: 50 }));
 * console.log(numberTensor(['0.1', '0.2'], decimals).sum().format()); //=> 0.3
 */
export function decimalType<D extends DecimalLike<D>>(Decimal: DecimalClass<D>): NumberType<D> {
  checkFunction('decimalType', Decimal);
  if (typeof Decimal.prototype?.plus !== 'function')
    throw new ArgumentError('decimalType', 'bad class: it has no method plus; pass the class Decimal of decimal.js');
  const make = (value: number | bigint | string | boolean): D =>
    new Decimal(typeof value === 'string' || typeof value === 'number' ? value : String(BigInt(value)));
  const floored = (a: D, b: D): D => a.div(b).floor();
  return defineNumberType<D>({
    name: 'decimal',
    zero: make(0),
    one: make(1),
    add: (a, b) => a.plus(b),
    sub: (a, b) => a.minus(b),
    mul: (a, b) => a.times(b),
    div: (a, b) => a.div(b),
    floorDivide: floored,
    remainder: (a, b) => a.minus(b.times(floored(a, b))),
    neg: (a) => a.neg(),
    equals: (a, b) => a.eq(b),
    compare: (a, b) => a.cmp(b),
    toString: (a) => a.toString(),
    from: make,
    toNumber: (a) => a.toNumber(),
    is: (value): value is D => value instanceof Decimal,
  });
}
