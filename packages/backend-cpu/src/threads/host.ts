/**
 * What the engine needs from its surroundings, found at run time: Node's modules, worker threads, the number of cores. In bundles for
 * browsers `#host` is page.ts.
 *
 * Nothing is imported from Node, so that other bundles stay clean; Node's modules come from `process.getBuiltinModule`.
 */

import { ArgumentError, type OptionRule, shown } from '@polygrad/core/engine';

interface NodeWorker {
  unref(): void;
  terminate(): Promise<number>;
  on(event: 'error', listener: (error: Error) => void): void;
}

interface Builtins {
  'node:worker_threads': { Worker: new (source: string, options: object) => NodeWorker };
  'node:os': { availableParallelism?(): number; cpus(): { model: string }[] };
  'node:fs': { readFileSync(path: string, encoding: 'utf8'): string };
  'node:v8': { setFlagsFromString(flags: string): void };
}

interface Surroundings {
  readonly process?: {
    /** Electron alone: 'browser' and 'utility' are Node, the others pages. */
    readonly type?: string;
    readonly versions?: { readonly node?: string };
    readonly env?: Readonly<Record<string, string | undefined>>;
    emitWarning?(text: string, type: string): void;
    getBuiltinModule?<K extends keyof Builtins>(name: K): Builtins[K] | undefined;
  };
  readonly crossOriginIsolated?: boolean;
  readonly navigator?: { readonly hardwareConcurrency?: number };
  /** Present in browser workers only. */
  readonly WorkerGlobalScope?: unknown;
}

const here = globalThis as unknown as Surroundings;

/** False in pages of Electron, which have Node's modules, but its threads do not start there and nothing may block. */
const isNode: boolean =
  typeof here.process?.versions?.node === 'string' && !/^(renderer|worker)$/.test(here.process.type ?? '');

/** A module of Node, or undefined elsewhere (and on Node before 20.16). */
export function nodeModule<K extends keyof Builtins>(name: K): Builtins[K] | undefined {
  return isNode ? here.process?.getBuiltinModule?.(name) : undefined;
}

/** Turns relaxed SIMD on in Node 20, which has it behind a flag; false where it has or needs none. */
export function allowRelaxed(): boolean {
  const v8 = nodeModule('node:v8');
  if (v8 === undefined || !process.versions.v8.startsWith('11.')) return false;
  v8.setFlagsFromString('--experimental-wasm-relaxed-simd');
  return true;
}

/** The number of threads that the environment asks for, if any. `rule` says which there may be. */
export function threadsAsked([fits, wanted]: OptionRule): number | undefined {
  const text = here.process?.env?.POLYGRAD_THREADS;
  if (!text) return undefined;
  if (!fits(Number(text)))
    throw new ArgumentError('cpu', `bad POLYGRAD_THREADS: ${shown(text)}; must be ${wanted}, or left out`);
  return Number(text);
}

/** What helps where WebAssembly gets no memory. */
export const memoryRemedy: string =
  'raise the limit (ulimit -v), start Node with --disable-wasm-trap-handler, or dispose other engines';

/** Warns the user. */
export function emitWarning(text: string): void {
  here.process?.emitWarning?.(text, 'PolygradWarning');
}

/** Cores this process may use. */
export function coreCount(): number {
  const os = nodeModule('node:os');
  return os?.availableParallelism?.() ?? os?.cpus().length ?? here.navigator?.hardwareConcurrency ?? 1;
}

/** A name for the processor. */
export function processorName(): string {
  return nodeModule('node:os')?.cpus()[0]?.model.trim() ?? 'CPU';
}

/** Why memory cannot be shared with worker threads here; null if it can. */
export function whyAlone(): string | null {
  if (isNode) return nodeModule('node:worker_threads') === undefined ? 'threads need Node 20.16' : null;
  if (here.crossOriginIsolated !== true) return 'the page is not cross-origin isolated';
  return typeof Worker === 'undefined' ? 'this kind of worker cannot start threads' : null;
}

/** True where this thread may block: everywhere but on a browser's main thread. */
export function mayBlock(): boolean {
  return isNode || here.WorkerGlobalScope !== undefined;
}
