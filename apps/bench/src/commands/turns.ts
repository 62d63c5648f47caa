/** What programs share that compare computations of Polygrad with each other, taking turns in one process. */
import { flush, getEngine, type Tensor, tensor } from '@polygrad/core';
import { fill } from '../work/inputs.ts';

/** A tensor of numbers between -2 and 2, others for every seed. */
export function numbers(shape: readonly number[], seed: number): Tensor {
  const size = shape.reduce((a, b) => a * b, 1);
  return tensor(fill(seed, size, -2, 2), { shape });
}

/** Milliseconds that a computation takes, of so many one after the other. */
export async function timed(run: () => Tensor, times: number): Promise<number> {
  const start = performance.now();
  for (let i = 0; i < times; i++) {
    const y = run();
    flush();
    y.dispose();
  }
  await getEngine().idle();
  return (performance.now() - start) / times;
}

/** Runs a computation so many times three, for its code to be compiled well; how often it must run for a sample of `sampleMs`. */
export async function repetitions(run: () => Tensor, rounds: number, sampleMs: number): Promise<number> {
  let once = Number.POSITIVE_INFINITY;
  for (let i = 0; i < rounds; i++) once = Math.min(once, await timed(run, 3));
  return Math.max(1, Math.ceil(sampleMs / once));
}
