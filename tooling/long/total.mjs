/**
 * `node tooling/long/total.mjs FILE...`: the sum of the last totals in each file, as one closing line. A file without totals is one failure: what
 * wrote it ended too early.
 */
import { readFileSync } from 'node:fs';
import { closingLine, totalsOf } from '../running.mjs';

const sums = [0, 0, 0];
for (const file of process.argv.slice(2))
  for (const [i, n] of (totalsOf(readFileSync(file, 'utf8')) ?? [0, 1, 0]).entries()) sums[i] += n;
const [passed, failed, skipped] = sums;
process.stdout.write(`${closingLine({ passed, failed, skipped })}\n`);
