/** What auto-detection is told of the device. */
import { expect, it } from 'vitest';
import { chooseDevice } from './devices.ts';
import { openClProvider } from './provider.ts';
import { wishedDevice } from './setup.ts';
import { hasDevice } from './fixtures/device.ts';

it.skipIf(!hasDevice())('a processor says so, with everything that its speed depends on', async () => {
  const { device, record } = chooseDevice(wishedDevice({}));
  const { score, processor, reason } = await openClProvider.probe();
  expect(score).toBe(device.score);
  expect(reason).toContain(device.platform);
  if (device.type !== 'cpu') {
    expect(processor).toBeUndefined();
    return;
  }
  // Below the CPU engine's 10.
  expect(score).toBe(5);
  for (const fact of [device.platform, record.platformVersion, device.name, record.version, record.driver])
    expect(processor).toContain(fact);
  expect(processor).toContain(`${record.computeUnits} threads`);
});
