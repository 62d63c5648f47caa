/** Errors of kernels of users: the reason, and the line of the user's body. */
import { OperationError, PolygradError } from '@polygrad/compiler/shape/errors';

/**
 * A kernel of a user that breaks a rule of kernels: dtypes that do not fit, a barrier that not all threads get to, too much memory of a group.
 * The message ends with the line of the body that asked for it, where the platform tells lines.
 *
 * @example
 * const bad = defineKernel({
 *   name: 'bad',
 *   form: 'elementwise',
 *   inputs: { x: 'int32' },
 *   outputs: { y: 'x' },
 *   body: (_, { x }) => x.exp(),
 * });
 * bad({ x: tensor([1], { dtype: 'int32' }) }); // throws KernelError
 */
export class KernelError extends OperationError {
  override readonly name: string = 'KernelError';
  /** Position in the user's code: `file:line:column`; null if unknown. */
  readonly where: string | null;

  constructor(op: string, message: string, where: string | null) {
    super(op, where === null ? message : `${message} (${where})`);
    this.where = where;
  }
}

/** A place in the user's code. The stack is formatted only on request, because that is slow. */
export type Site = Error;

/** Where the code is that calls the builder now. */
export function site(): Site {
  return new Error('a call of the kernel builder');
}

/** The same for what failed, with more of the calls: a body that has returned leaves the user's call far below. */
function siteOfFailure(): Site {
  const options = Error as { stackTraceLimit?: number };
  const before = options.stackTraceLimit;
  try {
    options.stackTraceLimit = 50;
    return site();
  } finally {
    if (before === undefined) delete options.stackTraceLimit;
    else options.stackTraceLimit = before;
  }
}

/** Files of this package and of its compiler are not the user's: a body may have returned when its mistake is found. */
const own = /[/\\](?:core|compiler)[/\\](?:src|dist)[/\\][^:]*(?<!\.test)\.[jt]s/;
const place = /((?:[a-z-]+:\/\/|\/|[A-Z]:\\)[^\s()]+:\d+:\d+)\)?$/;

/** The nearest line of a stack that is not of these packages. */
export function whereOf({ stack }: Site): string | null {
  for (const line of (stack ?? '').split('\n').slice(1)) {
    const found = place.exec(line.trim());
    if (found !== null && !own.test(found[1]!)) return found[1]!.replace(/^file:\/\//, '');
  }
  return null;
}

/** Runs a step of the builder. Errors of the kernel IR become a KernelError in the kernel's name, with the user's line. */
export function checked<T>(op: string, step: () => T): T {
  try {
    return step();
  } catch (error) {
    if (error instanceof KernelError) throw error;
    const text = error instanceof Error ? error.message : String(error);
    if (error instanceof PolygradError || text.startsWith('[kernel.'))
      throw new KernelError(op, text.replace(/^\[[^\]]*\] /, ''), whereOf(siteOfFailure()));
    throw error;
  }
}

/** Throws a KernelError with the user's line. */
export function fail(op: string, message: string, at: Site = siteOfFailure()): never {
  throw new KernelError(op, message, whereOf(at));
}
