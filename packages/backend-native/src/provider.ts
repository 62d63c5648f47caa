/** How the registry of core sees this package: a name, a probe, a way to make an engine. */
import { type BackendProvider, type IEngine, type Probe, UnsupportedError } from '@polygrad/core/engine';
import { createNativeEngine } from './engine.ts';
import type { NativeEngineOptions } from './options.ts';
import { selfTest } from './self-test.ts';
import { processorName, whyNot } from './setup.ts';

/** Below the CPU engine: chosen by name so far. */
const score = 5;

async function probe(): Promise<Probe> {
  const reason = whyNot() ?? selfTest();
  if (reason !== null) return { score: 0, reason, device: 'none' };
  return { score, reason: 'machine code for x86-64', device: processorName() };
}

/** The 'native' backend. Options: those of `createNativeEngine`. */
export const nativeProvider: BackendProvider = {
  name: 'native',
  probe,
  create(options?: Readonly<Record<string, unknown>>): IEngine {
    const wrong = whyNot() === null ? selfTest() : null;
    if (wrong !== null) throw new UnsupportedError('native', `its self-test failed: ${wrong}`);
    return createNativeEngine(options as NativeEngineOptions | undefined);
  },
};
