/** Entry point @polygrad/backend-cpu: importing it registers the backend under the name 'cpu'. */
import { registerBackend } from '@polygrad/core/engine';
import { cpuProvider } from './provider.ts';

export { CpuEngine, createCpuEngine } from './engine.ts';
export { cpuProvider } from './provider.ts';
export { type CpuEngineOptions, maxThreads } from './options.ts';

registerBackend(cpuProvider);
