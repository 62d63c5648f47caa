/** A loop of reads on the CPU engine, in a page: what else the page has to do gets its turn. */
import '@polygrad/backend-cpu';
import { setEngine, tensor } from '@polygrad/core';

/** Reads until a timer, a message and a frame have come, at most a million times. */
export async function runTurns() {
  await setEngine('cpu', { threads: 1 });
  const came = new Set();
  setTimeout(() => came.add('timer'), 1);
  requestAnimationFrame(() => came.add('frame'));
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => came.add('message');
  port2.postMessage('');
  let x = tensor([1, 2]);
  let reads = 0;
  for (; came.size < 3 && reads < 1_000_000; reads++) {
    x = x.mul(0.5).add(1);
    await x.sum().item();
  }
  port1.close();
  return { came: [...came].sort(), reads };
}
