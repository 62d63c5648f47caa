/**
 * Packages of binaries (`packages/backend-NAME-PLATFORM`): which one a folder is, and compiling what it carries. A binary for another platform needs a
 * cross compiler; without one the package cannot be packed here.
 */
import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { platforms } from '../packages/addon/native/platforms.mjs';
import { runNode } from './workspace.mjs';

/** The engine and the platform of a package's folder, and the file it carries; null for packages of other kinds. */
export function binaryOf(folder) {
  const [, name, platform] = /^backend-([a-z]+)-([a-z\d]+-[a-z\d]+)$/.exec(basename(folder)) ?? [];
  return platform in platforms ? { name, platform, file: join(folder, `${name}.node`) } : null;
}

/** Compiles what a package of binaries carries, where its sources have changed; says why it cannot be packed here, or null. */
export function whyNoBinary(folder) {
  const { name, platform, file } = binaryOf(folder);
  const script = join(dirname(folder), `backend-${name}/native/build.mjs`);
  const code = runNode(script, ['--platform', platform], { quiet: true });
  if (code === 0 && existsSync(file)) return null;
  const { debian } = platforms[platform];
  return `no binary for ${platform} can be made here${debian === undefined ? '' : `: install a compiler for it, of Debian ${debian}`}`;
}
