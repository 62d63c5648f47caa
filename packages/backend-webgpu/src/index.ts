/** Entry point @polygrad/backend-webgpu: importing it registers the backend under the name 'webgpu'. */
import { registerBackend } from '@polygrad/core/engine';
import { webgpuProvider } from './create.ts';

export { createWebGpuEngine, webgpuProvider } from './create.ts';
export type { CompileProgress, WebGpuEngineOptions } from './options.ts';
export { type WebGpuEngine, WebGpuError } from './public.ts';

registerBackend(webgpuProvider);
