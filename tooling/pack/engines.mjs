/** Checks that the programs of several backends share; pack-test.mjs puts this file beside them, into the project that they run in. */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { listBackends, ones, setEngine, sum } from '@polygrad/core';

/** The backend is registered and explains itself; where there is a device, it computes. Returns the score and reason of its probe. */
export async function checkEngine(name, provider, options = {}) {
  if (!listBackends().includes(name)) throw new Error('the backend is not registered');
  const { score, reason } = await provider.probe();
  if (reason === '') throw new Error('the probe gives no reason');
  if (score > 0) {
    const engine = await setEngine(name, options);
    const total = await sum(ones([32, 32])).item();
    if (total !== 1024) throw new Error(`the sum of 1024 ones is ${total}`);
    engine.dispose();
  }
  return { score, reason };
}

/** Runs a module in a process of its own, in this folder; returns what it prints. */
export function printedBy(program, flags = [], env = {}) {
  return execFileSync(process.execPath, [...flags, '--input-type=module', '-e', program], {
    cwd: fileURLToPath(new URL('.', import.meta.url)),
    env: { ...process.env, ...env },
    encoding: 'utf8',
  }).trim();
}

/** A program that prints the reason of a provider's probe. */
export function reasonOf(name, provider) {
  return `
    const { ${provider} } = await import('@polygrad/backend-${name}');
    console.log((await ${provider}.probe()).reason);`;
}

/** The native part is found; on another platform the package of that platform is what is opened, and named where it is missing. */
export function checkPlatforms(name, provider, reason) {
  if (/native part|no binary/.test(reason)) throw new Error(reason);
  const folder = (arch) =>
    new URL(`node_modules/@polygrad/backend-${name}-${process.platform}-${arch}/`, import.meta.url);
  const asFake = () =>
    printedBy(`Object.defineProperty(process, 'arch', { value: 'fake' });${reasonOf(name, provider)}`);
  if (!existsSync(folder(process.arch))) return;
  const absent = asFake();
  if (!absent.includes(`there is no binary for ${process.platform}-fake`)) throw new Error(absent);
  cpSync(folder(process.arch), folder('fake'), { recursive: true, dereference: true });
  const present = asFake();
  rmSync(folder('fake'), { recursive: true });
  if (present !== reason) throw new Error(`${present}, not ${reason}`);
}
