/** The default folders for cached files in Node. Callers decide what is in them. */

/** The facts of a process that the folder depends on. */
interface HostUser {
  readonly platform: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

const currentProcess = (): HostUser => (globalThis as unknown as { readonly process: HostUser }).process;

/**
 * The default folder for cached files of a kind: below XDG_CACHE_HOME; on Windows below LOCALAPPDATA; else in `.cache` of the home folder.
 *
 * @example
 * import { cacheFolder } from '@polygrad/core/engine/folders';
 * console.log(cacheFolder('opencl', { platform: 'linux', env: { HOME: '/home/me' } })); //=> /home/me/.cache/polygrad/opencl
 */
export function cacheFolder(name: string, { platform, env }: HostUser = currentProcess()): string {
  const ofWindows = platform === 'win32' ? env.LOCALAPPDATA : undefined;
  const base = env.XDG_CACHE_HOME || ofWindows || `${env.HOME ?? env.USERPROFILE ?? '.'}/.cache`;
  return `${base}/polygrad/${name}`;
}
