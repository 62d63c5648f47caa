/**
 * Compiles the addon with the C compiler of this machine, in one command that takes a second; nothing is downloaded. Does nothing if the sources and the
 * command are those of the last time. Without a compiler, or on another platform, it says so and succeeds: the package then explains why it is unavailable.
 *
 * If a cross compiler for another platform is installed, it makes that binary too, as build/PLATFORM/native.node. Options: --force compiles again; --faults makes
 * build/native-faults.node for tests instead, which fails where POLYGRAD_NATIVE_FAULT says; --platform PLATFORM makes that one alone. CC names the compiler of this platform.
 */
import { mkdirSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { answering, compile, copyToPlatformPackage, isFresh, keyOf, own } from '@polygrad/addon/native/compiled.mjs';
import { hostNames, hostSource } from '@polygrad/addon/native/host.mjs';
import { platforms } from '@polygrad/addon/native/platforms.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const output = join(here, 'build');
const require = createRequire(import.meta.url);
const say = (text) => process.stderr.write(`native addon: ${text}\n`);

/** Cross compilers for C: those for C++ under their other names. For macOS there are none. */
const crossCompilers = (platform) => platforms[platform].compiler.map((name) => name.replace('g++', 'gcc'));

/** The first compiler that runs, or null. */
function findCompiler(platform) {
  if (platform !== own) return answering(crossCompilers(platform));
  // The release makes it elsewhere: compilers of Windows have no common command line.
  if (platform.startsWith('win32')) return null;
  return answering([process.env.CC, 'cc', 'gcc', 'clang', 'clang-19']);
}

/** The binary of a platform; that of this one has no other name. */
export const binaryOf = (platform, faults = false) =>
  join(output, platform === own ? '' : platform, `native${faults ? '-faults' : ''}.node`);

function flags(platform, faults) {
  const headers = join(dirname(require.resolve('node-api-headers/package.json')), 'include');
  const list = ['-O2', '-shared', '-fvisibility=hidden', '-Wall', '-Wextra', '-isystem', headers];
  if (faults) list.push('-DPOLYGRAD_FAULTS');
  if (platform.startsWith('win32')) return [...list, '-static', '-s', '-fno-asynchronous-unwind-tables'];
  list.push('-std=c11', '-fPIC', '-pthread');
  if (platform.startsWith('darwin')) return [...list, '-undefined', 'dynamic_lookup'];
  // No library: every symbol comes from the process, so one binary works with every C library of Linux.
  list.push('-s', '-nodefaultlibs', '-nostartfiles', '-fno-stack-protector');
  list.push('-Wl,-z,relro,-z,now', '-Wl,-z,noexecstack');
  // On arm64 the compiler's runtime library is linked in: clearing caches, and atomics for processors without such instructions.
  if (platform === 'linux-arm64') list.push('-mno-outline-atomics', '-Wl,--push-state,--as-needed,-lgcc,--pop-state');
  return list;
}

/** Compiles what has changed, for this platform and for others with a compiler, or for one alone; returns an exit code. */
export function buildAddon({ force = false, faults = false, platform: only } = {}) {
  if (!(own in platforms)) say(`not compiled on ${own}: the engine writes code for x86-64 and arm64 alone`);
  const codes = (only === undefined ? Object.keys(platforms) : [only]).map((platform) => {
    if (!(platform in platforms)) return 1;
    const compiler = findCompiler(platform);
    if (compiler !== null) return buildFor(platform, compiler, force, faults);
    if (platform === own) say('no C compiler: the native engine will not be available');
    else if (only !== undefined)
      say(`no C compiler for ${platform} (${crossCompilers(platform).join(' or ') || 'none is known'})`);
    return Number(platform !== own && only !== undefined);
  });
  return Math.max(...codes);
}

function buildFor(platform, compiler, force, faults) {
  const options = flags(platform, faults);
  const sources = readdirSync(here)
    .filter((file) => /\.[ch]$/.test(file))
    .sort()
    .map((file) => join(here, file));
  if (platform.startsWith('win32')) sources.push(hostSource);
  const key = keyOf(options.join(' '), sources);
  const target = binaryOf(platform, faults);
  if (force || !isFresh(target, key)) {
    mkdirSync(dirname(target), { recursive: true });
    const args = [...sources.filter((file) => /\.cc?$/.test(file)), ...options];
    if (platform.startsWith('win32')) args.push('-I', hostNames(dirname(target)), '-lsynchronization');
    if (!compile(compiler, args, target, key, say)) return 1;
  }
  if (!faults) copyToPlatformPackage('native', here, platform, target);
  return 0;
}

const { values } = parseArgs({
  options: { force: { type: 'boolean' }, faults: { type: 'boolean' }, platform: { type: 'string' } },
  strict: false,
});
if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) process.exitCode = buildAddon(values);
