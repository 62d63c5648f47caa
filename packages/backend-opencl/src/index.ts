/** Entry point @polygrad/backend-opencl: importing it registers the backend under the name 'opencl'. */
import { registerBackend } from '@polygrad/core/engine';
import { openClProvider } from './provider.ts';

export { listOpenClDevices, type OpenClDevice } from './devices.ts';
export { createOpenClEngine, type OpenClEngine } from './engine.ts';
export type { OpenClEngineOptions } from './setup.ts';
export { openClProvider } from './provider.ts';

registerBackend(openClProvider);
