/** Plans of the page `cnn-planned`, recorded in a browser or in Node by an engine with its compiler: the file that the page brings along. */
import { createCpuEngine } from '@polygrad/backend-cpu';
import { setEngine } from '@polygrad/core';
import { recordPlans } from '@polygrad/core/plans';
import { train } from './pages/cnn-step.mjs';

/** The file, for engines with these options, and the losses of each. */
export async function recordTraining(engines) {
  const recording = recordPlans();
  const losses = [];
  for (const options of engines) {
    const engine = createCpuEngine(options);
    await setEngine(engine);
    losses.push(await train());
    engine.dispose();
  }
  const file = await recording.file();
  recording.stop();
  return { file, losses };
}
