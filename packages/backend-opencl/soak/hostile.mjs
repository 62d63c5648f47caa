/**
 * Bad calls of the addon itself, below everything that checks arguments: each must end with an error or do something sensible. The process
 * survives, and afterwards the device computes.
 *
 *   node hostile.mjs [count] [seed]       random calls, default 5000 and 1
 */
import { createRequire } from 'node:module';
import * as bad from '../../addon/soak/bad-calls.mjs';

const { cells, layout, refused } = bad;
const addon = createRequire(import.meta.url)(process.env.POLYGRAD_OPENCL_ADDON || '../native/build/opencl.node');
const [count = 5000, seed = 1] = process.argv.slice(2).map(Number);

await bad.beforeOpen(addon, () => new addon.Driver(0, false));
const reason = addon.open(process.env.POLYGRAD_OPENCL_LIBRARY ?? '');
if (reason !== '') throw new Error(reason);

await bad.wrongDevices(addon, (device) => new addon.Driver(device, false));
await refused('a driver without flag', () => new addon.Driver(0));
await refused('a driver without new', () => addon.Driver(0, false));

const [device] = addon.devices();
const driver = new addon.Driver(0, device.unifiedMemory !== 0);
const source = `
__kernel void add(__global float* x, ulong at, float by) { x[get_global_id(0) + at] += by; }
__kernel void local_memory(__local float* x) { x[0] = 1; }`;
const program = driver.build(source, '-cl-std=CL1.2');
driver.finish(program);
const kernel = driver.kernel(program, 'add', layout(4, 1, 1, 1, 1, 1, 0, 8, 4));
const at = (elements) => bad.raw((v) => v.setBigUint64(0, BigInt(elements), true));

/** The device computes. */
async function works(when) {
  const buffer = driver.alloc(16);
  driver.upload(buffer, 0, new Uint8Array(Float32Array.of(1, 2, 3, 4).buffer));
  driver.submit(cells(1, 9, kernel, 0, 0, 0, buffer, at(0), bad.float(0.5)), 9);
  const into = new Uint8Array(16);
  await driver.read(buffer, 0, into);
  bad.check(`results ${when}`, [...new Float32Array(into.buffer)].join() === '1.5,2.5,3.5,4.5');
  driver.free(buffer);
}
await works('at first');

const buffer = driver.alloc(64);
await bad.wrongBuffers(driver, buffer);
await bad.wrongNumbers(driver, ['finish', 'binary', 'built', 'releaseProgram', 'releaseKernel']);
for (const data of [
  undefined,
  {},
  'bytes',
  new Float32Array(1),
  new DataView(new ArrayBuffer(64)),
  [1, 2],
  new ArrayBuffer(64),
])
  await refused('load of no bytes', () => driver.load(data, ''));

await bad.wrongBatches(driver, {
  kernel,
  buffer,
  runs: ['submit', 'submitTimed', 'prepareProduct'],
  own: {
    'another kernel': [1, 9, 99, 0, 0, 0, buffer, 0, 0],
    'half a kernel': [1, 9, kernel + 0.5, 0, 0, 0, buffer, 0, 0],
    'too few arguments': [1, 8, kernel, 0, 0, 0, buffer, 0],
    'too many arguments': [1, 10, kernel, 0, 0, 0, buffer, 0, 0, 0],
    'a buffer that is none': [1, 9, kernel, 0, 0, 0, 99, 0, 0],
    'no number of groups': [1, 9, kernel, Number.NaN, 0, 0, buffer, 0, 0],
    'more groups than there are': [1, 9, kernel, 99999, 0, 0, buffer, 0, 0],
    'half a group': [1, 9, kernel, 0.5, 0, 0, buffer, 0, 0],
  },
});
const open = (path) => addon.openClblast(path || (process.env.POLYGRAD_CLBLAST_LIBRARY ?? ''));
await bad.wrongProducts(driver, buffer, { open, name: 'CLBlast' });

// Kernels that are not what the layout says.
const layouts = {
  'no layout': [],
  'a number for a buffer': [4, 1, 1, 1, 1, 1, 8, 8, 4],
  'a buffer for a number': [4, 1, 1, 1, 1, 1, 0, 0, 4],
  'too few': [4, 1, 1, 1, 1, 1, 0, 8],
  'too many': [4, 1, 1, 1, 1, 1, 0, 8, 4, 4],
  'long arguments': [4, 1, 1, 1, 1, 1, 0, 8, 200],
  'odd arguments': [4, 1, 1, 1, 1, 1, 0, 8, 3],
  'no groups': [Number.NaN, 1, 1, 1, 1, 1, 0, 8, 4],
  'negative groups': [-1, 1, 1, 1, 1, 1, 0, 8, 4],
  'half a group': [0.5, 1, 1, 1, 1, 1, 0, 8, 4],
  'too large a group': [1, 1, 1, 2 ** 20, 2 ** 20, 2 ** 20, 0, 8, 4],
};
for (const [what, numbers] of Object.entries(layouts))
  await refused(what, () => driver.kernel(program, 'add', layout(...numbers)));
await refused('a layout of bytes', () => driver.kernel(program, 'add', new Uint8Array(9)), /Float64Array/);
await refused('a layout of nothing', () => driver.kernel(program, 'add'));
await refused('a name that is none', () => driver.kernel(program, 'nope', layout(4, 1, 1, 1, 1, 1, 0, 8, 4)));
await refused('local memory', () => driver.kernel(program, 'local_memory', layout(1, 1, 1, 1, 1, 1, 0)));

const bytes = 1 << 24;
const large = driver.alloc(bytes);
const gone = await bad.arraysThatGo(driver, buffer, large, bytes);
await works('after all that');

// What is compiled must not be what somebody else wrote: neither is `build` called here, nor are programs given back that are in use.
const methods = ['alloc', 'free', 'upload', 'readSync', 'read', 'idle', 'built', 'finish', 'binary', 'kernel'];
methods.push('submit', 'submitTimed', 'prepareProduct', 'releaseKernel', 'releaseProgram');
await bad.randomCalls(driver, {
  count,
  seed,
  methods,
  made: [() => kernel, () => program],
  own: { free: buffer, releaseKernel: kernel, releaseProgram: program },
  skips: () => false,
  buffer,
  gone,
});
await works('after random calls');
await bad.afterDispose(driver, methods, driver.alloc(bytes), bytes);
bad.finish();
