/** The CPU engine with its compiler: whatever it is asked, it computes at once. planned.ts is one that loads the compiler when a plan is missing. */
import { showEngine } from '@polygrad/core/engine';
import { kernelCode } from './kernel-code.ts';
import type { CpuEngineOptions } from './options.ts';
import { WasmEngine } from './wasm-engine.ts';

/**
 * An engine on WebAssembly. Make one with `createCpuEngine`.
 *
 * @example
 * const engine: CpuEngine = createCpuEngine({ threads: 1 });
 * engine.name; // 'cpu'
 * engine.dispose();
 */
export class CpuEngine extends WasmEngine {
  constructor(options: CpuEngineOptions = {}) {
    super(options, kernelCode.lowering, () => kernelCode);
  }
}

showEngine(CpuEngine.prototype, 'CpuEngine');

/**
 * Makes a CPU engine.
 *
 * @example
 * import { createCpuEngine } from '@polygrad/backend-cpu';
 * const engine = createCpuEngine({ threads: 1 });
 * const buffer = engine.alloc(8);
 * engine.upload({ buffer, offset: 0, bytes: 8 }, Float32Array.of(1, 2));
 * const bytes = engine.downloadSync({ buffer, offset: 4, bytes: 4 }, new Uint8Array(4));
 * console.log(new Float32Array(bytes.buffer)[0]); //=> 2
 * engine.dispose();
 */
export function createCpuEngine(options: CpuEngineOptions = {}): CpuEngine {
  return new CpuEngine(options);
}
