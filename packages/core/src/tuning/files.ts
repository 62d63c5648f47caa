/** Files as a store: the import `#files` outside of bundles for browsers. */
import { cacheFolder } from '../engine/folders.ts';
import type { TuningStore } from '../engine/engine.ts';

/** A file name for a key: readable, and different for different keys. */
function fileName(key: string): string {
  let hash = 0x811c9dc5;
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193) >>> 0;
  return `${key.replace(/[^A-Za-z0-9.-]+/g, '_').slice(0, 80)}-${hash.toString(16).padStart(8, '0')}.json`;
}

/** The parts of Node that files need. Got from `process`, so that bundlers for browsers see no import. */
interface NodeFiles {
  readonly promises: {
    readFile(path: string, encoding: 'utf8'): Promise<string>;
    writeFile(path: string, text: string, options: { mode: number; flag: string }): Promise<void>;
    mkdir(path: string, options: { mode: number }): Promise<unknown>;
    lstat(path: string): Promise<{ readonly uid: number; readonly mode: number; isFile(): boolean }>;
    rename(from: string, to: string): Promise<void>;
    rm(path: string, options: { force: boolean }): Promise<void>;
  };
}
interface NodeProcess {
  readonly pid: number;
  readonly platform: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  getuid?(): number;
  /** From Node 20.16 on. */
  getBuiltinModule?(name: string): unknown;
}

/** `diskStore` if files can be accessed, which older versions of Node do not offer here; else null. */
export function fileStore(folder?: string): TuningStore | null {
  const host = (globalThis as { process?: NodeProcess }).process;
  const files = host?.getBuiltinModule?.('node:fs') as NodeFiles | undefined;
  if (host === undefined || files === undefined) return null;
  const base = folder ?? cacheFolder('tuning', host);
  const { promises: fs } = files;
  let own: Promise<boolean> | null = null;
  // Step by step: Node 20's own recursive way never ends where a file system takes no folders (/proc). Failures show afterwards.
  const makeFolder = async (path: string): Promise<void> => {
    const mkdir = (): Promise<unknown> =>
      fs.mkdir(path, { mode: 0o700 }).catch((error: { code?: string }) => error.code);
    const above = path.replace(/[\\/]+[^\\/]*$/, '');
    if ((await mkdir()) !== 'ENOENT' || above === '' || above === path) return;
    await makeFolder(above);
    await mkdir();
  };
  const isOwn = async (): Promise<boolean> => {
    await makeFolder(base);
    const { uid, mode } = await fs.lstat(base);
    return host.platform === 'win32' || (uid === host.getuid?.() && (mode & 0o022) === 0);
  };
  // A read-only home folder is no reason to fail.
  const attempt = async <T>(use: () => Promise<T>): Promise<T | null> => {
    try {
      return (await (own ??= isOwn())) ? await use() : null;
    } catch {
      return null;
    }
  };
  // A pipe or a device would be waited for.
  const read = async (path: string): Promise<string | null> =>
    (await fs.lstat(path)).isFile() ? await fs.readFile(path, 'utf8') : null;
  return {
    load: (key) => attempt(() => read(`${base}/${fileName(key)}`)),
    save: async (key, value) => {
      const target = `${base}/${fileName(key)}`;
      // Threads of Node share the process's number.
      const beside = `${target}.${host.pid}.${Math.random()}`;
      await attempt(() =>
        fs
          .writeFile(beside, value, { mode: 0o600, flag: 'wx' })
          .then(() => fs.rename(beside, target))
          .catch(() => fs.rm(beside, { force: true })),
      );
    },
  };
}
