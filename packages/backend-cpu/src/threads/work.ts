/** What threads run, how it is cut, and its error; known without any worker. */

/** A kernel's code as exported by its module. */
export type KernelFunction = (args: number, from: number, to: number, scratch: number) => void;

/** What all threads run, on groups 0 .. `groups` - 1. */
export interface Work {
  readonly name: string;
  readonly fn: KernelFunction;
  /** The same function in the workers: slot of its module, its number there. */
  readonly slot: number;
  readonly index: number;
  readonly groups: number;
}

/** How groups are cut and taken. */
export interface Shares {
  /** Groups per chunk; 0: one thread does all. */
  readonly chunk: number;
  /** Most chunks a thread takes at once. */
  readonly most: number;
  /** Milliseconds that so many chunks may well take. */
  readonly patience: number;
}

/** What is thrown when a kernel fails: it cannot, short of a mistake in the compiler. */
export function kernelError(name: string, cause: unknown): Error {
  return new Error(`[cpu.submit] kernel '${name}' failed: ${cause}`, { cause });
}
