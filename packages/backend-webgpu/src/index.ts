/** Entry point @polygrad/backend-webgpu: importing it registers the backend under the name 'webgpu'. */
import { registerBackend } from '@polygrad/core/engine';
import { webgpuProvider } from './provider.ts';

export { createWebGpuEngine } from './create.ts';
export type { CompileProgress, WebGpuEngineOptions } from './options.ts';
export { webgpuProvider } from './provider.ts';
export { type WebGpuEngine, WebGpuError } from './public.ts';

registerBackend(webgpuProvider);
