/** Plans of the page `cnn-planned`, recorded in a browser or in Node by an engine with its compiler: the file that the page brings along. */
import { createCpuEngine } from '@polygrad/backend-cpu';
import { setEngine } from '@polygrad/core';
import { recordPlans } from '@polygrad/core/plans';
import { train } from './pages/cnn-step.mjs';

/** The file, for engines with these options, and the losses of each. */
export function recordTraining(engines) {
  return recordOn(engines.map((options) => () => createCpuEngine(options)));
}

/** The same for engines that functions make. */
export async function recordOn(makes) {
  const recording = recordPlans();
  const losses = [];
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
