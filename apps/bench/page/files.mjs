/** What pages are served: the page's scripts, and the files that the peers fetch. Installs the peers' packages first. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const cache = fileURLToPath(new URL('../../../.cache/bench-page-peers', import.meta.url));

/** Sees to it that the peers' packages are in the cache folder, by their lock file and without install scripts. */
export function installPeers() {
  const from = fileURLToPath(new URL('peers', import.meta.url));
  const lock = readFileSync(join(from, 'package-lock.json'), 'utf8');
  const done = join(cache, 'installed.json');
  if (existsSync(done) && readFileSync(done, 'utf8') === lock) return null;
  mkdirSync(cache, { recursive: true });
  for (const file of ['package.json', 'package-lock.json']) copyFileSync(join(from, file), join(cache, file));
  process.stderr.write('bench: installing the peers from npm ...\n');
  const dropped = /^npm_(package_|lifecycle_|config_(local_prefix|workspace|prefix|global_prefix)|command|execpath)/;
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !dropped.test(name)));
  const words = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', cache];
  const { status, stderr } = spawnSync('npm', words, { cwd: cache, env, encoding: 'utf8', timeout: 300_000 });
  if (status !== 0) return `npm ci failed: ${stderr.split('\n').find((line) => /error/i.test(line)) ?? status}`;
  writeFileSync(done, lock);
  return null;
}

/** Files by path; `/bench.js` is the module at `entry`, bundled. */
export async function pageFiles(entry) {
  const modules = join(cache, 'node_modules');
  const build = await rolldown({
    input: { bench: fileURLToPath(entry) },
    platform: 'browser',
    resolve: {
      conditionNames: ['@polygrad/source', 'browser', 'import', 'default'],
      modules: [modules, 'node_modules'],
    },
    // Without its packages a peer is reported as missing when it is loaded. An engine for Node alone stays outside: modules that it
    // shares with others would be put into its file.
    external: (id) =>
      ['@polygrad/backend-opencl', '@polygrad/backend-cuda', '@polygrad/backend-native'].includes(id) ||
      (/^(@tensorflow|@jax-js|@litertjs|onnxruntime-web)/.test(id) && !existsSync(modules)),
    preserveEntrySignatures: 'strict',
    onLog: () => undefined,
  });
  // Not minified: tfjs gives the text of a function to its threads.
  const { output } = await build.generate({ format: 'es', entryFileNames: '[name].js' });
  await build.close();
  const files = new Map(
    output.map((chunk) => [`/${chunk.fileName}`, chunk.type === 'chunk' ? chunk.code : chunk.source]),
  );
  for (const [prefix, folder] of [
    ['/tfjs/', '@tensorflow/tfjs-backend-wasm/dist'],
    ['/ort/', 'onnxruntime-web/dist'],
    ['/litert/', '@litertjs/core/wasm'],
  ]) {
    const from = join(modules, folder);
    for (const name of existsSync(from) ? readdirSync(from) : [])
      if (/\.(wasm|m?js)$/.test(name)) files.set(prefix + name, () => readFileSync(join(from, name)));
  }
  return files;
}

/** Versions of the peers, by package. */
export function versions() {
  const { dependencies } = JSON.parse(readFileSync(new URL('peers/package.json', import.meta.url), 'utf8'));
  return dependencies;
}
