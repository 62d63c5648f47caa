/** How much may wait is a fact of the engine's memory. Results are never computed: the null engine takes any amount. */
import { afterEach, expect, it } from 'vitest';
import { createNullEngine } from '@polygrad/testing';
import { dispose, memory, ones, setEngine, setPendingLimits, type Tensor } from '../index.ts';
import { graph } from '../graph/state.ts';

const mib = 2 ** 20;
const made: Tensor[] = [];

afterEach(() => {
  setPendingLimits({ bytes: null });
  dispose(made.splice(0));
});

/** Megabytes that waited when the first flush came, by steps of 32. */
async function pendingAtFlush(memoryBytes: number | undefined): Promise<number> {
  const engine = createNullEngine();
  const caps = { ...engine.caps, ...(memoryBytes !== undefined && { memoryBytes }) };
  Object.defineProperty(engine, 'caps', { value: caps });
  await setEngine(engine);
  const x = ones([8 * mib]);
  made.push(x);
  const { epoch } = graph;
  for (let waiting = 32; waiting < 4096; waiting += 32) {
    if (graph.epoch > epoch) return waiting;
    made.push(x.add(made.length));
  }
  return Infinity;
}

it.for([
  ['an eighth of 8 GiB', 8192 * mib, 1024],
  ['an eighth of 2 GiB', 2048 * mib, 256],
  ['64 MiB of little', 128 * mib, 64],
  ['512 MiB where it is not known', undefined, 512],
] as const)('%s', async ([, bytes, wanted]) => {
  expect(await pendingAtFlush(bytes)).toBe(wanted);
});

it('what the user says, whatever the engine has, until null', async () => {
  setPendingLimits({ bytes: 96 * mib });
  expect(await pendingAtFlush(8192 * mib)).toBe(96);
  dispose(made.splice(0));
  setPendingLimits({ bytes: null });
  expect(await pendingAtFlush(8192 * mib)).toBe(1024);
  expect(memory().numTensors).toBe(made.length);
});

it('another engine has another limit after the flush', async () => {
  expect(await pendingAtFlush(8192 * mib)).toBe(1024);
  dispose(made.splice(0));
  expect(await pendingAtFlush(2048 * mib)).toBe(256);
});
