/**
 * Makes peers ready on demand, outside the workspace: npm packages by their lock file and without install scripts, C
 * programs with the compilers that are there. What cannot be had is said in one line; nothing here throws.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { appFolder, cacheFolder } from '../paths.ts';

/** A folder or program that is ready, or why it is not. */
export type Made = { readonly path: string } | { readonly missing: string };

const cached = new Map<string, Made>();

function once(key: string, make: () => Made): Made {
  const known = cached.get(key);
  if (known) return known;
  const made = make();
  cached.set(key, made);
  return made;
}

/** Runs a program quietly; null if it ended well, else its last words. */
function run(
  program: string,
  args: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv,
  timeout: number,
): string | null {
  const result = spawnSync(program, args, { cwd, env, timeout, encoding: 'utf8' });
  if (result.status === 0) return null;
  if (result.error) return result.error.message;
  const lines = `${result.stdout}\n${result.stderr}`.split('\n').filter((line) => line.trim() !== '');
  return lines.find((line) => /error/i.test(line)) ?? lines.at(-1) ?? `ended with ${result.signal ?? result.status}`;
}

/** The environment without what `npm run` adds: an npm started below would take it for its own settings. */
function plainEnvironment(): NodeJS.ProcessEnv {
  const dropped = /^npm_(package_|lifecycle_|config_(local_prefix|workspace|prefix|global_prefix)|command|execpath)/;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !dropped.test(name)));
}

/** Folder whose node_modules holds the packages of peers/package.json. */
export function installPackages(): Made {
  return once('npm', () => {
    const from = join(appFolder, 'peers');
    const to = join(cacheFolder, 'npm');
    const lock = readFileSync(join(from, 'package-lock.json'), 'utf8');
    const done = join(to, 'installed.json');
    if (existsSync(done) && readFileSync(done, 'utf8') === lock) return { path: to };
    mkdirSync(to, { recursive: true });
    for (const file of ['package.json', 'package-lock.json']) copyFileSync(join(from, file), join(to, file));
    process.stderr.write('bench: installing the peers from npm ...\n');
    const words = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', to];
    const npm = process.env.npm_execpath ?? '';
    const [program, args] = npm.endsWith('npm-cli.js') ? [process.execPath, [npm, ...words]] : ['npm', words];
    const problem = run(program, args, to, plainEnvironment(), 180_000);
    if (problem !== null) return { missing: `npm ci failed: ${problem}` };
    writeFileSync(done, lock);
    return { path: to };
  });
}

/** Folder with the matrix product in C compiled to WebAssembly. Always built anew: it takes seconds. */
export function buildWasmBaseline(): Made {
  return once('wasm', () => {
    const to = join(cacheFolder, 'wasm');
    const problem = run('sh', [join(appFolder, 'baselines/build.sh'), to], appFolder, process.env, 120_000);
    return problem === null ? { path: to } : { missing: problem };
  });
}

/** How peers/loops.c is compiled; without -fno-trapping-math gcc does not vectorise the maximum in `chain`. */
const loopFlags: readonly string[] = ['-O3', '-march=native', '-fno-trapping-math', '-pthread'];

/** The C loops as a native program. */
export function buildLoops(): Made {
  return buildNative('loops', 'loops.c', ['gcc', 'cc'], loopFlags);
}

/** Sorting and indexing in C++. */
export function buildOrder(): Made {
  return buildNative('order', 'order.cpp', ['g++', 'c++'], ['-O3', '-march=native', '-std=c++17']);
}

/** A program that multiplies with CLBlast, which it opens when it runs. */
export function buildClBlast(): Made {
  return buildNative('clblast', 'clblast.c', ['gcc', 'cc'], ['-O2'], ['-ldl']);
}

function buildNative(
  name: string,
  file: string,
  compilers: readonly string[],
  flags: readonly string[],
  libraries: readonly string[] = [],
): Made {
  return once(name, () => {
    const source = join(appFolder, 'peers', file);
    const to = join(cacheFolder, name);
    mkdirSync(cacheFolder, { recursive: true });
    const problems: string[] = [];
    for (const compiler of compilers) {
      const problem = run(compiler, [...flags, '-o', to, source, ...libraries], appFolder, process.env, 60_000);
      if (problem === null) return { path: to };
      problems.push(problem);
    }
    return { missing: problems[0] ?? `none of ${compilers.join(', ')} is there` };
  });
}

/** A Python that can import torch. */
export function findNumpy(): Made {
  return findPython('numpy', 'numpy');
}

export function findTorch(): Made {
  return findPython('torch', 'torch, numpy');
}

function findPython(name: 'numpy' | 'torch', modules: string): Made {
  return once(name, () => {
    // Debian's package is seen by Debian's Python only, which need not be the first on the path.
    for (const python of ['/usr/bin/python3', 'python3']) {
      const found = run(python, ['-c', `import ${modules}`], appFolder, process.env, 60_000) === null;
      if (found) return { path: python };
    }
    return { missing: `not installed (Debian: apt-get install python3-${name})` };
  });
}
