/** What a new engine is made of: its options, its card and driver, the capabilities it reports. */
import {
  type AddonLibrary,
  deviceRules,
  isNativeError,
  namedDevice,
  type ProductLibraries,
  SeveralLibraries,
  tuningOf,
  withDriverCode,
} from '@polygrad/addon';
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
import { matrixLowering } from '@polygrad/core/engine/threads';
import { ptxCaps, type PtxTarget } from '@polygrad/emit-ptx';
import type { DeviceRecord, Driver } from './addon.ts';
import { cublasLt, openCublasLt } from './cublaslt.ts';
import { cudnn, openCudnn } from './cudnn.ts';
import { chooseDevice } from './devices.ts';
import { codeName, fatalCodes } from './errors.ts';
import { isaOf } from './target.ts';

/** Options of `createCudaEngine`. */
export interface CudaEngineOptions {
  /**
   * The card: its index in `listCudaDevices()`, its UUID or the beginning of it, or a part of its name. Default:
   * POLYGRAD_CUDA_DEVICE (any of them), else the card with the highest score.
   */
  readonly device?: number | string;
  /** Most bytes of the card's memory to hold. Default: all it has. */
  readonly memory?: number;
  /**
   * Tuning (`tune` of @polygrad/core). 'load': what was measured on the card in earlier runs is used. 'automatic': what is new is
   * measured, too, soon after it was first run; sums are then added in another order from there on. Default: 'automatic'.
   */
  readonly tuning?: 'automatic' | 'load' | false;
  /** Where measurements are kept. Default: `defaultStore()` of @polygrad/core. */
  readonly tuningStore?: TuningStore;
  /**
   * false: cuBLASLt is not looked for. By default it computes products of matrices where it is installed and was measured faster on
   * the card than the engine's own kernels.
   */
  readonly cublasLt?: boolean;
  /** false: cuDNN is not looked for. By default it computes convolutions where it is installed and was measured faster, as cuBLASLt products. */
  readonly cudnn?: boolean;
  /** false: kernels are launched one by one. By default a batch that comes for the third time is launched as one, by a graph of the driver. */
  readonly graphs?: boolean;
  /**
   * How exact products of matrices of float32 are. 'high': factors are rounded to TF32, which has ten binary digits behind the point; cards from
   * compute capability 8.0 on multiply it many times as fast. Default: 'highest', float32 throughout.
   */
  readonly float32MatmulPrecision?: 'highest' | 'high';
}

/** Everything an engine needs that does not change. */
export interface Setup {
  readonly driver: Driver;
  readonly device: string;
  readonly caps: EngineCaps;
  readonly target: PtxTarget;
  /** Most bytes to hold. */
  readonly limit: number;
  readonly tuning: EngineTuning | null;
  /** Both libraries together; null where none is wanted. */
  readonly library: ProductLibraries | null;
  readonly cublasLt: AddonLibrary | null;
  readonly cudnn: AddonLibrary | null;
}

/** The card wished for: the options', else POLYGRAD_CUDA_DEVICE. */
export function wishedDevice(options: CudaEngineOptions): number | string | undefined {
  return namedDevice(options.device, 'POLYGRAD_CUDA_DEVICE');
}

const flag = oneOf(true, false);
const rules: OptionRules<CudaEngineOptions> = {
  ...deviceRules('the index of a card, its UUID or a part of its name'),
  float32MatmulPrecision: oneOf('highest', 'high'),
  cublasLt: flag,
  cudnn: flag,
  graphs: flag,
};

/**
 * Opens a card.
 *
 * @throws ArgumentError for options that are not known, and values that do not fit
 */
export function setUp(options: CudaEngineOptions): Setup {
  checkFields('cuda', options, rules);
  const { addon, record, device, simulated } = chooseDevice(wishedDevice(options));
  let driver: Driver;
  try {
    driver = new addon.Driver(device.index, true, options.graphs !== false, options.float32MatmulPrecision === 'high');
  } catch (error) {
    if (!isNativeError(error)) throw error;
    const { code, call } = error;
    const why = fatalCodes.has(code)
      ? `a fault ended it in this process (${codeName(code)}): start the process anew`
      : `${call} says ${codeName(code)} (${code})${code === 46 || code === 101 ? ': another process may hold it alone' : ''}`;
    throw withDriverCode(new EngineMissingError('cuda', `${device.name} cannot be opened: ${why}`), error);
  }
  const limit = Math.min(options.memory ?? Number.POSITIVE_INFINITY, record.memoryBytes);
  const target = { computeCapability: 10 * record.major + record.minor, isa: isaOf(addon.version()) };
  const { computeCapability } = target;
  const ofMatrices = options.cublasLt === false ? null : cublasLt(driver, computeCapability, () => openCublasLt(addon));
  const ofConvolutions = options.cudnn === false ? null : cudnn(driver, computeCapability, () => openCudnn(addon));
  return {
    driver,
    device: `${device.name} (compute capability ${device.capability})`,
    caps: capsOf(record, target, options, limit),
    target,
    limit,
    // There is nothing to measure on the processor that plays the card.
    tuning: simulated && options.tuning === undefined ? null : tuningOf(options),
    library: librariesOf(ofMatrices, ofConvolutions),
    cublasLt: ofMatrices,
    cudnn: ofConvolutions,
  };
}

/** What an engine computes products by. */
export function librariesOf(...libraries: readonly (AddonLibrary | null)[]): ProductLibraries | null {
  const wanted = libraries.filter((library) => library !== null);
  return wanted.length === 0 ? null : new SeveralLibraries(wanted);
}

function capsOf(
  record: DeviceRecord,
  target: PtxTarget,
  { float32MatmulPrecision = 'highest' }: CudaEngineOptions,
  limit: number,
): EngineCaps {
  const { sharedBytes, sharedOptInBytes, maxGroup, multiprocessors, memoryBytes } = record;
  const most = Math.max(sharedBytes, sharedOptInBytes);
  const limits = { sharedBytes: most, maxGroup, multiprocessors, float32MatmulPrecision };
  return showCaps({
    ...ptxCaps(target.computeCapability, limits),
    lowering: matrixLowering,
    maxBufferBytes: memoryBytes,
    memoryBytes: limit,
    // Loads and stores of vectors are of 16 bytes.
    bindAlign: 16,
    arena: true,
  });
}
