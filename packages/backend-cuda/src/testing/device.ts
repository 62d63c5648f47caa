/** For tests: whether there is a card, or the simulated driver, and saying so aloud where there is neither. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { findDevices } from '../devices.ts';

const found = findDevices();
/** Why tests on a card are skipped, or null. */
export const missing: string | null = 'reason' in found ? found.reason : null;

const built = fileURLToPath(new URL('../../../../tooling/cuda-sim/build/libcuda-sim.so', import.meta.url));
/** The simulated driver, or null where nobody has compiled it. */
export const simulator: string | null = existsSync(built) ? built : null;

function isThere(why: string | null): boolean {
  if (why === null) return true;
  if ((process.env.POLYGRAD_REQUIRE ?? '').split(',').includes('cuda'))
    throw new Error(`POLYGRAD_REQUIRE names cuda, but ${why}`);
  process.stderr.write(`SKIPPED tests of CUDA: ${why}\n`);
  return false;
}

/** True where a card or the simulated driver is there. Where there is none although POLYGRAD_REQUIRE names cuda, it throws. */
export const hasDevice = (): boolean => isThere(missing);

/** The same for the simulated driver alone. */
export const hasSimulator = (): boolean =>
  isThere(simulator === null ? 'the simulated driver is not compiled: node tooling/cuda-sim/build.mjs' : null);

/** Milliseconds that recovery waits for a new device: one that starts late on a busy machine is not one that hangs. */
export const patience = 540_000;
