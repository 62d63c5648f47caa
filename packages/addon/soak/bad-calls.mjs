/**
 * Bad calls of an addon itself, below everything that checks arguments: each must end with an error or do something sensible. What every
 * driver must refuse is here; `soak/hostile.mjs` of a backend has what its own commands and kernels can be told.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');

let failures = 0;

export function check(what, fine) {
  if (fine) return;
  failures++;
  console.log(`WRONG: ${what}`);
}

/** The message of what a call throws, or of what its promise is rejected with; null where it goes well. */
export async function refusal(call) {
  try {
    await call();
    return null;
  } catch (error) {
    return String(error?.message ?? error);
  }
}

export async function refused(what, call, pattern = /./) {
  const message = await refusal(call);
  check(`${what}: ${message}`, message !== null && pattern.test(message));
}

export const layout = (...numbers) => Float64Array.from(numbers);

/** Commands as cells, which are float64 but for raw arguments. */
export function cells(...numbers) {
  return new Uint8Array(Float64Array.from(numbers).buffer);
}

/** A cell that begins with the bytes that `write` puts there. */
export function raw(write) {
  const view = new DataView(new ArrayBuffer(8));
  write(view);
  return view.getFloat64(0, true);
}
export const float = (value) => raw((v) => v.setFloat32(0, value, true));

/** Before a library is open: `make` makes a driver. */
export async function beforeOpen(addon, make) {
  await refused('a driver before open()', make, /open\(\) comes first/);
  await refused('devices before open()', () => addon.devices(), /open\(\) comes first/);
  await refused('open without a path', () => addon.open());
  await refused('open with an object', () => addon.open({}));
  check('a library that is not there', addon.open('/nope/libnope.so') !== '');
  await refused('a driver after open() failed', make, /open\(\) comes first/);
}

/** Drivers of devices that are none: `make` makes the driver of a device. */
export async function wrongDevices(addon, make) {
  for (const device of [Number.NaN, -1, 0.5, 4096, 2 ** 32, Infinity, '0', undefined])
    await refused(`device ${String(device)}`, () => make(device));
  await refused('a method of nothing', () => addon.Driver.prototype.alloc.call({}, 4));
  await refused('a method of the prototype', () => addon.Driver.prototype.alloc(4));
}

/** Sizes, ranges and data of buffers; `buffer` has 64 bytes and is the last that was made. */
export async function wrongBuffers(driver, buffer) {
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
    await refused(`readSync of ${handle}`, () => driver.readSync(handle, 0, new Uint8Array(0)));
  }
  for (const data of [undefined, {}, 'bytes', new Float32Array(1), new DataView(bytes.buffer), [1, 2], bytes.buffer]) {
    await refused('upload of no bytes', () => driver.upload(buffer, 0, data));
    await refused('read into no bytes', () => driver.read(buffer, 0, data));
    await refused('submit of no bytes', () => driver.submit(data, 1));
  }
}

/** Numbers of things that `methods` do not know. */
export async function wrongNumbers(driver, methods) {
  for (const handle of [-1, 0.5, Number.NaN, 2 ** 32, Infinity, 99, '0', undefined])
    for (const method of methods) await refused(`${method} of ${handle}`, () => driver[method](handle));
}

/** Batches that are none; `kernel` and `buffer` are real, `own` are those of the addon alone, `runs` the methods that take them. */
export async function wrongBatches(driver, { kernel, buffer, own, runs }) {
  const many = [
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
  ];
  for (const number of many)
    for (const run of runs) await refused(`${run} of ${number} cells`, () => driver[run](new Uint8Array(8), number));
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
    'a copy beyond the end': [2, 7, buffer, 0, buffer, 32, 64],
    'a copy that wraps': [2, 7, buffer, 2 ** 53, buffer, 0, 2 ** 53],
    'a copy of nothing known': [2, 7, buffer, 0, buffer, 0, Number.NaN],
    'a copy from before': [2, 7, buffer, -4, buffer, 0, 4],
    'a short copy': [2, 6, buffer, 0, buffer, 0],
    'a fill beyond the end': [3, 6, buffer, 4, 64, 0],
    'a fill at NaN': [3, 6, buffer, Number.NaN, 4, 0],
    'a fill with too large a pattern': [3, 6, buffer, 0, 4, 2 ** 32],
    'a short product': [4, 5, 0, 1, 1],
    'a second command cut short': [3, 6, buffer, 0, 4, 0, 3],
    ...own,
  };
  for (const [what, numbers] of Object.entries(batches)) {
    await refused(what, () => driver.submit(cells(...numbers), numbers.length));
    await refused(`${what}, timed`, () => driver.submitTimed(cells(...numbers), numbers.length));
  }
}

/** A product of matrices that all lie in one buffer, as a command. */
export const product = (buffer, m, n, k, batch, place = [0, k, 0, 0]) =>
  [4, 22, 0, m, n, k, batch].concat([0, 1, 2].flatMap(() => [buffer, ...place]));

/** Products before their library is open, and such as leave `buffer`; `open` opens it, and gives why it cannot; `name`: how errors name it. */
export async function wrongProducts(driver, buffer, { open, name }) {
  const whole = product(buffer, 2, 2, 2, 1);
  const of = (...rest) => product(buffer, ...rest);
  for (const run of ['prepareProduct', 'submit', 'submitTimed'])
    await refused(`${run} of a product without ${name}`, () => driver[run](cells(...whole), 22), new RegExp(name, 'i'));
  await refused('a library for products that is not there', () => {
    throw new Error(open('/nope/libnope.so'));
  });
  if (open('') !== '') console.log(`without ${name}`);
  for (const numbers of [
    of(9, 9, 9, 1),
    of(2, 2, 2, 9),
    of(0, 2, 2, 1),
    of(2, 2, 2, 0),
    of(2 ** 31 - 1, 2 ** 31 - 1, 2 ** 31 - 1, 2 ** 31 - 1),
    of(2, 2, 2, 1, [2 ** 53, 2, 0, 0]),
    of(2, 2, 2, 1, [Number.NaN, 2, 0, 0]),
    of(2, 2, 2, 1, [0, 1, 0, 0]),
    of(2, 2, 2, 2, [0, 2, 2 ** 53, 0]),
    of(2, 2, 2, 1.5),
    ...[6, -1, 0.5, Number.NaN].map((format) => of(2, 2, 2, 1).with(2, format)),
  ])
    await refused(
      `a product of ${numbers.slice(3, 7)}`,
      () => driver.submit(cells(...numbers), 22),
      new RegExp(`product|${name}`, 'i'),
    );
}

/** Arrays that go away while something is read into them, or before; `large` is a buffer of so many bytes. */
export async function arraysThatGo(driver, buffer, large, bytes) {
  for (let i = 0; i < 20; i++) {
    const into = new Uint8Array(bytes);
    const reading = driver.read(large, 0, into);
    structuredClone(into.buffer, { transfer: [into.buffer] });
    if (i % 5 === 0) collect();
    await refused('a read into an array that was transferred', () => reading, /transferred away or made shorter/);
  }
  if (ArrayBuffer.prototype.resize !== undefined) {
    const shrinking = new ArrayBuffer(bytes, { maxByteLength: bytes });
    const reading = driver.read(large, 0, new Uint8Array(shrinking));
    shrinking.resize(0);
    await refused('a read into an array that was made shorter', () => reading, /transferred away or made shorter/);
  }
  const gone = new Uint8Array(8);
  structuredClone(gone.buffer, { transfer: [gone.buffer] });
  driver.upload(buffer, 0, gone);
  await driver.read(buffer, 64, gone);
  await refused('a batch in an array that was transferred', () => driver.submit(gone, 1));
  return gone;
}

// biome-ignore format: a list
const numbers = [0, 1, 2, 3, 4, 6, 7, 8, 12, 16, 22, 63, 64, -1, 0.5, Number.NaN, Infinity, 2 ** 31, 2 ** 32, 2 ** 53, 2 ** 61, 2 ** 63];

/**
 * Random calls of `methods` with numbers, arrays and what `made` makes; `own`: numbers that must not be given back; `skips`: calls that would
 * start a kernel on a range that it leaves, because kernels are trusted.
 */
export async function randomCalls(driver, { count, seed, methods, made, own, skips, buffer, gone }) {
  let state = seed;
  const random = (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  const pick = (list) => list[random(list.length)];
  const odd = [undefined, null, true, '', 'add', 'x\0y', {}, [], 1n, Symbol('s'), () => 1, new Proxy({}, {}), gone];
  const makers = [
    () => pick(numbers),
    () => pick(numbers),
    () => buffer,
    () => 'add',
    () => cells(...Array.from({ length: random(24) }, () => pick(numbers))),
    () => cells(3, 6, buffer, pick(numbers), pick(numbers), 0),
    () => Float64Array.from({ length: random(12) }, () => pick(numbers)),
    () => new Uint8Array(random(65)),
    () => new Uint8Array(new SharedArrayBuffer(64), random(8), 8),
    () => new Uint8Array(64).subarray(random(9)),
    () => pick(odd),
    ...made,
  ];
  let accepted = 0;
  for (let i = 0; i < count; i++) {
    const method = pick(methods);
    const given = Array.from({ length: random(5) }, () => pick(makers)());
    if (own[method] !== undefined && given[0] === own[method]) continue;
    if (skips(method, given)) continue;
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
}

/** Work in flight when the driver goes, and calls behind that. */
export async function afterDispose(driver, methods, large, bytes) {
  const last = driver.read(large, 0, new Uint8Array(bytes));
  driver.dispose();
  driver.dispose();
  await last;
  for (const method of methods)
    await refused(`${method} after dispose()`, () => driver[method](0, 0, new Uint8Array(64)));
}

/** Throws where a check failed. */
export function finish() {
  if (failures > 0) throw new Error(`${failures} wrong`);
  console.log('every bad call was refused, and the device computes');
}
