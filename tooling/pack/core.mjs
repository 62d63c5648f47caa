// A gradient through the packed core, on the engine that comes with it.
import { grad, mul, setEngine, sum, tensor } from '@polygrad/core';
import { createReferenceEngine } from '@polygrad/testing';

await setEngine(createReferenceEngine());
const slope = grad((x) => sum(mul(x, x)))(tensor([1, 2, 3]));
const values = Array.from(await slope.data()).join();
if (values !== '2,4,6') throw new Error(`gradient of sum(x * x) at 1, 2, 3: ${values}`);
