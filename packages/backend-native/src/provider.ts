/** How the registry of core sees this package: a name, a probe, a way to make an engine. */
import { totalmem } from 'node:os';
import type { BackendProvider, IEngine, Probe } from '@polygrad/core/engine';
import { createNativeEngine } from './create.ts';
import { NativeEngine } from './engine.ts';
import type { NativeEngineOptions } from './options.ts';
import { selfTest } from './self-test.ts';
import { factsOf, processorName, setUp, whyNot } from './setup.ts';

/** Below the CPU engine, so that it comes first only where it was measured faster (`Probe.processor`). */
const score = 5;

async function probe(): Promise<Probe> {
  const reason = whyNot();
  if (reason !== null) return { score: 0, reason, device: 'none' };
  const setup = setUp({});
  const wrong = selfTest(setup.target);
  if (wrong !== null) return { score: 0, reason: `its self-test failed: ${wrong}`, device: 'none' };
  const processor = processorName();
  return {
    score,
    reason: `machine code, ${factsOf(setup)}`,
    device: processor,
    memoryBytes: totalmem(),
    processor: `${processor}, ${factsOf(setup)}`,
  };
}

/** The 'native' backend. Options: those of `createNativeEngine`. */
export const nativeProvider: BackendProvider = {
  name: 'native',
  probe,
  create(options?: Readonly<Record<string, unknown>>, known?: { readonly isProven: boolean }): IEngine {
    const own = options as NativeEngineOptions | undefined;
    return known?.isProven ? new NativeEngine(own) : createNativeEngine(own);
  },
};
