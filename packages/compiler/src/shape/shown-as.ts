/**
 * What objects of the library look like to people: in JSON, and in Node's console. Consoles of browsers show members, whatever is said here.
 *
 * It is `#shown-as` in Node and in pages while they are developed (not-shown.ts is it in others), as engine/inspection.ts is `#inspection`.
 *
 * Without it, graphs of nodes would be written out as trees, and sets as `{}`.
 */

const inspectedBy: unique symbol = Symbol.for('nodejs.util.inspect.custom');

/** Node's `util.inspect`, which it hands over. */
type Inspect = (value: unknown, options: object) => string;

/**
 * Gives an object, or a class by its prototype, an outline: a text, or an object of what is worth reading. `JSON.stringify` writes that, and
 * Node's console shows it behind the name of the class.
 *
 * @param seen the name, if it is not that of the class; or what Node's console shows instead
 * @returns the object
 * @example
 * const box = showAs({ large: new Float32Array(1000) }, ({ large }) => ({ elements: large.length }), 'Box');
 * JSON.stringify(box); // '{"elements":1000}'
 */
export function showAs<T extends object>(
  target: T,
  outline: (self: T) => unknown,
  seen?: string | ((self: T) => string),
): T {
  const define = (key: PropertyKey, value: unknown): unknown =>
    Object.defineProperty(target, key, { value, configurable: true, writable: true });
  define('toJSON', function (this: T) {
    return outline(this);
  });
  define(inspectedBy, function (this: T, depth: number | null, options: object, inspect: Inspect) {
    if (typeof seen === 'function') return seen(this);
    const shown = outline(this);
    if (typeof shown === 'string') return shown;
    const name = seen ?? this.constructor.name;
    // What is left of the depth that was asked for.
    return depth !== null && depth < 0 ? `[${name}]` : `${name} ${inspect(shown, { ...options, depth })}`;
  });
  return target;
}
