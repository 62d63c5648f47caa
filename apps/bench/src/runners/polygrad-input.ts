/** Small things that all of Polygrad's work needs: inputs on the device, and waiting for it. */
import { getEngine, type Tensor, tensor } from '@polygrad/core';
import type { Tools } from '../work/tools.ts';

/** Waits for what has been submitted. */
export async function settled(): Promise<void> {
  await getEngine().idle();
}

/** A tensor of the sequence `seed`. */
export function input(tools: Tools, seed: number, low: number, high: number, ...shape: readonly number[]): Tensor {
  const size = shape.reduce((product, extent) => product * extent, 1);
  return tensor(tools.fill(seed, size, low, high), { shape });
}
