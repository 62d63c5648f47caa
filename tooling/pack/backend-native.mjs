// The packed package imports and explains itself; where the processor has what it needs, it computes.
import { execFileSync } from 'node:child_process';
import { nativeProvider } from '@polygrad/backend-native';
import { listBackends, ones, setEngine, sum } from '@polygrad/core';

if (!listBackends().includes('native')) throw new Error('the backend is not registered');
const { score, reason } = await nativeProvider.probe();
if (reason === '') throw new Error('the probe gives no reason');
if (score > 0) {
  const engine = await setEngine('native');
  const total = await sum(ones([32, 32])).item();
  if (total !== 1024) throw new Error(`the sum of 1024 ones is ${total}`);
  engine.dispose();
}
if (/native part|self-test/.test(reason)) throw new Error(reason);

// Without addons, and where it is switched off, it says so.
const program = `
  const { nativeProvider } = await import('@polygrad/backend-native');
  console.log((await nativeProvider.probe()).reason);`;
const reasonWith = (flags, env = {}) =>
  execFileSync(process.execPath, [...flags, '--input-type=module', '-e', program], {
    env: { ...process.env, ...env },
    encoding: 'utf8',
  }).trim();
if (process.platform === 'linux' && process.arch === 'x64') {
  const without = reasonWith(['--no-addons']);
  if (!without.startsWith('this Node loads no addons')) throw new Error(without);
}
const off = reasonWith([], { POLYGRAD_NATIVE: '0' });
if (off !== 'POLYGRAD_NATIVE=0 switches it off') throw new Error(off);
