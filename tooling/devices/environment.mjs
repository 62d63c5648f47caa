/**
 * Environment variables with which tests find the software devices that install.sh put there. What is set already stays; where
 * nothing is installed nothing is set.
 */
import { existsSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildSimulator } from '../cuda-sim/build.mjs';
import { root } from '../workspace.mjs';

/** What install.sh compiled of tooling/cuda-sim. */
const simulator = join(dirname(fileURLToPath(import.meta.url)), '../cuda-sim/build/libcuda-sim.so');

/** Variables to add for a process that tests devices. */
export function deviceEnvironment() {
  return { ...vulkan(), ...cuda() };
}

/**
 * Variables with which PoCL compiles in less than half the time. A kernel is compiled once, for groups of any size, in place of once more for the
 * size it is run with; and without Clang's optimisations. Caches of their own, as nothing else needs these programs.
 */
export function quickPocl() {
  const caches = join(root, '.cache/quick-pocl');
  return {
    POCL_WORK_GROUP_SPECIALIZATION: '0',
    POCL_EXTRA_BUILD_FLAGS: '-cl-opt-disable',
    XDG_CACHE_HOME: caches,
    POCL_CACHE_DIR: join(caches, 'pocl'),
  };
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
