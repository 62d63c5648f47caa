/** Entries in the browser's IndexedDB: the import `#plan-store` in bundles for browsers. */
import { type PlanLimits, type PlanStore, type StoredEntry, within } from './store.ts';

/** A stored row. */
interface Row {
  readonly name: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly time: number;
}

const table = 'plans';
/** Milliseconds after which opening the database counts as failed: another page may block it. */
const patience = 5000;

const settled = <T>(request: IDBRequest<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/** The default store, or that of a database. */
export function usualStore({
  database = 'polygrad-plans',
}: {
  readonly folder?: string | undefined;
  readonly database?: string | undefined;
}): PlanStore {
  return new PlanDatabase(database);
}

class PlanDatabase implements PlanStore {
  readonly #database: string;

  constructor(database: string) {
    this.#database = database;
  }

  async #use<T>(mode: IDBTransactionMode, use: (rows: IDBObjectStore) => Promise<T>): Promise<T> {
    const opening = indexedDB.open(this.#database, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(table, { keyPath: 'name' });
    const db = await new Promise<IDBDatabase>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`${this.#database} does not open`)), patience);
      settled(opening)
        .then(resolve, reject)
        .finally(() => clearTimeout(timer));
    });
    try {
      const transaction = db.transaction(table, mode);
      const done = new Promise<void>((resolve, reject) => {
        transaction.oncomplete = () => resolve();
        transaction.onabort = () => reject(transaction.error);
      });
      const result = await use(transaction.objectStore(table));
      await done;
      return result;
    } finally {
      db.close();
    }
  }

  load(prefix: string, limits: PlanLimits): Promise<readonly StoredEntry[]> {
    return this.#use('readonly', async (rows) => {
      const found = (await settled(rows.getAll(IDBKeyRange.bound(prefix, `${prefix}\uffff`), limits.plans))) as Row[];
      const sized = found
        .filter(({ bytes }) => bytes instanceof Uint8Array)
        .sort((a, b) => b.time - a.time)
        .map((row) => ({ ...row, size: row.bytes.length }));
      return within(sized, limits);
    });
  }

  save(name: string, bytes: Uint8Array<ArrayBuffer>, limits: PlanLimits): Promise<void> {
    return this.#use('readwrite', async (rows) => {
      await settled(rows.put({ name, bytes, time: Date.now() } satisfies Row));
      const found = ((await settled(rows.getAll())) as Row[])
        .map((row) => ({ ...row, size: row.bytes?.length ?? 0 }))
        .sort((a, b) => b.time - a.time);
      const kept = new Set(within(found, limits));
      for (const row of found) if (!kept.has(row)) rows.delete(row.name);
    });
  }

  remove(name: string): Promise<void> {
    return this.#use('readwrite', async (rows) => {
      await settled(rows.delete(name));
    });
  }
}

/** Pages of a checkout say their version themselves. */
export const checkoutStamp = async (): Promise<string> => '';
