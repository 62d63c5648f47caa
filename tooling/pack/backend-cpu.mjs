// A product and its gradient on the packed CPU engine, large enough for several threads.
import '@polygrad/backend-cpu';
import { getEngine, grad, matmul, ones, setEngine, sum } from '@polygrad/core';

await setEngine('cpu');
if (getEngine().name !== 'cpu') throw new Error(`the engine is ${getEngine().name}`);
const n = 256;
const slope = grad((a) => sum(matmul(a, ones([n, n]))))(ones([n, n]));
for (const value of await slope.data()) if (value !== n) throw new Error(`gradient of sum(a @ ones) is ${value}`);
