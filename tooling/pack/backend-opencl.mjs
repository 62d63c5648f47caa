// The packed package imports and explains itself; where there is a device, it computes.
import { listOpenClDevices, openClProvider } from '@polygrad/backend-opencl';
import { checkEngine, checkPlatforms } from './engines.mjs';

const { score, reason } = await checkEngine('opencl', openClProvider, { cache: false });
if (score <= 0 && listOpenClDevices().some((device) => device.score > 0))
  throw new Error(`a device is there, but ${reason}`);
checkPlatforms('opencl', 'openClProvider', reason);
