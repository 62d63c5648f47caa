/**
 * Tiles measured in a browser and kept in its IndexedDB: what a visit finds there and leaves there, and databases that are damaged, of
 * somebody else, or do not answer. Read by hand here, not through the library. The report is judged by tooling/tuning.test.mjs.
 */
import { createWebGpuEngine } from '@polygrad/backend-webgpu';
import { profile, setEngine, tensor } from '@polygrad/core';
import { defaultStore } from '@polygrad/core/engine';

const name = 'polygrad-tuning';

/**
 * The library gives up a database after five seconds: never here, where the machine may be busy, or at once, where the database is held. Other
 * timers are what they are: one that guards reads from a device would end it.
 */
const databasePatience = 5000;
let patient = true;
const { setTimeout: wait } = globalThis;
globalThis.setTimeout = (f, delay = 0, ...rest) =>
  delay !== databasePatience ? wait(f, delay, ...rest) : patient ? 0 : wait(f, 0, ...rest);

const settled = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/** A connection to a database, made anew with this version and table. */
async function made(version, table) {
  await settled(indexedDB.deleteDatabase(name));
  const opening = indexedDB.open(name, version);
  opening.onupgradeneeded = () => opening.result.createObjectStore(table);
  return settled(opening);
}

/** Everything in the database as the library makes it, which must exist. */
async function entries() {
  const db = await settled(indexedDB.open(name));
  const table = db.transaction('tiles').objectStore('tiles');
  const [keys, values] = await Promise.all([settled(table.getAllKeys()), settled(table.getAll())]);
  db.close();
  return keys.map((key, i) => [key, values[i]]);
}

/** A database in which every key has this value. */
async function replace(keys, value) {
  const db = await made(1, 'tiles');
  const table = db.transaction('tiles', 'readwrite').objectStore('tiles');
  await Promise.all(keys.map((key) => settled(table.put(value, key))));
  db.close();
}

/** Small whole numbers: sums of products are exact in any order. */
const numbers = (rows, columns) =>
  tensor(
    Float32Array.from({ length: rows * columns }, (_, i) => ((i * 7) % 11) - 5),
    { shape: [rows, columns] },
  );

/** The product that is tuned: its kernels as the device got them, and a number that all results go into. */
async function product() {
  const [a, b] = [numbers(40, 48), numbers(48, 36)];
  const { value, kernels } = await profile(() => a.matmul(b), { sources: true });
  const sum = (await value.data()).reduce((total, x, i) => total + x * (1 + (i % 13)), 0);
  for (const t of [a, b, value]) t.dispose();
  return { sum, sources: kernels.map(({ source }) => source.text) };
}

/** By this clock the second tile is the fastest and ends the budget: 17 looks for a class. */
const second = (look) => (look % 17 < 5 ? 100 : look % 17 === 10 ? 1000 : 1);
/** By this one the first tile ends it. */
const first = () => 1000;

/**
 * An engine that loads its tiles, multiplies, and measures what it does not know, by a clock whose looks are counted. Ends when what was
 * measured has been saved.
 */
async function visit(ticks, known = false) {
  const store = defaultStore();
  let looks = 0;
  let clock = 0;
  const now = () => (clock += ticks(looks++));
  const [loaded, saved] = [Promise.withResolvers(), Promise.withResolvers()];
  const watched = {
    load: (key) => store.load(key).finally(loaded.resolve),
    save: (key, text) => store.save(key, text).finally(saved.resolve),
  };
  const engine = await createWebGpuEngine({ tuning: { store: watched, automatic: true, now } });
  Object.defineProperty(engine, 'submitTimed', { value: undefined });
  await setEngine(engine);
  // Tiles are loaded when the engine is first used.
  const one = tensor([1]).add(1);
  await one.data();
  one.dispose();
  await loaded.promise;
  // What was loaded is taken in after that.
  await new Promise((resolve) => setTimeout(resolve));
  const before = await product();
  // What is known is not to be measured: a while is waited for that in vain.
  await (known ? new Promise((resolve) => setTimeout(resolve, 400)) : saved.promise);
  await new Promise((resolve) => setTimeout(resolve));
  const after = await product();
  engine.dispose();
  return { looks, before, after };
}

/** The product without any tuning. */
async function plain() {
  const engine = await createWebGpuEngine({ tuning: false });
  await setEngine(engine);
  const result = await product();
  engine.dispose();
  return result;
}

/** One visit of a page, which finds its tile known or not; plain data comes back, or `missing`: why there is no WebGPU here. */
export async function runVisit(known) {
  try {
    (await createWebGpuEngine()).dispose();
  } catch (error) {
    return { missing: error.message };
  }
  return { ...(await visit(second, known)), plain: await plain(), entries: await entries() };
}

/** Visits that find something else than what one has left. Needs a visit before. */
export async function runTroubles() {
  const [[key, text]] = await entries();
  const wrong = {
    'no text': new Uint8Array(4),
    'half a text': text.slice(0, text.length / 2),
  };
  const found = {};
  for (const [what, value] of Object.entries(wrong)) {
    await replace([key], value);
    found[what] = { ...(await visit(first)), entries: await entries() };
  }
  (await made(7, 'tiles')).close();
  found['a later version of the database'] = await visit(first);
  (await made(1, 'others')).close();
  found['a database of somebody else'] = await visit(first);

  // A page that does not let go of a database which is to be deleted: whoever opens it waits.
  const held = await made(1, 'tiles');
  const deleting = settled(indexedDB.deleteDatabase(name));
  patient = false;
  found['a database that is held'] = await visit(first);
  patient = true;
  held.close();
  await deleting;

  const { open } = IDBFactory.prototype;
  IDBFactory.prototype.open = () => {
    throw new DOMException('storage is not allowed here', 'SecurityError');
  };
  found['no storage'] = await visit(first);
  IDBFactory.prototype.open = open;
  return found;
}
