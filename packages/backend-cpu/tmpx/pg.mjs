import { performance } from 'node:perf_hooks';
const t00 = performance.now();
const { stats, setDynamicSizes, tensor, scope } = await import('@polygrad/core');
const { createCpuEngine } = await import('@polygrad/backend-cpu');
const { tools } = await import('/tmp/wt/sizes2/apps/bench/dist/work/tools.js');
const { sizeCases } = await import('/tmp/wt/sizes2/apps/bench/dist/suites/sizes.js');
const { runTrial } = await import('/tmp/wt/sizes2/apps/bench/dist/work/trial.js');
const m = await import('/tmp/wt/sizes2/apps/bench/dist/runners/polygrad.js');
console.log('import', (performance.now() - t00).toFixed(0));
const runner = await m.createRunner({ threads: 1, engine: 'cpu', tools });
const id = process.argv[2] ?? 'policy-gradient';
const c = sizeCases(false).find((c) => c.id === id);
const t0 = performance.now(),
  cpu0 = process.cpuUsage();
const reply = await runTrial(c.work, runner.subject(c.work));
const cpu = process.cpuUsage(cpu0);
console.log(
  id,
  'total',
  (performance.now() - t0).toFixed(0),
  'cpu',
  ((cpu.user + cpu.system) / 1000).toFixed(0),
  'plans',
  reply.plans,
  'planning',
  reply.planningMs?.toFixed(0),
);
const slow = reply.times.map((t, i) => [t / 1e6, i, c.work.sizes[i]]).filter(([t]) => t > 15);
console.log(slow.map(([t, i, n]) => `${i}:n=${n}:${t.toFixed(0)}`).join(' '));
const rest = reply.times.filter((t) => t / 1e6 <= 15).map((t) => t / 1e6);
console.log(
  'rest',
  rest.length,
  'sum',
  rest.reduce((a, b) => a + b, 0).toFixed(0),
  'last 50 median',
  rest
    .slice(-50)
    .sort((a, b) => a - b)[25]
    ?.toFixed(2),
);
const s = stats();
console.log(JSON.stringify(s).slice(0, 600));

