/** Finding an addon's binary for this platform. Loading never throws: where there is none, it says why. */
import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

/** Where an addon may be. */
export interface AddonPlaces {
  /** The engine's name: the binary is `NAME.node` in `@polygrad/backend-NAME-PLATFORM`. */
  readonly name: string;
  /** URL of the engine's source file beside which `../native/build` lies in the repository. */
  readonly from: string;
  /** The environment variable that names another binary. */
  readonly variable: string;
  /** The platforms there are binaries for, such as 'linux-x64': those of the optional dependencies. */
  readonly platforms: readonly string[];
  /** False: on Linux the binaries are for any C library. By default for glibc alone. */
  readonly glibc?: boolean;
}

/** What decides which binary fits. */
interface Host {
  readonly platform: string;
  readonly arch: string;
  /** What only Node on Linux with glibc says of itself; asked for where a binary could not be loaded. */
  readonly glibcVersion: () => string | undefined;
}

const own: Host = {
  platform: process.platform,
  arch: process.arch,
  glibcVersion: () => {
    const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
    return header.glibcVersionRuntime;
  },
};

/**
 * The addon, or the reason why it is not there.
 *
 * @example
 * const from = process.platform === 'win32' ? 'file:///C:/nowhere/src/addon.js' : 'file:///nowhere/src/addon.js';
 * const found = loadAddon({ name: 'abacus', from, variable: 'POLYGRAD_ABACUS_ADDON', platforms: ['linux-x64'] });
 * typeof found; // 'string'
 */
export function loadAddon<T extends object>(places: AddonPlaces, host: Host = own): T | string {
  const { name, from, variable } = places;
  const require = createRequire(from);
  const binaries = `@polygrad/backend-${name}-${host.platform}-${host.arch}`;
  // In the repository native/build.mjs has compiled it; users have it from the package of their platform.
  const own = fileURLToPath(new URL(`../native/build/${name}.node`, from));
  try {
    const file = process.env[variable] || (existsSync(own) ? own : `${binaries}/${name}.node`);
    const path = require.resolve(file);
    if (isCutShort(path)) return `its native part ${path} is cut short or no program: install the package again`;
    return require(path) as T;
  } catch (error) {
    return whyNot(error, places, binaries, host);
  }
}

function whyNot(error: unknown, { platforms, glibc }: AddonPlaces, binaries: string, host: Host): string {
  const { code } = error as { readonly code?: unknown };
  if (code === 'ERR_DLOPEN_DISABLED')
    return 'this Node loads no addons: it was started with --no-addons, or with --permission and without --allow-addons';
  if (code === 'ERR_ACCESS_DENIED')
    return 'this Node may not read its native part: it was started with --permission, and --allow-fs-read does not name its folder';
  const platform = `${host.platform}-${host.arch}`;
  const others = `in a clone of the repository npm run setup compiles one, with a C++ compiler; or use another engine`;
  if (!platforms.includes(platform))
    return `there is no binary for ${platform}: there are binaries for ${platforms.join(', ')}; ${others}`;
  if (host.platform === 'linux' && glibc !== false && host.glibcVersion() === undefined)
    return `there is no binary for Linux without glibc, as Alpine is (musl): take a system or an image with glibc, such as Debian's; ${others}`;
  const text = error instanceof Error ? error.message.split('\n')[0] : String(error);
  return `its native part for ${platform} is not there (${text}); install ${binaries}, or in the repository run npm run setup with a C++ compiler`;
}

/** Where the header of an ELF file of 64 bits has the table of sections, which is the last thing in the file. */
const elf = { bytes: 64, magic: 0x7f454c46, tableAt: 0x28, entryBytesAt: 0x3a, entriesAt: 0x3c };

/**
 * True for a file that lacks its end, on Linux: loading one that was copied in part ends the process by a bus error.
 *
 * @example
 * isCutShort(process.execPath); // false
 */
export function isCutShort(path: string): boolean {
  if (process.platform !== 'linux') return false;
  const file = openSync(path, 'r');
  try {
    const header = Buffer.alloc(elf.bytes);
    if (readSync(file, header, 0, elf.bytes, 0) < elf.bytes || header.readUInt32BE(0) !== elf.magic) return true;
    const table = header.readUInt16LE(elf.entryBytesAt) * header.readUInt16LE(elf.entriesAt);
    return fstatSync(file).size < Number(header.readBigUInt64LE(elf.tableAt)) + table;
  } finally {
    closeSync(file);
  }
}
