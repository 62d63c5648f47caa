/**
 * The backend packages that are known, and how each is loaded. Importing one registers its backend.
 *
 * What runs in browsers is imported by its literal name, so that bundlers take it along if it is installed. Packages with native code are imported by
 * names that bundlers do not follow.
 */
import { listBackends } from '@polygrad/core/engine';

/** A package that registers a backend. */
export interface BackendPackage {
  /** Name of the backend it registers. */
  readonly name: string;
  readonly specifier: string;
  readonly load: () => Promise<unknown>;
  /** True for native code: asked in a separate process where possible. */
  readonly apart?: boolean;
}

/** True where programs may have native code. */
export const inNode: boolean =
  (globalThis as { process?: { versions?: { node?: string } } }).process?.versions?.node !== undefined;

function native(name: string): BackendPackage {
  const specifier = `@polygrad/backend-${name}`;
  return {
    name,
    specifier,
    apart: true,
    load: () => import(/* webpackIgnore: true */ /* @vite-ignore */ specifier),
  };
}

/** Backends that work on Node alone. Their names may be given anywhere, so that one program fits both. */
const onNode: readonly string[] = ['cuda', 'opencl', 'native'];

/** Packages that can work here. In browsers those with native code are no candidates. */
export const backendPackages: readonly BackendPackage[] = [
  ...(inNode ? onNode : []).map(native),
  {
    name: 'webgpu',
    specifier: '@polygrad/backend-webgpu',
    apart: inNode,
    // Inside `try`, bundlers take a package that is not there for a warning (webpack knows no other way).
    load: async () => {
      try {
        return await import('@polygrad/backend-webgpu');
      } catch (error) {
        return Promise.reject(error);
      }
    },
  },
  { name: 'cpu', specifier: '@polygrad/backend-cpu', load: () => import('@polygrad/backend-cpu') },
];

/** Names that may be given: of the packages, of what is registered, and of what works elsewhere. */
export function namesOf(known: readonly BackendPackage[]): string[] {
  return [...new Set([...listBackends(), ...known.map(({ name }) => name), ...onNode])].sort();
}

/**
 * The backends that this machine can have: those of known packages, and what is registered.
 *
 * @example
 * ```ts
 * import { knownBackends } from '@polygrad/auto-detect';
 * console.log(knownBackends().includes('cpu')); //=> true
 * ```
 */
export function knownBackends(): string[] {
  const there = backendPackages.map(({ name }) => name);
  return [...new Set([...listBackends(), ...there])].sort();
}

/** What a loader could not find is the first name in quotes (or after `url`), whatever it says besides: paths of who asked for it. */
const sought = /["'“`]([^"'“”`\s]+)["'”`]|\burl (\S+)/;

/** True if an import failed because the package itself is not there, rather than a file of it or something that it needs. */
export function isMissing(error: unknown, specifier: string): boolean {
  const text = error instanceof Error ? error.message : String(error);
  const [, quoted, url] = sought.exec(text) ?? [];
  return (
    (quoted ?? url) === specifier &&
    /cannot find|can't resolve|could not resolve|failed to (resolve|load)|not resolve|bare specifier/i.test(text)
  );
}
