/** The conformance suite inside a browser, on a page's main thread or in a worker: results are told as they come. */
import { runConformance } from '@polygrad/conformance';

/** Engines by name, as the command line knows them. */
const makers = {
  cpu: async (options) => {
    const { CpuEngine } = await import('@polygrad/backend-cpu');
    return new CpuEngine(options);
  },
};

/**
 * Runs the suite on an engine.
 *
 * @param options `engine` its name, `engineOptions`, and those of runConformance that are plain data
 * @param tell called with lists of outcomes, a few times a second
 * @returns names of engine and device, and how many cases a sample left out
 */
export async function runSuite({ engine: name, engineOptions, ...rest }, tell) {
  const engine = await makers[name](engineOptions);
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
  const threads = engine.caps.parallelism;
  engine.dispose();
  return { engine: name, device, leftOut, threads };
}
