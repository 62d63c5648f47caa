/**
 * `node tooling/cuda-sim/ptx/build.mjs`: compiles ptx-run, the interpreter of PTX as a program of its own, and writes its path. Nothing is done
 * where sources, flags and processor are those of the last time. Where there is no compiler it says so and fails.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync } from 'node:fs';
import { cpus } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));

/** How the interpreter is compiled. Sums and products stay apart: only fma is fused. */
export const flags = ['-std=c++17', '-O3', '-march=native', '-ffp-contract=off', '-fno-math-errno', '-Wall', '-Wextra'];

/** Its sources, but for the program around it. */
export const sources = readdirSync(here)
  .filter((file) => file.endsWith('.cc') && file !== 'main.cc')
  .sort()
  .map((file) => join(here, file));

/** The path of ptx-run, compiled if need be, or why there is none. */
export function buildPtxRun() {
  const compiler = [process.env.CXX, 'c++', 'g++', 'clang++']
    .filter(Boolean)
    .find((name) => spawnSync(name, ['--version'], { stdio: 'ignore' }).status === 0);
  if (compiler === undefined) return { missing: 'there is no C++ compiler' };
  const files = [...sources, join(here, 'main.cc')];
  const hash = createHash('sha256').update(`${compiler} ${flags.join(' ')} ${cpus()[0]?.model}`);
  for (const file of readdirSync(here).sort()) if (/\.(cc|h)$/.test(file)) hash.update(readFileSync(join(here, file)));
  const target = join(here, '.cache', `ptx-run-${hash.digest('hex').slice(0, 16)}`);
  if (existsSync(target)) return { path: target };
  mkdirSync(dirname(target), { recursive: true });
  // Several tests may compile at once: each its own file, the last one stays.
  const made = `${target}.${process.pid}`;
  const { status } = spawnSync(compiler, [...flags, '-o', made, ...files], { stdio: ['ignore', 'inherit', 'inherit'] });
  if (status !== 0) return { missing: `${compiler} failed` };
  renameSync(made, target);
  return { path: target };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { path, missing } = buildPtxRun();
  if (path === undefined) {
    process.stderr.write(`ptx-run: ${missing}\n`);
    process.exitCode = 1;
  } else process.stdout.write(`${path}\n`);
}
