/** The program of ../soak, which runs on the built packages: many tasks, threads and engines, on every engine there is. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, it } from 'vitest';
import { autoDetectAndConfigureGpu, type DetectionReport } from './index.ts';

const program = fileURLToPath(new URL('../soak/concurrency.mjs', import.meta.url));
let report: DetectionReport = [];
beforeAll(async () => {
  const found = await autoDetectAndConfigureGpu({ measure: false, selfTest: false, plans: false, timeout: 600_000 });
  report = found.report;
  found.engine.dispose();
});

it.for([
  ['cpu', 'tasks', 100],
  ['native', 'tasks', 100],
  ['opencl', 'tasks', 100],
  ['cuda', 'tasks', 100],
  ['webgpu', 'tasks', 100],
  ['cpu', 'workers', 100],
  ['native', 'workers', 100],
  ['opencl', 'workers', 100],
  ['cuda', 'workers', 100],
  // Devices of lavapipe with threads of their own: 34 MB each, and four minutes on two busy cores.
  ['webgpu', 'workers', 100],
  ['cpu', 'engines', 1000],
  ['native', 'engines', 1000],
  ['opencl', 'engines', 1000],
  ['cuda', 'engines', 1000],
  ['webgpu', 'engines', 1000],
] as const)('%s %s %i', ([name, kind, count], { skip }) => {
  if ((report.find((row) => row.name === name)?.score ?? 0) === 0) skip(`no ${name} here`);
  const options = { encoding: 'utf8', maxBuffer: 1 << 28 } as const;
  const { status, signal, stdout, stderr } = spawnSync(process.execPath, [program, name, kind, String(count)], options);
  expect([status, signal], stderr.slice(-2000)).toEqual([0, null]);
  expect(stdout).toContain(`fine: ${count} ${kind} on ${name}`);
});
