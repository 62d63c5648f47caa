/**
 * Values as messages show them. Messages are made of what users pass, which may be anything: nothing here throws, calls a method of a
 * value, or takes longer for a larger one.
 */

/** Most entries of a list, and most characters of a text, that a message shows. */
const mostEntries = 32;
const mostText = 80;
const longest = 10n ** 40n;

/** What kind of object it is, by the constructor its prototype names. */
function kindOf(value: object): string {
  if (isList(value)) return 'a list';
  const prototype: unknown = Object.getPrototypeOf(value);
  const maker: unknown = isPlain(value) ? null : Object.getOwnPropertyDescriptor(prototype, 'constructor')?.value;
  const name: unknown = typeof maker === 'function' ? Object.getOwnPropertyDescriptor(maker, 'name')?.value : '';
  if (typeof name !== 'string' || name === '') return 'an object';
  if (name === 'Promise') return 'a promise (await it)';
  return `${/^[AEIOU]/.test(name) ? 'an' : 'a'} ${name.slice(0, mostText)}`;
}

/**
 * A value as messages show it: text in quotes, objects by their kind.
 *
 * @example
 * shown('x'); // "'x'"
 * shown({}); // 'an object'
 * shown(new Map()); // 'a Map'
 */
export function shown(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return value.length > mostText ? `'${value.slice(0, mostText)}...'` : `'${value}'`;
    case 'function':
    case 'symbol':
      return `a ${typeof value}`;
    case 'bigint':
      return value < longest && value > -longest ? String(value) : 'a bigint of more than 40 digits';
    case 'object':
      try {
        return value === null ? 'null' : kindOf(value);
      } catch {
        return 'an object that cannot be read';
      }
    default:
      return String(value);
  }
}

/** `Array.isArray`, which throws for a proxy that was revoked. */
export function isList(value: unknown): value is readonly unknown[] {
  try {
    return Array.isArray(value);
  } catch {
    return false;
  }
}

/**
 * True for plain objects, of this or another frame or context: what options, and trees of tensors, are. A Map, a Date, a list or an
 * instance of a class holds no options, though it is an object.
 */
export function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || isList(value)) return false;
  try {
    const prototype: unknown = Object.getPrototypeOf(value);
    return prototype === null || Object.getPrototypeOf(prototype) === null;
  } catch {
    return false;
  }
}

/** The entries of a list as messages show them, the first ones of a long list: `[2, 3]`. */
export function shownList(list: { readonly length: number; readonly [at: number]: unknown }): string {
  try {
    const length = Number.isInteger(list?.length) ? list.length : 0;
    const entries = Array.from({ length: Math.min(length, mostEntries) }, (_, i) => shown(list[i]));
    return `[${entries.join(', ')}${length > mostEntries ? `, and ${length - mostEntries} more` : ''}]`;
  } catch {
    return '[a list that cannot be read]';
  }
}

/** Most characters of one part of a message, such as a list of names or the place where a tensor was made. */
const mostPart = 1000;

/**
 * Tag of the text of every error: texts stay as they are, and everything else becomes what `shown` says of it. A template without it calls
 * `toString` of whatever a user passed. An object in `bad size: ${size}; must be at least ${1}` reads "bad size: an object; must be at least 1".
 */
export function say(texts: TemplateStringsArray, ...values: readonly unknown[]): string {
  return texts.reduce((before, text, i) => {
    const value = values[i - 1];
    const part =
      typeof value !== 'string' ? shown(value) : value.length > mostPart ? `${value.slice(0, mostPart)}...` : value;
    return `${before}${part}${text}`;
  });
}
