/**
 * The system gives no further thread: modules are compiled, and reads waited for, where they were asked for. Needs `pthread_create` replaced by
 * one that fails for the addon once the file NO_THREADS names is there (src/shared.test.ts).
 */
import { rmSync, writeFileSync } from 'node:fs';
import { addition, addon, open } from './ptx.mjs';

open();
addon.devices();
const driver = new addon.Driver(0);

async function compute(by) {
  const modules = [1, 2, 3].map((i) => driver.build(addition.replaceAll('add(', `add${i}(`)));
  for (const module of modules) await driver.built(module);
  const kernel = driver.kernel(modules[0], 'add1', Float64Array.of(4, 1, 1, 1, 1, 1, 0, 12, 0, 0, 8, 4));
  const buffer = driver.alloc(16);
  const cells = Float64Array.of(3, 6, buffer, 0, 16, 0, 1, 10, kernel, 0, 0, 0, buffer, 0, 16, 0);
  new Float32Array(cells.buffer)[30] = by;
  driver.submit(new Uint8Array(cells.buffer), 16);
  const into = new Uint8Array(16);
  await driver.read(buffer, 0, into);
  await driver.idle();
  if (new Float32Array(into.buffer)[3] !== by) throw new Error(`${new Float32Array(into.buffer)[3]} is not ${by}`);
  driver.free(buffer);
}

const file = process.env.NO_THREADS;
writeFileSync(file, '');
await compute(1);
await compute(2);
rmSync(file);
// Once there are threads again, they are used.
await compute(3);
driver.dispose();
console.log('computed with and without threads');
