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
 * @param seen the name, if it is not that of the class; or what Node's console shows instead, which is the object's text, too
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
  // Classes with a text of their own keep it.
  if (
    typeof seen === 'function' &&
    [Object.prototype, Array.prototype].some((plain) => plain.toString === target.toString)
  )
    define('toString', function (this: T) {
      return seen(this);
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

/**
 * Makes names that classes like this one have in other libraries say what to write here: reading one throws. Members that programs put on objects under
 * such names are theirs, unless `=` stands behind the name: then setting it throws, too. Names that the class has stay.
 *
 * @param kind the class, or what has its prototype
 * @param names one name, or several with spaces between them, and what to write instead
 * @param error the error for a name, what to write, and the object that was asked
 * @example
 * class Box {}
 * refuseNames(Box, { 'unpack unwrap': 'open()' }, (name, instead) => new Error(`no '${name}': ${instead}`));
 * Reflect.get(new Box(), 'unpack'); // throws Error
 */
export function refuseNames<T extends object>(
  { prototype }: { readonly prototype: T },
  names: Readonly<Record<string, string>>,
  error: (name: string, instead: string, self: T) => Error,
): void {
  // Behind the prototype, which is looked up in a table once it has a thousand names: every call of a method took longer.
  const behind = Object.create(Object.getPrototypeOf(prototype) as object | null) as object;
  Object.setPrototypeOf(prototype, behind);
  for (const [several, instead] of Object.entries(names))
    for (const written of several.split(' ')) {
      const [name, isRefused] = [written.replace('=', ''), written.endsWith('=')];
      if (name in prototype) continue;
      Object.defineProperty(behind, name, {
        configurable: true,
        get(this: T): never {
          throw error(name, instead, this);
        },
        set(this: T, value: unknown): void {
          if (isRefused) throw error(name, instead, this);
          Object.defineProperty(this, name, { value, configurable: true, enumerable: true, writable: true });
        },
      });
    }
}

/** What wrong options of a function may be: arguments of the function that it gives, as JAX has it, too. */
export function meantOf(op: string): string {
  if (!/^(grads?|valueAndGrad|jacobian|hessian|vmap|compile)$/.test(op)) return '';
  return `, and ${op}(f) is the function to call, as in ${op}(f)(x)`;
}

/**
 * The known name that shares most letters with another, in their order; a short one may be those of a longer word: lr, learningRate. Of several such
 * the longest.
 */
export function nearest(name: string, known: readonly string[]): string | undefined {
  // Axes are called dims elsewhere.
  const bare = name.toLowerCase().replace(/^dims?/, 'axis');
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
    const score = whole ? letters.length : (2 * common) / (letters.length + bare.length);
    if (score > most) [best, most] = [candidate, score];
  }
  return best;
}

/** Dtypes by the names that C and PyTorch have for them. */
const dtypes: Readonly<Record<string, string>> = {
  float: 'float32',
  double: 'float64',
  half: 'float16',
  int: 'int32',
  long: 'int64',
  short: 'int16',
  byte: 'uint8',
  boolean: 'bool',
};

/** What stands between a wrong value and what it must be: for the name that a dtype has elsewhere, its name here. */
export function mustBe(value: unknown): string {
  const name = typeof value === 'string' ? value.replace(/^.*\./, '') : '';
  const meant = Object.hasOwn(dtypes, name) ? dtypes[name] : undefined;
  return meant === undefined ? '; must be' : `, did you mean '${meant}'? Must be`;
}

/** What an object that is taken for an engine has not. */
export function lacking(engine: object): string {
  const parts = 'name device caps alloc free upload download compile release submit idle memory dispose'.split(' ');
  return ` without ${parts.filter((name) => !(name in engine)).join(', ')}`;
}

/** Whether errors say which rule the library's own code breaks, and what a wrong name may have meant. Constant, so that bundlers leave texts out. */
export const told: boolean = true;
