/** Waiting for something, but not for ever. */

/** What came of it: a value, an error, or nothing in time. */
export type Outcome<T> =
  | { readonly kind: 'value'; readonly value: T }
  | { readonly kind: 'error'; readonly error: unknown }
  | { readonly kind: 'late'; readonly reason?: string };

/** Timers of more milliseconds fire at once. */
const longest = 2 ** 31 - 1;

/**
 * Runs a task and waits for it at most so many milliseconds (for ever, if they are more than a timer holds). Never throws.
 *
 * @param late called with the value if it comes after all
 */
export async function within<T>(
  milliseconds: number,
  task: () => T | Promise<T>,
  late: (value: T) => void = () => undefined,
): Promise<Outcome<T>> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let over = false;
  const limit = new Promise<Outcome<T>>((resolve) => {
    if (milliseconds > longest) return;
    timer = setTimeout(() => {
      over = true;
      resolve({ kind: 'late' });
    }, milliseconds);
  });
  const work = (async (): Promise<Outcome<T>> => {
    try {
      const value = await task();
      if (over) late(value);
      return { kind: 'value', value };
    } catch (error) {
      return { kind: 'error', error };
    }
  })();
  const outcome = await Promise.race([work, limit]);
  clearTimeout(timer);
  return outcome;
}

/** Milliseconds for a process to start, which depend on how busy the machine is and not on the backend. */
const startLimit = 60_000;

/** As `within`, for what is asked of a process: the time counts from when it can be asked. */
export async function withinProcess<T>(
  milliseconds: number,
  asked: { started(): Promise<unknown> },
  task: () => Promise<T>,
): Promise<Outcome<T>> {
  const start = await within(startLimit, () => asked.started());
  if (start.kind === 'value') return within(milliseconds, task);
  return start.kind === 'late' ? { ...start, reason: `its process did not start within ${startLimit} ms` } : start;
}

/** The message of whatever was thrown, on one line. */
export function oneLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.replace(/\s*\n\s*/g, ' ').trim();
}

/** Why a package does not load, and what to do if it was made for another version of core. */
export function whyNotLoaded(error: unknown): string {
  const text = oneLine(error);
  const mismatch = /@polygrad[\\/]core/.test(text) && /does not provide an export|not defined by "exports"/.test(text);
  return mismatch ? `${text}; install versions that belong together` : text;
}

/** True for errors that say the caller gave wrong options: nothing else is tried then. */
export function isMistake(error: unknown): boolean {
  // By its name: backends may have another copy of the class.
  return error instanceof Error && error.name === 'ArgumentError';
}
