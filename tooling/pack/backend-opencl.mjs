// The packed package imports and explains itself; where there is a device, it computes.
import { listOpenClDevices, openClProvider } from '@polygrad/backend-opencl';
import { listBackends, ones, setEngine, sum } from '@polygrad/core';

if (!listBackends().includes('opencl')) throw new Error('the backend is not registered');
const { score, reason } = await openClProvider.probe();
if (reason === '') throw new Error('the probe gives no reason');
if (score > 0) {
  const engine = await setEngine('opencl', { cache: false });
  const total = await sum(ones([32, 32])).item();
  if (total !== 1024) throw new Error(`the sum of 1024 ones is ${total}`);
  engine.dispose();
} else if (listOpenClDevices().some((device) => device.score > 0)) throw new Error(`a device is there, but ${reason}`);
if (/native part/.test(reason)) throw new Error(reason);
