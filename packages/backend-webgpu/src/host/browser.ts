/** Browsers (and other programs with `navigator.gpu`): the entry is there or it is not. */
import type { Host } from './host.ts';

export const host: Host = {
  gpu: async () => {
    const { gpu } = (globalThis.navigator ?? {}) as { gpu?: GPU };
    if (gpu !== undefined) return gpu;
    return globalThis.isSecureContext === false
      ? 'WebGPU is there only on secure pages: serve this one over https, or from localhost'
      : 'this browser has no WebGPU (no navigator.gpu)';
  },
  paced: (start) => start(),
  asking: (start) => start(),
  memoryBytes: () => undefined,
};
