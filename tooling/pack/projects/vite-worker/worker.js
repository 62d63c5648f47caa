import { createCpuEngine } from '@polygrad/backend-cpu';
import { exp, scope, setEngine, softmax, tensor } from '@polygrad/core/functions';

const ready = setEngine(createCpuEngine());

self.onmessage = async ({ data: { numbers } }) => {
  await ready;
  const result = scope(() => softmax(exp(tensor(numbers))));
  const values = await result.data();
  self.postMessage({ values, shape: result.shape }, { transfer: [values.buffer] });
  result.dispose();
};
