// The null engine of the packed package counts kernels and computes nothing.
import { add, flush, ones, setEngine } from '@polygrad/core';
import { createNullEngine } from '@polygrad/testing';

const engine = createNullEngine();
await setEngine(engine);
const y = add(ones([4]), ones([4]));
flush();
if (y.size !== 4 || engine.counts().dispatches === 0)
  throw new Error(`no kernel was counted: ${JSON.stringify(engine.counts())}`);
