/** jax-js in the page: its WebAssembly or its WebGPU backend. */
import * as jax from '@jax-js/jax';
import { prepare } from '../peers/jax_work.mjs';

export async function createRunner({ engine, tools }) {
  const device = engine === 'webgpu' ? 'webgpu' : 'wasm';
  const found = await jax.init(device);
  if (!found.includes(device)) throw new Error(`its ${device} backend does not start here`);
  jax.defaultDevice(device);
  return { version: globalThis.benchVersions['@jax-js/jax'], prepare: (work) => prepare(jax, tools, work) };
}
