/**
 * The C baseline of the matrix product (baselines/gemm.c), compiled to WebAssembly, as a participant. Threads share the rows of
 * one product; each packs for itself. The register tile is the one that is fastest here, found at the start.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import v8 from 'node:v8';
import { Worker } from 'node:worker_threads';
import type { Work } from '../work/cases.ts';
import type { Tools } from '../work/tools.ts';
import { type Prepared, type Runner, type RunnerOptions, Unsupported } from './runner.ts';

/** Blocks of gemm.c. */
const [blockM, blockK, blockN] = [128, 256, 1024];
const firstByte = 1 << 20; // above C's own data and stack
const spins = 200_000;

type Gemm = (m0: number, m1: number, n: number, k: number, a: number, b: number, c: number, scratch: number) => void;

interface Build {
  readonly name: string;
  /** Rows of the register tile. */
  readonly rows: number;
  readonly module: WebAssembly.Module;
  readonly scratchBytes: number;
}

interface Pool {
  readonly memory: WebAssembly.Memory;
  /** Computes one product on all threads. Operands lie one after another from `firstByte` on. */
  multiply(m: number, n: number, k: number): void;
  close(): Promise<void>;
}

/**
 * Words of the control block: a ticket that rises with each job, helpers that still work, then for each thread its claim and arguments. A part
 * belongs to whoever first turns its claim from twice the ticket into one more. That is its helper, or the main thread when the helper sleeps longer
 * than the main thread's own part takes.
 */
const control = { ticket: 0, left: 1, parts: 2, partWords: 9 } as const;

const helperSource = `
const { workerData, parentPort } = require('node:worker_threads');
const { module, memory, words, part, spins } = workerData;
const { gemm } = new WebAssembly.Instance(module, { env: { memory } }).exports;
parentPort.postMessage('ready');
for (let ticket = 0; ; ) {
  for (let i = 0; i < spins && Atomics.load(words, 0) === ticket; i++);
  while (Atomics.load(words, 0) === ticket) Atomics.wait(words, 0, ticket);
  ticket = Atomics.load(words, 0);
  if (ticket < 0) break;
  if (Atomics.compareExchange(words, part, 2 * ticket, 2 * ticket + 1) !== 2 * ticket) continue;
  gemm(...words.subarray(part + 1, part + 9));
  Atomics.sub(words, 1, 1);
}
`;

function readBuilds(folder: string, relaxed: boolean): Build[] {
  const builds: Build[] = [];
  for (const file of readdirSync(folder).sort()) {
    const match = /^gemm-(\d+)x(\d+)(-relaxed)?\.wasm$/.exec(file);
    if (match === null || (match[3] !== undefined) !== relaxed) continue;
    const [rows, vectors] = [Number(match[1]), Number(match[2])];
    const floats = (blockM + rows) * blockK + (blockN + 4 * vectors) * blockK + rows * 4 * vectors;
    builds.push({
      name: `${rows}x${vectors}`,
      rows,
      module: new WebAssembly.Module(readFileSync(join(folder, file))),
      scratchBytes: Math.ceil((4 * floats) / 4096) * 4096,
    });
  }
  if (builds.length === 0) throw new Unsupported('the compiler made no such build');
  return builds;
}

async function openPool(build: Build, threads: number, bytes: number): Promise<Pool> {
  const scratch = firstByte + Math.ceil(bytes / 4096) * 4096;
  const pages = Math.ceil((scratch + threads * build.scratchBytes) / 65536);
  const memory = new WebAssembly.Memory({ initial: pages, maximum: 65536, shared: true });
  const words = new Int32Array(new SharedArrayBuffer(4 * (control.parts + control.partWords * threads)));
  const gemm = new WebAssembly.Instance(build.module, { env: { memory } }).exports.gemm as Gemm;
  const partOf = (thread: number): number => control.parts + control.partWords * thread;
  const helpers = Array.from({ length: threads - 1 }, (_, i) => {
    const workerData = { module: build.module, memory, words, part: partOf(i + 1), spins };
    return new Worker(helperSource, { eval: true, workerData });
  });
  await Promise.all(helpers.map((helper) => new Promise((resolve) => helper.once('message', resolve))));
  const announce = (ticket: number): void => {
    Atomics.store(words, control.ticket, ticket);
    Atomics.notify(words, control.ticket);
  };
  let ticket = 0;
  return {
    memory,
    multiply(m, n, k) {
      const [a, b, c] = [firstByte, firstByte + 4 * m * k, firstByte + 4 * (m * k + k * n)];
      const chunk = Math.ceil(m / threads / build.rows) * build.rows;
      const parts = Math.ceil(m / chunk);
      if (parts === 1) {
        gemm(0, m, n, k, a, b, c, scratch);
        return;
      }
      ticket++;
      for (let t = 1; t < parts; t++) {
        const rows = [t * chunk, Math.min(m, (t + 1) * chunk)];
        words.set([...rows, n, k, a, b, c, scratch + t * build.scratchBytes], partOf(t) + 1);
        Atomics.store(words, partOf(t), 2 * ticket);
      }
      Atomics.store(words, control.left, parts - 1);
      announce(ticket);
      gemm(0, chunk, n, k, a, b, c, scratch);
      for (let t = 1; t < parts; t++) {
        if (Atomics.compareExchange(words, partOf(t), 2 * ticket, 2 * ticket + 1) !== 2 * ticket) continue;
        gemm(t * chunk, Math.min(m, (t + 1) * chunk), n, k, a, b, c, scratch);
        Atomics.sub(words, control.left, 1);
      }
      while (Atomics.load(words, control.left) > 0);
    },
    async close() {
      announce(-1);
      await Promise.all(helpers.map((helper) => helper.terminate()));
    },
  };
}

/** Floats of the three matrices. */
function sizeOf(m: number, n: number, k: number): number {
  return m * k + k * n + m * n;
}

async function fastest(builds: readonly Build[]): Promise<Build> {
  const size = 384;
  let best: { readonly build: Build; readonly ms: number } | null = null;
  for (const build of builds) {
    const pool = await openPool(build, 1, 4 * sizeOf(size, size, size));
    let ms = Number.POSITIVE_INFINITY;
    for (let i = 0; i < 12; i++) {
      const start = performance.now();
      pool.multiply(size, size, size);
      ms = Math.min(ms, performance.now() - start);
    }
    await pool.close();
    if (best === null || ms < best.ms) best = { build, ms };
  }
  return (best as { readonly build: Build }).build;
}

async function prepareGemm(build: Build, threads: number, work: Work, tools: Tools): Promise<Prepared> {
  if (work.kind !== 'gemm') throw new Unsupported(`no C program for ${work.kind}`);
  const { m, n, k } = work;
  const pool = await openPool(build, threads, 4 * sizeOf(m, n, k));
  const floats = new Float32Array(pool.memory.buffer, firstByte, sizeOf(m, n, k));
  floats.set(tools.fill(1, m * k, -1, 1));
  floats.set(tools.fill(2, k * n, -1, 1), m * k);
  return {
    run(count) {
      for (let i = 0; i < count; i++) pool.multiply(m, n, k);
    },
    probe() {
      pool.multiply(m, n, k);
      return tools.probePositions(m * n).map((at) => floats[m * k + k * n + at]!);
    },
    dispose: () => void pool.close(),
  };
}

/** The baseline, compiled with or without relaxed SIMD. */
export async function createBaseline(options: RunnerOptions, relaxed: boolean): Promise<Runner> {
  const [major = 0] = process.versions.node.split('.').map(Number);
  if (relaxed && major < 22) v8.setFlagsFromString('--experimental-wasm-relaxed-simd');
  const build = await fastest(readBuilds(options.folder, relaxed));
  return {
    version: `tile ${build.name}`,
    prepare: (work) => prepareGemm(build, options.threads, work, options.tools),
  };
}

export function createRunner(options: RunnerOptions): Promise<Runner> {
  return createBaseline(options, false);
}
