/** Compiles the addon where its sources have changed. Options (--force, --sanitize, --platform NAME): @polygrad/addon/native/build.mjs. */
import { buildAddon, buildOptions } from '@polygrad/addon/native/build.mjs';
import { addon } from './addon.mjs';

process.exitCode = buildAddon(addon, buildOptions());
