/**
 * `node tooling/conformance-turns.mjs ARGUMENTS ...`: runs of the conformance command one after another in this process, each with the
 * arguments of one text (JSON). Most of what a short run takes by itself is code that V8 has not compiled yet.
 *
 * Every run has a runtime of its own: no engine, no plans and no counts of those before it. Backends stay registered, so runs in one process
 * are those whose engines import the same ones. `conformance-runs.mjs` reads what is printed.
 */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from './workspace.mjs';

const compiled = (path) => import(pathToFileURL(join(root, 'packages', path)).href);

const { conformance } = await compiled('conformance/dist/cli-command.js');
const { createRuntime, useRuntime } = await compiled('core/dist/runtime/runtime.js');
const out = (line) => process.stdout.write(`${line}\n`);

let worst = 0;
for (const [i, text] of process.argv.slice(2).entries()) {
  const start = performance.now();
  out(`run ${i} begins`);
  let code = 1;
  try {
    useRuntime(createRuntime());
    code = await conformance(JSON.parse(text), { out, error: (line) => process.stderr.write(`${line}\n`) });
  } catch (error) {
    out(error instanceof Error ? error.stack : String(error));
  }
  worst = Math.max(worst, code);
  out(`run ${i} ends with ${code} after ${((performance.now() - start) / 1000).toFixed(1)} s`);
}
process.exitCode = worst;
