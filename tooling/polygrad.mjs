#!/usr/bin/env node
/** `npx polygrad doctor` in a checkout, which is the command of packages/polygrad, and, the same way, every other command of the repository. */
import { join } from 'node:path';
import { root, runNode } from './workspace.mjs';

const args = process.argv.slice(2);
if (args.length === 0 || args[0] === '--help' || args[0] === '-h') {
  process.stdout.write('usage: polygrad doctor | start | test | conformance | bench | playground [options]\n');
  process.exitCode = args.length === 0 ? 2 : 0;
} else {
  process.exitCode = runNode(join(root, 'tooling/run.mjs'), args);
}
