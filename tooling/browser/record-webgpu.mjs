/** Plans of the page `cnn-webgpu-planned`, recorded in a browser or in Node: the file that the page brings along. */
import { createCpuEngine } from '@polygrad/backend-cpu';
import { createPlannedWebGpuEngine } from '@polygrad/backend-webgpu/planned';
import { recordOn } from './record.mjs';

/** The file, for these profiles and CPU engines with these options, and the losses of each. */
export function recordOnWebGpu(profiles, processors = []) {
  return recordOn([
    ...profiles.map((profile) => () => createPlannedWebGpuEngine({ profile })),
    ...processors.map((options) => () => createCpuEngine(options)),
  ]);
}
