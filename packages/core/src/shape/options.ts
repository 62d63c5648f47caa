/** Options checked against a table: names that nobody reads and values that do not fit are refused, with what would fit. */
import { dtypeInfo } from './dtype.ts';
import { ArgumentError } from './errors.ts';
import { isPlain, shown, say } from './shown.ts';

export { shown };

/** Whether a value fits, and which do in words. */
export type OptionRule = readonly [fits: (value: unknown) => boolean, wanted: string];

/**
 * One of a few values.
 *
 * @example
 * const [fits, wanted] = oneOf('mean', 'sum');
 * fits('max'); // false
 * wanted; // "'mean' or 'sum'"
 */
export const oneOf = (...values: readonly unknown[]): OptionRule => [
  (value) => values.includes(value),
  values.map(shown).join(' or '),
];

/**
 * A number in a range; `whole`: an integer.
 *
 * @example
 * const [fits, wanted] = numberFrom(0, 1);
 * fits(0.5); // true
 * wanted; // 'a number from 0 to 1'
 */
export const numberFrom = (least: number, most: number = Number.POSITIVE_INFINITY, whole = false): OptionRule => [
  (value) => typeof value === 'number' && value >= least && value <= most && (!whole || Number.isInteger(value)),
  `a ${whole ? 'whole ' : ''}number from ${least}${most < Number.POSITIVE_INFINITY ? ` to ${most}` : ''}`,
];

/** Error class that names an operation. */
type Failure = new (op: string, message: string) => Error;

/**
 * Throws ArgumentError in the name of `op` unless options are an object (or left out) of these names, with values that fit. Undefined is as
 * if it were left out.
 *
 * @example
 * const rules = { threads: numberFrom(1, 64, true) };
 * checkFields('createEngine', { threads: 2 }, rules);
 * checkFields('createEngine', { threads: 0 }, rules); // throws ArgumentError
 */
export function checkFields(
  op: string,
  options: unknown,
  rules: Readonly<Record<string, OptionRule>>,
  Failed: Failure = ArgumentError,
): void {
  if (options === undefined) return;
  const known = (): string => `nown are ${Object.keys(rules).join(', ')}`;
  if (!isPlain(options)) throw new Failed(op, say`bad options: ${shown(options)}; must be an object, k${known()}`);
  for (const name in options) {
    const value = (options as Readonly<Record<string, unknown>>)[name];
    if (!Object.hasOwn(rules, name)) {
      const meant = nearest(name, Object.keys(rules));
      throw new Failed(op, say`no option '${name}'${meant ? say`, did you mean '${meant}'? K` : '; k'}${known()}`);
    }
    const [fits, wanted] = rules[name] as OptionRule;
    if (value !== undefined && !fits(value)) throw new Failed(op, say`bad ${name}: ${shown(value)}; must be ${wanted}`);
  }
}

/** The known name that shares most letters with another, in their order; a short one may be those of a longer word: lr, learningRate. */
function nearest(name: string, known: readonly string[]): string | undefined {
  const bare = name.toLowerCase();
  let best: string | undefined;
  let most = 0.5;
  for (const candidate of known) {
    const letters = candidate.toLowerCase();
    let [at, common] = [0, 0];
    for (const letter of letters) {
      const found = bare.indexOf(letter, at);
      if (found >= 0) [at, common] = [found + 1, common + 1];
    }
    const whole = common === letters.length && bare[0] === letters[0];
    const score = whole ? 1 : (2 * common) / (letters.length + bare.length);
    if (score > most) [best, most] = [candidate, score];
  }
  return best;
}

/** The property every handle of a tensor has. */
export const handleBrand: unique symbol = Symbol.for('polygrad.tensor');

/** What a mark behind a name in `checkNames` asks of the value. */
const marks: Readonly<Record<string, OptionRule>> = {
  '?': [(value) => typeof value === 'boolean', 'true or false'],
  '#': [(value) => typeof value === 'number' && !Number.isNaN(value), 'a number'],
  '!': [(value) => typeof value === 'function', 'a function'],
  '%': oneOf(...Object.keys(dtypeInfo)),
  '@': [
    (value) => value === null || (typeof value === 'object' && handleBrand in (value as object)),
    'a tensor, made with tensor()',
  ],
  '': [() => true, ''],
};
const byNames = new Map<string, Readonly<Record<string, OptionRule>>>();

/**
 * checkFields for names alone, such as `'axis keepDims? p#'`: a mark asks for a boolean (?), a number (#), a function (!), a dtype (%) or a
 * tensor (@, null is none), and what has no mark is checked by whoever reads it. Much shorter than a table where there are many operations.
 *
 * @example
 * checkNames('resize', { axis: 1, keepDims: true }, 'axis keepDims?');
 * checkNames('resize', { axes: 1 }, 'axis keepDims?'); // throws ArgumentError
 */
export function checkNames(op: string, options: unknown, names: string, Failed?: Failure): void {
  if (options === undefined) return;
  let rules = byNames.get(names);
  if (rules === undefined) {
    rules = Object.fromEntries(
      names.split(' ').map((n) => [n.replace(/\W/, ''), marks[n.replace(/\w+/, '')] as OptionRule]),
    );
    byNames.set(names, rules);
  }
  checkFields(op, options, rules, Failed);
}

/** Throws ArgumentError in the name of `op` unless an argument is a function. */
export function checkFunction(op: string, f: unknown): void {
  if (typeof f !== 'function') throw new ArgumentError(op, say`bad function: ${shown(f)}; must be a function`);
}
