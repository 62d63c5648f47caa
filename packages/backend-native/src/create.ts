/** Makes an engine, but only where native code has passed the self-test. */
import { UnsupportedError } from '@polygrad/core/engine';
import { NativeEngine } from './engine.ts';
import type { NativeEngineOptions } from './options.ts';
import { selfTest } from './self-test.ts';
import { setUp } from './setup.ts';

/**
 * Makes a native engine.
 *
 * @throws UnsupportedError if there is no native engine here, or if it computes wrongly on this machine
 * @example
 * import { createNativeEngine } from '@polygrad/backend-native';
 * const engine = createNativeEngine({ threads: 1, vectorBytes: 16 });
 * engine.caps.vectorBytes; // 16
 * engine.dispose();
 */
export function createNativeEngine(options: NativeEngineOptions = {}): NativeEngine {
  const wrong = selfTest(setUp(options).target);
  if (wrong !== null) throw new UnsupportedError('native', `its self-test failed: ${wrong}`);
  return new NativeEngine(options);
}
