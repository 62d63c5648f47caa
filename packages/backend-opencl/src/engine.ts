/** The OpenCL engine: one context and one in-order queue on one device. All else is as for any engine with an addon (AddonEngine). */
import { AddonEngine, type AddonLibrary } from '@polygrad/addon';
import { showEngine } from '@polygrad/core/engine';
import { translate } from './errors.ts';
import type { OpenClKernel } from './kernel.ts';
import { Kernels, sourceOf } from './kernels.ts';
import { type OpenClEngineOptions, type Setup, setUp } from './setup.ts';

/**
 * An engine on an OpenCL device. Make one with `createOpenClEngine`.
 *
 * @example
 * if (listOpenClDevices().length > 0) {
 *   const engine: OpenClEngine = createOpenClEngine();
 *   console.log(engine.device);
 *   engine.dispose();
 * }
 */
export class OpenClEngine extends AddonEngine<OpenClKernel> {
  readonly name = 'opencl';
  /** Why programs are not kept on disk, or null. */
  readonly cacheRefused: string | null;
  readonly #kernels: Kernels;
  readonly #clblast: AddonLibrary | null;

  constructor(setup: Setup) {
    const kernels = new Kernels(setup);
    super({ ...setup, engine: 'opencl', kernels, translate, sourceOf });
    this.cacheRefused = setup.cache?.refused ?? null;
    this.#kernels = kernels;
    this.#clblast = setup.library;
  }

  /** Kernels compiled and kernels loaded from disk since the engine was made. */
  get builds(): { readonly compiled: number; readonly fromDisk: number } {
    return this.#kernels.builds;
  }

  /** Why CLBlast is not used, or null if it may be. */
  get clblastMissing(): string | null {
    return this.#clblast === null ? 'the option clblast is false' : this.#clblast.reason;
  }
}

showEngine(OpenClEngine.prototype, 'OpenClEngine');

/**
 * Makes an OpenCL engine.
 *
 * @throws EngineMissingError where there is no native part, no OpenCL library, or no device that fits
 * @example
 * import { createOpenClEngine, listOpenClDevices } from '@polygrad/backend-opencl';
 * if (listOpenClDevices().length > 0) {
 *   const engine = createOpenClEngine();
 *   const buffer = engine.alloc(8);
 *   engine.upload({ buffer, offset: 0, bytes: 8 }, Float32Array.of(1, 2));
 *   const bytes = await engine.download({ buffer, offset: 4, bytes: 4 }, new Uint8Array(4));
 *   if (new Float32Array(bytes.buffer)[0] !== 2) throw new Error('what was written is not what is read');
 *   engine.dispose();
 * }
 */
export function createOpenClEngine(options: OpenClEngineOptions = {}): OpenClEngine {
  return new OpenClEngine(setUp(options));
}
