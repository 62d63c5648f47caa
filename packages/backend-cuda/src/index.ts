/** Entry point @polygrad/backend-cuda: importing it registers the backend under the name 'cuda'. */
import { registerBackend } from '@polygrad/core/engine';
import { cudaProvider } from './provider.ts';

export { type CudaDevice, listCudaDevices } from './devices.ts';
export { createCudaEngine, type CudaEngine, type CudaStats } from './engine.ts';
export type { CudaEngineOptions } from './setup.ts';
export { cudaProvider } from './provider.ts';

registerBackend(cudaProvider);
