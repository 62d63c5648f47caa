/** Several devices: choosing one, and two engines on two of them at once. PoCL shows the processor twice here, in this process. */
import { getEngine, setEngine, tensor } from '@polygrad/core';
import { EngineMissingError } from '@polygrad/core/engine';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { chooseDevice } from './devices.ts';
import { createOpenClEngine, listOpenClDevices, type OpenClEngine } from './index.ts';
import { hasDevice } from './fixtures/device.ts';

// Before anything asks for devices.
vi.hoisted(() => {
  process.env.POCL_DEVICES = 'basic pthread';
});

const engines: OpenClEngine[] = [];
const make = (device: number | string): OpenClEngine => {
  const engine = createOpenClEngine({ device, cache: false });
  engines.push(engine);
  return engine;
};
afterEach(async () => {
  await setEngine('cpu').catch(() => {});
  for (const engine of engines.splice(0)) engine.dispose();
});

const devices = hasDevice() ? listOpenClDevices() : [];
const several = devices.length > 1;
if (!several) process.stderr.write('SKIPPED tests on two OpenCL devices: there is one at most (PoCL would show two)\n');

describe.skipIf(!several)('two devices', () => {
  it('are listed in one order, with what tells them apart', () => {
    expect(devices.map(({ index }) => index)).toEqual(devices.map((_, i) => i));
    expect(new Set(devices.map(({ platform, name }) => `${platform} ${name}`)).size).toBe(devices.length);
    for (const d of devices) {
      expect(d.vendor.length * d.version.length * d.driver.length).toBeGreaterThan(0);
      expect(d.memoryBytes).toBeGreaterThan(0);
    }
    expect(listOpenClDevices()).toEqual(devices);
  });

  it('are chosen by number, by a part of a name, or by their score', () => {
    for (const { index, name } of devices) {
      expect(chooseDevice(index).device.index).toBe(index);
      const own = name.toUpperCase();
      expect(chooseDevice(own).device.name.toUpperCase()).toContain(own);
    }
    const best = Math.max(...devices.map(({ score }) => score));
    expect(chooseDevice(undefined).device.score).toBe(best);
    expect(() => chooseDevice(devices.length)).toThrow(EngineMissingError);
    expect(() => chooseDevice('no such device')).toThrow(
      /no device "no such device"; give a number or a part of the name: 0 = .*, 1 = /,
    );
  });

  it('compute at once, each its own, and data goes from one to the other', async () => {
    const [one, two] = [make(0), make(1)];
    expect(one.device).not.toBe(two.device);
    // One kernel, which each device compiles for itself.
    const reads: Promise<unknown>[] = [];
    for (let i = 0; i < 6; i++) {
      await setEngine(i % 2 === 0 ? one : two);
      reads.push(
        tensor([i, i + 1, i + 2])
          .mul(2)
          .array(),
      );
    }
    expect(await Promise.all(reads)).toEqual(Array.from({ length: 6 }, (_, i) => [2 * i, 2 * i + 2, 2 * i + 4]));
    await setEngine(one);
    const x = tensor([1, 2, 3]).mul(2);
    expect(await x.array()).toEqual([2, 4, 6]);
    await setEngine(two);
    const y = x.mul(2);
    expect(await y.array()).toEqual([4, 8, 12]);
    expect([x.device, y.device, getEngine().device]).toEqual(['opencl', 'opencl', two.device]);
    one.dispose();
    expect(await y.mul(2).array()).toEqual([8, 16, 24]);
  });
});
