/**
 * Bad calls of the addon itself, below everything that checks arguments: each must end with an error or do something sensible. The process
 * survives, and afterwards the device computes.
 *
 *   node hostile.mjs [count] [seed]       random calls, default 5000 and 1
 */
import { createRequire } from 'node:module';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');
const addon = createRequire(import.meta.url)(process.env.POLYGRAD_OPENCL_ADDON || '../native/build/opencl.node');
const [count = 5000, seed = 1] = process.argv.slice(2).map(Number);

let failures = 0;
function check(what, fine) {
  if (fine) return;
  failures++;
  console.log(`WRONG: ${what}`);
}

/** The message of what a call throws, or of what its promise is rejected with; null where it goes well. */
async function refusal(call) {
  try {
    await call();
    return null;
  } catch (error) {
    return String(error?.message ?? error);
  }
}

async function refused(what, call, pattern = /./) {
  const message = await refusal(call);
  check(`${what}: ${message}`, message !== null && pattern.test(message));
}

// Before a library is open.
await refused('a driver before open()', () => new addon.Driver(0, false), /open\(\) comes first/);
await refused('devices before open()', () => addon.devices(), /open\(\) comes first/);
await refused('open without a path', () => addon.open());
await refused('open with an object', () => addon.open({}));
check('a library that is not there', addon.open('/nope/libnope.so') !== '');
await refused('a driver after open() failed', () => new addon.Driver(0, false), /open\(\) comes first/);
const reason = addon.open(process.env.POLYGRAD_OPENCL_LIBRARY ?? '');
if (reason !== '') throw new Error(reason);

for (const device of [Number.NaN, -1, 0.5, 4096, 2 ** 32, Infinity, '0', undefined])
  await refused(`device ${String(device)}`, () => new addon.Driver(device, false));
await refused('a driver without flag', () => new addon.Driver(0));
await refused('a driver without new', () => addon.Driver(0, false));
await refused('a method of nothing', () => addon.Driver.prototype.alloc.call({}, 4));
await refused('a method of the prototype', () => addon.Driver.prototype.alloc(4));

const [device] = addon.devices();
const driver = new addon.Driver(0, device.unifiedMemory !== 0);
const source = `
__kernel void add(__global float* x, ulong at, float by) { x[get_global_id(0) + at] += by; }
__kernel void local_memory(__local float* x) { x[0] = 1; }`;
const program = driver.build(source, '-cl-std=CL1.2');
driver.finish(program);
const layout = (...numbers) => Float64Array.from(numbers);
const kernel = driver.kernel(program, 'add', layout(4, 1, 1, 1, 1, 1, 0, 8, 4));

/** Commands as cells, which are float64 but for raw arguments. */
function cells(...numbers) {
  return new Uint8Array(Float64Array.from(numbers).buffer);
}
const raw = (write) => {
  const view = new DataView(new ArrayBuffer(8));
  write(view);
  return view.getFloat64(0, true);
};
const at = (elements) => raw((v) => v.setBigUint64(0, BigInt(elements), true));
const by = (value) => raw((v) => v.setFloat32(0, value, true));

/** The device computes. */
async function works(when) {
  const buffer = driver.alloc(16);
  driver.upload(buffer, 0, new Uint8Array(Float32Array.of(1, 2, 3, 4).buffer));
  driver.submit(cells(1, 9, kernel, 0, 0, 0, buffer, at(0), by(0.5)), 9);
  const into = new Uint8Array(16);
  await driver.read(buffer, 0, into);
  check(`results ${when}`, [...new Float32Array(into.buffer)].join() === '1.5,2.5,3.5,4.5');
  driver.free(buffer);
}
await works('at first');

// Sizes, offsets and numbers of things.
const buffer = driver.alloc(64);
const bytes = new Uint8Array(64);
for (const size of [Number.NaN, -1, 0.5, 2 ** 61, 2 ** 64, Infinity, '4', undefined, null, 4n])
  await refused(`alloc ${String(size)}`, () => driver.alloc(size));
for (const offset of [Number.NaN, -1, 0.5, 1, 65, 2 ** 53, 2 ** 63, 2 ** 64 - 2048, Infinity]) {
  await refused(`upload at ${offset}`, () => driver.upload(buffer, offset, bytes));
  await refused(`read at ${offset}`, () => driver.read(buffer, offset, bytes));
  await refused(`readSync at ${offset}`, () => driver.readSync(buffer, offset, bytes));
}
for (const handle of [-1, 0.5, Number.NaN, 2 ** 32, Infinity, buffer + 1, '0', undefined]) {
  await refused(`free ${handle}`, () => driver.free(handle));
  await refused(`upload to ${handle}`, () => driver.upload(handle, 0, bytes));
  await refused(`read of ${handle}`, () => driver.read(handle, 0, new Uint8Array(0)));
  await refused(`program ${handle}`, () => driver.finish(handle === buffer + 1 ? 99 : handle));
  await refused(`binary of ${handle}`, () => driver.binary(handle === buffer + 1 ? 99 : handle));
  await refused(`built ${handle}`, () => driver.built(handle === buffer + 1 ? 99 : handle));
  await refused(`release of program ${handle}`, () => driver.releaseProgram(handle === buffer + 1 ? 99 : handle));
  await refused(`release of kernel ${handle}`, () => driver.releaseKernel(handle === buffer + 1 ? 99 : handle));
}
for (const data of [undefined, {}, 'bytes', new Float32Array(1), new DataView(bytes.buffer), [1, 2], bytes.buffer]) {
  await refused('upload of no bytes', () => driver.upload(buffer, 0, data));
  await refused('read into no bytes', () => driver.read(buffer, 0, data));
  await refused('submit of no bytes', () => driver.submit(data, 1));
  await refused('load of no bytes', () => driver.load(data, ''));
}

// Batches.
for (const many of [
  2,
  2 ** 61,
  2 ** 61 + 2 ** 20,
  2 ** 62,
  2 ** 63,
  2 ** 64,
  -1,
  0.5,
  Number.NaN,
  Infinity,
  '1',
  undefined,
])
  for (const run of ['submit', 'submitTimed', 'prepareProduct'])
    await refused(`${run} of ${many} cells`, () => driver[run](new Uint8Array(8), many));
const batches = {
  'one cell': [1],
  'no kind': [Number.NaN, 2],
  'a kind that is none': [9, 2],
  'half a kind': [1.5, 3, kernel],
  'no length': [1, Number.NaN, kernel],
  'a length below two': [1, 1],
  'a length beyond the end': [1, 2 ** 61, kernel],
  'a negative length': [1, -3, kernel],
  'no kernel': [1, 2],
  'another kernel': [1, 9, 99, 0, 0, 0, buffer, 0, 0],
  'half a kernel': [1, 9, kernel + 0.5, 0, 0, 0, buffer, 0, 0],
  'too few arguments': [1, 8, kernel, 0, 0, 0, buffer, 0],
  'too many arguments': [1, 10, kernel, 0, 0, 0, buffer, 0, 0, 0],
  'a buffer that is none': [1, 9, kernel, 0, 0, 0, 99, 0, 0],
  'no number of groups': [1, 9, kernel, Number.NaN, 0, 0, buffer, 0, 0],
  'more groups than there are': [1, 9, kernel, 99999, 0, 0, buffer, 0, 0],
  'half a group': [1, 9, kernel, 0.5, 0, 0, buffer, 0, 0],
  'a copy beyond the end': [2, 7, buffer, 0, buffer, 32, 64],
  'a copy that wraps': [2, 7, buffer, 2 ** 53, buffer, 0, 2 ** 53],
  'a copy of nothing known': [2, 7, buffer, 0, buffer, 0, Number.NaN],
  'a copy from before': [2, 7, buffer, -4, buffer, 0, 4],
  'a short copy': [2, 6, buffer, 0, buffer, 0],
  'a fill beyond the end': [3, 6, buffer, 4, 64, 0],
  'a fill at NaN': [3, 6, buffer, Number.NaN, 4, 0],
  'a fill with too large a pattern': [3, 6, buffer, 0, 4, 2 ** 32],
  'a second command cut short': [3, 6, buffer, 0, 4, 0, 3],
  'a short product': [4, 5, 0, 1, 1],
};
for (const [what, numbers] of Object.entries(batches)) {
  await refused(what, () => driver.submit(cells(...numbers), numbers.length));
  await refused(`${what}, timed`, () => driver.submitTimed(cells(...numbers), numbers.length));
}
const product = (m, n, k, batch, place = [0, k, 0, 0]) =>
  [4, 22, 0, m, n, k, batch].concat([0, 1, 2].flatMap(() => [buffer, ...place]));
const product2 = product(2, 2, 2, 1);
await refused('prepareProduct without CLBlast', () => driver.prepareProduct(cells(...product2), 22), /CLBlast/);
await refused('a product without CLBlast', () => driver.submit(cells(...product2), 22), /CLBlast/);
await refused('a timed product without CLBlast', () => driver.submitTimed(cells(...product2), 22), /CLBlast/);
await refused('a library for products that is not there', () => {
  throw new Error(addon.openClblast('/nope/libclblast.so'));
});
if (addon.openClblast(process.env.POLYGRAD_CLBLAST_LIBRARY ?? '') !== '') console.log('without CLBlast');
for (const numbers of [
  product(9, 9, 9, 1),
  product(2, 2, 2, 9),
  product(0, 2, 2, 1),
  product(2, 2, 2, 0),
  product(2 ** 31 - 1, 2 ** 31 - 1, 2 ** 31 - 1, 2 ** 31 - 1),
  product(2, 2, 2, 1, [2 ** 53, 2, 0, 0]),
  product(2, 2, 2, 1, [Number.NaN, 2, 0, 0]),
  product(2, 2, 2, 1, [0, 1, 0, 0]),
  product(2, 2, 2, 2, [0, 2, 2 ** 53, 0]),
  product(2, 2, 2, 1.5),
])
  await refused(`a product of ${numbers.slice(3, 7)}`, () => driver.submit(cells(...numbers), 22), /product|CLBlast/);

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

// Arrays that go away.
const large = 1 << 24;
const source2 = driver.alloc(large);
for (let i = 0; i < 20; i++) {
  const into = new Uint8Array(large);
  const reading = driver.read(source2, 0, into);
  structuredClone(into.buffer, { transfer: [into.buffer] });
  if (i % 5 === 0) collect();
  await refused('a read into an array that was transferred', () => reading, /transferred away or made shorter/);
}
if (ArrayBuffer.prototype.resize !== undefined) {
  const shrinking = new ArrayBuffer(large, { maxByteLength: large });
  const reading = driver.read(source2, 0, new Uint8Array(shrinking));
  shrinking.resize(0);
  await refused('a read into an array that was made shorter', () => reading, /transferred away or made shorter/);
}
const gone = new Uint8Array(8);
structuredClone(gone.buffer, { transfer: [gone.buffer] });
driver.upload(buffer, 0, gone);
await driver.read(buffer, 64, gone);
await refused('a batch in an array that was transferred', () => driver.submit(gone, 1));
await works('after all that');

// Random calls.
let state = seed;
const random = (below) => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return Math.floor((state / 2 ** 32) * below);
};
const numbers = [
  0,
  1,
  2,
  3,
  4,
  6,
  7,
  8,
  16,
  22,
  63,
  64,
  -1,
  0.5,
  Number.NaN,
  Infinity,
  2 ** 31,
  2 ** 32,
  2 ** 53,
  2 ** 61,
  2 ** 63,
];
const pick = (list) => list[random(list.length)];
const made = [
  () => pick(numbers),
  () => pick(numbers),
  () => buffer,
  () => kernel,
  () => program,
  () => cells(...Array.from({ length: random(24) }, () => pick(numbers))),
  () => Float64Array.from({ length: random(12) }, () => pick(numbers)),
  () => new Uint8Array(random(65)),
  () => new Uint8Array(new SharedArrayBuffer(64), random(8), 8),
  () => new Uint8Array(64).subarray(random(9)),
  () => pick([undefined, null, true, '', 'add', 'x\0y', {}, [], 1n, Symbol('s'), () => 1, new Proxy({}, {}), gone]),
];
// What is compiled must not be what somebody else wrote: neither is `build` called here, nor are programs given back that are in use.
const methods = [
  'alloc',
  'free',
  'upload',
  'readSync',
  'read',
  'idle',
  'built',
  'finish',
  'binary',
  'kernel',
  'submit',
];
methods.push('submitTimed', 'prepareProduct', 'releaseKernel', 'releaseProgram');
let accepted = 0;
for (let i = 0; i < count; i++) {
  const method = pick(methods);
  const given = Array.from({ length: random(5) }, () => pick(made)());
  const own =
    method.startsWith('release') || method === 'free'
      ? { free: buffer, releaseKernel: kernel, releaseProgram: program }[method]
      : -1;
  if (given[0] === own) continue;
  const result = await refusal(() => {
    const value = driver[method](...given);
    if (method === 'alloc') driver.free(value);
    else if (method === 'kernel') driver.releaseKernel(value);
    return value;
  });
  if (result === null) accepted++;
}
console.log(`${count} random calls, ${accepted} accepted`);
check('some of them are right', accepted > 0);
await works('after random calls');

// Work in flight when the driver goes, and calls behind that.
const last = driver.read(driver.alloc(large), 0, new Uint8Array(large));
driver.dispose();
driver.dispose();
await last;
for (const method of methods) await refused(`${method} after dispose()`, () => driver[method](0, 0, bytes));
if (failures > 0) throw new Error(`${failures} wrong`);
console.log('every bad call was refused, and the device computes');
