/** Where an installed package lies, also if it does not export its package.json. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const require = createRequire(import.meta.url);

/** Folder of an npm package that this application depends on. */
export function packageFolder(name: string): string {
  const folders = require.resolve.paths(name) ?? [];
  const found = folders.map((folder) => join(folder, name)).find((folder) => existsSync(join(folder, 'package.json')));
  if (found === undefined) throw new Error(`[models] ${name} is not installed; run npm run setup`);
  return found;
}
