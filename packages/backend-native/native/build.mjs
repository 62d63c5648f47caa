/**
 * Compiles the addon with the C compiler of this machine, in one command that takes a second; nothing is downloaded. Does nothing if the sources and the
 * command are those of the last time. Without a compiler, or on another platform, it says so and succeeds: the package then explains why it is unavailable.
 *
 * If a cross compiler for another platform is installed, it makes that binary too. Options: --force compiles again; --faults makes
 * build/native-faults.node for tests instead, which fails where POLYGRAD_NATIVE_FAULT says. CC names the compiler of this platform.
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
/** This platform. */
const own = `${process.platform}-${process.arch}`;
const say = (text) => process.stderr.write(`native addon: ${text}\n`);

/** The supported platforms, and a cross compiler for each. */
const platforms = { 'linux-x64': 'x86_64-linux-gnu-gcc', 'linux-arm64': 'aarch64-linux-gnu-gcc' };

const answers = (name) => spawnSync(name, ['--version'], { stdio: 'ignore' }).status === 0;

/** The first compiler that runs, or null. */
function findCompiler(platform) {
  if (platform !== own) return answers(platforms[platform]) ? platforms[platform] : null;
  return [process.env.CC, 'cc', 'gcc', 'clang', 'clang-19'].filter(Boolean).find(answers) ?? null;
}

/** The binary of a platform; that of this one has no other name. */
export const binaryOf = (platform, faults = false) =>
  join(output, `native${faults ? '-faults' : ''}${platform === own ? '' : `-${platform}`}.node`);

function flags(platform, faults) {
  const headers = join(dirname(require.resolve('node-api-headers/package.json')), 'include');
  const list = ['-std=c11', '-O2', '-shared', '-fPIC', '-fvisibility=hidden', '-pthread', '-Wall', '-Wextra', '-s'];
  // No library: every symbol comes from the process, so one binary works with every C library of Linux.
  list.push('-nodefaultlibs', '-nostartfiles', '-fno-stack-protector', '-isystem', headers);
  list.push('-Wl,-z,relro,-z,now', '-Wl,-z,noexecstack');
  // On arm64 the compiler's runtime library is linked in: clearing caches, and atomics for processors without such instructions.
  if (platform === 'linux-arm64') list.push('-mno-outline-atomics', '-Wl,--push-state,--as-needed,-lgcc,--pop-state');
  if (faults) list.push('-DPOLYGRAD_FAULTS');
  return list;
}

/** Compiles what has changed, for this platform and for others with a compiler; returns an exit code. */
export function buildAddon({ force = false, faults = false } = {}) {
  if (!(own in platforms)) say(`not compiled on ${own}: the engine writes code for Linux on x86-64 and arm64 so far`);
  const codes = Object.keys(platforms).map((platform) => {
    const compiler = findCompiler(platform);
    if (compiler !== null) return buildFor(platform, compiler, force, faults);
    if (platform === own) say('no C compiler: the native engine will not be available');
    return 0;
  });
  return Math.max(...codes);
}

function buildFor(platform, compiler, force, faults) {
  const options = flags(platform, faults);
  const hash = createHash('sha256').update(options.join(' '));
  const sources = readdirSync(here)
    .filter((file) => /\.[ch]$/.test(file))
    .sort();
  for (const file of sources) hash.update(file).update(readFileSync(join(here, file)));
  const key = hash.digest('hex');
  const target = binaryOf(platform, faults);
  const stamp = `${target}.key`;
  const fresh = existsSync(target) && existsSync(stamp) && readFileSync(stamp, 'utf8') === key;
  if (!fresh || force) {
    mkdirSync(output, { recursive: true });
    // A running program keeps the old file: the new one replaces it when it is complete.
    const part = `${target}.${process.pid}`;
    const files = sources.filter((file) => file.endsWith('.c')).map((file) => join(here, file));
    const { status, error } = spawnSync(compiler, [...files, ...options, '-o', part], {
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    if (status !== 0) {
      say(`${compiler} failed${error ? `: ${error.message}` : ''}`);
      return 1;
    }
    renameSync(part, target);
    writeFileSync(stamp, key);
  }
  if (!faults) copyToPlatformPackage(platform, target);
  return 0;
}

/** The package of a platform carries the binary to users. */
function copyToPlatformPackage(platform, target) {
  const copy = join(here, '../..', `backend-native-${platform}`, 'native.node');
  if (existsSync(copy) && readFileSync(copy).equals(readFileSync(target))) return;
  copyFileSync(target, `${copy}.${process.pid}`);
  renameSync(`${copy}.${process.pid}`, copy);
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href)
  process.exitCode = buildAddon({ force: process.argv.includes('--force'), faults: process.argv.includes('--faults') });
