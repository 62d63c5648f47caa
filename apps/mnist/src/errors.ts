/** What the program cannot do for a reason its user can mend: told in one line, exit code 2. */

/** Bad arguments, an engine that is not there, a folder that cannot be written. */
export class UsageError extends Error {
  override readonly name: string = 'UsageError';
}

/** The message on one line, without the module's own prefix. */
export function oneLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.replace(/\s*\n\s*/g, ' ').trim();
}
