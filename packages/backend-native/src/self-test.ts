/** What the first engine on a set of instructions must get right before it is used, on two threads. An engine that gets it wrong is not offered. */
import { selfTestSync } from '@polygrad/core/engine/self-test';
import { NativeEngine } from './engine.ts';
import type { NativeEngineOptions } from './options.ts';

function run(options: NativeEngineOptions): string | null {
  let engine: NativeEngine | null = null;
  try {
    // A second thread takes part where the groups of a kernel are many.
    engine = new NativeEngine({ ...options, threads: 2 });
    return selfTestSync(engine).wrong;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    engine?.dispose();
  }
}

const found = new Map<string, string | null>();

/** What is wrong with native code on this machine, or null. Found once for each set of instructions and width of vectors. */
export function selfTest({ isa, vectorBytes }: NativeEngineOptions = {}): string | null {
  const key = `${isa} ${vectorBytes}`;
  let result = found.get(key);
  if (result === undefined) {
    result = run({ ...(isa && { isa }), ...(vectorBytes && { vectorBytes }) });
    found.set(key, result);
  }
  return result;
}
