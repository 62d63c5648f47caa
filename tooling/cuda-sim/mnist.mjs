/**
 * Trains the network of apps/mnist on the simulated driver and looks at what it has learned: 96 % of the test images or more.
 *
 *   node tooling/cuda-sim/mnist.mjs
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../workspace.mjs';

const least = 0.96;
const out = mkdtempSync(join(tmpdir(), 'polygrad-mnist-'));
const words = '--engine cuda --limit 8000 --epochs 3 --batch 16 --out'.split(' ');
const { status } = spawnSync(process.execPath, [join(root, 'apps/mnist/dist/main.js'), ...words, out], {
  stdio: 'inherit',
});
let fine = status === 0;
if (fine) {
  const { device, epochs } = JSON.parse(readFileSync(join(out, 'summary.json'), 'utf8'));
  const accuracy = epochs.at(-1).testAccuracy;
  fine = accuracy >= least;
  console.log(`${device}: ${(100 * accuracy).toFixed(2)} %, ${100 * least} % are wanted`);
}
rmSync(out, { recursive: true });
console.log(`${fine ? 1 : 0} passed, ${fine ? 0 : 1} failed, 0 skipped`);
process.exitCode = fine ? 0 : 1;
