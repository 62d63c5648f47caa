/**
 * The root of all errors, and those of shapes and arguments: one message form, and fields for programs. DTypeError stands with the dtypes.
 *
 * Every message reads `[op] what is wrong: the two values; what to do`. Errors of engines live in engine/errors.ts.
 */
import { shownList } from './shown.ts';
import type { Shape } from './view.ts';

/** Names of the conditions, stable for programs. */
export type PolygradErrorCode =
  /** Calls that do not fit: of an operation, of a layer or optimizer. */
  | 'ARGUMENT'
  | 'DISPOSED'
  | 'DTYPE'
  | 'GRADIENT'
  | 'NUMBER_TYPE'
  | 'OPERATION'
  | 'SHAPE'
  /** Engines and the runtime. */
  | 'COMPILE'
  | 'DEVICE_ERROR'
  | 'DEVICE_LOST'
  | 'ENGINE_DISPOSED'
  | 'ENGINE_MISSING'
  | 'OUT_OF_MEMORY'
  | 'UNSUPPORTED'
  /** Faults of the library itself. */
  | 'GRAPH';

/** Marks the errors of all packages, also those of other copies of this one, and of packages that do not know this one (data). */
const brand = Symbol.for('polygrad.error');

/**
 * Base of all errors that Polygrad throws on purpose. `code` says what is wrong, `op` which call noticed it.
 *
 * @example
 * try {
 *   await setEngine('abacus');
 * } catch (error) {
 *   if (error instanceof PolygradError) console.log(error.code); //=> ENGINE_MISSING
 * }
 */
export class PolygradError extends Error {
  override readonly name: string = 'PolygradError';
  readonly code: PolygradErrorCode;
  /** The function the user called, or the part of an engine. */
  readonly op: string;
  /** The driver's own number where an error of a driver is behind this: 700 for an illegal address under CUDA, -5 for CL_OUT_OF_RESOURCES. */
  declare readonly driverCode?: number;

  constructor(code: PolygradErrorCode, op: string, message: string, options?: ErrorOptions) {
    super(`[${op}] ${message}`, options);
    this.code = code;
    this.op = op;
  }

  /** What JSON shows: the message too. */
  toJSON(): object {
    return { ...this, message: this.message };
  }
}

// On the prototype, where neither consoles nor JSON look.
Object.defineProperty(PolygradError.prototype, brand, { value: true });

// `instanceof` is true of the errors of every package; for classes below this one it is what it is.
Object.defineProperty(PolygradError, Symbol.hasInstance, {
  value(this: unknown, value: unknown): boolean {
    if (this !== PolygradError) return Function.prototype[Symbol.hasInstance].call(this, value);
    return typeof value === 'object' && value !== null && brand in value;
  },
});

/**
 * Base of the errors that recording an operation can throw. `op` is the operation the user called.
 *
 * @example
 * try {
 *   add(ones([2]), ones([3]));
 * } catch (error) {
 *   if (error instanceof OperationError) console.log(error.op); //=> add
 * }
 */
export class OperationError extends PolygradError {
  override readonly name: string = 'OperationError';

  constructor(op: string, message: string, code: PolygradErrorCode = 'OPERATION') {
    super(code, op, message);
  }
}

/**
 * Shapes, axes or sizes that do not fit an operation.
 *
 * @example
 * ones([2]).add(ones([3])); // throws ShapeError
 */
export class ShapeError extends OperationError {
  override readonly name: string = 'ShapeError';
  readonly shapes: readonly Shape[];

  constructor(op: string, message: string, shapes: readonly Shape[] = []) {
    super(op, message, 'SHAPE');
    this.shapes = shapes;
  }
}

/**
 * An option or argument outside what an operation accepts.
 *
 * @example
 * full([2], 7, { dtype: 'float8' as DType }); // throws ArgumentError
 */
export class ArgumentError extends OperationError {
  override readonly name: string = 'ArgumentError';

  constructor(op: string, message: string) {
    super(op, message, 'ARGUMENT');
  }
}

/**
 * How shapes are written in messages: [2, 3].
 *
 * @example
 * showShape([2, 3]); // '[2, 3]'
 */
export function showShape(shape: Shape): string {
  return shownList(shape);
}

/**
 * An error that only the library's own code, or an engine's, can cause. Published pages do not carry which rule it breaks (`told` of `#shown-as`), nor who
 * asked too much of what.
 *
 * @example
 * import { fault } from '@polygrad/core/engine';
 * console.log(fault('mine', 'two kernels wait for each other').message); //=> [mine] two kernels wait for each other
 */
export function fault(where: string, what: string | false): Error {
  return new Error(`[${where}] ${what || 'breaks a rule of the library: a development build says which'}`);
}
