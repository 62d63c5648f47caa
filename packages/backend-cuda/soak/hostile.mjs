/**
 * Bad calls of the addon itself, below everything that checks arguments: each must end with an error or do something sensible. The process
 * survives, and afterwards the device computes.
 *
 *   node hostile.mjs [count] [seed]       random calls, default 5000 and 1
 */
import * as bad from '../../addon/soak/bad-calls.mjs';
import { wrongConvolutions } from './convolutions.mjs';
import { addition, addon, convolutionLibrary, open, productLibrary } from './ptx.mjs';

const { cells, check, layout, refused } = bad;
const [count = 5000, seed = 1] = process.argv.slice(2).map(Number);

await bad.beforeOpen(addon, () => new addon.Driver(0));
await refused('the version before open()', () => addon.version(), /open\(\) comes first/);
await refused('a text before open()', () => addon.errorText(1), /open\(\) comes first/);
open();

await bad.wrongDevices(addon, (device) => new addon.Driver(device));
for (const device of [63, 64]) await refused(`device ${device}`, () => new addon.Driver(device));
await refused('a driver without new', () => addon.Driver(0));
for (const code of [Number.NaN, -1, 0.5, 2 ** 40, '1', undefined])
  await refused(`the text of ${String(code)}`, () => addon.errorText(code));
check('the text of a code', addon.errorText(700).length > 0 && addon.errorText(12345) === '');

addon.devices();
const driver = new addon.Driver(0);
const module = driver.build(addition);
driver.finish(module);
const right = [4, 1, 1, 1, 1, 1, 0, 12, 0, 0, 8, 4];
const kernel = driver.kernel(module, 'add', layout(...right));

/** The device computes. */
async function works(when) {
  const buffer = driver.alloc(16);
  driver.upload(buffer, 0, new Uint8Array(Float32Array.of(1, 2, 3, 4).buffer));
  driver.submit(cells(1, 10, kernel, 0, 0, 0, buffer, 0, 16, bad.float(0.5)), 10);
  const into = new Uint8Array(16);
  await driver.read(buffer, 0, into);
  check(`results ${when}`, [...new Float32Array(into.buffer)].join() === '1.5,2.5,3.5,4.5');
  driver.free(buffer);
}
await works('at first');

const buffer = driver.alloc(64);
await bad.wrongBuffers(driver, buffer);
await refused('alloc 0', () => driver.alloc(0));
await bad.wrongNumbers(driver, ['finish', 'built', 'facts', 'releaseModule', 'releaseKernel']);
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

await bad.wrongBatches(driver, {
  kernel,
  buffer,
  runs: ['submit', 'submitTimed', 'prepareProduct'],
  own: {
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
    'a fill between words': [3, 6, buffer, 2, 4, 0],
    'a fill of half a word': [3, 6, buffer, 0, 2, 0],
  },
});

await bad.wrongProducts(driver, buffer, {
  open: (path) => addon.openCublasLt(path || productLibrary()),
  name: 'cublasLt',
});

await wrongConvolutions(driver, buffer, (path) => addon.openCudnn(path || convolutionLibrary()));

// A batch that came often enough to be a graph, and such as look like it.
const add = (...rest) => [1, 10, kernel, ...rest];
const one = add(0, 0, 0, buffer, 0, 16, bad.float(1));
const often = (last) => cells(...one, ...one, ...one, ...last);
driver.upload(buffer, 0, new Uint8Array(64));
for (let i = 0; i < 5; i++) driver.submit(often(one), 40);
check('a graph is launched', driver.graphFacts()[1] === 3);
for (const [what, last] of Object.entries({
  'another buffer': add(0, 0, 0, 99, 0, 16, 0),
  'a binding beyond the end': add(0, 0, 0, buffer, 60, 16, 0),
  'a binding at NaN': add(0, 0, 0, buffer, Number.NaN, 16, 0),
  'too many groups': add(5, 0, 0, buffer, 0, 16, 0),
  'half a group': add(0.5, 0, 0, buffer, 0, 16, 0),
  'another kernel': [1, 10, 99, 0, 0, 0, buffer, 0, 16, 0],
  'a length beyond the end': [1, 11, kernel, 0, 0, 0, buffer, 0, 16, 0],
  'no length': [1, Number.NaN, kernel, 0, 0, 0, buffer, 0, 16, 0],
}))
  await refused(`${what} at the end of a graph`, () => driver.submit(often(last), 40));
driver.submit(often(one), 40);
const sums = new Uint8Array(16);
driver.readSync(buffer, 0, sums);
// Six batches of four, and three kernels each where no graph was looked for.
check('what a graph computes', [...new Float32Array(sums.buffer)].join() === '33,33,33,33');

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

const bytes = 1 << 24;
const large = driver.alloc(bytes);
const gone = await bad.arraysThatGo(driver, buffer, large, bytes);
await works('after all that');

// Kernels and modules that go while they run, and buffers that are read meanwhile.
for (let i = 0; i < 50; i++) {
  const own = driver.build(addition.replaceAll('add(', `add${i}(`));
  const run = driver.kernel(own, `add${i}`, layout(16, 1, 1, 1, 1, 1, 0, 12, 0, 0, 8, 4));
  driver.releaseModule(own);
  const x = driver.alloc(64);
  driver.submit(cells(3, 6, x, 0, 64, 0, 1, 10, run, 0, 0, 0, x, 0, 64, bad.float(i)), 16);
  driver.releaseKernel(run);
  const into = new Uint8Array(64);
  const reading = driver.read(x, 0, into);
  driver.free(x);
  await reading;
  check(`round ${i}`, new Float32Array(into.buffer)[15] === i);
}

// Kernels are trusted: no random batch may start one on a range that it leaves. And nothing is given back that is in use.
const mayDispatch = (data) =>
  data instanceof Uint8Array &&
  data.length >= 8 &&
  new Float64Array(data.slice(0, data.length - (data.length % 8)).buffer).includes(1);
const methods = ['alloc', 'free', 'upload', 'readSync', 'read', 'idle', 'built', 'finish', 'kernel', 'facts'];
methods.push(
  'submit',
  'submitTimed',
  'prepareProduct',
  'graphFacts',
  'memoryInfo',
  'trim',
  'releaseKernel',
  'releaseModule',
);
await bad.randomCalls(driver, {
  count,
  seed,
  methods,
  made: [() => module],
  own: { free: buffer, releaseKernel: kernel, releaseModule: module },
  skips: (method, [first]) => method.startsWith('submit') && mayDispatch(first),
  buffer,
  gone,
});
await works('after random calls');
await bad.afterDispose(driver, methods, driver.alloc(bytes), bytes);
bad.finish();
