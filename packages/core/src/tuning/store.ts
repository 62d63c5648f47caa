/**
 * Where measured tiles are kept between runs: files on Node, IndexedDB in browsers, memory for tests.
 *
 * A store is a convenience: what cannot be read or written is as if it were not there, and nothing fails for it.
 */

/** Texts by key. `load` gives null for what is not there. */
export interface TuningStore {
  load(key: string): Promise<string | null>;
  save(key: string, value: string): Promise<void>;
}

/** A store that is forgotten with the process. */
export function memoryStore(): TuningStore {
  const known = new Map<string, string>();
  return {
    load: async (key) => known.get(key) ?? null,
    save: async (key, value) => {
      known.set(key, value);
    },
  };
}

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
    lstat(path: string): Promise<{ readonly uid: number; readonly mode: number }>;
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

function nodeProcess(): NodeProcess | undefined {
  return (globalThis as { process?: NodeProcess }).process;
}

/**
 * A store of files, on Node. Each is written beside its place and moved there, so that readers see the old text or the new one. A folder
 * that somebody else owns or may write to is not used.
 *
 * @param folder where files are; by default `polygrad/tuning` in XDG_CACHE_HOME or in `.cache` of the home folder
 */
export function diskStore(folder?: string): TuningStore {
  const host = nodeProcess();
  const files = host?.getBuiltinModule?.('node:fs') as NodeFiles | undefined;
  if (host === undefined || files === undefined) return memoryStore();
  const home = host.env.XDG_CACHE_HOME || `${host.env.HOME ?? host.env.USERPROFILE ?? '.'}/.cache`;
  const base = folder ?? `${home}/polygrad/tuning`;
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
  return {
    load: (key) => attempt(() => fs.readFile(`${base}/${fileName(key)}`, 'utf8')),
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

/** A store in the browser's IndexedDB, one object store of texts. */
export function browserStore(database = 'polygrad-tuning'): TuningStore {
  const table = 'tiles';
  const withTable = <T>(mode: IDBTransactionMode, use: (store: IDBObjectStore) => IDBRequest<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      const opening = indexedDB.open(database, 1);
      opening.onupgradeneeded = () => opening.result.createObjectStore(table);
      opening.onerror = () => reject(opening.error);
      opening.onsuccess = () => {
        const db = opening.result;
        const request = use(db.transaction(table, mode).objectStore(table));
        request.onsuccess = () => {
          resolve(request.result);
          db.close();
        };
        request.onerror = () => {
          reject(request.error);
          db.close();
        };
      };
    });
  return {
    load: async (key) => {
      try {
        const found: unknown = await withTable('readonly', (store) => store.get(key));
        return typeof found === 'string' ? found : null;
      } catch {
        return null;
      }
    },
    save: async (key, value) => {
      try {
        await withTable('readwrite', (store) => store.put(value, key));
      } catch {
        // Private windows have no IndexedDB.
      }
    },
  };
}

/** The store of the place the library runs in. */
export function defaultStore(): TuningStore {
  if (nodeProcess()?.getBuiltinModule !== undefined) return diskStore();
  return typeof indexedDB === 'undefined' ? memoryStore() : browserStore();
}
