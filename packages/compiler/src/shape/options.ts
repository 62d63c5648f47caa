/** Options checked against a table: unknown names and values that do not fit are refused, with what would fit. */
import { instead, meantOf, mustBe, told } from '#shown-as';
import { type DType, dtypeInfo } from './dtype.ts';
import { ArgumentError } from './errors.ts';
import { isPlain, say, shown } from './shown.ts';

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

/** The names of options, of all members of a union; any name where the type of the options is not known. */
type OptionName<Options> = unknown extends Options ? string : NameOfEach<NonNullable<Options>>;
type NameOfEach<Options> = Options extends object ? keyof Options & string : never;

/** A rule for each option of a type: none may be left out, and there are no others. */
export type OptionRules<Options> = Readonly<Record<OptionName<Options>, OptionRule>>;

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
export function checkFields<Options>(
  op: string,
  options: Options,
  rules: OptionRules<Options>,
  Failed: Failure = ArgumentError,
): void {
  if (options === undefined) return;
  const known = (): string => `nown are ${Object.keys(rules).join(', ')}`;
  if (!isPlain(options)) {
    throw new Failed(op, say`bad options: ${shown(options)}; must be an object, k${known()}${told ? meantOf(op) : ''}`);
  }
  for (const name in options) {
    const value = (options as Readonly<Record<string, unknown>>)[name];
    if (!Object.hasOwn(rules, name)) {
      const meant = told && instead(name, Object.keys(rules));
      throw new Failed(op, say`no option '${name}'${meant || '; k'}${known()}`);
    }
    const rule = rules[name as OptionName<Options>];
    const [fits, wanted] = rule;
    if (value !== undefined && !fits(value)) {
      const must = told && rule === marks['%'] ? mustBe(value) : '; must be';
      throw new Failed(op, say`bad ${name}: ${shown(value)}${must} ${wanted}`);
    }
  }
}

/** The property every handle of a tensor has. */
export const handleBrand: unique symbol = Symbol.for('polygrad.tensor');

/** The value of an option, without undefined; in a union of options, of those that have it. */
type OptionValue<Options, Name> = Options extends object
  ? Name extends keyof Options
    ? Exclude<Options[Name], undefined>
    : never
  : never;

/** The marks that an option may have by its type: a boolean must have its own. */
type MarkOf<Value> = [Value] extends [boolean]
  ? '?'
  :
      | ''
      | ([Value] extends [number] ? '#' : never)
      | ([Value] extends [(...inputs: never[]) => unknown] ? '!' : never)
      | ([Value] extends [DType] ? '%' : never)
      | ([Value] extends [object | null] ? '@' : never);

/** How an option may be written. */
type OptionWord<Options, Name extends string> = `${Name}${MarkOf<OptionValue<Options, Name>>}`;

/** The words of a text. */
type Words<Text extends string> = Text extends `${infer First} ${infer Rest}` ? First | Words<Rest> : Text;

/** The options of a type that a text leaves out. */
type LeftOut<Options, Text extends string, Name extends string> = Name extends string
  ? [Extract<Words<Text>, OptionWord<Options, Name>>] extends [never]
    ? Name
    : never
  : never;

/** The words of a text that name no option of a type, or with a mark that does not fit. */
type NoOption<Options, Text extends string, Name extends string> = Exclude<
  Words<Text>,
  Name extends string ? OptionWord<Options, Name> : never
>;

/** The text itself, if it names all options of a type and no others, with marks that fit; else what is wrong with it. */
export type OptionNames<Options, Text extends string> = unknown extends Options
  ? Text
  : [NoOption<Options, Text, OptionName<Options>>] extends [never]
    ? [LeftOut<Options, Text, OptionName<Options>>] extends [never]
      ? Text
      : `left out: ${LeftOut<Options, Text, OptionName<Options>>}`
    : `no such option, or not with this mark: ${NoOption<Options, Text, OptionName<Options>>}`;

/** What a mark behind a name in `checkNames` asks of the value. */
const marks: Readonly<Record<string, OptionRule>> = {
  '?': [(value) => typeof value === 'boolean', 'true or false'],
  '#': [(value) => typeof value === 'number' && !Number.isNaN(value), 'a number'],
  '!': [(value) => typeof value === 'function', 'a function'],
  '%': oneOf(...Object.keys(dtypeInfo)),
  '@': [
    (value) => value === null || (typeof value === 'object' && handleBrand in value),
    'a tensor, made with tensor()',
  ],
  '': [() => true, ''],
};
const byNames = new Map<string, Readonly<Record<string, OptionRule>>>();

/**
 * checkFields for names alone, such as `'axis keepDims? p#'`: a mark asks for a boolean (?), a number (#), a function (!), a dtype (%) or a
 * tensor (@, null is none). What has no mark is checked by whoever reads it. Much shorter than a table where there are many operations. The type
 * checker refuses names that are not those of the options' type.
 *
 * @example
 * checkNames('resize', { axis: 1, keepDims: true }, 'axis keepDims?');
 * const misspelt = { axes: 1 } as { axis?: number };
 * checkNames('resize', misspelt, 'axis'); // throws ArgumentError
 */
export function checkNames<Options, const Text extends string>(
  op: string,
  options: Options,
  names: OptionNames<Options, Text>,
  Failed?: Failure,
): void {
  if (options === undefined) return;
  let rules = byNames.get(names);
  if (rules === undefined) {
    rules = Object.fromEntries(names.split(' ').map((n) => [n.replace(/\W/, ''), marks[n.replace(/\w+/, '')]!]));
    byNames.set(names, rules);
  }
  checkFields<unknown>(op, options, rules, Failed);
}

/** Throws ArgumentError in the name of `op` unless an argument is a function. */
export function checkFunction(op: string, f: unknown): void {
  if (typeof f !== 'function') throw new ArgumentError(op, say`bad function: ${shown(f)}; must be a function`);
}

// Views whose memory is gone: after a transfer to a worker, growth of WebAssembly memory, or shrinking of a resizable buffer.
//
// Such a view says that it has no elements, as an empty one does, and would become an empty tensor.

/**
 * Throws unless the memory of a view is there.
 *
 * @param op who asks
 * @param name what the view is, for the error
 * @throws ArgumentError where its ArrayBuffer was detached or shrunk
 * @example
 * const data = new Float32Array(4);
 * structuredClone(data.buffer, { transfer: [data.buffer] });
 * checkAttached('upload', 'data', data); // throws ArgumentError
 */
export function checkAttached(op: string, name: string, view: ArrayBufferView): void {
  try {
    // Methods ask for the memory, the length does not.
    if (view.byteLength === 0 && !(view instanceof DataView)) Uint8Array.prototype.keys.call(view as Uint8Array);
  } catch {
    throw new ArgumentError(
      op,
      `${name} has lost its memory: 0 elements are left of a view whose ArrayBuffer was detached or shrunk; copy it before that, or make it anew`,
    );
  }
}
