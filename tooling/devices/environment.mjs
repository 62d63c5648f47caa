/**
 * Environment variables with which tests find the software devices that install.sh put there. What is set already stays; where
 * nothing is installed nothing is set.
 */
import { existsSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildSimulator } from '../cuda-sim/build.mjs';

/** What install.sh compiled of tooling/cuda-sim. */
const simulator = join(dirname(fileURLToPath(import.meta.url)), '../cuda-sim/build/libcuda-sim.so');

/** Variables to add for a process that tests devices. */
export function deviceEnvironment() {
  return { ...vulkan(), ...cuda() };
}

/** The simulated driver, compiled anew where its sources have changed. */
function cuda() {
  if (process.env.POLYGRAD_CUDA_DRIVER !== undefined || !existsSync(simulator)) return {};
  const path = buildSimulator();
  return path === null ? {} : { POLYGRAD_CUDA_DRIVER: path };
}

function vulkan() {
  const folder = process.env.POLYGRAD_DEVICES ?? join(homedir(), '.cache/polygrad/devices');
  const driver = join(folder, 'lvp25.json');
  if (process.env.VK_DRIVER_FILES !== undefined || !existsSync(driver)) return {};
  // Mesa complains on stderr where the second is missing.
  return { VK_DRIVER_FILES: driver, XDG_RUNTIME_DIR: process.env.XDG_RUNTIME_DIR ?? tmpdir() };
}
