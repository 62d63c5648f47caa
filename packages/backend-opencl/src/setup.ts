/** What a new engine is made of: its options, its device and driver, the capabilities it reports. */
import {
  checkFields,
  type EngineCaps,
  EngineMissingError,
  type EngineTuning,
  oneOf,
  type OptionRules,
  showCaps,
  type TuningStore,
} from '@polygrad/core/engine';
import { type AddonLibrary, deviceRules, isNativeError, namedDevice, tuningOf, withDriverCode } from '@polygrad/addon';
import { cacheFolder } from '@polygrad/core/engine/folders';
import { anyLowering } from '@polygrad/core/engine/threads';
import type { KOp } from '@polygrad/core/kernel';
import { type DType, type OpenClOptions, openClNativeOps } from '@polygrad/emit-c';
import { type DeviceRecord, type Driver, libraryPath } from './addon.ts';
import { clblast, clblastOf } from './clblast.ts';
import { lockFileOf, poclLockFolder, poclVariables } from './build-locks.ts';
import { chooseDevice } from './devices.ts';
import { codeName } from './errors.ts';
import { ProgramCache } from './program-cache.ts';

/** Options of `createOpenClEngine`. */
export interface OpenClEngineOptions {
  /**
   * The device: its index in `listOpenClDevices()`, or a part of the name of the device, its vendor or platform. Default:
   * POLYGRAD_OPENCL_DEVICE (either of them), else the device with the highest score.
   */
  readonly device?: number | string;
  /** Kernels for groups of threads with barriers, as for a GPU. Default: true but for processors, where one thread runs a group. */
  readonly simt?: boolean;
  /** Most bytes of device memory to hold. Default: all the device has. */
  readonly memory?: number;
  /**
   * Folder for compiled programs, or false for none. Default: polygrad/opencl below XDG_CACHE_HOME, on Windows
   * LOCALAPPDATA, else ~/.cache. It must belong to the user alone (mode 0700), otherwise it is left alone.
   */
  readonly cache?: string | false;
  /**
   * Tuning (`tune` of @polygrad/core). 'load': what was measured on the device in earlier runs is used. 'automatic': what is new is
   * measured, too, soon after it was first run; sums are then added in another order from there on. Default: 'automatic', but 'load'
   * on processors.
   */
  readonly tuning?: 'automatic' | 'load' | false;
  /** Where measurements are kept. Default: `defaultStore()` of @polygrad/core. */
  readonly tuningStore?: TuningStore;
  /**
   * false: CLBlast is not looked for. By default it computes products of matrices where it is installed and was measured faster on
   * the device than the engine's own kernels.
   */
  readonly clblast?: boolean;
}

/** Everything an engine needs that does not change. */
export interface Setup {
  readonly driver: Driver;
  readonly device: string;
  readonly caps: EngineCaps;
  readonly cache: ProgramCache | null;
  readonly buildOptions: string;
  readonly printOptions: OpenClOptions;
  /** What decides compiled programs besides source and options. */
  readonly identity: readonly string[];
  /** The driver compiles a kernel for good when its binary is asked for, and once more if it is not loaded from there. */
  readonly reload: boolean;
  /** Where files lie that are locked while programs are built, or null where drivers of several processes are safe from each other. */
  readonly lockFolder: string | null;
  /** Most bytes to hold. */
  readonly limit: number;
  readonly tuning: EngineTuning | null;
  readonly library: AddonLibrary | null;
}

/** The device wished for: the options', else POLYGRAD_OPENCL_DEVICE. */
export function wishedDevice(options: OpenClEngineOptions): number | string | undefined {
  return namedDevice(options.device, 'POLYGRAD_OPENCL_DEVICE');
}

const flag = oneOf(true, false);
const rules: OptionRules<OpenClEngineOptions> = {
  ...deviceRules('the index of a device or a part of its name'),
  simt: flag,
  cache: [
    (value: unknown) => value === false || (typeof value === 'string' && value !== ''),
    'the path of a folder, or false',
  ],
  clblast: flag,
};

/**
 * Opens a device.
 *
 * @throws ArgumentError for options that are not known, and values that do not fit
 */
export function setUp(options: OpenClEngineOptions): Setup {
  checkFields('opencl', options, rules);
  const { addon, record, device } = chooseDevice(wishedDevice(options));
  const simt = options.simt ?? device.type !== 'cpu';
  // It compiles one program at a time and runs kernels in the thread that waits for them: a second thread that compiles ends the process,
  // and measuring beside the program would be one.
  const isSimulator = device.platform === 'Oclgrind';
  let driver: Driver;
  try {
    driver = new addon.Driver(device.index, device.unifiedMemory, !isSimulator);
  } catch (error) {
    if (!isNativeError(error)) throw error;
    const why = `${device.name} cannot be opened: ${error.call} says ${codeName(error.code)}`;
    throw withDriverCode(new EngineMissingError('opencl', why), error);
  }
  const isPocl = record.platform === 'Portable Computing Language';
  const folder = options.cache ?? (isSimulator ? false : cacheFolder('opencl'));
  const lockFolder = isPocl ? poclLockFolder() : null;
  const lock = lockFolder === null ? '' : lockFileOf(lockFolder, ['clblast']);
  const facts = factsOf(record);
  const limit = Math.min(options.memory ?? Number.POSITIVE_INFINITY, record.globalBytes);
  return {
    driver,
    device: `${record.name} (${record.platform})${simt && device.type === 'cpu' ? ', groups of threads' : ''}`,
    caps: capsOf(record, facts, simt, options.simt === true, limit),
    cache: folder === false ? null : new ProgramCache(folder),
    buildOptions: `-cl-std=CL1.2 -w${facts.exactDivision ? ' -cl-fp32-correctly-rounded-divide-sqrt' : ''}`,
    printOptions: {
      fp64: facts.fp64,
      int64Atomics: facts.int64Atomics,
      fastFma: facts.fastFma,
      unroll: 'none',
      fenceBranches: isPocl,
      wholeBytes: isPocl,
    },
    identity: [
      ...[record.platform, record.platformVersion, record.name, record.vendor, record.version, record.driver],
      ...(isPocl ? poclVariables() : []),
    ],
    reload: isPocl,
    lockFolder,
    tuning: isSimulator ? null : tuningOf(options, device.type === 'cpu' ? 'load' : 'automatic'),
    library:
      isSimulator || options.clblast === false
        ? null
        : clblast(driver, clblastOf(addon, libraryPath()), facts.fp64, lock),
    limit,
  };
}

interface Facts {
  readonly fp64: boolean;
  readonly int64Atomics: boolean;
  readonly denormals: boolean;
  readonly fastFma: boolean;
  readonly exactDivision: boolean;
}

/** Bits of CL_DEVICE_SINGLE_FP_CONFIG. */
const denormalsBit = 1 << 0;
const fmaBit = 1 << 5;
const exactDivisionBit = 1 << 7;

function factsOf(record: DeviceRecord): Facts {
  const extensions = new Set(record.extensions.split(' '));
  return {
    fp64: extensions.has('cl_khr_fp64'),
    int64Atomics: extensions.has('cl_khr_int64_base_atomics') && extensions.has('cl_khr_int64_extended_atomics'),
    denormals: (record.floatConfig & denormalsBit) !== 0,
    fastFma: (record.floatConfig & fmaBit) !== 0,
    exactDivision: (record.floatConfig & exactDivisionBit) !== 0,
  };
}

// biome-ignore format: a list
const everywhere: readonly DType[] = [
  'float32', 'float16', 'bfloat16', 'int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64', 'bool',
];

/** CL_GLOBAL: local memory is a part of the ordinary one. */
const ordinaryMemory = 2;

function capsOf(record: DeviceRecord, facts: Facts, simt: boolean, asked: boolean, limit: number): EngineCaps {
  const nativeOps = new Set<KOp>(openClNativeOps);
  if (facts.fastFma) nativeOps.add('FMA');
  return showCaps({
    dtypes: new Set<DType>(facts.fp64 ? [...everywhere, 'float64'] : everywhere),
    nativeOps,
    flushesDenormals: !facts.denormals,
    simt,
    lowering: anyLowering,
    // Wider vectors than the processor's own need more registers than it has.
    vectorBytes: simt ? 16 : 4 * Math.min(16, Math.max(4, record.floatLanes)),
    sharedBytes: record.localBytes,
    // Who asks for groups of threads on a processor wants to see what a card would do.
    sharedIsMemory: simt && !asked && record.localType === ordinaryMemory,
    maxGroup: simt ? Math.min(record.maxGroup, 1024) : 1,
    // Two arguments for each tensor, of eight bytes each, and room for scalars.
    maxBindings: Math.min(512, Math.floor((record.maxParameterBytes - 256) / 16)),
    maxBufferBytes: Math.min(record.maxAllocBytes, record.globalBytes),
    memoryBytes: limit,
    bindAlign: 4,
    arena: true,
    parallelism: record.computeUnits,
    // Programs may use ATOMIC, but the order of float additions would depend on the threads; results here never do.
    atomics: new Set(),
  });
}
