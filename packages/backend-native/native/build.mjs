/**
 * Compiles the addon with whatever C compiler there is: one command, a second; nothing is downloaded. Does nothing where the sources and the command
 * are those of the last time. Where there is no compiler, or the platform is none it was written for, it says so and succeeds: the package then explains why it is unavailable.
 *
 * Options: --force compiles again; --faults makes build/native-faults.node for tests instead, which fails where POLYGRAD_NATIVE_FAULT says so.
 * CC names the compiler.
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
/** The platform this runs on. */
const own = `${process.platform}-${process.arch}`;
const say = (text) => process.stderr.write(`native addon: ${text}\n`);

/** The first compiler that answers, or null. */
function findCompiler() {
  const answers = (name) => spawnSync(name, ['--version'], { stdio: 'ignore' }).status === 0;
  return [process.env.CC, 'cc', 'gcc', 'clang', 'clang-19'].filter(Boolean).find(answers) ?? null;
}

function flags(faults) {
  const headers = join(dirname(require.resolve('node-api-headers/package.json')), 'include');
  const list = ['-std=c11', '-O2', '-shared', '-fPIC', '-fvisibility=hidden', '-pthread', '-Wall', '-Wextra', '-s'];
  // No library: every symbol comes from the process, so one binary serves every C library of Linux.
  list.push('-nodefaultlibs', '-nostartfiles', '-fno-stack-protector', '-isystem', headers);
  list.push('-Wl,-z,relro,-z,now', '-Wl,-z,noexecstack');
  if (faults) list.push('-DPOLYGRAD_FAULTS');
  return list;
}

/** Compiles what has changed; returns an exit code. */
export function buildAddon({ force = false, faults = false } = {}) {
  if (own !== 'linux-x64') {
    say(`not compiled on ${own}: the engine writes code for Linux on x86-64 so far`);
    return 0;
  }
  const hash = createHash('sha256').update(flags(faults).join(' '));
  const sources = readdirSync(here)
    .filter((file) => /\.[ch]$/.test(file))
    .sort();
  for (const file of sources) hash.update(file).update(readFileSync(join(here, file)));
  const key = hash.digest('hex');
  const target = join(output, faults ? 'native-faults.node' : 'native.node');
  const stamp = `${target}.key`;
  const fresh = existsSync(target) && existsSync(stamp) && readFileSync(stamp, 'utf8') === key;
  if (!fresh || force) {
    const compiler = findCompiler();
    if (compiler === null) {
      say('no C compiler: the native engine will not be available');
      return 0;
    }
    mkdirSync(output, { recursive: true });
    // A running program keeps the old file: the new one takes its place only when it is whole.
    const part = `${target}.${process.pid}`;
    const files = sources.filter((file) => file.endsWith('.c')).map((file) => join(here, file));
    const { status, error } = spawnSync(compiler, [...flags(faults), ...files, '-o', part], {
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    if (status !== 0) {
      say(`${compiler} failed${error ? `: ${error.message}` : ''}`);
      return 1;
    }
    renameSync(part, target);
    writeFileSync(stamp, key);
  }
  if (!faults) copyToPlatformPackage(target);
  return 0;
}

/** The package of this platform carries the binary to users. */
function copyToPlatformPackage(target) {
  const copy = join(here, '../..', `backend-native-${own}`, 'native.node');
  if (existsSync(copy) && readFileSync(copy).equals(readFileSync(target))) return;
  copyFileSync(target, `${copy}.${process.pid}`);
  renameSync(`${copy}.${process.pid}`, copy);
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href)
  process.exitCode = buildAddon({ force: process.argv.includes('--force'), faults: process.argv.includes('--faults') });
