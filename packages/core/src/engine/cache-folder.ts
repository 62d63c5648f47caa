/** The folder for files that the library can make again, in Node. Its users know what is in it. */

/** What a process says of the user and of the system. */
interface HostUser {
  readonly platform: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

const own = (): HostUser => (globalThis as unknown as { readonly process: HostUser }).process;

/**
 * The default folder for cached files of a kind: below XDG_CACHE_HOME; on Windows below LOCALAPPDATA; else in `.cache` of the home folder.
 *
 * @example
 * import { cacheFolder } from '@polygrad/core/engine/folders';
 * console.log(cacheFolder('opencl', { platform: 'linux', env: { HOME: '/home/me' } })); //=> /home/me/.cache/polygrad/opencl
 */
export function cacheFolder(name: string, { platform, env }: HostUser = own()): string {
  const ofWindows = platform === 'win32' ? env.LOCALAPPDATA : undefined;
  const base = env.XDG_CACHE_HOME || ofWindows || `${env.HOME ?? env.USERPROFILE ?? '.'}/.cache`;
  return `${base}/polygrad/${name}`;
}
