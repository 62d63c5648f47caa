/**
 * The one error class of this package. It is thrown for data that cannot be used: files that are missing, damaged or of another kind, and arrays that
 * do not fit together. The message says what to do about it.
 */

/** What went wrong, for programs that decide by it. */
export type DataErrorCode =
  /** A file or package is not there, or cannot be read. */
  | 'missing'
  /** The bytes are not of the format they should be of. */
  | 'format'
  /** The file ends before its header says it should. */
  | 'truncated'
  /** The file goes on after its header says it should end. */
  | 'oversized'
  /** The checksum differs from the published one. */
  | 'checksum'
  /** Parts that must agree (images and labels, data and shape) do not. */
  | 'mismatch'
  /** An option or argument has a value it cannot have. */
  | 'argument';

const BRAND = 'polygrad.DataError';

/**
 * Data that cannot be used: `code` says how, `source` names the file or array.
 *
 * @example
 * parseIdx(new Uint8Array([1, 2, 3])); // throws DataError
 */
export class DataError extends Error {
  override readonly name: string = 'DataError';
  readonly code: DataErrorCode;
  /** The function that refused. */
  readonly op: string;
  /** The file, package or array that is wrong. */
  readonly source: string;
  /** Marks the class across copies of this package; see `isDataError`. */
  readonly brand: string = BRAND;

  constructor(code: DataErrorCode, source: string, message: string, options?: ErrorOptions) {
    // Names and values of a file may be of any length.
    super(message.length > mostText ? `${message.slice(0, mostText)} ...` : message, options);
    this.code = code;
    this.op = /^\[([\w.]+)\]/.exec(message)?.[1] ?? '';
    this.source = source;
  }

  /** What JSON shows: the message too. */
  toJSON(): object {
    return { ...this, message: this.message };
  }
}

// Errors of all packages are marked so (PolygradError of @polygrad/core, which this package does not know).
Object.defineProperty(DataError.prototype, Symbol.for('polygrad.error'), { value: true });

/** Most characters of a message. */
const mostText = 1500;

/** Most characters of a value that a message shows. */
const mostShown = 80;

/** Most rows whose order is worked out. */
export const mostRows: number = 2 ** 27;

/** Throws DataError `argument` unless a number is a whole one from `least` to `most`. */
export function checkInteger(
  op: string,
  name: string,
  value: number,
  least: number,
  most: number = Number.MAX_SAFE_INTEGER,
): void {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return;
  const limit = most < Number.MAX_SAFE_INTEGER ? `from ${least} to ${most}` : `of at least ${least}`;
  throw new DataError('argument', name, `[${op}] ${name} is ${shown(value)}; it must be an integer ${limit}`);
}

/** Allowed values of an option; `any` is checked by its reader. */
export type OptionType = 'number' | 'boolean' | 'string' | 'function' | 'object' | 'any';

/** Throws DataError `argument` unless options are an object whose names are known, with values of the types given. */
export function checkOptions(op: string, options: unknown, types: Readonly<Record<string, OptionType>>): void {
  const known = `known are ${Object.keys(types).join(', ')}`;
  if (!isPlain(options))
    throw new DataError('argument', 'options', `[${op}] bad options: ${shown(options)}; must be an object, ${known}`);
  for (const [name, value] of Object.entries(options)) {
    if (!Object.hasOwn(types, name)) throw new DataError('argument', name, `[${op}] no option '${name}'; ${known}`);
    const type = types[name]!;
    if (value === undefined || type === 'any' || (typeof value === type && value !== null)) continue;
    const article = type === 'object' ? 'an' : 'a';
    throw new DataError('argument', name, `[${op}] ${name} is ${shown(value)}; it must be ${article} ${type}`);
  }
}

/** Throws DataError `argument` naming the value, and what is wanted in words, unless it fits. */
export function checkFits(op: string, name: string, value: unknown, fits: boolean, wanted: string): void {
  if (!fits) throw new DataError('argument', name, `[${op}] ${name} is ${shown(value)}; it must be ${wanted}`);
}

/** True for lists that somebody could have filled: empty ones of billions of places are walked for minutes. */
export function isList(value: unknown): value is unknown[] {
  return Array.isArray(value) && value.length <= mostRows;
}

/** True for lists whose elements all fit; a gap is an undefined one, which `every` would pass over. */
export function isListOf(value: unknown, fits: (element: unknown) => boolean): value is unknown[] {
  return isList(value) && value.findIndex((element) => !fits(element)) < 0;
}

/** Throws DataError `argument` unless a value is a function. */
export function checkFunction(op: string, name: string, value: unknown): void {
  checkFits(op, name, value, typeof value === 'function', 'a function');
}

/** True for a tensor of `@polygrad/core`, which this package does not know: tensors have this property. */
export function isTensor(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Symbol.for('polygrad.tensor') in value;
}

/** The text of anything thrown, for messages that say what a library said. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : typeof error === 'string' ? error.slice(0, mostText) : shown(error);
}

/** True for plain objects, of this or another frame: a Map or a Date holds no options. */
export function isPlain(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** The name of the class that made an object, by its prototype alone; 'object' for plain ones. */
function classOf(value: object): string {
  if (isPlain(value)) return 'object';
  const maker: unknown = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(value) as object, 'constructor')?.value;
  const name: unknown = typeof maker === 'function' ? Object.getOwnPropertyDescriptor(maker, 'name')?.value : undefined;
  return typeof name === 'string' && name !== '' ? name.slice(0, mostShown) : 'object';
}

/** A value as messages show it, texts in quotes, without calling any of its methods. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return value.length > mostShown ? `'${value.slice(0, mostShown)}...'` : `'${value}'`;
  if (typeof value === 'object' && value !== null) {
    if (isTensor(value)) return 'a Tensor';
    const name = Object.prototype.toString.call(value).slice(8, -1);
    if (name === 'Array') return `a list of ${(value as unknown[]).length}`;
    const kind = name === 'Object' ? classOf(value) : name;
    return `${/^[aeiou]/i.test(kind) ? 'an' : 'a'} ${kind}`;
  }
  return typeof value === 'symbol' || typeof value === 'function'
    ? `a ${typeof value}`
    : String(value).slice(0, mostShown);
}

/**
 * True for a DataError of this or another copy of the package.
 *
 * @example
 * try {
 *   parseIdx(new Uint8Array([0, 0, 8, 1, 0, 0, 0, 3, 7, 2]));
 * } catch (error) {
 *   if (isDataError(error)) console.log(error.code); //=> truncated
 * }
 */
export function isDataError(error: unknown): error is DataError {
  return error instanceof Error && (error as Partial<DataError>).brand === BRAND;
}
