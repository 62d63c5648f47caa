// The packed package imports and explains itself; where there is a device, it computes.
import { cudaProvider, listCudaDevices } from '@polygrad/backend-cuda';
import { checkEngine, checkPlatforms } from './engines.mjs';

const { score, reason } = await checkEngine('cuda', cudaProvider);
if (score <= 0 && listCudaDevices().some((device) => device.score > 0))
  throw new Error(`a device is there, but ${reason}`);
checkPlatforms('cuda', 'cudaProvider', reason);
