/**
 * Compiles the simulated driver, libcuda-sim.so, into build/. Does nothing where sources and command are those of the last time.
 *
 * Options: --force compiles again; --sanitize makes libcuda-sim-asan.so. Prints the path.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const packages = join(here, '../../packages');
/** The addon's own declarations of the driver: one text for both sides. */
const included = [here, join(packages, 'backend-cuda/native'), join(packages, 'addon/native')];

/** Sources, and what they include. */
function sources() {
  const of = (folder) =>
    readdirSync(folder)
      .filter((name) => /\.(cc|h)$/.test(name) && name !== 'main.cc')
      .sort()
      .map((name) => join(folder, name));
  const headers = ['backend-cuda/native/cu.h', 'backend-cuda/native/api.h', 'addon/native/native-error.h'];
  return [...of(here), ...of(join(here, 'ptx')), ...headers.map((path) => join(packages, path))];
}

/** The path of the library; null, after a message, where it cannot be made. */
export function buildSimulator({ force = false, sanitize = false } = {}) {
  const files = sources();
  const flags = ['-std=c++17', '-shared', '-fPIC', '-fvisibility=hidden', '-pthread', '-Wall', '-Wextra', '-g'];
  // Arithmetic as written: no sum of products may become one operation.
  flags.push('-O2', '-ffp-contract=off', ...included.flatMap((folder) => ['-I', folder]));
  if (sanitize) flags.push('-fsanitize=address', '-fno-omit-frame-pointer');
  const hash = createHash('sha256').update(flags.join(' '));
  for (const file of files) hash.update(file).update(readFileSync(file));
  const key = hash.digest('hex');
  const folder = join(here, 'build');
  const target = join(folder, `libcuda-sim${sanitize ? '-asan' : ''}.so`);
  const stamp = `${target}.key`;
  if (!force && existsSync(target) && existsSync(stamp) && readFileSync(stamp, 'utf8') === key) return target;
  const answers = (name) => spawnSync(name, ['--version'], { stdio: 'ignore' }).status === 0;
  const compiler = [process.env.CXX, 'c++', 'g++', 'clang++', 'clang++-19'].filter(Boolean).find(answers);
  if (compiler === undefined) {
    process.stderr.write('cuda-sim: no C++ compiler\n');
    return null;
  }
  mkdirSync(folder, { recursive: true });
  const part = `${target}.${process.pid}`;
  const command = [...flags, ...files.filter((file) => file.endsWith('.cc')), '-o', part];
  if (spawnSync(compiler, command, { stdio: ['ignore', 'inherit', 'inherit'] }).status !== 0) return null;
  renameSync(part, target);
  writeFileSync(stamp, key);
  return target;
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { argv } = process;
  const path = buildSimulator({ force: argv.includes('--force'), sanitize: argv.includes('--sanitize') });
  if (path !== null) process.stdout.write(`${path}\n`);
  process.exitCode = path === null ? 1 : 0;
}
