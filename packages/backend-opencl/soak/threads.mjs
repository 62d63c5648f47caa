/**
 * The system gives no further thread: programs are compiled, and reads waited for, where they were asked for. Needs `pthread_create` replaced by
 * one that fails once the file NO_THREADS names is there (src/shared.test.ts).
 */
import { rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const addon = createRequire(import.meta.url)(process.env.POLYGRAD_OPENCL_ADDON || '../native/build/opencl.node');
const reason = addon.open(process.env.POLYGRAD_OPENCL_LIBRARY ?? '');
if (reason !== '') throw new Error(reason);
const driver = new addon.Driver(0, addon.devices()[0].unifiedMemory !== 0);

async function compute(by) {
  const source = `__kernel void add(__global float* x) { x[get_global_id(0)] += ${by}; }`;
  const programs = [1, 2, 3].map(() => driver.build(source, ''));
  for (const program of programs) await driver.built(program);
  const kernel = driver.kernel(programs[0], 'add', Float64Array.of(4, 1, 1, 1, 1, 1, 0));
  const buffer = driver.alloc(16);
  driver.submit(new Uint8Array(Float64Array.of(3, 6, buffer, 0, 16, 0, 1, 7, kernel, 0, 0, 0, buffer).buffer), 13);
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
