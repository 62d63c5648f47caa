/** A process of its own: some steps of a network with plans of a folder. Prints values and counts as JSON. `node step.mjs FOLDER [later]`: says when it is ready and goes on when it hears something. */
import { once } from 'node:events';
import { createCpuEngine } from '@polygrad/backend-cpu';
import { flush, keep, scope, setEngine, setLogger, softmax, stats, tensor, valueAndGrad } from '@polygrad/core';
import { usePlanCache } from '@polygrad/core/plans';

const [folder, later] = process.argv.slice(2);
const told = [];
setLogger((text) => told.push(text));
await setEngine(createCpuEngine({ threads: 1 }));
const plans = await usePlanCache({ folder, version: 'step' });
if (later !== undefined) {
  process.stdout.write('ready\n');
  await once(process.stdin, 'data');
  process.stdin.destroy();
}
const numbers = (n) => Float32Array.from({ length: n }, (_, i) => Math.sin(i));
const x = tensor(numbers(64), { shape: [16, 4] });
const w = keep(tensor(numbers(12), { shape: [4, 3] }));
const values = [];
for (let step = 0; step < 3; step++) {
  const loss = scope(() => {
    const [value, slope] = valueAndGrad((t) => softmax(x.matmul(t)).pow(2).sum())(w);
    w.assign(w.sub(slope.mul(0.1)));
    return value;
  });
  values.push((await loss.data())[0]);
}
flush();
await plans.saved();
const { plansMade, plansLoaded } = stats();
process.stdout.write(`${JSON.stringify({ values, plansMade, plansLoaded, told })}\n`);
