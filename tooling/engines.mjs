/**
 * Engines the conformance suite runs on: a sample of its cases in `npm test`, all of them in `npm run test:long`.
 */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './workspace.mjs';

/**
 * An engine without its package (`folder`) is not there yet and not counted. `sample` runs one of so many cases: where compiling is slow, or a
 * case is (groups of threads on the interpreter), or where another run has the same programs. Those are the interpreter, and the CPU engine on
 * one thread. 'pairwise' is the sample that visits every operation by every check in every dtype, and every instance.
 * `browser` means in Chromium, with these options; `sizes` with plans for classes of sizes. `whole` says in how many parts the long tests run all
 * cases, and how many minutes a part takes about; without it they are in the run with sizes, which has every case with plans of its own too.
 */
export const engines = [
  { engine: 'cpu', folder: 'packages/backend-cpu', threads: 2, sample: 'pairwise', whole: { parts: 1, minutes: 8 } },
  { engine: 'reference', folder: 'packages/testing', sample: 17, whole: { parts: 1, minutes: 8 } },
  { engine: 'cpu', folder: 'packages/backend-cpu', threads: 1, sample: 61 },
  {
    engine: 'cpu',
    folder: 'packages/backend-cpu',
    threads: 1,
    sizes: 'always',
    sample: 301,
    whole: { parts: 2, minutes: 8 },
  },
  { engine: 'reference', folder: 'packages/testing', sizes: 'always', sample: 601, whole: { parts: 16, minutes: 2 } },
  { engine: 'reference-simt', folder: 'packages/testing', sample: 61, whole: { parts: 2, minutes: 4 } },
  {
    engine: 'reference-simt',
    folder: 'packages/testing',
    sizes: 'always',
    sample: 1201,
    whole: { parts: 8, minutes: 3 },
  },
  { engine: 'reference-subgroups-8', folder: 'packages/testing', sample: 301, whole: { parts: 4, minutes: 5 } },
  { engine: 'reference-matrix', folder: 'packages/testing', sample: 601, whole: { parts: 4, minutes: 3 } },
  {
    engine: 'reference-limited',
    folder: 'packages/backend-cpu',
    threads: 1,
    sample: 61,
    whole: { parts: 2, minutes: 8 },
  },
  { engine: 'cpu', folder: 'packages/backend-cpu', browser: [], sample: 59, whole: { parts: 1, minutes: 5 } },
  {
    engine: 'cpu',
    folder: 'packages/backend-cpu',
    browser: ['--isolated', '--worker'],
    sample: 61,
    whole: { parts: 1, minutes: 5 },
  },
  { engine: 'native', folder: 'packages/backend-native', sample: 201, whole: { parts: 4, minutes: 3 } },
  { engine: 'native-16', folder: 'packages/backend-native', sample: 421, whole: { parts: 4, minutes: 3 } },
  { engine: 'native-v3', folder: 'packages/backend-native', sample: 421, whole: { parts: 4, minutes: 3 } },
  { engine: 'webgpu', folder: 'packages/backend-webgpu', sample: 121, whole: { parts: 6, minutes: 3 } },
  {
    engine: 'webgpu',
    folder: 'packages/backend-webgpu',
    browser: ['--worker'],
    sample: 201,
    whole: { parts: 4, minutes: 6 },
  },
  { engine: 'opencl', folder: 'packages/backend-opencl', sample: 541, whole: { parts: 24, minutes: 7 } },
  { engine: 'opencl-simt', folder: 'packages/backend-opencl', sample: 841, whole: { parts: 30, minutes: 7 } },
  { engine: 'cuda', folder: 'packages/backend-cuda', sample: 121, whole: { parts: 8, minutes: 1 } },
];

/** These need nothing but this machine's processor, so they are always required, beside those that POLYGRAD_REQUIRE names. */
export const required = new Set([
  'reference',
  'reference-simt',
  'reference-subgroups-8',
  'reference-matrix',
  'reference-limited',
  'cpu',
  ...(process.env.POLYGRAD_REQUIRE ?? '').split(',').filter(Boolean),
]);

/** False for an engine whose package is not there yet. */
export const isThere = ({ engine, folder }) => existsSync(join(root, folder)) || required.has(engine);

/** How the run of an engine is called. */
export function conformanceName({ engine, threads, sizes, browser }) {
  const place = browser === undefined ? '' : ` browser${browser.join('').replaceAll('--', ' ')}`;
  const shared = sizes === undefined ? '' : ` sizes ${sizes}`;
  return `conformance ${engine}${threads === undefined ? '' : ` ${threads} thread${threads > 1 ? 's' : ''}`}${shared}${place}`;
}

/** The program that runs the suite on an engine, and its arguments without `--sample` and `--slice`. */
export function conformanceCommand({ engine, threads, sizes, browser }) {
  const script = browser === undefined ? 'packages/conformance/dist/cli.js' : 'tooling/browser/conformance.mjs';
  const args = ['--engine', engine, ...(threads === undefined ? [] : ['--threads', String(threads)])];
  if (sizes !== undefined) args.push('--sizes', sizes);
  return { script, args: browser === undefined ? args : [...args, '--browser', ...browser] };
}

/**
 * The process in which `npm test` runs an engine, after others that import the same backends: where the CPU engine is registered, an engine
 * hands over to it what it cannot hold. null in Chromium, where each run has a browser of its own.
 */
export function processOf({ folder, browser }) {
  if (browser !== undefined) return null;
  return ['packages/backend-cpu', 'packages/backend-webgpu'].includes(folder) ? 'beside the CPU engine' : 'alone';
}
