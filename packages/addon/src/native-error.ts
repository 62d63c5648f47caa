/** Errors as addons throw them. */

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
