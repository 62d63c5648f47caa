/** Who takes part: Polygrad and its peers, each at a thread count, and how to start each one's process. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { EngineName, PeerName } from '../args.ts';
import type { Command } from './child.ts';
import {
  buildClBlast,
  buildLoops,
  buildOrder,
  buildWasmBaseline,
  findNumpy,
  findTorch,
  installPackages,
  type Made,
} from './install.ts';
import { appFolder } from '../paths.ts';
import { type ClockName, jsonRequest, wordRequest } from './protocol.ts';

export interface Participant {
  /** `before` is Polygrad itself, from another checkout. */
  readonly name: 'polygrad' | 'before' | PeerName;
  readonly threads: number;
  /** The other checkout of `before`. */
  readonly folder?: string;
  /** What its samples are measured by; the clock unless given. */
  readonly clock?: ClockName;
}

/** For tables and files: `jax-js@2`. */
export function labelOf(participant: Participant): string {
  return `${participant.name}@${participant.threads}`;
}

/** Peers that have one thread only. */
const singleThreaded: ReadonlySet<Participant['name']> = new Set<Participant['name']>(['tfjs-wasm', 'cpp-native']);

/** Peers that are measured beside some of Polygrad's engines only. */
const besides: { readonly [P in PeerName]?: readonly EngineName[] } = {
  clblast: ['opencl'],
  'cpu-engine': ['opencl', 'native'],
  numpy: ['native'],
};

/** True if a peer is measured beside an engine. */
export function meets(peer: PeerName, engine: EngineName): boolean {
  return besides[peer]?.includes(engine) ?? true;
}

/**
 * Polygrad, itself from another checkout where there is one, and the peers at every thread count they know, in the order they take turns.
 * Only Polygrad can be measured by the processor.
 */
export function participantsOf(
  peers: readonly PeerName[],
  threads: readonly number[],
  against: string | null = null,
  clock: ClockName = 'wall',
): Participant[] {
  const names: readonly Participant['name'][] = [
    'polygrad',
    ...(against === null ? [] : ['before' as const]),
    ...peers,
  ];
  return threads.flatMap((count) =>
    names
      .filter((name) => count === 1 || !singleThreaded.has(name))
      .map((name) => ({
        name,
        threads: count,
        ...(name === 'before' && against !== null ? { folder: against } : {}),
        ...(clock === 'wall' ? {} : { clock }),
      })),
  );
}

/** The file of a participant's process. Checkouts from before there were folders have it beside the command. */
function workerOf(folder: string): string {
  const path = 'dist/harness/worker.js';
  return existsSync(join(folder, path)) ? path : 'dist/worker.js';
}

function node(
  file: string,
  engine: EngineName,
  threads: number,
  folder: string,
  clock?: ClockName,
  from: string = appFolder,
): Command {
  const url = pathToFileURL(join(from, file)).href;
  // Older workers know no clock but one.
  const at = clock === undefined ? from : appFolder;
  const args = ['--expose-gc', join(at, workerOf(at)), url, JSON.stringify({ threads, engine, folder })];
  return { program: process.execPath, args: clock === undefined ? args : [...args, clock], encode: jsonRequest };
}

/** OpenCL on the processor (PoCL) is told by its environment how many threads there are. */
function poclThreads(threads: number): Record<string, string> {
  return { POCL_MAX_PTHREAD_COUNT: String(threads) };
}

/** The command that starts a participant's process, or why there is none. */
export function commandOf(participant: Participant, engine: EngineName): Command | { readonly missing: string } {
  const { name, threads, clock } = participant;
  const withPath = (made: Made, make: (path: string) => Command): Command | { readonly missing: string } =>
    'missing' in made ? made : make(made.path);
  switch (name) {
    case 'polygrad':
      return { ...node('dist/runners/polygrad.js', engine, threads, '', clock), env: poclThreads(threads) };
    case 'before': {
      const from = join(participant.folder ?? '', 'apps/bench');
      if (!existsSync(join(from, workerOf(from))))
        return { missing: `${participant.folder} is no built checkout: run npm run setup there` };
      return { ...node('dist/runners/polygrad.js', engine, threads, '', clock, from), env: poclThreads(threads) };
    }
    case 'cpu-engine':
      return node('dist/runners/polygrad.js', 'cpu', threads, '');
    case 'clblast':
      return withPath(buildClBlast(), (path) => ({
        program: path,
        args: [],
        env: poclThreads(threads),
        encode: wordRequest,
      }));
    case 'c-wasm':
      return withPath(buildWasmBaseline(), (path) => node('dist/runners/c-wasm.js', engine, threads, path));
    case 'c-wasm-relaxed':
      return withPath(buildWasmBaseline(), (path) => node('dist/runners/c-wasm-relaxed.js', engine, threads, path));
    case 'c-native':
      return withPath(buildLoops(), (path) => ({ program: path, args: [String(threads)], encode: wordRequest }));
    case 'cpp-native':
      return withPath(buildOrder(), (path) => ({ program: path, args: [], encode: wordRequest }));
    case 'tfjs-wasm':
      return withPath(installPackages(), (path) => node('peers/tfjs_peer.mjs', engine, threads, path));
    case 'jax-js':
      return withPath(installPackages(), (path) => node('peers/jax_peer.mjs', engine, threads, path));
    case 'numpy':
      return withPath(findNumpy(), (path) => ({
        program: path,
        args: [join(appFolder, 'peers/numpy_peer.py')],
        // OpenBLAS takes processors that it does not know for older ones: kernels for AVX-512 are asked for.
        env: { OPENBLAS_CORETYPE: 'SkylakeX', OPENBLAS_NUM_THREADS: String(threads), PYTHONDONTWRITEBYTECODE: '1' },
        encode: jsonRequest,
      }));
    case 'torch':
      return withPath(findTorch(), (path) => ({
        program: path,
        args: [join(appFolder, 'peers/torch_peer.py'), String(threads)],
        env: {
          OMP_NUM_THREADS: String(threads),
          OPENBLAS_NUM_THREADS: String(threads),
          PYTHONDONTWRITEBYTECODE: '1',
          // Large results from the heap, as other participants' pools give them, not in fresh pages each time.
          MALLOC_MMAP_MAX_: '0',
          MALLOC_TRIM_THRESHOLD_: String(2 ** 40),
        },
        encode: jsonRequest,
      }));
  }
  return name satisfies never;
}
