/** The conformance suite inside a browser, on a page's main thread or in a worker: results are told as they come. */
import { runConformance } from '@polygrad/conformance';

/** Engines by name, as the command line knows them. */
const makers = {
  cpu: async (options) => {
    const { CpuEngine } = await import('@polygrad/backend-cpu');
    return new CpuEngine(options);
  },
  webgpu: async () => {
    // Holds the dtypes that WebGPU does not.
    await import('@polygrad/backend-cpu');
    const { createWebGpuEngine } = await import('@polygrad/backend-webgpu');
    return createWebGpuEngine();
  },
};

/**
 * Runs the suite on an engine.
 *
 * @param options `engine` its name, `engineOptions`, and those of runConformance that are plain data
 * @param tell called with lists of outcomes, a few times a second
 * @returns names of engine and device, and how many cases a sample left out; or `missing`, why there is no such engine here
 */
export async function runSuite({ engine: name, engineOptions, ...rest }, tell) {
  let engine;
  try {
    engine = await makers[name](engineOptions);
  } catch (error) {
    return { missing: String(error?.message ?? error) };
  }
  const response = await fetch('/torch.bin.gz');
  let batch = [];
  let told = performance.now();
  const pass = () => {
    tell(batch);
    batch = [];
    told = performance.now();
  };
  const { device, leftOut } = await runConformance({
    ...rest,
    engine,
    goldens: new Uint8Array(await response.arrayBuffer()),
    onResult(result) {
      batch.push(result);
      if (performance.now() - told > 200) pass();
    },
  });
  pass();
  engine.dispose();
  return { engine: name, device, leftOut };
}
