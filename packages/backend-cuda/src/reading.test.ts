/** Reading a value whose kernels are new: the program goes on while threads of the addon compile. */
import { setEngine, tensor } from '@polygrad/core';
import { CompileError } from '@polygrad/core/engine';
import { afterEach, expect, it } from 'vitest';
import type { Driver } from './addon.ts';
import { CudaEngine } from './engine.ts';
import { setUp } from './setup.ts';
import { hasDevice } from './testing/device.ts';

let engine: CudaEngine | null = null;
afterEach(() => {
  engine?.dispose();
  engine = null;
});

/** An engine that says what its driver was asked for; what is compiled has this at its end. */
function watched(appendix = ''): string[] {
  const setup = setUp({});
  const log: string[] = [];
  const driver = new Proxy(setup.driver, {
    get: (target, name) => {
      const member = (target[name as keyof Driver] as (...args: unknown[]) => unknown).bind(target);
      return (...args: unknown[]) => {
        if (['submit', 'finish', 'build', 'read', 'readSync'].includes(name as string)) log.push(name as string);
        if (name === 'build') args[0] += appendix;
        return member(...args);
      };
    },
  });
  engine = new CudaEngine({ ...setup, driver });
  return log;
}

it.skipIf(!hasDevice())('does not wait for the compiler, and reads in order', async () => {
  const log = watched();
  await setEngine(engine as CudaEngine);
  const x = tensor([1, 2, 3]);
  const y = x.mul(2).add(1);
  const first = y.array();
  // The compiler has begun; nobody waits for it, and nothing was given to the device.
  expect(log).toEqual(['build']);
  x.dispose();
  const again = y.array();
  expect(log).toEqual(['build']);
  expect(await first).toEqual([3, 5, 7]);
  expect(await again).toEqual([3, 5, 7]);
  expect(log).toEqual(['build', 'finish', 'submit', 'read', 'read']);
  // Known kernels go to the device at once; whoever reads at once waits.
  const z = y.mul(2).add(1);
  const known = z.array();
  expect(log.slice(5)).toEqual(['submit', 'read']);
  expect(await known).toEqual([7, 11, 15]);
  expect([...y.sub(1).dataSync()]).toEqual([2, 4, 6]);
  expect(log.slice(7)).toEqual(['build', 'finish', 'submit', 'readSync']);
  await setEngine('cpu').catch(() => {});
});

it.skipIf(!hasDevice())('is told what the compiler refuses, without being held up', async () => {
  const log = watched('\nthis is no PTX');
  await setEngine(engine as CudaEngine);
  const [x, y] = [tensor([1, 2, 3]), tensor([4, 5, 6])];
  const z = x.mul(y);
  const values = z.array();
  expect(log).toEqual(['build']);
  await expect(values).rejects.toThrow(CompileError);
  expect(log).toEqual(['build', 'finish']);
  // And so is everybody who asks again.
  await expect(z.array()).rejects.toThrow(CompileError);
  expect(await x.array()).toEqual([1, 2, 3]);
  for (const t of [x, y, z]) t.dispose();
  await setEngine('cpu').catch(() => {});
});
