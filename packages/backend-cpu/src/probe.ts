/** What this machine offers the CPU engine, told without loading the engine. */
import type { Probe } from '@polygrad/core/engine';
import { detectFeatures, everyDType } from './features.ts';
import { coreCount, processorName, whyAlone } from '#host';

/** The answer of the 'cpu' backend, sync or late. */
export async function probeCpu(): Promise<Probe> {
  if (typeof WebAssembly === 'undefined')
    return { score: 0, reason: 'WebAssembly is not available here', device: 'none' };
  const { fusedMadd } = detectFeatures();
  const alone = whyAlone();
  const cores = Math.min(coreCount(), 8);
  const threads = alone !== null ? `one thread: ${alone}` : cores === 1 ? 'one thread' : `${cores} threads`;
  const reason = `WebAssembly SIMD${fusedMadd ? ' with fused multiply-add' : ''}, ${threads}`;
  return { score: 10, reason, device: processorName(), dtypes: everyDType };
}
