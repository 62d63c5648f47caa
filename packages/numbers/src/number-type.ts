/**
 * Number types: what a NumberTensor needs to know of its elements, as functions that the user provides.
 *
 * Elements are ordinary JavaScript values on the host: bigints, objects of a library, pairs. They are never changed in place.
 */
import { ArgumentError, OperationError } from '@polygrad/core/functions';
import { showAs, shown } from '@polygrad/core/engine';
import { isList, say } from '@polygrad/core/internals';

/** What can be given where an element is meant: the element, or something that `from` makes one of. */
export type NumberLike<T> = T | number | bigint | string | boolean;

/** The functions of a number type. Those with a question mark may be left out; operations that need them then say so. */
export interface NumberTypeOptions<T> {
  /** For messages, and to distinguish types. */
  readonly name: string;
  /** Neutral element of add; the sum of no elements. */
  readonly zero: T;
  /** Neutral element of mul; the product of no elements. */
  readonly one: T;
  readonly add: (a: T, b: T) => T;
  readonly mul: (a: T, b: T) => T;
  readonly equals: (a: T, b: T) => boolean;
  /** Without it, a + neg(b). */
  readonly sub?: (a: T, b: T) => T;
  /** Without it, zero - a. */
  readonly neg?: (a: T) => T;
  readonly div?: (a: T, b: T) => T;
  /** The largest whole number not above a / b, and what is left of a: the rest has the sign of b. */
  readonly floorDivide?: (a: T, b: T) => T;
  readonly remainder?: (a: T, b: T) => T;
  /** Negative, 0 or positive as a is less than, equal to or greater than b; NaN if they have no order. */
  readonly compare?: (a: T, b: T) => number;
  /** Text of an element, for printing. Default String(a). */
  readonly toString?: (a: T) => string;
  /** An element made of a JavaScript value; throws for values that are none. Without it only elements are taken. */
  readonly from?: (value: number | bigint | string | boolean) => T;
  /** The nearest JavaScript number, or a bigint: for ordinary tensors. */
  readonly toNumber?: (a: T) => number | bigint;
  /** True for elements. By default what is like `zero`: the same primitive type or the same prototype, arrays of its length. */
  readonly is?: (value: unknown) => value is T;
}

/** A number type, made by defineNumberType. */
export interface NumberType<T> extends Omit<NumberTypeOptions<T>, 'toString' | 'is'> {
  readonly is: (value: unknown) => value is T;
  readonly toText: (a: T) => string;
}

/**
 * A number type lacks a function, or two types meet.
 *
 * @example
 * numberTensor([1n, 2n], bigintType).add(numberTensor([1, 2], numberType) as never); // throws NumberTypeError
 */
export class NumberTypeError extends OperationError {
  override readonly name: string = 'NumberTypeError';

  constructor(op: string, message: string) {
    super(op, message, 'NUMBER_TYPE');
  }
}

/** True for values like `zero`. */
function likeZero<T>(zero: T): (value: unknown) => value is T {
  const test = (value: unknown): boolean => {
    if (typeof value !== typeof zero) return false;
    if (typeof zero !== 'object' || zero === null || typeof value !== 'object' || value === null) return true;
    if (isList(zero)) return isList(value) && value.length === zero.length && typeof value[0] === typeof zero[0];
    return Object.getPrototypeOf(value) === Object.getPrototypeOf(zero);
  };
  return test as (value: unknown) => value is T;
}

/**
 * Defines a type of numbers for NumberTensors, from its functions.
 *
 * @param options name, zero, one, add, mul, equals; and as far as there are such: sub, neg, div, floorDivide, remainder, compare, toString, from,
 *   toNumber, is
 * @throws ArgumentError if one of the first six is missing or not of its kind
 *
 * @example
 * const mod7 = defineNumberType({
 *   name: 'integers modulo 7',
 *   zero: 0,
 *   one: 1,
 *   add: (a, b) => (a + b) % 7,
 *   mul: (a, b) => (a * b) % 7,
 *   neg: (a) => (7 - a) % 7,
 *   equals: (a, b) => a === b,
 * });
 * numberTensor([3, 5], mod7).mul(4).array(); // [5, 6]
 */
export function defineNumberType<T>(options: NumberTypeOptions<T>): NumberType<T> {
  const { name } = options ?? {};
  if (typeof name !== 'string' || name === '')
    throw new ArgumentError('defineNumberType', 'no name: give one, for messages');
  for (const key of ['zero', 'one'] as const)
    if (options[key] === undefined)
      throw new ArgumentError('defineNumberType', say`number type '${name}' has no ${key}: give its neutral element`);
  for (const key of ['add', 'mul', 'equals'] as const)
    if (typeof options[key] !== 'function')
      throw new ArgumentError(
        'defineNumberType',
        say`number type '${name}' has no ${key}: give a function of two elements`,
      );
  const { toString: text, is, ...rest } = options;
  const type: NumberType<T> = {
    ...rest,
    is: is ?? likeZero(options.zero),
    toText: text === undefined || text === Object.prototype.toString ? String : text,
  };
  return Object.freeze(showAs(type, () => `NumberType ${name}`));
}

/** Throws ArgumentError in the name of `op` unless a value is a number type. */
export function checkType<T>(op: string, type: NumberType<T>): void {
  if (typeof type?.is !== 'function')
    throw new ArgumentError(op, say`not a number type: ${shown(type)}; make one with defineNumberType()`);
}

type Optional = 'sub' | 'neg' | 'div' | 'floorDivide' | 'remainder' | 'compare' | 'from' | 'toNumber';

/** A function of the type that may be missing. Throws NumberTypeError in the name of `op`. */
export function need<T, K extends Optional>(op: string, type: NumberType<T>, key: K): NonNullable<NumberType<T>[K]> {
  const found = type[key];
  if (found === undefined)
    throw new NumberTypeError(
      op,
      say`number type '${type.name}' defines no ${key}: add ${key} to defineNumberType to use it`,
    );
  return found as NonNullable<NumberType<T>[K]>;
}

/** Subtraction: the type's own, or by neg. */
export function subtraction<T>(op: string, type: NumberType<T>): (a: T, b: T) => T {
  const { sub, neg, add } = type;
  if (sub !== undefined) return sub;
  if (neg !== undefined) return (a, b) => add(a, neg(b));
  return need(op, type, 'sub');
}

/** Negation: the type's own, or by sub. */
export function negation<T>(op: string, type: NumberType<T>): (a: T) => T {
  const { sub, neg, zero } = type;
  if (neg !== undefined) return neg;
  if (sub !== undefined) return (a) => sub(zero, a);
  return need(op, type, 'neg');
}

/** The element for a value given by the user. */
export function elementOf<T>(op: string, type: NumberType<T>, value: unknown): T {
  if (type.is(value)) return value;
  const kind = typeof value;
  if (type.from !== undefined && (kind === 'number' || kind === 'bigint' || kind === 'string' || kind === 'boolean'))
    try {
      return type.from(value as number);
    } catch (error) {
      if (error instanceof OperationError) throw new NumberTypeError(op, error.message.replace(/^\[\w+\] /, ''));
      // What a type's own parser says, BigInt's or a library's, in words that name the value and the type.
      const failure = new NumberTypeError(
        op,
        say`no number of type '${type.name}': ${shown(value)}; give digits, such as '12'`,
      );
      failure.cause = error;
      throw failure;
    }
  throw new NumberTypeError(
    op,
    say`not an element of number type '${type.name}': ${shown(value)}; ` +
      (type.from === undefined ? 'give elements, or add from to defineNumberType' : 'give elements or what from takes'),
  );
}
