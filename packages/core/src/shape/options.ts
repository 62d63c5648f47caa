/** Options checked against a table: names that nobody reads and values that do not fit are refused, with what would fit. */
import { ArgumentError } from './errors.ts';

/** Whether a value fits, and which do in words. */
export type OptionRule = readonly [fits: (value: unknown) => boolean, wanted: string];

/** One of a few values. */
export const oneOf = (...values: readonly unknown[]): OptionRule => [
  (value) => values.includes(value),
  values.map(shown).join(' or '),
];

/** A number in a range; `whole`: an integer. */
export const numberFrom = (least: number, most: number = Number.POSITIVE_INFINITY, whole = false): OptionRule => [
  (value) => typeof value === 'number' && value >= least && value <= most && (!whole || Number.isInteger(value)),
  `a ${whole ? 'whole ' : ''}number from ${least}${most < Number.POSITIVE_INFINITY ? ` to ${most}` : ''}`,
];

/** A value as messages show it: text in quotes, objects by their kind. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return `'${value}'`;
  if (typeof value === 'function') return 'a function';
  return typeof value !== 'object' || value === null ? String(value) : Array.isArray(value) ? 'a list' : 'an object';
}

/**
 * Throws ArgumentError in the name of `op` unless options are an object (or left out) of these names, with values that fit. Undefined is as
 * if it were left out.
 */
export function checkFields(op: string, options: unknown, rules: Readonly<Record<string, OptionRule>>): void {
  if (options === undefined) return;
  const known = `known are ${Object.keys(rules).join(', ')}`;
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    throw new ArgumentError(op, `bad options: ${shown(options)}; must be an object, ${known}`);
  for (const [name, value] of Object.entries(options)) {
    if (!Object.hasOwn(rules, name)) throw new ArgumentError(op, `no option '${name}'; ${known}`);
    const [fits, wanted] = rules[name] as OptionRule;
    if (value !== undefined && !fits(value))
      throw new ArgumentError(op, `bad ${name}: ${shown(value)}; must be ${wanted}`);
  }
}

/** Throws ArgumentError in the name of `op` unless an argument is a function. */
export function checkFunction(op: string, f: unknown): void {
  if (typeof f !== 'function') throw new ArgumentError(op, `bad function: ${shown(f)}; must be a function`);
}
