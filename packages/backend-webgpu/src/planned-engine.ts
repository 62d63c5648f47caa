/** WebGPU engines without their compiler, which they load when a plan is missing. One takes the adapter for one of the best profile that a file of plans has. */
import {
  ArgumentError,
  type CompiledKernel,
  type EngineCaps,
  EngineMissingError,
  type KeptCode,
  showEngine,
} from '@polygrad/core/engine';
import { hasPlansFor, LateCode, laterLowering } from '@polygrad/core/engine/planned';
import { describe, type Found } from './device/naming.ts';
import type { Offered } from './device/adapter.ts';
import { arithmeticOf } from './device/arithmetic.ts';
import { capsOf, openDevice } from './device/device.ts';
import { decided, hasProfile, profileCaps, profiles } from './device/profile.ts';
import { WebGpuEngine } from './gpu-engine.ts';
import type { KernelCode } from './kernel-code.ts';
import type { WebGpuKernel } from './kernels/kernel.ts';
import { keptFrom, shaderKept } from './kernels/kept.ts';
import { checkOptions, type WebGpuEngineOptions, type WebGpuProfile } from './options.ts';

export { describe } from './device/naming.ts';
export { checkOptions } from './options.ts';

/** A compiler that is loaded when it is asked for something. */
class LateCompiler implements KernelCode {
  readonly #code = new LateCode<KernelCode>(
    'webgpu',
    'the compiler, which a plan that was not brought along needs,',
    "await loadWebGpuCompiler() of '@polygrad/backend-webgpu/planned' before",
    async () => {
      const { kernelCode } = await import('./kernel-code.ts');
      Object.assign(this.lowering, kernelCode.lowering);
      return kernelCode;
    },
  );
  readonly lowering: KernelCode['lowering'] = laterLowering(() => this.#code.get().lowering);
  readonly caps?: Partial<EngineCaps>;

  /** With capabilities of a profile in the place of a device's. */
  constructor(profile?: WebGpuProfile) {
    if (profile !== undefined) this.caps = profileCaps(profile);
  }

  readonly keepRounding: KernelCode['keepRounding'] = (...args) => this.#code.get().keepRounding(...args);

  readonly shaderOf: KernelCode['shaderOf'] = (program, f16) =>
    program.kept ? shaderKept(program, program.kept) : this.#code.get().shaderOf(program, f16);

  /** A program that was brought along has no text, and all others come from the compiler. */
  readonly printProgram: KernelCode['printProgram'] = (program) =>
    program.body.length === 0 ? '' : this.#code.get().printProgram(program);

  load(): Promise<void> {
    return this.#code.load();
  }
}

/** Loads the compiler now; resolves when it is there. */
export function loadWebGpuCompiler(): Promise<void> {
  return new LateCompiler().load();
}

/** What code depends on besides programs, capabilities and the library: nothing. */
const codeKey = 'wgsl';

/** An engine that takes its device for one of a profile: its plans fit others. */
class ProfiledEngine extends WebGpuEngine {
  readonly isPortable = true;
  readonly codeKey: string = codeKey;
  override readonly device: string;

  constructor(
    gpu: GPUDevice,
    found: Found,
    compiler: LateCompiler,
    options: WebGpuEngineOptions,
    profile: WebGpuProfile,
  ) {
    super(gpu, found, compiler, { ...options, tuning: false });
    this.device = `${found.name}, profile ${profile}`;
  }

  codeOf(kernel: CompiledKernel): KeptCode {
    return keptFrom((kernel as WebGpuKernel).code.shader);
  }
}

showEngine(ProfiledEngine.prototype, 'WebGpuEngine');

/** The best profile that a file in use has plans for, and the adapter has. */
function bestFor(found: Found, gpu: GPUDevice): WebGpuProfile | undefined {
  const { lowering, keepRounding } = new LateCompiler();
  const caps: EngineCaps = { ...capsOf(gpu, lowering), keepRounding };
  return profiles.find(
    (profile) =>
      hasProfile(profile, found) &&
      hasPlansFor({ name: 'webgpu', codeKey, caps: { ...caps, ...profileCaps(profile) } }),
  );
}

/** Throws where the adapter does not have a profile, or options say what it says. */
function checkProfile(profile: WebGpuProfile, found: Found, options: WebGpuEngineOptions): void {
  const other = decided.find((name) => options[name] !== undefined);
  if (other !== undefined)
    throw new ArgumentError(
      'createPlannedWebGpuEngine',
      `profile '${profile}' decides ${other}, and the options say ${JSON.stringify(options[other])}: leave one of them out`,
    );
  if (!hasProfile(profile, found))
    throw new EngineMissingError(
      'webgpu',
      `the adapter ${found.name} lacks what the profile '${profile}' asks for; name another, 'common' is for all`,
    );
}

/**
 * An engine on a device of the adapter. Of a profile that files in use have plans for, it loads its compiler when a plan is missing. Otherwise it has that from the
 * start: no plan fits it, or plans shall be recorded. Those must be what is asked for first, and a flush that had to wait may ask for others.
 */
export async function openPlanned(
  offered: Offered,
  options: WebGpuEngineOptions,
  asked: WebGpuProfile | undefined,
): Promise<WebGpuEngine> {
  checkOptions(options);
  const found = describe(offered);
  if (asked !== undefined) checkProfile(asked, found, options);
  const gpu = await openDevice(found);
  const isFree = asked === undefined && decided.every((name) => options[name] === undefined);
  const best = isFree ? bestFor(found, gpu) : undefined;
  const profile = asked ?? best;
  const compiler = new LateCompiler(profile);
  try {
    if (best === undefined) await compiler.load();
  } catch (error) {
    gpu.destroy();
    throw error;
  }
  const arithmetic = profile === undefined ? await arithmeticOf(gpu) : {};
  return profile === undefined
    ? new WebGpuEngine(gpu, found, compiler, options, arithmetic)
    : new ProfiledEngine(gpu, found, compiler, options, profile);
}
