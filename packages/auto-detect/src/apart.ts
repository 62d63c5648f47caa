/**
 * What is asked of a backend in a process of its own, where a driver that crashes or hangs ends that process and no more. These are the words that
 * both sides know. `processes.ts` is the asking side, `asked.ts` the program that answers.
 */
import type { EngineComparison, Probe } from '@polygrad/core/engine';

/** Options of an engine, as far as they can be sent. */
export type SentOptions = Readonly<Record<string, unknown>>;

/** What came of the self-test on an engine of the backend. */
export interface Proof {
  /** The first wrong answer, in words, or null. */
  readonly wrong: string | null;
  /** What the engine holds. */
  readonly dtypes: readonly string[];
  readonly milliseconds: number;
}

/** A package and the backend it registers. */
export interface Asked {
  readonly specifier: string;
  readonly name: string;
}

/** A backend in a separate process. Promises reject if the backend throws, or its process ends. */
export interface Apart {
  /** Resolves once the process can be asked: on a busy machine seconds pass, which say nothing of the backend. */
  started(): Promise<unknown>;
  probe(): Promise<Probe>;
  /** Makes an engine, and has it answer what is known. */
  prove(options: SentOptions | undefined): Promise<Proof>;
  /** Measures its engine against another backend's. */
  compare(
    options: SentOptions | undefined,
    other: Asked & { readonly options: SentOptions | undefined },
  ): Promise<EngineComparison>;
  /** Ends the process. */
  close(): void;
}

/** What such a process needs of its host. */
export interface Processes {
  /** True where a program can find the package. */
  has(specifier: string): boolean;
  /** Everything that a backend's answers depend on without asking it: versions, drivers, devices, environment. */
  fingerprint(asked: Asked): Promise<string>;
  /** Starts a process; null if that is impossible here. */
  open(asked: Asked): Apart | null;
  /** Bytes of the machine's memory. */
  readonly memoryBytes: number;
}

/** A question, and its answer with the same number. */
export type Question = { readonly id: number } & (
  | { readonly what: 'probe' }
  | { readonly what: 'prove'; readonly options: SentOptions | undefined }
  | {
      readonly what: 'compare';
      readonly options: SentOptions | undefined;
      readonly other: Asked & { readonly options: SentOptions | undefined };
    }
);
/** The number of what a process says unasked: that it can be asked. */
export const startedId = -1;

export interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: { readonly name: string; readonly message: string };
}

/** A process that ended before it answered. */
export class EndedError extends Error {
  override readonly name: string = 'EndedError';
}
