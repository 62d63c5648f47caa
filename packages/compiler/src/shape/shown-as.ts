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
function nearest(name: string, known: readonly string[]): string | undefined {
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

/** Options of other libraries, and what is written here: in calls that know the option before the colon. */
const elsewhere: Readonly<Record<string, string>> = {
  'causal iscausal': 'mask: it is an option of the layer, given when it is made: { causal: true }',
  unbiased: 'correction: PyTorch divides by n - 1, which is { correction: 1 }',
  ddof: 'correction: ddof of NumPy is correction, as in { correction: 1 }',
  ord: 'p: it is p, as in { p: 1 }',
  activation: 'bias: an activation is a layer of its own, as in new Sequential(layer, new ReLU())',
  'kernelinitializer kernelinit': 'weightInit: it is weightInit, as in { weightInit: xavierUniform() }',
  biasinitializer: 'biasInit: it is biasInit, as in { biasInit: zerosInit() }',
  'inputshape inputdim': 'bias: the size of the inputs comes first',
  'returnsequences returnstate': 'numLayers: forward(x) gives { output, hidden }: all steps, and the last state',
  batchfirst: 'numLayers: the batch comes first always',
  monitor: 'watch: it is watch, as in { watch: (report) => report.loss }',
  mode: "watch: it is best, 'min' or 'max'",
  validationsplit:
    'validation: const [train, validation] = rows.split([0.8, 0.2]), and validation: validation.batch(32)',
  validationdata: 'validation: it is validation, a list of batches { x, y } or a Dataset',
  classweight: 'loss: the loss has it, as (p, y) => crossEntropy(p, y, { weight: classWeights(labels) })',
  verbose: "progress: it is progress, as in { progress: 'lines' }",
  initialepoch: 'firstEpoch: it is firstEpoch',
};

/**
 * What stands between an option that is not there and those that are known: what to write for one of another library, or the known name it may be
 * misspelt from.
 */
export function instead(name: string, known: readonly string[]): string {
  const bare = name.toLowerCase().replaceAll('_', '');
  for (const [names, remedy] of Object.entries(elsewhere)) {
    const [needed, text] = /^(\w+): (.*)$/.exec(remedy)!.slice(1) as [string, string];
    const isSpelled = known.some((own) => bare.endsWith(own.toLowerCase()));
    if (!isSpelled && names.split(' ').includes(bare) && known.includes(needed)) return `; ${text}; k`;
  }
  const meant = nearest(name, known);
  return meant === undefined ? '; k' : `, did you mean '${meant}'? K`;
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
