/** Plans of the page `cnn-webgpu-planned`, recorded in a browser or in Node: the file that the page brings along. */
import { createCpuEngine } from '@polygrad/backend-cpu';
import { createPlannedWebGpuEngine } from '@polygrad/backend-webgpu/planned';
import { setEngine } from '@polygrad/core';
import { recordPlans } from '@polygrad/core/plans';
import { train } from './pages/cnn-step.mjs';

/** The file, for these profiles and CPU engines with these options, and the losses of each. */
export async function recordOnWebGpu(profiles, processors = []) {
  const recording = recordPlans();
  const losses = [];
  const makes = [
    ...profiles.map((profile) => () => createPlannedWebGpuEngine({ profile })),
    ...processors.map((options) => () => createCpuEngine(options)),
  ];
  for (const make of makes) {
    const engine = await make();
    await setEngine(engine);
    losses.push(await train());
    engine.dispose();
  }
  const file = await recording.file();
  recording.stop();
  return { file, losses };
}
