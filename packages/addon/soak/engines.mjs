/**
 * Many engines in one process, one after the other: each trains a little model, is read in both ways, and is disposed.
 *
 *   node engines.mjs BACKEND [count]       default 200
 */
import { grad, matmul, mean, mul, rand, scope, setEngine, square, sub, tensor, zeros } from '@polygrad/core';
import { backendOf } from './backend.mjs';

const { create, options } = await backendOf(process.argv[2]);
const count = Number(process.argv[3] ?? 200);
const steps = 5;
let first;
let settled = 0;
for (let i = 0; i < count; i++) {
  const engine = create(options[i % options.length]);
  await setEngine(engine);
  let loss = 0;
  const weights = scope(() => {
    const x = rand([32, 8], { key: 1 });
    const wanted = matmul(x, tensor([1, 2, 3, 4, 5, 6, 7, 8]));
    const lossOf = (w) => mean(square(sub(matmul(x, w), wanted)));
    const slopeOf = grad(lossOf);
    let w = zeros([8]);
    for (let step = 0; step < steps; step++) w = scope(() => sub(w, mul(slopeOf(w), 0.1)));
    loss = lossOf(w).dataSync()[0];
    return w;
  });
  const got = await weights.data();
  weights.dispose();
  first ??= [loss, ...got];
  if (![loss, ...got].every((value, k) => Math.abs(value - first[k]) <= 1e-5 * Math.abs(first[k])))
    throw new Error(`engine ${i} has ${[loss, ...got]}, engine 0 had ${first}`);
  engine.dispose();
  const { rss } = process.memoryUsage();
  if (i === Math.floor(count / 2)) settled = rss;
  if (i % 20 === 0) console.log(`engine ${i}: loss ${loss}, ${(rss / 2 ** 20).toFixed(0)} MiB`);
}
const grown = (process.memoryUsage().rss - settled) / 2 ** 20;
console.log(`${count} engines, ${grown.toFixed(1)} MiB more than after half of them`);
if (grown > 64 && !process.env.LD_PRELOAD)
  throw new Error(`memory grew by ${grown.toFixed(1)} MiB over the second half`);
