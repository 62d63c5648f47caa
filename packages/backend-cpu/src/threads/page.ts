/** What `#host` is in bundles for browsers: what a page offers, where there is nothing of Node to ask for. */

interface Page {
  readonly crossOriginIsolated?: boolean;
  readonly navigator?: { readonly hardwareConcurrency?: number };
  /** Present in workers only. */
  readonly WorkerGlobalScope?: unknown;
}

const here = globalThis as unknown as Page;

export function nodeModule(_name: string): undefined {}

export function threadsAsked(_rule: unknown): undefined {}

export const memoryRemedy: string = 'dispose other engines';

export function allowRelaxed(): boolean {
  return false;
}

export function coreCount(): number {
  return here.navigator?.hardwareConcurrency ?? 1;
}

export function processorName(): string {
  return 'CPU';
}

export function whyAlone(): string | null {
  if (here.crossOriginIsolated !== true) return 'the page is not cross-origin isolated';
  return typeof Worker === 'undefined' ? 'this kind of worker cannot start threads' : null;
}

export function mayBlock(): boolean {
  return here.WorkerGlobalScope !== undefined;
}
