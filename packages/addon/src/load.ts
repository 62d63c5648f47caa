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
}

/**
 * The addon, or the reason why it is not there.
 *
 * @example
 * const found = loadAddon({ name: 'abacus', from: 'file:///nowhere/src/addon.js', variable: 'POLYGRAD_ABACUS_ADDON' });
 * typeof found; // 'string'
 */
export function loadAddon<T extends object>({ name, from, variable }: AddonPlaces): T | string {
  const platform = `${process.platform}-${process.arch}`;
  const require = createRequire(from);
  const binaries = `@polygrad/backend-${name}-${platform}`;
  // In the repository native/build.mjs has compiled it; users have it from the package of their platform.
  const own = fileURLToPath(new URL(`../native/build/${name}.node`, from));
  try {
    const file = process.env[variable] || (existsSync(own) ? own : `${binaries}/${name}.node`);
    const path = require.resolve(file);
    if (isCutShort(path)) return `its native part ${path} is cut short or no program: install the package again`;
    return require(path) as T;
  } catch (error) {
    return whyNot(error, platform, binaries);
  }
}

function whyNot(error: unknown, platform: string, binaries: string): string {
  const { code } = error as { readonly code?: unknown };
  if (code === 'ERR_DLOPEN_DISABLED')
    return 'this Node loads no addons: it was started with --no-addons, or with --permission and without --allow-addons';
  if (code === 'ERR_ACCESS_DENIED')
    return 'this Node may not read its native part: it was started with --permission, and --allow-fs-read does not name its folder';
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
