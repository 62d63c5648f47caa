/**
 * Brings a checkout into a state where its commands can run: dependencies installed, sources built. Needs only Node and
 * npm, does nothing (and says nothing) where there is nothing to do.
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Root folder of the checkout. */
export const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** The file of the compiler that core names so, without its ending: `ir/expr` for `@polygrad/compiler/ir/expr`; undefined for other names. */
export const compilerFile = (specifier) => /^@polygrad\/compiler\/(.+)/.exec(specifier)?.[1];

/** Native addons: each script compiles one if its sources have changed. */
const addons = ['opencl', 'cuda', 'native'].map((engine) => `packages/backend-${engine}/native/build.mjs`);

const read = (path) => (existsSync(path) ? readFileSync(path, 'utf8') : null);

/** Runs a program in the root folder; returns its exit code. With `quiet`, its output is shown only if it fails. */
export function run(program, args, { quiet = false, env = {}, cwd = root } = {}) {
  const result = spawnSync(program, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: quiet ? ['ignore', 'pipe', 'pipe'] : 'inherit',
    shell: process.platform === 'win32' && !program.endsWith('.exe'),
    maxBuffer: 1 << 28,
  });
  const code = result.status ?? (result.signal ? 1 : 127);
  if (quiet && code !== 0) process.stderr.write(`${result.stdout ?? ''}${result.stderr ?? ''}`);
  if (result.error) process.stderr.write(`${program}: ${result.error.message}\n`);
  return code;
}

/** Runs a JavaScript file with this Node. */
export function runNode(script, args = [], options = {}) {
  return run(process.execPath, [script, ...args], options);
}

/**
 * Runs a JavaScript file with this Node until it ends, and resolves with its exit code. Signals are passed on: a program that is told to end
 * ends what it started first. The end of the parent is one: npm's shell takes a signal for itself.
 */
export function becomeNode(script, args = [], { env = {}, cwd = root } = {}) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [script, ...args], {
      cwd,
      env: { ...process.env, ...env },
      stdio: 'inherit',
    });
    const names = ['SIGTERM', 'SIGHUP'];
    const pass = (name) => child.kill(name);
    // A terminal gives its own to both.
    const wait = () => undefined;
    const parent = process.ppid;
    const orphaned = setInterval(() => process.ppid !== parent && pass('SIGTERM'), 500);
    for (const name of names) process.on(name, pass);
    process.on('SIGINT', wait);
    child.on('close', (code, signal) => {
      clearInterval(orphaned);
      for (const name of names) process.off(name, pass);
      process.off('SIGINT', wait);
      resolve(code ?? 128 + constants.signals[signal]);
    });
  });
}

/** Runs the pnpm version named in package.json, fetched by npm where it is not there yet. */
export function runPnpm(args, options = {}) {
  const { packageManager } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const npm = process.env.npm_execpath ?? '';
  const words = ['exec', '--yes', '--', packageManager, ...args];
  const env = { CI: 'true', npm_config_loglevel: 'error', ...options.env };
  return npm.endsWith('npm-cli.js') ? runNode(npm, words, { ...options, env }) : run('npm', words, { ...options, env });
}

/** True where node_modules is what the lock file says (pnpm leaves a copy of the lock file it installed). */
function isInstalled() {
  const lock = read(join(root, 'pnpm-lock.yaml'));
  return lock !== null && lock === read(join(root, 'node_modules/.pnpm/lock.yaml'));
}

/** Installs the dependencies if the lock file has changed since; returns an exit code. */
export function install() {
  if (isInstalled()) return 0;
  process.stderr.write('Installing dependencies ...\n');
  return runPnpm(['install', '--frozen-lockfile'], { quiet: true });
}

/** Compiles what has changed; returns an exit code. `project` is a solution file in the root folder. */
export function build(project = 'tsconfig.build.json') {
  if (!existsSync(join(root, 'packages/core/dist'))) process.stderr.write('Building ...\n');
  for (const script of addons) {
    const path = join(root, script);
    const code = existsSync(path) ? runNode(path) : 0;
    if (code !== 0) return code;
  }
  return runNode(join(root, 'node_modules/typescript/bin/tsc'), ['-b', project]);
}
