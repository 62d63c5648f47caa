// The packed package imports and explains itself; where there is a device, it computes.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
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
if (/native part|no binary/.test(reason)) throw new Error(reason);

// On another platform the package of that platform is what is opened, and named where it is missing.
const folder = (name) => new URL(`node_modules/@polygrad/backend-opencl-${process.platform}-${name}/`, import.meta.url);
const asOther = (arch) => {
  const program = `
    Object.defineProperty(process, 'arch', { value: '${arch}' });
    const { openClProvider } = await import('@polygrad/backend-opencl');
    console.log((await openClProvider.probe()).reason);`;
  return execFileSync(process.execPath, ['--input-type=module', '-e', program], {
    cwd: fileURLToPath(new URL('.', import.meta.url)),
    encoding: 'utf8',
  });
};
if (existsSync(folder(process.arch))) {
  const absent = asOther('fake');
  if (!absent.includes(`there is no binary for ${process.platform}-fake`)) throw new Error(absent);
  cpSync(folder(process.arch), folder('fake'), { recursive: true, dereference: true });
  const present = asOther('fake');
  rmSync(folder('fake'), { recursive: true });
  if (present.trim() !== reason) throw new Error(`${present}, not ${reason}`);
}
