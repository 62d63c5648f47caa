/** Entry point @polygrad/core/engine/folders: what engines that keep files between processes share. */
export { cacheFolder } from '../engine/cache-folder.ts';
export { readPlainFile, refusalOf } from '../stored/private-folder.ts';
