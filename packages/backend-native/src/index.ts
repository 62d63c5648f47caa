/** Entry point of @polygrad/backend-native: importing it registers the backend under the name 'native'. */
import { registerBackend } from '@polygrad/core/engine';
import { nativeProvider } from './provider.ts';

export { createNativeEngine } from './create.ts';
export { NativeEngine } from './engine.ts';
export type { NativeEngineOptions } from './options.ts';
export { nativeProvider } from './provider.ts';

registerBackend(nativeProvider);
