/**
 * Makes the package of a platform from its binary, ready for `npm publish`. The binary's own header says which platform it is for. The
 * package goes to OUT/backend-NAME-PLATFORM.
 */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { manifestOf, platformOf, readmeOf } from './platforms.mjs';

/** Writes the package of an addon (build.mjs); gives its folder and platform. */
function makePackage({ name, here }, out, binary = join(here, `build/${name}.node`)) {
  const platform = platformOf(readFileSync(binary));
  if (platform === null) throw new Error(`${binary} is no binary of a platform in native/platforms.mjs`);
  const { version } = JSON.parse(readFileSync(join(here, '../package.json'), 'utf8'));
  const folder = join(out, `backend-${name}-${platform}`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifestOf(name, platform, version), null, 2)}\n`);
  writeFileSync(join(folder, 'README.md'), readmeOf(name, platform));
  copyFileSync(binary, join(folder, `${name}.node`));
  return { folder, platform };
}

/** The same for the command line: OUT [BINARY]. */
export function packageCommand(addon, [out, binary] = process.argv.slice(2)) {
  if (out === undefined) throw new Error('name a folder for the package');
  const { folder, platform } = makePackage(addon, out, binary);
  process.stdout.write(`${folder}: ${platform}\n`);
}
