/**
 * Environment variables with which tests find the software devices that install.sh put there. What is set already stays; where
 * nothing is installed nothing is set.
 */
import { existsSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';

/** Variables to add for a process that tests devices. */
export function deviceEnvironment() {
  const folder = process.env.POLYGRAD_DEVICES ?? join(homedir(), '.cache/polygrad/devices');
  const driver = join(folder, 'lvp25.json');
  if (process.env.VK_DRIVER_FILES !== undefined || !existsSync(driver)) return {};
  // Mesa complains on stderr where the second is missing.
  return { VK_DRIVER_FILES: driver, XDG_RUNTIME_DIR: process.env.XDG_RUNTIME_DIR ?? tmpdir() };
}
