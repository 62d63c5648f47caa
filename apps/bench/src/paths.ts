/** Folders of the benchmark, from the place of the compiled file. */
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** apps/bench. */
export const appFolder: string = dirname(dirname(fileURLToPath(import.meta.url)));
export const repositoryFolder: string = dirname(dirname(appFolder));
/** Ignored by git; holds the peers' packages and compiled programs. */
export const cacheFolder: string = join(repositoryFolder, '.cache/bench-peers');
