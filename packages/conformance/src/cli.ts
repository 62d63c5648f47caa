#!/usr/bin/env node
/**
 * `npm run conformance -- --engine NAME [--threads N] [--sample N|pairwise] [--sizes always] [--filter TEXT] [--json FILE]`. Outside of the
 * repository it is `npx polygrad-conformance --engine ./FILE.js`, with the module of a backend.
 *
 * Runs the suite on one engine: all of it with POLYGRAD_LONG=1, a part of it with --slice K/N. Ends in `N passed, N failed, N skipped`. Exit code
 * 1 if a case failed, 2 for bad arguments (of an engine, too) or an engine that is required and not there. One that is not required is skipped, and
 * the command says so.
 */
import { conformance } from './cli-command.ts';

process.exitCode = await conformance(process.argv.slice(2), {
  out: (line) => console.log(line),
  error: (line) => console.error(line),
});
