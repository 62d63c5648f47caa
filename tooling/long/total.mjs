/**
 * `node tooling/long/total.mjs FILE...`: what failed according to each file, said once more, and the sum of their last totals as the closing
 * line. A file without totals is one failure: what wrote it ended too early.
 */
import { readFileSync } from 'node:fs';
import { closingLine, totalsOf } from '../running.mjs';

const sums = [0, 0, 0];
for (const file of process.argv.slice(2)) {
  const output = readFileSync(file, 'utf8');
  for (const [failure] of output.matchAll(/^failed: .*$/gm)) process.stdout.write(`${failure}\n`);
  for (const [i, n] of (totalsOf(output) ?? [0, 1, 0]).entries()) sums[i] += n;
}
const [passed, failed, skipped] = sums;
process.stdout.write(`${closingLine({ passed, failed, skipped })}\n`);
