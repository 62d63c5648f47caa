/**
 * What the page `cnn-planned` does in a browser, with the file of plans that its server has, or another. The report is judged by tooling/planned.test.mjs.
 */
import { add, mul, setEngine, setLogger, stats, tensor } from '@polygrad/core/functions';
import { train, usePlanFile } from './pages/cnn-planned.mjs';

/** Trains with a file of plans, and then computes what was not recorded, if it is asked to. */
export async function runPlanned({ path = '/plans.bin', threads, more = false } = {}) {
  const told = [];
  setLogger((text) => told.push(text));
  await setEngine('cpu', threads === undefined ? {} : { threads });
  const start = performance.now();
  const file = await usePlanFile(fetch(path));
  const [loss] = await train(1);
  const first = performance.now() - start;
  const losses = await train();
  const { plansMade, plansLoaded } = stats();
  const report = { plans: file.plans, loss, losses, plansMade, plansLoaded, first, told };
  if (!more) return report;
  const y = mul(add(tensor([1, 2, 3]), 1), 2.5);
  try {
    y.dataSync();
  } catch ({ name, message }) {
    report.refused = { name, message };
  }
  report.values = Array.from(await y.data());
  report.afterwards = Array.from(mul(add(tensor([4, 5, 6]), 1), 2.5).dataSync());
  report.madeLater = stats().plansMade - plansMade;
  return report;
}
