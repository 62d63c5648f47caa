/**
 * Compiles the addon with whatever C++ compiler there is: one file, one command, a few seconds; nothing is downloaded.
 * Does nothing where the sources and the command are those of the last time. Where there is no compiler it says so and
 * succeeds: the package then explains why it is unavailable.
 *
 * Options: --force compiles again; --sanitize makes build/opencl-asan.node for AddressSanitizer instead. CXX names the compiler.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const output = join(here, 'build');
const require = createRequire(import.meta.url);
const folderOf = (name) => dirname(require.resolve(`${name}/package.json`));
const say = (text) => process.stderr.write(`opencl addon: ${text}\n`);

/** The first compiler that answers, or null. */
function findCompiler() {
  const names = [process.env.CXX, 'c++', 'g++', 'clang++', 'clang++-19'].filter(Boolean);
  return names.find((name) => spawnSync(name, ['--version'], { stdio: 'ignore' }).status === 0) ?? null;
}

function flags(sanitize) {
  const list = ['-std=c++17', '-fPIC', '-shared', '-fvisibility=hidden', '-pthread', '-Wall', '-Wextra'];
  list.push('-DNAPI_VERSION=8', '-DNODE_ADDON_API_CPP_EXCEPTIONS', '-DNODE_ADDON_API_DISABLE_DEPRECATED');
  // A thread of Node that is being ended takes no exception any more: that is no reason to end the process.
  list.push('-DNODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS');
  // -isystem: warnings are for our own sources.
  list.push('-isystem', folderOf('node-addon-api'), '-isystem', join(folderOf('node-api-headers'), 'include'));
  if (sanitize) list.push('-g', '-O1', '-fsanitize=address', '-fno-omit-frame-pointer');
  else list.push('-O2');
  if (process.platform === 'darwin') list.push('-undefined', 'dynamic_lookup');
  else if (!sanitize) list.push('-static-libstdc++', '-static-libgcc', '-s');
  return list;
}

/** Compiles what has changed; returns an exit code. */
export function buildAddon({ force = false, sanitize = false } = {}) {
  if (process.platform === 'win32') {
    say('not compiled here: on Windows the addon is built by the release (cl or clang-cl, see README.md)');
    return 0;
  }
  const name = sanitize ? 'opencl-asan.node' : 'opencl.node';
  const hash = createHash('sha256').update(`${process.platform} ${process.arch} ${flags(sanitize).join(' ')}`);
  for (const file of readdirSync(here).sort())
    if (/\.(cc|h)$/.test(file)) hash.update(file).update(readFileSync(join(here, file)));
  const key = hash.digest('hex');
  const stamp = join(output, `${name}.key`);
  const target = join(output, name);
  const fresh = existsSync(target) && existsSync(stamp) && readFileSync(stamp, 'utf8') === key;
  if (!fresh || force) {
    const compiler = findCompiler();
    if (compiler === null) {
      say('no C++ compiler (c++, g++, clang++): the OpenCL engine will not be available');
      return 0;
    }
    mkdirSync(output, { recursive: true });
    // A running program keeps the old file: the new one takes its place only when it is whole.
    const part = `${target}.${process.pid}`;
    const { status, error } = spawnSync(compiler, [...flags(sanitize), join(here, 'all.cc'), '-o', part, '-ldl'], {
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    if (status !== 0) {
      say(`${compiler} failed${error ? `: ${error.message}` : ''}`);
      return 1;
    }
    renameSync(part, target);
    writeFileSync(stamp, key);
  }
  if (!sanitize) copyToPlatformPackage(target, key);
  return 0;
}

/** The package of this platform, where the repository has one, carries the binary to users. */
function copyToPlatformPackage(target, key) {
  const folder = join(here, '../..', `backend-opencl-${process.platform}-${process.arch}`);
  const stamp = join(output, 'copied.key');
  const copy = join(folder, 'opencl.node');
  if (!existsSync(folder)) return;
  if (existsSync(copy) && existsSync(stamp) && readFileSync(stamp, 'utf8') === key) return;
  copyFileSync(target, `${copy}.${process.pid}`);
  renameSync(`${copy}.${process.pid}`, copy);
  writeFileSync(stamp, key);
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href)
  process.exitCode = buildAddon({
    force: process.argv.includes('--force'),
    sanitize: process.argv.includes('--sanitize'),
  });
