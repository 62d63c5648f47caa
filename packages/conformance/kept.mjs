import { clearPlans, stats, setEngine } from '@polygrad/core';
import { usePlanCache } from '@polygrad/core/plans';
import { runConformance } from '@polygrad/conformance';
import { createCpuEngine } from '@polygrad/backend-cpu';
import { createReferenceEngine } from '@polygrad/testing';
class M { files = new Map(); async load(p) { return [...this.files].filter(([n]) => n.startsWith(p)).map(([name, bytes]) => ({ name, bytes })); } async save(n, b) { this.files.set(n, b); } async remove(n) { this.files.delete(n); this.removed = (this.removed ?? 0) + 1; } }
const store = new M();
const sample = Number(process.argv[2] ?? 61);
const kind = process.argv[3] ?? 'cpu';
const make = () => kind === 'cpu' ? createCpuEngine({ threads: 1 }) : createReferenceEngine(kind === 'simt' ? { simt: true } : {});
async function pass() {
  const engine = make();
  const reads = [];
  const all = new Map();
  const listening = new Proxy(engine, { get(t, k) {
    if (k === 'download') return async (from, into) => { const b = await t.download(from, into); reads.push(Buffer.from(b.slice(0, from.bytes)).toString('latin1')); return b; };
    const v = Reflect.get(t, k, t); return typeof v === 'function' ? v.bind(t) : v; } });
  await setEngine(listening);
  const plans = await usePlanCache({ store, version: 'c', mostBytes: 2 ** 32, mostPlans: 1e6 });
  const t = process.cpuUsage();
  let inCase = 0;
  const report = await runConformance({ engine: listening, sample, goldens: null, onResult: ({ name, outcome, detail }) => { all.set(name, { outcome, detail, reads: reads.splice(0) }); clearEvery(plans); } });
  const u = process.cpuUsage(t);
  await plans.saved();
  const s = all;
  console.log(kind, report.passed, report.failed, report.skipped, 'held', plans.plans, 'files', store.files.size, 'removed', store.removed, 'cpu ms', ((u.user + u.system) / 1000) | 0);
  const { stateOf } = await import('/tmp/wt/plans/packages/core/dist/runtime/run.js');
  const { getEngine } = await import('@polygrad/core');
  console.log(JSON.stringify(stats(getEngine())));
  plans.stop();
  return all;
}
function clearEvery() {}
const a = await pass(), b = await pass();
let bad = 0;
for (const [name, x] of a) { const y = b.get(name); if (JSON.stringify(x) !== JSON.stringify(y)) { bad++; if (bad < 8) console.log('DIFF', name, x.outcome, y?.outcome, y?.detail, x.reads.length, y?.reads.length); } }
console.log('cases', a.size, 'different', bad);
process.exit(0);
