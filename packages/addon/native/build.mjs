/**
 * Compiles an addon with whatever C++ compiler there is: one file, one command, a few seconds; nothing is downloaded.
 * Does nothing where the sources and the command are those of the last time. Where there is no compiler it says so and
 * succeeds: the package then explains why it is unavailable.
 *
 * Options: --force compiles again; --sanitize makes build/NAME-asan.node for AddressSanitizer instead; --platform PLATFORM compiles for
 * another platform (platforms.mjs) into build/PLATFORM/NAME.node, with a cross compiler. CXX names the compiler of this platform.
 */
import { mkdirSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { answering, compile, copyToPlatformPackage, isFresh, keyOf, own } from './compiled.mjs';
import { hostNames, hostSource } from './host.mjs';
import { platforms } from './platforms.mjs';

const shared = dirname(fileURLToPath(import.meta.url));
const require = createRequire(import.meta.url);
const folderOf = (name) => dirname(require.resolve(`${name}/package.json`));

/** The first compiler that answers, or null. */
const findCompiler = (platform) =>
  answering(
    platform === own ? [process.env.CXX, 'c++', 'g++', 'clang++', 'clang++-19'] : (platforms[platform]?.compiler ?? []),
  );

function flags(platform, sanitize) {
  const list = ['-std=c++17', '-shared', '-fvisibility=hidden', '-pthread', '-Wall', '-Wextra'];
  list.push('-DNAPI_VERSION=8', '-DNODE_ADDON_API_CPP_EXCEPTIONS', '-DNODE_ADDON_API_DISABLE_DEPRECATED');
  // What gets past `Guarded` is an error too, not the end of the process.
  list.push('-DNODE_ADDON_API_CPP_EXCEPTIONS_ALL');
  // A thread of Node that is being ended takes no exception any more: that is no reason to end the process.
  list.push('-DNODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS');
  list.push('-I', shared);
  // -isystem: warnings are for our own sources.
  list.push('-isystem', folderOf('node-addon-api'), '-isystem', join(folderOf('node-api-headers'), 'include'));
  if (sanitize) list.push('-g', '-O1', '-fsanitize=address', '-fno-omit-frame-pointer');
  else list.push('-O2');
  // Hardening: smashed stacks and overlong copies end the process, and tables of functions are read-only.
  if (!platform.startsWith('win32')) list.push('-fstack-protector-strong', '-U_FORTIFY_SOURCE');
  if (!platform.startsWith('win32') && !sanitize) list.push('-D_FORTIFY_SOURCE=2');
  if (platform.startsWith('linux')) list.push('-Wl,-z,relro,-z,now', '-Wl,-z,noexecstack');
  if (platform.startsWith('win32')) list.push('-static', '-s');
  else list.push('-fPIC');
  if (platform.startsWith('darwin')) list.push('-undefined', 'dynamic_lookup');
  else if (platform.startsWith('linux') && !sanitize)
    list.push('-static-libstdc++', '-static-libgcc', '-Wl,--exclude-libs,ALL', '-s');
  return list;
}

/**
 * Compiles what has changed; returns an exit code. `name` is the engine's, `title` what people call it, `here` the folder of its sources,
 * where `all.cc` is the whole addon as one unit.
 */
export function buildAddon({ name, title, here }, { force = false, sanitize = false, platform = own } = {}) {
  const say = (text) => process.stderr.write(`${name} addon: ${text}\n`);
  const output = join(here, 'build');
  if (process.platform === 'win32') {
    say('not compiled on Windows: the release compiles it elsewhere (--platform win32-x64, see README.md)');
    return 0;
  }
  const file = sanitize ? `${name}-asan.node` : `${name}.node`;
  const folder = platform === own ? output : join(output, platform);
  const sources = [here, shared].flatMap((from) =>
    readdirSync(from, { recursive: true })
      .filter((source) => /\.(cc|h)$/.test(source))
      .sort()
      .map((source) => join(from, source)),
  );
  const key = keyOf(`${platform} ${flags(platform, sanitize).join(' ')}`, sources);
  const target = join(folder, file);
  if (force || !isFresh(target, key)) {
    const compiler = findCompiler(platform);
    if (compiler === null) {
      const wanted = platforms[platform]?.compiler ?? [];
      const tried = platform === own || wanted.length === 0 ? '' : ` (${wanted.join(' or ')})`;
      say(`no C++ compiler for ${platform}${tried}: the ${title} engine will not be available there`);
      return platform === own ? 0 : 1;
    }
    mkdirSync(folder, { recursive: true });
    const args = [...flags(platform, sanitize), '-I', here, join(here, 'all.cc')];
    if (platform.startsWith('win32')) args.push('-I', hostNames(folder), hostSource);
    if (platform.startsWith('linux')) args.push('-ldl');
    if (!compile(compiler, args, target, key, say)) return 1;
  }
  if (!sanitize) copyToPlatformPackage(name, here, platform, target);
  return 0;
}

/** What the command line asks for. */
export function buildOptions(args = process.argv) {
  return {
    force: args.includes('--force'),
    sanitize: args.includes('--sanitize'),
    platform: args.includes('--platform') ? args[args.indexOf('--platform') + 1] : own,
  };
}
