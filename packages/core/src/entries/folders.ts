/** Entry point @polygrad/core/engine/folders: what engines that keep files between processes share. */
export { cacheFolder } from '../engine/folders.ts';
export { readPlainFile, refusalOf } from '../engine/folders.ts';
