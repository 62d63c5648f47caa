/**
 * Where measured tiles are kept between runs: files on Node, IndexedDB in browsers, memory for tests.
 *
 * Nothing fails if a store cannot be read or written: the entry counts as missing. Files have a separate module (files.ts), which
 * bundles for browsers leave out.
 */
import type { TuningStore } from '../engine/engine.ts';
import { fileStore } from '#files';
import { say } from '@polygrad/compiler/shape/shown';

/**
 * A store that is forgotten with the process.
 *
 * @example
 * const store = memoryStore();
 * await store.save('key', 'value');
 * await store.load('key'); // 'value'
 */
export function memoryStore(): TuningStore {
  const known = new Map<string, string>();
  return {
    load: async (key) => known.get(key) ?? null,
    save: async (key, value) => {
      known.set(key, value);
    },
  };
}

/**
 * A store of files, on Node; one that is forgotten elsewhere. Each file is written beside its place and moved there, so that readers see
 * the old text or the new one. A folder that somebody else owns or may write to is not used.
 *
 * @param folder where files are; by default `polygrad/tuning` in XDG_CACHE_HOME, on Windows LOCALAPPDATA, else in `.cache` of the home folder
 * @example
 * const store = diskStore('tuning'); // for the option `store` of tune()
 * await store.load('never saved'); // null
 */
export function diskStore(folder?: string): TuningStore {
  return fileStore(folder) ?? memoryStore();
}

/** Milliseconds after which a database that does not open counts as none: another page may be holding it. */
const patience = 5000;

/**
 * A store in the browser's IndexedDB, one object store of texts.
 *
 * @example no-run: needs IndexedDB, which pages have
 * await tune(getEngine(), { store: browserStore() });
 */
export function browserStore(database = 'polygrad-tuning'): TuningStore {
  const table = 'tiles';
  const withTable = <T>(mode: IDBTransactionMode, use: (store: IDBObjectStore) => IDBRequest<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      setTimeout(() => reject(new Error(say`${database} does not open`)), patience);
      const opening = indexedDB.open(database, 1);
      opening.onupgradeneeded = () => opening.result.createObjectStore(table);
      opening.onerror = () => reject(opening.error);
      opening.onsuccess = () => {
        const db = opening.result;
        try {
          const request = use(db.transaction(table, mode).objectStore(table));
          request.onsuccess = () => resolve(request.result);
          request.onerror = () => reject(request.error);
        } catch (error) {
          // A database of this name that somebody else made has no such table.
          reject(error);
        }
        // Takes effect after the request.
        db.close();
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

/**
 * The store of the place the library runs in.
 *
 * @example
 * await defaultStore().load('never saved'); // null
 */
export function defaultStore(): TuningStore {
  const files = fileStore();
  if (files !== null) return files;
  return typeof indexedDB === 'undefined' ? memoryStore() : browserStore();
}
