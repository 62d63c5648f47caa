/**
 * Where entries are kept between processes: what a store is, and one in memory. Folders: folder.ts. Databases of pages: database.ts.
 */

/** How much is kept, and read. */
export interface PlanLimits {
  /** Bytes of all entries. */
  readonly bytes: number;
  /** Entries. */
  readonly plans: number;
}

/** An entry by its name. */
export interface StoredEntry {
  readonly name: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** Entries that are read when they are asked for: a program then reads its own, however many others there are. */
export interface PlansAtHand {
  /** The names that begin so. */
  names(prefix: string): Promise<readonly string[]>;
  /** An entry, or null where it is gone. */
  read(name: string): Uint8Array<ArrayBuffer> | null;
  sha256(bytes: Uint8Array): Uint8Array;
}

/**
 * Entries by name. Every method may reject: then plans are as if there were none. What is read is verified by whoever reads it.
 */
export interface PlanStore {
  /** Present where entries can be read without waiting. Then `load` is not asked. */
  readonly atHand?: PlansAtHand;
  /** The entries whose names begin so, those written last first, as many as the limits allow. */
  load(prefix: string, limits: PlanLimits): Promise<readonly StoredEntry[]>;
  /** Keeps an entry: whoever loads meanwhile finds all of it or nothing. Entries beyond the limits go, the oldest first. */
  save(name: string, bytes: Uint8Array<ArrayBuffer>, limits: PlanLimits): Promise<void>;
  remove(name: string): Promise<void>;
}

/** Those of a list, newest first, that stay within limits. */
export function within<T extends { readonly size: number }>(newestFirst: readonly T[], limits: PlanLimits): T[] {
  let bytes = 0;
  return newestFirst
    .slice(0, limits.plans)
    .filter(({ size }) => size <= limits.bytes && (bytes += size) <= limits.bytes);
}
