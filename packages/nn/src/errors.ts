/**
 * Errors of this package: a module, optimizer or training loop was given something that does not fit it.
 * Errors about shapes and dtypes inside a layer come from the operations themselves.
 */
import { checkNames, type OptionNames, PolygradError, shown } from '@polygrad/core/engine';
import { isTensor } from '@polygrad/core/functions';

const BRAND = 'polygrad.NnError';

/**
 * Something does not fit: `op` says who noticed, `keys` names the entries concerned, if any.
 *
 * @example
 * new Adam([]); // throws NnError
 */
export class NnError extends PolygradError {
  override readonly name: string = 'NnError';
  /** Names of parameters, options or metrics that are wrong. */
  readonly keys: readonly string[];
  /** Marks the class across copies of this package. */
  readonly brand: string = BRAND;

  constructor(op: string, message: string, keys: readonly string[] = []) {
    super('ARGUMENT', op, message);
    this.keys = keys;
  }
}

/** Throws unless options are an object of these names; marks ask for a boolean (?), a number (#) or a function (!). */
export function checkOptions<Options, const Text extends string>(
  op: string,
  options: Options,
  names: OptionNames<Options, Text>,
): void {
  checkNames(op, options, names, NnError);
}

/** The same for options that cannot be left out. */
export function checkRequired<Options, const Text extends string>(
  op: string,
  options: Options,
  names: OptionNames<Options, Text>,
): void {
  checkFits(op, 'options', options, options !== undefined, `an object with ${names.replaceAll(/[^\w ]/g, '')}`);
  checkOptions(op, options, names);
}

/** A value that does not fit, and what is wanted in words. */
export function misfit(op: string, name: string, value: unknown, wanted: string): NnError {
  return new NnError(op, `bad ${name}: ${shown(value)}; must be ${wanted}`, [name]);
}

/** Throws unless `fits`, naming the value and what is wanted in words. */
export function checkFits(op: string, name: string, value: unknown, fits: boolean, wanted: string): void {
  if (!fits) throw misfit(op, name, value, wanted);
}

/** Most entries of a list of arguments, and most layers and other parts that a call makes. */
const mostParts = 2 ** 20;

/** Throws unless a value is a list that somebody could have filled. */
export function checkList(op: string, name: string, value: unknown): void {
  checkFits(op, name, value, Array.isArray(value), 'a list');
  const { length } = value as readonly unknown[];
  if (length > mostParts) throw new NnError(op, `${name} has ${length} entries; the limit is ${mostParts}`, [name]);
}

/** Throws unless a value is a tensor. */
export function checkTensor(op: string, name: string, value: unknown): void {
  checkFits(op, name, value, isTensor(value), 'a tensor, made with tensor()');
}

/** Throws unless a value is a function. */
export function checkFunction(op: string, name: string, value: unknown): void {
  checkFits(op, name, value, typeof value === 'function', 'a function');
}

/** Throws unless `value` is a finite number of at least `least`. */
export function checkNumber(op: string, name: string, value: number, least: number = Number.NEGATIVE_INFINITY): void {
  if (!Number.isFinite(value) || value < least) {
    const bound = least === Number.NEGATIVE_INFINITY ? 'a finite number' : `a finite number of at least ${least}`;
    throw new NnError(op, `${name} is ${shown(value)}; it must be ${bound}`, [name]);
  }
}

/** Throws unless `value` is an integer of at least `least`, and at most `most`. */
export function checkInteger(op: string, name: string, value: number, least: number, most?: number): void {
  if (!Number.isSafeInteger(value) || value < least || (most !== undefined && value > most)) {
    const range = most === undefined ? `of at least ${least}` : `from ${least} to ${most}`;
    throw new NnError(op, `${name} is ${shown(value)}; it must be an integer ${range}`, [name]);
  }
}

/** Throws unless `value` is a probability that leaves something: 0 <= value < 1. */
export function checkFraction(op: string, name: string, value: number): void {
  if (!(typeof value === 'number' && value >= 0 && value < 1)) {
    throw new NnError(op, `${name} is ${shown(value)}; it must be at least 0 and below 1`, [name]);
  }
}
