/** Errors as addons throw them, and their driver's code on the library's. */
import { PolygradError } from '@polygrad/core/engine';

/** The driver's code, the call that gave it, the index in the batch (or -1), a log. */
export interface NativeError extends Error {
  readonly code: number;
  readonly call: string;
  readonly command: number;
  readonly log: string;
}

/**
 * True for errors an addon throws.
 *
 * @example
 * isNativeError(new Error('no addon was asked')); // false
 */
export function isNativeError(error: unknown): error is NativeError {
  return error instanceof Error && typeof (error as Partial<NativeError>).code === 'number';
}

/**
 * Converts an addon's error to the library's, with the driver's code as `driverCode`; anything else is returned unchanged.
 *
 * @example
 * const error = withDriverCode(new EngineMissingError('mine', 'no device'), Object.assign(new Error('native'), { code: 100 }));
 * error.driverCode; // 100
 */
export function withDriverCode<T>(error: T, native: unknown): T {
  if (!(error instanceof PolygradError) || !isNativeError(native)) return error;
  return Object.assign(error, { driverCode: native.code });
}
