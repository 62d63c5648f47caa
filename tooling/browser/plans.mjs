/**
 * Plans kept in a browser's IndexedDB: what a visit finds there and leaves there, and databases that are damaged, of somebody else, or refused.
 * The report is judged by tooling/plans.test.mjs.
 */
import { createCpuEngine } from '@polygrad/backend-cpu';
import { scope, setEngine, setLogger, softmax, stats, tensor } from '@polygrad/core';
import { usePlanCache } from '@polygrad/core/plans';

const name = 'polygrad-plans';

const settled = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/** What is in the database, changed by a function. */
async function changed(change) {
  const db = await settled(indexedDB.open(name));
  const table = db.transaction('plans', 'readwrite').objectStore('plans');
  for (const row of await settled(table.getAll())) await settled(table.put(change(row)));
  db.close();
}

/** A product and a softmax on a new engine, with these plans. */
async function work(options) {
  const told = [];
  setLogger((text) => told.push(text));
  const engine = createCpuEngine({ threads: 1 });
  await setEngine(engine);
  const plans = await usePlanCache(options);
  const x = tensor(
    Float32Array.from({ length: 48 }, (_, i) => Math.sin(i)),
    { shape: [8, 6] },
  );
  const values = Array.from(await scope(() => softmax(x.matmul(x.transpose()))).data());
  await plans.saved();
  plans.stop();
  const { plansMade, plansLoaded } = stats();
  engine.dispose();
  return { values, plansMade, plansLoaded, told };
}

/** One visit of a page. */
export const runVisit = () => work({});

/** Visits that find something else than what one has left. Needs a visit before. */
export async function runTroubles() {
  const found = {};
  await changed((row) => ({ ...row, bytes: row.bytes.map((byte, i) => (i === 500 ? byte ^ 1 : byte)) }));
  found['another byte'] = await work({});
  found['written again'] = await work({});
  await changed((row) => ({ ...row, bytes: 'no bytes' }));
  found['no bytes'] = await work({});
  found['a later version of the database'] = await settled(indexedDB.deleteDatabase(name))
    .then(() => settled(indexedDB.open(name, 7)))
    .then((db) => db.close())
    .then(() => work({}));
  const few = { database: 'few', mostPlans: 1, version: 'few' };
  await work(few);
  await work({ ...few, version: 'others' });
  const db = await settled(indexedDB.open('few'));
  const rows = await settled(db.transaction('plans').objectStore('plans').count());
  db.close();
  const { open } = IDBFactory.prototype;
  IDBFactory.prototype.open = () => {
    throw new DOMException('storage is not allowed here', 'SecurityError');
  };
  found['no storage'] = await work({});
  IDBFactory.prototype.open = open;
  return { found, rows };
}
