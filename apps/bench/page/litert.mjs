/** LiteRT.js in the page, for inference: XNNPACK in WebAssembly, or its WebGPU accelerator, in float32. Its models are written here (tflite.mjs). */
import { getWebGpuDevice, loadAndCompile, loadLiteRt, Tensor } from '@litertjs/core';
import { modelOf } from './tflite.mjs';

export async function createRunner({ engine, threads, tools }) {
  const gpu = engine === 'webgpu';
  await loadLiteRt(`${location.origin}/litert/`, { threads: threads > 1 });
  const accelerator = gpu ? 'webgpu' : 'wasm';
  return {
    version: globalThis.benchVersions['@litertjs/core'],
    note: gpu ? 'operands and results stay on the device' : `${threads} threads`,
    async prepare(work) {
      const { bytes, inputs, arrange } = modelOf(tools, work);
      const options = gpu ? { gpuOptions: { precision: 'fp32' } } : { cpuOptions: { numThreads: threads } };
      const model = await loadAndCompile(bytes, { accelerator, ...options });
      if (!model.isFullyAccelerated) throw new Error(`its ${accelerator} accelerator does not take this model`);
      const feeds = [];
      for (const [values, shape] of inputs) {
        const tensor = new Tensor(values, shape);
        feeds.push(gpu ? await tensor.moveTo('webgpu') : tensor);
      }
      return {
        async run(count) {
          for (let i = 0; i < count; i++) for (const y of await model.run(feeds)) y.delete();
          if (gpu) await getWebGpuDevice().queue.onSubmittedWorkDone();
        },
        async probe() {
          const [y] = await model.run(feeds);
          const values = arrange(await y.data());
          y.delete();
          return tools.probePositions(values.length).map((p) => values[p]);
        },
        dispose() {
          for (const tensor of feeds) tensor.delete();
          model.delete();
        },
        note: work.kind === 'conv' ? 'channels last, with the weights in its model' : undefined,
      };
    },
  };
}
