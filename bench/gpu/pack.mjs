/**
 * Packs what run.mjs needs into one file for a machine with a card and little else: no Node, no compiler, no network.
 *
 *   node bench/gpu/pack.mjs [--out FILE] [--without-node]
 *   tar xzf polygrad-gpu.tar.gz && polygrad-gpu/node polygrad-gpu/bench/gpu/run.mjs
 *
 * What is packed is what is built here: for this system and processor.
 */
import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
const { values: options } = parseArgs({
  options: {
    out: { type: 'string', default: join(root, 'out/polygrad-gpu.tar.gz') },
    'without-node': { type: 'boolean', default: false },
  },
});
const out = resolve(options.out);
const folder = mkdtempSync(join(tmpdir(), 'polygrad-pack-'));
const top = join(folder, 'polygrad-gpu');

/** What runs: no declarations, no maps, and of binaries those of this platform. */
const unneeded = /\.d\.ts$|\.map$|\.tsbuildinfo$|\.key$|__pycache__|native[\\/]build[\\/][^\\/.]+$/;
const runs = (path) => !unneeded.test(path);

try {
  const copy = (path) => {
    const from = join(root, path);
    if (existsSync(from)) cpSync(from, join(top, path), { recursive: true, filter: runs });
  };
  mkdirSync(join(top, 'node_modules/@polygrad'), { recursive: true });
  for (const name of readdirSync(join(root, 'packages'))) {
    if (!existsSync(join(root, 'packages', name, 'dist'))) continue;
    for (const part of ['package.json', 'dist', 'goldens', 'native/build']) copy(`packages/${name}/${part}`);
    symlinkSync(`../../packages/${name}`, join(top, 'node_modules/@polygrad', name), 'junction');
  }
  for (const path of ['package.json', 'bench/gpu', 'apps/bench/package.json', 'apps/bench/dist', 'apps/bench/peers'])
    copy(path);
  if (
    !existsSync(join(top, 'packages/backend-cuda/native/build/cuda.node')) ||
    !existsSync(join(top, 'apps/bench/dist'))
  )
    throw new Error('nothing is built here: npm run setup comes first');
  if (!options['without-node']) copyFileSync(process.execPath, join(top, 'node'));
  mkdirSync(dirname(out), { recursive: true });
  const { status, stderr } = spawnSync('tar', ['-czf', out, '-C', folder, basename(top)], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`tar failed: ${stderr}`);
  process.stdout.write(`${out}: ${(statSync(out).size / 2 ** 20).toFixed(1)} MiB\n`);
} catch (error) {
  process.stderr.write(`bench/gpu: it cannot be packed: ${error.message}\n`);
  process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
