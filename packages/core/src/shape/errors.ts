/**
 * Errors of shapes and dtypes: one message form, and fields for programs.
 *
 * Every message reads `[op] what is wrong: the two values; what to do`. Errors of engines live in engine/errors.ts.
 */
import type { DType } from './dtype.ts';
import { shownList } from './shown.ts';
import type { Shape } from './view.ts';

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
export class OperationError extends Error {
  override readonly name: string = 'OperationError';
  readonly op: string;

  constructor(op: string, message: string) {
    super(`[${op}] ${message}`);
    this.op = op;
  }

  /** What JSON shows: the message too. */
  toJSON(): object {
    return { ...this, message: this.message };
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
    super(op, message);
    this.shapes = shapes;
  }
}

/**
 * Dtypes that do not fit an operation or each other.
 *
 * @example
 * ones([2]).add(ones([2], { dtype: 'int32' })); // throws DTypeError
 */
export class DTypeError extends OperationError {
  override readonly name: string = 'DTypeError';
  readonly dtypes: readonly DType[];

  constructor(op: string, message: string, dtypes: readonly DType[] = []) {
    super(op, message);
    this.dtypes = dtypes;
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
