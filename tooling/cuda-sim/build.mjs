/**
 * Compiles the simulated driver, libcuda-sim.so, and the libraries of tests, libcublaslt-sim.so and libcudnn-sim.so, into build/. Does nothing where
 * sources and command are those of the last time.
 *
 * Options: --force compiles again; --sanitize makes them with -asan in their names; --platform NAME makes the driver alone, for another platform
 * that addons are compiled for, in build/NAME. Prints the path of the driver.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { platforms } from '../../packages/addon/native/platforms.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const packages = join(here, '../../packages');
/** The addon's own declarations of the driver: one text for both sides. */
const included = [
  here,
  ...['backend-cuda/native', 'backend-cuda/native/libraries', 'addon/native'].map((name) => join(packages, name)),
];

const headersOf = (...names) => names.map((name) => join(packages, name));
const filesIn = (folder) =>
  readdirSync(folder)
    .filter((name) => /\.(cc|h)$/.test(name) && name !== 'main.cc')
    .sort()
    .map((name) => join(folder, name));

/** Headers of the libraries for tests. */
const ofFakes = [join(here, 'fake-library.h'), join(here, 'ptx/floats.h')];

/** The libraries: sources and what they include. */
const libraries = {
  'libcuda-sim': () => [
    ...filesIn(here),
    ...filesIn(join(here, 'ptx')),
    ...headersOf('backend-cuda/native/cu.h', 'backend-cuda/native/api.h', 'addon/native/native-error.h'),
  ],
  'libcublaslt-sim': () => [
    ...filesIn(join(here, 'cublaslt')),
    ...ofFakes,
    ...headersOf('backend-cuda/native/libraries/cublaslt.h', 'backend-cuda/native/context.h', 'addon/native/product.h'),
  ],
  'libcudnn-sim': () => [
    ...filesIn(join(here, 'cudnn')),
    ...ofFakes,
    ...headersOf('backend-cuda/native/libraries/cudnn.h', 'backend-cuda/native/libraries/convolution.h'),
    ...headersOf('backend-cuda/native/context.h', 'addon/native/product.h'),
  ],
};

/** The platform this runs on. */
const own = `${process.platform}-${process.arch}`;

/** The path of the simulated driver, beside which are libcublaslt-sim.so and libcudnn-sim.so; null, after a message, where they cannot be made. */
export function buildSimulator(options = {}) {
  if ((options.platform ?? own) !== own) return build('libcuda-sim', options);
  const [driver, ...others] = Object.keys(libraries).map((name) => build(name, options));
  return others.includes(null) ? null : driver;
}

/** The path of a library; null, after a message, where it cannot be made. */
function build(name, { force = false, sanitize = false, platform = own }) {
  const files = libraries[name]();
  const flags = ['-std=c++17', '-shared', '-fvisibility=hidden', '-pthread', '-Wall', '-Wextra', '-g'];
  const isWindows = platform.startsWith('win32');
  flags.push(isWindows ? '-static' : '-fPIC');
  // Arithmetic as written: no sum of products may become one operation.
  flags.push('-O3', '-ffp-contract=off', '-fno-math-errno', ...included.flatMap((folder) => ['-I', folder]));
  // Without it every fma of every lane is a call of the C library.
  if (platform === own) flags.push('-march=native');
  if (sanitize) flags.push('-fsanitize=address', '-fno-omit-frame-pointer');
  // Without the place of the checkout, so that a copy of it has what was compiled.
  const placed = (text) => text.replaceAll(join(here, '../..'), '');
  const hash = createHash('sha256').update(`${placed(flags.join(' '))} ${platform === own ? cpus()[0]?.model : ''}`);
  for (const file of files) hash.update(placed(file)).update(readFileSync(file));
  const key = hash.digest('hex');
  const folder = platform === own ? join(here, 'build') : join(here, 'build', platform);
  const target = join(folder, `${name}${sanitize ? '-asan' : ''}.${isWindows ? 'dll' : 'so'}`);
  const stamp = `${target}.key`;
  if (!force && existsSync(target) && existsSync(stamp) && readFileSync(stamp, 'utf8') === key) return target;
  const answers = (command) => spawnSync(command, ['--version'], { stdio: 'ignore' }).status === 0;
  const native = [process.env.CXX, 'c++', 'g++', 'clang++', 'clang++-19'].filter(Boolean);
  const compiler = (platform === own ? native : (platforms[platform]?.compiler ?? [])).find(answers);
  if (compiler === undefined) {
    process.stderr.write(`cuda-sim: no C++ compiler for ${platform}\n`);
    return null;
  }
  mkdirSync(folder, { recursive: true });
  const part = `${target}.${process.pid}`;
  const command = [...flags, ...files.filter((file) => file.endsWith('.cc')), '-o', part];
  if (!isWindows) command.push('-ldl');
  if (spawnSync(compiler, command, { stdio: ['ignore', 'inherit', 'inherit'] }).status !== 0) return null;
  renameSync(part, target);
  // A new file: a copy of the checkout may have links to this one, and its own key.
  writeFileSync(`${part}.key`, key);
  renameSync(`${part}.key`, stamp);
  return target;
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { argv } = process;
  const platform = argv.includes('--platform') ? argv[argv.indexOf('--platform') + 1] : own;
  const path = buildSimulator({ force: argv.includes('--force'), sanitize: argv.includes('--sanitize'), platform });
  if (path !== null) process.stdout.write(`${path}\n`);
  process.exitCode = path === null ? 1 : 0;
}
