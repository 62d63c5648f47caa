/**
 * The CUDA engine: streams on one card.
 *
 * Uploads and reads have separate streams beside the kernels'. Everything else is as for any engine with an addon (AddonEngine).
 */
import { AddonEngine, type AddonLibrary } from '@polygrad/addon';
import { DeviceFaultError, showEngine } from '@polygrad/core/engine';
import type { Driver } from './addon.ts';
import { codeName, translate } from './errors.ts';
import type { CudaKernel } from './kernel.ts';
import { Kernels, sourceOf } from './kernels.ts';
import { type CudaEngineOptions, type Setup, setUp } from './setup.ts';

/** What an engine has done since it was made. */
export interface CudaStats {
  /** Texts of kernels given to the driver's compiler: none where a program goes on as before. */
  readonly compiled: number;
  /** Kernels whose text was compiled already. */
  readonly reused: number;
  /** Native calls that enqueued commands, and how many commands. */
  readonly batches: number;
  readonly commands: number;
  readonly uploadedBytes: number;
  readonly downloadedBytes: number;
  /** Batches launched as one graph, graphs made for that, and kernels in them that were told of other bindings, scalars or groups. */
  readonly graphs: number;
  readonly graphsMade: number;
  readonly graphsUpdated: number;
}

/**
 * An engine on an NVIDIA card. Make one with `createCudaEngine`.
 *
 * @example
 * if (listCudaDevices().length > 0) {
 *   const engine: CudaEngine = createCudaEngine();
 *   console.log(engine.device);
 *   engine.dispose();
 * }
 */
export class CudaEngine extends AddonEngine<CudaKernel> {
  readonly name = 'cuda';
  readonly #driver: Driver;
  readonly #kernels: Kernels;
  readonly #cublasLt: AddonLibrary | null;
  readonly #cudnn: AddonLibrary | null;
  #graphFacts: Float64Array = new Float64Array(4);

  constructor(setup: Setup) {
    const kernels = new Kernels(setup);
    super({ ...setup, engine: 'cuda', kernels, translate, sourceOf });
    this.#driver = setup.driver;
    this.#kernels = kernels;
    this.#cublasLt = setup.cublasLt;
    this.#cudnn = setup.cudnn;
  }

  get stats(): CudaStats {
    const [graphsMade = 0, graphs = 0, graphsUpdated = 0] = this.#graphs();
    return { ...this.#kernels.counts, ...this.done, graphs, graphsMade, graphsUpdated };
  }

  /** The driver's code of the fault that ended the engine, or null. No engine works on the card in this process after one. */
  get fault(): number | null {
    const { loss } = this;
    return loss instanceof DeviceFaultError ? loss.driverCode : null;
  }

  /** Why batches are not launched as graphs, or null where they may be. */
  get graphsMissing(): string | null {
    const [, , , off = 0] = this.#graphs();
    if (off === 0) return null;
    if (off === -1) return 'the option graphs is false';
    return off === -2 ? 'the driver has none' : `the driver says ${codeName(off)} (${off})`;
  }

  /** What the driver says of them, the last it said once the engine is gone. */
  #graphs(): Float64Array {
    if (this.live) this.#graphFacts = this.call('stats', () => this.#driver.graphFacts());
    return this.#graphFacts;
  }

  /** Why cuBLASLt is not used, or null if it may be. */
  get cublasLtMissing(): string | null {
    return this.#cublasLt === null ? 'the option cublasLt is false' : this.#cublasLt.reason;
  }

  /** Why cuDNN is not used, or null if it may be. */
  get cudnnMissing(): string | null {
    return this.#cudnn === null ? 'the option cudnn is false' : this.#cudnn.reason;
  }

  protected override reserved(): number {
    const [, , reserved = 0] = this.call('memory', () => this.#driver.memoryInfo());
    return reserved;
  }
}

showEngine(CudaEngine.prototype, 'CudaEngine');

/**
 * Makes a CUDA engine.
 *
 * @throws EngineMissingError where there is no native part, no driver, or no card that fits
 * @example
 * import { createCudaEngine, listCudaDevices } from '@polygrad/backend-cuda';
 * if (listCudaDevices().some(({ score }) => score > 0)) {
 *   const engine = createCudaEngine();
 *   const buffer = engine.alloc(8);
 *   engine.upload({ buffer, offset: 0, bytes: 8 }, Float32Array.of(1, 2));
 *   const bytes = await engine.download({ buffer, offset: 4, bytes: 4 }, new Uint8Array(4));
 *   if (new Float32Array(bytes.buffer)[0] !== 2) throw new Error('what was written is not what is read');
 *   engine.dispose();
 * }
 */
export function createCudaEngine(options: CudaEngineOptions = {}): CudaEngine {
  return new CudaEngine(setUp(options));
}
