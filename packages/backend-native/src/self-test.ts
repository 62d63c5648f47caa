/** The self-test of the first engine on an instruction set, on two threads. An engine that fails it is not offered. */
import { selfTestSync } from '@polygrad/core/engine/self-test';
import { NativeEngine } from './engine.ts';
import type { NativeEngineOptions } from './options.ts';

function run(options: NativeEngineOptions): string | null {
  let engine: NativeEngine | null = null;
  try {
    // A second thread takes part only in kernels with many groups.
    engine = new NativeEngine({ ...options, threads: 2 });
    return selfTestSync(engine).wrong;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    engine?.dispose();
  }
}

const found = new Map<string, string | null>();

/** What is wrong with native code on this machine, or null. Tested once for each instruction set and vector width. */
export function selfTest({ isa, vectorBytes }: NativeEngineOptions = {}): string | null {
  const key = `${isa} ${vectorBytes}`;
  let result = found.get(key);
  if (result === undefined) {
    result = run({ ...(isa && { isa }), ...(vectorBytes && { vectorBytes }) });
    found.set(key, result);
  }
  return result;
}
