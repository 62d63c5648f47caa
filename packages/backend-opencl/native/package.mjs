/**
 * Makes the package of a platform from its binary, ready for `npm publish`:
 *
 *   node native/package.mjs OUT [BINARY]       default: native/build/opencl.node
 *
 * The binary's own header says which platform it is for. The package goes to OUT/backend-opencl-PLATFORM.
 */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { manifestOf, platformOf, readmeOf } from './platforms.mjs';

const here = dirname(fileURLToPath(import.meta.url));

/** Writes the package; gives its folder and platform. */
export function makePackage(out, binary = join(here, 'build/opencl.node')) {
  const platform = platformOf(readFileSync(binary));
  if (platform === null) throw new Error(`${binary} is no binary of a platform in native/platforms.mjs`);
  const { version } = JSON.parse(readFileSync(join(here, '../package.json'), 'utf8'));
  const folder = join(out, `backend-opencl-${platform}`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifestOf(platform, version), null, 2)}\n`);
  writeFileSync(join(folder, 'README.md'), readmeOf(platform));
  copyFileSync(binary, join(folder, 'opencl.node'));
  return { folder, platform };
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [out, binary] = process.argv.slice(2);
  if (out === undefined) throw new Error('name a folder for the package');
  const { folder, platform } = makePackage(out, binary);
  process.stdout.write(`${folder}: ${platform}\n`);
}
