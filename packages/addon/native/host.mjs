/** For addons of Windows: what finds the functions of Node-API (host.cc), and the list of their names that it needs. */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const require = createRequire(import.meta.url);
const headers = dirname(require.resolve('node-api-headers/package.json'));

export const hostSource = join(dirname(fileURLToPath(import.meta.url)), 'host.cc');

/** Writes the list into a folder, for the compiler's option -I; returns the folder. */
export function hostNames(folder) {
  const names = readFileSync(join(headers, 'def/node_api.def'), 'utf8').match(/^(napi|node_api)_\w+$/gm);
  // Two builds may run side by side: none reads half of what the other writes.
  const header = join(folder, 'node-api-names.h');
  const part = `${header}.${process.pid}`;
  writeFileSync(part, `#define NAMES(X) \\\n${names.map((name) => `  X(${name})`).join(' \\\n')}\n`);
  renameSync(part, header);
  return folder;
}
