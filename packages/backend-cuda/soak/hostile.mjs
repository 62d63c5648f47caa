/**
 * Bad calls of the addon itself, below everything that checks arguments: each must end with an error or do something sensible. The process
 * survives, and afterwards the device computes.
 *
 *   node hostile.mjs [count] [seed]       random calls, default 5000 and 1
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { addition, addon, open } from './ptx.mjs';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');
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
await refused('a driver before open()', () => new addon.Driver(0), /open\(\) comes first/);
await refused('devices before open()', () => addon.devices(), /open\(\) comes first/);
await refused('the version before open()', () => addon.version(), /open\(\) comes first/);
await refused('a text before open()', () => addon.errorText(1), /open\(\) comes first/);
await refused('open without a path', () => addon.open());
await refused('open with an object', () => addon.open({}));
check('a library that is not there', addon.open('/nope/libnope.so') !== '');
await refused('a driver after open() failed', () => new addon.Driver(0), /open\(\) comes first/);
open();

for (const device of [Number.NaN, -1, 0.5, 63, 64, 4096, 2 ** 32, Infinity, '0', undefined])
  await refused(`device ${String(device)}`, () => new addon.Driver(device));
await refused('a driver without new', () => addon.Driver(0));
await refused('a method of nothing', () => addon.Driver.prototype.alloc.call({}, 4));
await refused('a method of the prototype', () => addon.Driver.prototype.alloc(4));
for (const code of [Number.NaN, -1, 0.5, 2 ** 40, '1', undefined])
  await refused(`the text of ${String(code)}`, () => addon.errorText(code));
check('the text of a code', addon.errorText(700).length > 0 && addon.errorText(12345) === '');

addon.devices();
const driver = new addon.Driver(0);
const module = driver.build(addition);
driver.finish(module);
const layout = (...numbers) => Float64Array.from(numbers);
const right = [4, 1, 1, 1, 1, 1, 0, 12, 0, 0, 8, 4];
const kernel = driver.kernel(module, 'add', layout(...right));

/** Commands as cells, which are float64 but for raw arguments. */
function cells(...numbers) {
  return new Uint8Array(Float64Array.from(numbers).buffer);
}
const by = (value) => {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat32(0, value, true);
  return view.getFloat64(0, true);
};

/** The device computes. */
async function works(when) {
  const buffer = driver.alloc(16);
  driver.upload(buffer, 0, new Uint8Array(Float32Array.of(1, 2, 3, 4).buffer));
  driver.submit(cells(1, 10, kernel, 0, 0, 0, buffer, 0, 16, by(0.5)), 10);
  const into = new Uint8Array(16);
  await driver.read(buffer, 0, into);
  check(`results ${when}`, [...new Float32Array(into.buffer)].join() === '1.5,2.5,3.5,4.5');
  driver.free(buffer);
}
await works('at first');

// Sizes, offsets and numbers of things.
const buffer = driver.alloc(64);
const bytes = new Uint8Array(64);
for (const size of [0, Number.NaN, -1, 0.5, 2 ** 61, 2 ** 64, Infinity, '4', undefined, null, 4n])
  await refused(`alloc ${String(size)}`, () => driver.alloc(size));
for (const offset of [Number.NaN, -1, 0.5, 1, 65, 2 ** 53, 2 ** 63, 2 ** 64 - 2048, Infinity]) {
  await refused(`upload at ${offset}`, () => driver.upload(buffer, offset, bytes));
  await refused(`read at ${offset}`, () => driver.read(buffer, offset, bytes));
  await refused(`readSync at ${offset}`, () => driver.readSync(buffer, offset, bytes));
}
for (const handle of [-1, 0.5, Number.NaN, 2 ** 32, Infinity, buffer + 1, '0', undefined]) {
  const other = handle === buffer + 1 ? 99 : handle;
  await refused(`free ${handle}`, () => driver.free(handle));
  await refused(`upload to ${handle}`, () => driver.upload(handle, 0, bytes));
  await refused(`read of ${handle}`, () => driver.read(handle, 0, new Uint8Array(0)));
  await refused(`readSync of ${handle}`, () => driver.readSync(handle, 0, new Uint8Array(0)));
  await refused(`module ${handle}`, () => driver.finish(other));
  await refused(`built ${handle}`, () => driver.built(other));
  await refused(`facts of ${handle}`, () => driver.facts(other));
  await refused(`release of module ${handle}`, () => driver.releaseModule(other));
  await refused(`release of kernel ${handle}`, () => driver.releaseKernel(other));
}
for (const data of [undefined, {}, 'bytes', new Float32Array(1), new DataView(bytes.buffer), [1, 2], bytes.buffer]) {
  await refused('upload of no bytes', () => driver.upload(buffer, 0, data));
  await refused('read into no bytes', () => driver.read(buffer, 0, data));
  await refused('submit of no bytes', () => driver.submit(data, 1));
}
for (const text of [
  'this is no PTX',
  '.version 9.9\n',
  addition.slice(0, 300),
  'x\0y',
  addition.replace('add.rn', 'sub.xy'),
]) {
  const wrong = driver.build(text);
  await driver.built(wrong);
  await refused(`a module of ${text.length} characters`, () => driver.finish(wrong));
  await refused('a kernel of what was refused', () => driver.kernel(wrong, 'add', layout(...right)));
  driver.releaseModule(wrong);
}
await refused('a module of nothing', () => driver.build());
await refused('a module of a number', () => driver.build(5));

// Batches.
const many = [2, 2 ** 61, 2 ** 61 + 2 ** 20, 2 ** 62, 2 ** 63, 2 ** 64, -1, 0.5, Number.NaN, Infinity, '1', undefined];
for (const number of many)
  for (const run of ['submit', 'submitTimed'])
    await refused(`${run} of ${number} cells`, () => driver[run](new Uint8Array(8), number));
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
  'another kernel': [1, 10, 99, 0, 0, 0, buffer, 0, 16, 0],
  'half a kernel': [1, 10, kernel + 0.5, 0, 0, 0, buffer, 0, 16, 0],
  'too few arguments': [1, 9, kernel, 0, 0, 0, buffer, 0, 16],
  'too many arguments': [1, 11, kernel, 0, 0, 0, buffer, 0, 16, 0, 0],
  'a buffer that is none': [1, 10, kernel, 0, 0, 0, 99, 0, 16, 0],
  'a binding beyond the end': [1, 10, kernel, 0, 0, 0, buffer, 60, 16, 0],
  'a binding at NaN': [1, 10, kernel, 0, 0, 0, buffer, Number.NaN, 16, 0],
  'a binding of many bytes': [1, 10, kernel, 0, 0, 0, buffer, 0, 2 ** 53, 0],
  'no number of groups': [1, 10, kernel, Number.NaN, 0, 0, buffer, 0, 16, 0],
  'more groups than there are': [1, 10, kernel, 99999, 0, 0, buffer, 0, 16, 0],
  'half a group': [1, 10, kernel, 0.5, 0, 0, buffer, 0, 16, 0],
  'a copy beyond the end': [2, 7, buffer, 0, buffer, 32, 64],
  'a copy that wraps': [2, 7, buffer, 2 ** 53, buffer, 0, 2 ** 53],
  'a copy of nothing known': [2, 7, buffer, 0, buffer, 0, Number.NaN],
  'a copy from before': [2, 7, buffer, -4, buffer, 0, 4],
  'a short copy': [2, 6, buffer, 0, buffer, 0],
  'a fill beyond the end': [3, 6, buffer, 4, 64, 0],
  'a fill at NaN': [3, 6, buffer, Number.NaN, 4, 0],
  'a fill between words': [3, 6, buffer, 2, 4, 0],
  'a fill of half a word': [3, 6, buffer, 0, 2, 0],
  'a fill with too large a pattern': [3, 6, buffer, 0, 4, 2 ** 32],
  'a second command cut short': [3, 6, buffer, 0, 4, 0, 3],
};
for (const [what, numbers] of Object.entries(batches)) {
  await refused(what, () => driver.submit(cells(...numbers), numbers.length));
  await refused(`${what}, timed`, () => driver.submitTimed(cells(...numbers), numbers.length));
}

// Kernels that are not what the layout says.
const layouts = {
  'no layout': [],
  'half a layout': right.slice(0, 7),
  'an argument without bytes': right.slice(0, 9),
  'parameters that are too short': [4, 1, 1, 1, 1, 1, 0, 8, 0, 0, 8, 4],
  'an argument beyond them': [4, 1, 1, 1, 1, 1, 0, 12, 8, 0, 8, 4],
  'too many parameters': [4, 1, 1, 1, 1, 1, 0, 2 ** 20, 0, 0, 8, 4],
  'long arguments': [4, 1, 1, 1, 1, 1, 0, 12, 0, 200],
  'odd arguments': [4, 1, 1, 1, 1, 1, 0, 12, 0, 3],
  'no groups': [0, 1, 1, 1, 1, 1, 0, 12, 0, 0, 8, 4],
  'groups that are no number': [Number.NaN, 1, 1, 1, 1, 1, 0, 12, 0, 0, 8, 4],
  'negative groups': [-1, 1, 1, 1, 1, 1, 0, 12, 0, 0, 8, 4],
  'half a group': [0.5, 1, 1, 1, 1, 1, 0, 12, 0, 0, 8, 4],
  'too many groups': [4, 70000, 1, 1, 1, 1, 0, 12, 0, 0, 8, 4],
  'too large a group': [1, 1, 1, 1024, 1024, 1024, 0, 12, 0, 0, 8, 4],
  'a group beyond the limit': [1, 1, 1, 1024, 2, 1, 0, 12, 0, 0, 8, 4],
  'too much shared memory': [4, 1, 1, 1, 1, 1, 2 ** 20, 12, 0, 0, 8, 4],
};
for (const [what, numbers] of Object.entries(layouts))
  await refused(what, () => driver.kernel(module, 'add', layout(...numbers)));
await refused('a layout of bytes', () => driver.kernel(module, 'add', new Uint8Array(9)), /Float64Array/);
await refused('a layout of nothing', () => driver.kernel(module, 'add'));
await refused('a name that is none', () => driver.kernel(module, 'nope', layout(...right)));
check('facts of a kernel', driver.facts(kernel).length === 4);
check('memory', driver.memoryInfo().length === 3);
driver.trim();

// Arrays that go away.
const large = 1 << 24;
const source = driver.alloc(large);
for (let i = 0; i < 20; i++) {
  const into = new Uint8Array(large);
  const reading = driver.read(source, 0, into);
  structuredClone(into.buffer, { transfer: [into.buffer] });
  if (i % 5 === 0) collect();
  await refused('a read into an array that was transferred', () => reading, /transferred away or made shorter/);
}
if (ArrayBuffer.prototype.resize !== undefined) {
  const shrinking = new ArrayBuffer(large, { maxByteLength: large });
  const reading = driver.read(source, 0, new Uint8Array(shrinking));
  shrinking.resize(0);
  await refused('a read into an array that was made shorter', () => reading, /transferred away or made shorter/);
}
const gone = new Uint8Array(8);
structuredClone(gone.buffer, { transfer: [gone.buffer] });
driver.upload(buffer, 0, gone);
await driver.read(buffer, 64, gone);
await refused('a batch in an array that was transferred', () => driver.submit(gone, 1));
await works('after all that');

// Kernels and modules that go while they run, and buffers that are read meanwhile.
for (let i = 0; i < 50; i++) {
  const own = driver.build(addition.replaceAll('add(', `add${i}(`));
  const run = driver.kernel(own, `add${i}`, layout(16, 1, 1, 1, 1, 1, 0, 12, 0, 0, 8, 4));
  driver.releaseModule(own);
  const x = driver.alloc(64);
  driver.submit(cells(3, 6, x, 0, 64, 0, 1, 10, run, 0, 0, 0, x, 0, 64, by(i)), 16);
  driver.releaseKernel(run);
  const into = new Uint8Array(64);
  const reading = driver.read(x, 0, into);
  driver.free(x);
  await reading;
  check(`round ${i}`, new Float32Array(into.buffer)[15] === i);
}

// Random calls.
let state = seed;
const random = (below) => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return Math.floor((state / 2 ** 32) * below);
};
// biome-ignore format: a list
const numbers = [0, 1, 2, 3, 4, 6, 7, 8, 12, 16, 63, 64, -1, 0.5, Number.NaN, Infinity, 2 ** 31, 2 ** 32, 2 ** 53, 2 ** 61, 2 ** 63];
const pick = (list) => list[random(list.length)];
const made = [
  () => pick(numbers),
  () => pick(numbers),
  () => buffer,
  () => module,
  () => 'add',
  () => cells(...Array.from({ length: random(24) }, () => pick(numbers))),
  () => cells(3, 6, buffer, pick(numbers), pick(numbers), 0),
  () => Float64Array.from({ length: random(12) }, () => pick(numbers)),
  () => new Uint8Array(random(65)),
  () => new Uint8Array(new SharedArrayBuffer(64), random(8), 8),
  () => new Uint8Array(64).subarray(random(9)),
  () => pick([undefined, null, true, '', 'add', 'x\0y', {}, [], 1n, Symbol('s'), () => 1, new Proxy({}, {}), gone]),
];
// Kernels are trusted: no random batch may start one on a range that it leaves. And nothing is given back that is in use.
const mayDispatch = (data) =>
  data instanceof Uint8Array &&
  data.length >= 8 &&
  new Float64Array(data.slice(0, data.length - (data.length % 8)).buffer).includes(1);
const methods = ['alloc', 'free', 'upload', 'readSync', 'read', 'idle', 'built', 'finish', 'kernel', 'facts'];
methods.push('submit', 'submitTimed', 'memoryInfo', 'trim', 'releaseKernel', 'releaseModule');
let accepted = 0;
for (let i = 0; i < count; i++) {
  const method = pick(methods);
  const given = Array.from({ length: random(5) }, () => pick(made)());
  const own = { free: buffer, releaseKernel: kernel, releaseModule: module }[method];
  if (own !== undefined && given[0] === own) continue;
  if (method.startsWith('submit') && mayDispatch(given[0])) continue;
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
