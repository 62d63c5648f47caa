/** For tests: whether there is a device, and saying so aloud where there is none. */
import { findDevices } from '../devices.ts';

const found = findDevices();
/** Why tests on a device are skipped, or null. */
export const missing: string | null = typeof found === 'string' ? found : null;

/** True where a device is there. Where there is none although POLYGRAD_REQUIRE names opencl, it throws. */
export function hasDevice(): boolean {
  if (missing === null) return true;
  if ((process.env.POLYGRAD_REQUIRE ?? '').split(',').includes('opencl'))
    throw new Error(`POLYGRAD_REQUIRE names opencl, but ${missing}`);
  process.stderr.write(`SKIPPED tests on an OpenCL device: ${missing}\n`);
  return false;
}

/** Milliseconds that recovery waits for a new device: one that starts late on a busy machine is not one that hangs. */
export const patience = 540_000;
