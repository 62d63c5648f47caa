// A layer of the packed nn.
import { ones, setEngine } from '@polygrad/core';
import { createReferenceEngine } from '@polygrad/testing';
import { Linear } from '@polygrad/nn';

await setEngine(createReferenceEngine());
const result = new Linear(3, 2).forward(ones([4, 3]));
const values = await result.data();
if (values.length !== 8 || !values.every(Number.isFinite)) throw new Error(`Linear(3, 2) gives ${values}`);
