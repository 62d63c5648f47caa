/**
 * Entry point @polygrad/backend-cpu/planned: importing it registers the backend 'cpu' with an engine that has no compiler until a plan is missing.
 *
 * For pages that bring their plans (`usePlanFile` of `@polygrad/core/plans`): they carry what runs plans, not what makes them. A computation whose plan is
 * in no file loads the compiler and waits for it; one that cannot wait, as `dataSync()`, throws UnsupportedError.
 */
import { type BackendProvider, type IEngine, registerBackend, showEngine } from '@polygrad/core/engine';
import { LateCode, laterLowering } from '@polygrad/core/engine/planned';
import type { KernelCode } from './kernel-code.ts';
import type { CpuEngineOptions } from './options.ts';
import { probeCpu } from './probe.ts';
import { WasmEngine } from './wasm-engine.ts';

const compiler = new LateCode<KernelCode>(
  'cpu',
  'the compiler, which a plan that was not brought along needs,',
  "await loadCompiler() of '@polygrad/backend-cpu/planned' before",
  async () => {
    const { kernelCode } = await import('./kernel-code.ts');
    Object.assign(lowering, kernelCode.lowering);
    return kernelCode;
  },
);

const lowering = laterLowering(() => compiler.get().lowering);

/**
 * Loads the compiler now, for what is to be read synchronously though its plan is in no file. Resolves when it is there.
 *
 * @throws UnsupportedError if it cannot be loaded
 * @example
 * import { loadCompiler } from '@polygrad/backend-cpu/planned';
 * import { tensor } from '@polygrad/core';
 * await loadCompiler();
 * console.log(tensor([1, 2]).add(1).arraySync()); //=> [ 2, 3 ]
 */
export function loadCompiler(): Promise<void> {
  return compiler.load();
}

/**
 * Makes a CPU engine that loads its compiler when a plan is missing.
 *
 * @throws ArgumentError for wrong options
 * @example
 * import { createPlannedEngine } from '@polygrad/backend-cpu/planned';
 * const engine = createPlannedEngine({ threads: 1 });
 * console.log(engine.name); //=> cpu
 * engine.dispose();
 */
export function createPlannedEngine(options: CpuEngineOptions = {}): IEngine {
  return new WasmEngine(options, lowering, () => compiler.get());
}

/** The 'cpu' backend, whose engine loads its compiler when a plan is missing. Options: those of `createPlannedEngine`. */
export const plannedCpuProvider: BackendProvider = {
  name: 'cpu',
  probe: probeCpu,
  create: (options) => createPlannedEngine(options as CpuEngineOptions | undefined),
};

showEngine(WasmEngine.prototype, 'CpuEngine');
registerBackend(plannedCpuProvider);
