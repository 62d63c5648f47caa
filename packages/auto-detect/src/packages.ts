/**
 * The backend packages that are known, and how each is loaded. Importing one registers its backend.
 *
 * What runs in browsers is imported by its literal name, so that bundlers take it along if it is installed; packages with
 * native code by names that bundlers do not follow.
 */

/** A package that registers a backend. */
export interface BackendPackage {
  /** Name of the backend it registers. */
  readonly name: string;
  readonly specifier: string;
  readonly load: () => Promise<unknown>;
}

const inNode = (globalThis as { process?: { versions?: { node?: string } } }).process?.versions?.node !== undefined;

function native(name: string): BackendPackage {
  const specifier = `@polygrad/backend-${name}`;
  return { name, specifier, load: () => import(/* webpackIgnore: true */ /* @vite-ignore */ specifier) };
}

/** Packages that can work here. In browsers those with native code are no candidates. */
export const backendPackages: readonly BackendPackage[] = [
  ...(inNode ? ['cuda', 'opencl'] : []).map(native),
  {
    name: 'webgpu',
    specifier: '@polygrad/backend-webgpu',
    // With a handler of its own, a bundler takes a package that is not there for a warning.
    load: () => import('@polygrad/backend-webgpu').catch((error: unknown) => Promise.reject(error)),
  },
  { name: 'cpu', specifier: '@polygrad/backend-cpu', load: () => import('@polygrad/backend-cpu') },
];

/** True if an import failed because the package is not there, rather than because something in it failed. */
export function isMissing(error: unknown, specifier: string): boolean {
  const text = error instanceof Error ? error.message : String(error);
  return text.includes(specifier) && /cannot find|can't resolve|could not resolve|failed to (resolve|load)/i.test(text);
}
