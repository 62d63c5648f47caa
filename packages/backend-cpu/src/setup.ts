/**
 * What a new engine is made of: its options, the memory, the emitter's target and the capabilities it reports.
 */
import { checkFields, type EngineCaps, numberFrom, type OptionRules, showCaps } from '@polygrad/core/engine';
import type { KOp } from '@polygrad/core/kernel/ir';
import type { MemoryImport } from './asm/module.ts';
import type { EmitTarget } from './emit/target.ts';
import { detectFeatures, everyDType, makeMemory, noMemory } from './features.ts';
import { heapAt, lowBytes, scalarOffset } from './memory/layout.ts';
import { type CpuEngineOptions, maxThreads } from './options.ts';
import { coreCount, threadsAsked, whyAlone } from '#host';
import { threadsWithin } from '#room';

const pageBytes = 65536;
/** 32-bit addresses reach 4 GiB; the last page stays unused so that the end of a block is an address too. */
const addressLimit = 2 ** 32 - pageBytes;
/** Largest 64-bit memory that current engines allow. */
const wideLimit = 16 * 2 ** 30;
const threadRule = numberFrom(1, maxThreads, true);
const rules: OptionRules<CpuEngineOptions> = {
  threads: threadRule,
  memory: numberFrom(1),
  relaxedSimd: [(x) => typeof x === 'boolean', 'true or false'],
};

/** Scratch memory of each thread, for SHARED. */
export const sharedBytes: number = 1 << 20;

export interface Setup {
  readonly threads: number;
  readonly memory: WebAssembly.Memory;
  readonly memoryImport: MemoryImport;
  /** Bytes the memory may grow to. */
  readonly limit: number;
  readonly target: EmitTarget;
  readonly caps: EngineCaps;
}

/** Makes the memory and decides everything that stays as it is. */
export function setUp(options: CpuEngineOptions, lowering: EngineCaps['lowering']): Setup {
  checkFields('cpu', options, rules);
  const wishedThreads = whyAlone() === null ? threadCount(options.threads) : 1;
  const shared = wishedThreads > 1;
  const found = detectFeatures();
  const { memory64 } = found;
  const relaxed = options.relaxedSimd !== false;
  const [fusedMadd, laneSelect] = [relaxed && found.fusedMadd, relaxed && found.laneSelect];
  const wished = options.memory ?? addressLimit;
  const addressBits = wished > addressLimit && memory64 ? 64 : 32;
  const minPages = Math.ceil((heapAt + wishedThreads * sharedBytes) / pageBytes) + 1;
  const most = Math.min(wished, addressBits === 64 ? wideLimit : addressLimit);
  const mostPages = Math.max(minPages, Math.floor(most / pageBytes));
  const { memory, maxPages } = reserve(minPages, mostPages, shared, addressBits);
  const limit = maxPages * pageBytes;
  // Asked for when the memory has its addresses.
  const threads = threadsWithin(wishedThreads);
  return {
    threads,
    memory,
    memoryImport: { minPages, maxPages, shared, addressBits },
    limit,
    target: { addressBits, shared, fusedMadd, laneSelect, sharedBytes, lowBytes, scalarOffset },
    caps: showCaps({
      dtypes: new Set(everyDType),
      nativeOps: nativeOps(fusedMadd),
      simt: false,
      lowering,
      vectorBytes: 16,
      sharedBytes,
      maxGroup: 1,
      maxBindings: 512,
      maxBufferBytes: limit - heapAt - threads * sharedBytes,
      memoryBytes: limit,
      mergesFreed: true,
      bindAlign: 4,
      arena: true,
      parallelism: threads,
      // Programs may use ATOMIC, but the order of float additions would depend on the threads; results here never do.
      atomics: new Set(),
    }),
  };
}

/**
 * A memory that may grow as far as asked, or half of that, and so on: browsers on telephones refuse to reserve 4 GiB.
 */
function reserve(
  minPages: number,
  mostPages: number,
  shared: boolean,
  addressBits: 32 | 64,
): { memory: WebAssembly.Memory; maxPages: number } {
  for (let maxPages = mostPages; ; maxPages = Math.max(minPages, maxPages >>> 1)) {
    try {
      return { memory: makeMemory(minPages, maxPages, shared, addressBits), maxPages };
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      if (maxPages === minPages) throw noMemory(error);
    }
  }
}

function threadCount(asked: number | undefined): number {
  return asked ?? threadsAsked(threadRule) ?? Math.min(coreCount(), 8);
}

/** What the emitter prints besides BASE_OPS. */
function nativeOps(fusedMadd: boolean): ReadonlySet<KOp> {
  const ops: KOp[] = ['ABS', 'CEIL', 'TRUNC', 'ROUND', 'ISNAN', 'RECIP', 'MULADD', 'MULHI'];
  if (fusedMadd) ops.push('FMA');
  return new Set(ops);
}
