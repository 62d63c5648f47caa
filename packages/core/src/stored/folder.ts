/**
 * A folder of entries, one file each: the import `#plan-store` outside of bundles for browsers.
 *
 * Only the user may read the folder and its files. Files are written under another name and then renamed, so that readers never see
 * an incomplete one.
 */
import { cacheFolder, readPlainFile, refusalOf, type SyncFiles } from '../engine/folders.ts';
import { type PlanLimits, type PlansAtHand, type PlanStore, type StoredEntry, within } from './store.ts';

interface FileStatus {
  readonly size: number;
  readonly mtimeMs: number;
  isFile(): boolean;
}

/** The part of `node:fs` that is needed. It comes from `process`, so that bundlers for browsers see no import. */
interface NodeFiles extends SyncFiles {
  readonly promises: {
    writeFile(path: string, bytes: Uint8Array, options: { mode: number; flag: string }): Promise<void>;
    rename(from: string, to: string): Promise<void>;
    rm(path: string, options: { force: boolean }): Promise<void>;
    readdir(path: string): Promise<string[]>;
    lstat(path: string): Promise<FileStatus>;
    stat(path: string): Promise<FileStatus>;
  };
}
interface NodeCrypto {
  createHash(name: 'sha256'): { update(bytes: Uint8Array): { digest(): Uint8Array } };
}
interface NodeProcess {
  readonly pid: number;
  /** From Node 20.16 on. */
  getBuiltinModule?(name: string): unknown;
}

const ending = '.plan';
const beside = '.part';
/** Largest entry. */
const mostBytes = 2 ** 28;
/** Milliseconds after which temporary files of ended processes are deleted. */
const leftAfter = 3_600_000;
/** Most writes between two checks of the folder's size; fewer if it may hold few entries. */
const mostWritesBetween = 32;

const host = (): NodeProcess | undefined => (globalThis as { process?: NodeProcess }).process;

function moduleOf<T>(name: string): T {
  const found = host()?.getBuiltinModule?.(name);
  if (found === undefined) throw new Error('folders of plans need Node 20.16');
  return found as T;
}
const filesOf = (): NodeFiles => moduleOf('node:fs');

/** The default store, or that of a folder. */
export function usualStore({
  folder,
}: {
  readonly folder?: string | undefined;
  readonly database?: string | undefined;
}): PlanStore {
  return new PlanFolder(folder ?? cacheFolder('plans'));
}

class PlanFolder implements PlanStore {
  readonly #folder: string;
  #writes = 0;

  constructor(folder: string) {
    this.#folder = folder;
  }

  get #fs(): NodeFiles {
    return filesOf();
  }

  #check(): void {
    const refused = refusalOf(this.#fs, this.#folder);
    if (refused !== null) throw new Error(refused);
  }

  #path(name: string): string {
    return `${this.#folder}/${name}`;
  }

  /** Plain files, newest first. */
  async #files(): Promise<{ name: string; size: number; time: number }[]> {
    const found: { name: string; size: number; time: number }[] = [];
    for (const name of await this.#fs.promises.readdir(this.#folder)) {
      // Another process may have deleted it meanwhile.
      const status = await this.#fs.promises.lstat(this.#path(name)).catch(() => null);
      if (status?.isFile()) found.push({ name, size: status.size, time: status.mtimeMs });
    }
    return found.sort((a, b) => b.time - a.time);
  }

  readonly atHand: PlansAtHand = {
    names: async (prefix) => {
      this.#check();
      return (await this.#fs.promises.readdir(this.#folder)).flatMap((name) =>
        name.startsWith(prefix) && name.endsWith(ending) ? [name.slice(0, -ending.length)] : [],
      );
    },
    read: (name) => {
      const bytes = readPlainFile(this.#fs, this.#path(name + ending), mostBytes);
      if (bytes === null || bytes === 'no file') return null;
      const { buffer, byteOffset, length } = bytes;
      return new Uint8Array(buffer, byteOffset, length);
    },
    sha256: (bytes) => moduleOf<NodeCrypto>('node:crypto').createHash('sha256').update(bytes).digest(),
  };

  async load(prefix: string, limits: PlanLimits): Promise<readonly StoredEntry[]> {
    this.#check();
    const files = (await this.#files()).filter(({ name }) => name.startsWith(prefix) && name.endsWith(ending));
    return within(files, limits).flatMap(({ name: file }) => {
      const name = file.slice(0, -ending.length);
      const bytes = this.atHand.read(name);
      return bytes === null ? [] : [{ name, bytes }];
    });
  }

  async save(name: string, bytes: Uint8Array<ArrayBuffer>, limits: PlanLimits): Promise<void> {
    this.#check();
    const { promises } = this.#fs;
    // Threads of Node share the process id.
    const part = this.#path(`${name}-${host()!.pid}-${Math.random().toString(36).slice(2)}${beside}`);
    try {
      await promises.writeFile(part, bytes, { mode: 0o600, flag: 'wx' });
      await promises.rename(part, this.#path(name + ending));
    } catch (error) {
      await promises.rm(part, { force: true }).catch(() => {});
      throw error;
    }
    const between = Math.max(1, Math.min(mostWritesBetween, limits.plans >> 3));
    if (this.#writes++ % between === 0) await this.#tidy(limits);
  }

  async remove(name: string): Promise<void> {
    await this.#fs.promises.rm(this.#path(name + ending), { force: true });
  }

  /** Deletes entries beyond the limits, and temporary files of processes that ended while writing. */
  async #tidy(limits: PlanLimits): Promise<void> {
    const files = await this.#files();
    const entries = files.filter(({ name }) => name.endsWith(ending));
    const kept = new Set(within(entries, limits));
    const old = Date.now() - leftAfter;
    const parts = files.filter(({ name, time }) => name.endsWith(beside) && time < old);
    for (const { name } of [...entries.filter((entry) => !kept.has(entry)), ...parts])
      await this.#fs.promises.rm(this.#path(name), { force: true }).catch(() => {});
  }
}

/**
 * Distinguishes states of a checkout, whose packages all have one version, by when they were built last. Sources that run unbuilt have no such time,
 * so no other process shares theirs.
 */
export async function checkoutStamp(): Promise<string> {
  const { promises } = filesOf();
  // On Windows a path begins with the drive, not with a slash. Bundlers look for the file that a URL beside this module names.
  const here = decodeURIComponent(new URL(import.meta.url).pathname).replace(/^\/(?=[A-Za-z]:)/, '');
  const packages = /^(.*\/packages\/)core\/dist\/stored\/[^/]*$/.exec(here)?.[1];
  if (packages === undefined) return `${host()?.pid} ${Date.now()} ${Math.random()}`;
  const timeOf = (name: string): Promise<string> =>
    promises.stat(`${packages}${name}/dist/.tsbuildinfo`).then(
      ({ mtimeMs }) => `${name} ${mtimeMs}`,
      () => '',
    );
  return (await Promise.all((await promises.readdir(packages)).sort().map(timeOf))).join('\n');
}
