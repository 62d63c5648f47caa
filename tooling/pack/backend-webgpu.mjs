// The packed WebGPU engine: registered, and a sum on it where there is an adapter.
import '@polygrad/backend-webgpu';
import { getBackend, setEngine } from '@polygrad/core/engine';
import { tensor } from '@polygrad/core';

const { score, reason } = await getBackend('webgpu').probe();
if (score > 0) {
  await setEngine('webgpu');
  const sum = await tensor([1, 2, 3]).sum().item();
  if (sum !== 6) throw new Error(`sum is ${sum}`);
} else if (reason === '') throw new Error('no adapter, and no reason');
