/** What a new engine needs: its options, the target of the emitter and the capabilities it reports. */
import { cpus, availableParallelism } from 'node:os';
import {
  ArgumentError,
  checkFields,
  type EngineCaps,
  numberFrom,
  oneOf,
  type OptionRules,
  showCaps,
  shown,
  UnsupportedError,
} from '@polygrad/core/engine';
import { fittingBytes, processorLowering } from '@polygrad/core/engine/processors';
import { vectorLowering } from '@polygrad/core/engine/vectors';
import type { KOp } from '@polygrad/core/kernel/ir';
import type { MachineTarget } from '@polygrad/emit-machine';
import { type Addon, loadAddon } from './addon.ts';
import { processorFacts } from './facts.ts';
import { maxThreads, type NativeEngineOptions } from './options.ts';

// biome-ignore format: a list
const everyDType = [
  'float32', 'float64', 'float16', 'bfloat16', 'int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64', 'bool',
] as const;

// biome-ignore format: a list
const nativeOps: ReadonlySet<KOp> = new Set<KOp>(['ABS', 'CEIL', 'TRUNC', 'ROUND', 'ISNAN', 'RECIP', 'MULADD', 'MULHI', 'FMA']);

/** Scratch memory of each thread, for SHARED: as much as the addon maps. */
const sharedBytes = 1 << 20;
/** Most tensors and most scalars of a kernel. */
export const argSlots = 1024;
/** Outputs of this size do not stay in any cache together with their inputs: most processors have 32 MiB or less for all cores. */
const streamBytes = 2 ** 25;
const pageBytes = 65536;
/** The largest size to which JavaScript grows one buffer everywhere. */
const defaultLimit = 2 ** 32 - pageBytes;

const threadRule = numberFrom(1, maxThreads, true);
const rules: OptionRules<NativeEngineOptions> = {
  threads: threadRule,
  vectorBytes: [(x) => x === 16 || x === 32 || x === 64, '16, 32 or 64'],
  isa: oneOf('x64-v3', 'x64-v4', 'arm64'),
  memory: numberFrom(1),
  checked: [(x) => typeof x === 'boolean', 'true or false'],
};

/** Instruction sets: the addon's bit for each, its widest vectors, and a name for reports. */
const isaFacts: Readonly<
  Record<
    MachineTarget['isa'],
    { readonly feature: number; readonly widest: 16 | 32 | 64; readonly instructions: string }
  >
> = {
  'x64-v3': { feature: 1, widest: 32, instructions: 'AVX2' },
  'x64-v4': { feature: 2, widest: 64, instructions: 'AVX-512' },
  arm64: { feature: 4, widest: 16, instructions: 'NEON' },
};
const isas = ['x64-v3', 'x64-v4', 'arm64'] as const;

export interface Setup {
  readonly addon: Addon;
  readonly threads: number;
  /** Bytes that the memory may grow to. */
  readonly limit: number;
  readonly target: MachineTarget;
  readonly caps: EngineCaps;
}

/** Why there is no native engine here, or null. */
export function whyNot(): string | null {
  if (process.env.POLYGRAD_NATIVE === '0') return 'POLYGRAD_NATIVE=0 switches it off';
  const addon = loadAddon();
  if (typeof addon === 'string') return addon;
  return addon.features() === 0 ? 'the processor or the system has no AVX2 with fused multiply-add' : null;
}

/**
 * Decides everything that never changes.
 *
 * @throws UnsupportedError if there is no native engine
 */
export function setUp(options: NativeEngineOptions): Setup {
  checkFields('native', options, rules);
  const reason = whyNot();
  const addon = loadAddon();
  if (reason !== null || typeof addon === 'string') throw new UnsupportedError('native', reason ?? String(addon));
  const features = addon.features();
  const isa = options.isa ?? isas.findLast((name) => (features & isaFacts[name].feature) !== 0)!;
  const { feature, widest, instructions } = isaFacts[isa];
  if ((features & feature) === 0)
    throw new UnsupportedError('native', `this processor has no ${instructions}; leave isa out`);
  const vectorBytes = options.vectorBytes ?? widest;
  if (vectorBytes > widest)
    throw new UnsupportedError(
      'native',
      vectorBytes === 64 && isa === 'x64-v3'
        ? 'vectors of 64 bytes need isa x64-v4'
        : `vectors of ${isa} have ${widest} bytes at most, not ${vectorBytes}`,
    );
  const threads = threadCount(options.threads);
  const limit = Math.max(
    2 * pageBytes,
    Math.floor(Math.min(options.memory ?? defaultLimit, defaultLimit) / pageBytes) * pageBytes,
  );
  return {
    addon,
    threads,
    limit,
    target: {
      isa,
      vectorBytes,
      sharedBytes,
      scalarOffset: argSlots * 8,
      streamBytes,
      checked: options.checked === true,
    },
    caps: showCaps({
      dtypes: new Set(everyDType),
      nativeOps,
      castsFloat16: true,
      simt: false,
      // Vectors of 16 bytes are for the results of WebAssembly, so loops are shaped as for WebAssembly.
      lowering: options.vectorBytes === 16 ? vectorLowering : processorLowering(processorFacts(isa, vectorBytes)),
      vectorBytes,
      ...(vectorBytes > 16 && { fittingBytes: fittingBytes(vectorBytes) }),
      // Masks have a bit for each byte of a vector.
      ...(vectorBytes > 16 && isa === 'x64-v4' && { boolBytes: 1 }),
      sharedBytes,
      maxGroup: 1,
      maxBindings: 512,
      maxBufferBytes: limit - pageBytes,
      memoryBytes: limit,
      mergesFreed: true,
      bindAlign: 4,
      arena: true,
      parallelism: threads,
      // As on the CPU engine: results must not depend on threads.
      atomics: new Set(),
    }),
  };
}

function threadCount(asked: number | undefined): number {
  const text = process.env.POLYGRAD_THREADS;
  if (asked !== undefined || !text) return asked ?? Math.min(availableParallelism(), 8);
  const [fits, wanted] = threadRule;
  if (!fits(Number(text)))
    throw new ArgumentError('native', `bad POLYGRAD_THREADS: ${shown(text)}; must be ${wanted}, or left out`);
  return Number(text);
}

/** A name for the processor. */
export function processorName(): string {
  return cpus()[0]?.model.trim() ?? 'CPU';
}

/** What the speed of an engine depends on besides the processor: instructions, width of vectors, threads. */
export function factsOf({ target: { isa, vectorBytes }, threads }: Setup): string {
  return `${isaFacts[isa].instructions}, vectors of ${vectorBytes} bytes, ${threads} thread${threads === 1 ? '' : 's'}`;
}
