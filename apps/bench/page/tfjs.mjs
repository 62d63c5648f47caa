/** TensorFlow.js in the page: its WebAssembly or its WebGPU backend. */
import * as tf from '@tensorflow/tfjs-core';
import '@tensorflow/tfjs-core/dist/register_all_gradients.js';
import { prepare } from '../peers/tfjs_work.mjs';

export async function createRunner({ engine, threads, tools }) {
  console.warn = () => undefined; // hints
  if (engine === 'webgpu') {
    const { WebGPUBackend } = await import('@tensorflow/tfjs-backend-webgpu');
    if (typeof WebGPUBackend !== 'function') throw new Error('the package has no WebGPUBackend');
    await tf.setBackend('webgpu');
    await tf.ready();
    const backend = tf.backend();
    const settled = async () => {
      // What is recorded is handed over, as reading a result would.
      backend.endComputePassEncoder();
      if (backend.commandEncoder) backend.submitQueue();
      await backend.queue.onSubmittedWorkDone();
    };
    return { version: tf.version_core, prepare: (work) => prepare(tf, tools, work, { settled, convolves: true }) };
  }
  const wasm = await import('@tensorflow/tfjs-backend-wasm');
  wasm.setWasmPaths('/tfjs/');
  wasm.setThreadsCount(threads);
  await tf.setBackend('wasm');
  await tf.ready();
  return {
    version: tf.version_core,
    note: `${wasm.getThreadsCount()} threads`,
    prepare: (work) => prepare(tf, tools, work),
  };
}
