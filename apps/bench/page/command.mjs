/**
 * `npm run bench -- --suite browser [options]` (arguments.mjs has them)
 *
 * Polygrad and its peers in one page of headless Chromium, in one run and on one adapter, with ratios. Every row is reported, and every row ends
 * (rows.mjs). Exit code 0: Polygrad gave right results everywhere. 1: it did not, or rows were not run. 2: bad arguments, or no Chromium. A signal
 * ends the browser at once; what was measured is shown, and the exit code is 128 and the signal's number.
 */
import { renameSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { findChromium } from '../../../tooling/browser/chromium.mjs';
import { inPage } from '../../../tooling/browser/page.mjs';
import { isolation } from '../../../tooling/browser/server.mjs';
import { describeMachine, describeRevision, load } from '../dist/reports/machine.js';
import { fileOf, readArguments, usageOf } from './arguments.mjs';
import { openBrowser } from './browser.mjs';
import { casesOf } from './cases.mjs';
import { installPeers, pageFiles, versions } from './files.mjs';
import { runRows } from './rows.mjs';
import { failures, judged, sheet } from './sheet.mjs';

const allPeers = ['tfjs', 'jax-js', 'onnxruntime', 'litert'];
const page = new URL('bench.mjs', import.meta.url);

const print = (...lines) => process.stdout.write(lines.map((line) => `${line}\n`).join(''));

/** Aborts with the reason when a signal comes, or when this process has lost the one that started it. */
function listen(controller) {
  const names = ['SIGINT', 'SIGTERM', 'SIGHUP'];
  let caught = null;
  const stop = (name) => {
    caught ??= name;
    controller.abort(`by ${name}`);
  };
  for (const name of names) process.on(name, stop);
  const parent = process.ppid;
  const look = setInterval(() => process.ppid !== parent && stop('SIGHUP'), 500);
  return {
    caught: () => caught,
    end() {
      clearInterval(look);
      for (const name of names) process.off(name, stop);
    },
  };
}

/** Pages of a browser of their own, for one engine. */
function pagesOf(path, files, wishes) {
  return (asked, tell) => {
    let killed = false;
    const starting = openBrowser(path);
    const words = JSON.stringify({ ...wishes, ...asked });
    const body = `import('/bench.js').then((m) => m.runBench(${words}, (word) => tell(word)))`;
    const options = { seconds: Number.POSITIVE_INFINITY, tell };
    const done = starting.then(async ({ context }) => {
      if (!killed) await inPage(context, files, isolation, body, options);
    });
    return {
      done,
      async kill() {
        killed = true;
        await (await starting.catch(() => null))?.kill();
        await done.catch(() => undefined);
      },
    };
  };
}

async function runEngine(path, engine, options, entry, controller, write) {
  const began = performance.now();
  const pace = options.paceOf(engine);
  const cases = casesOf(engine, options.quick).filter(
    ({ id }) => options.filter === undefined || options.filter.some((text) => id.includes(text)),
  );
  const threads = engine === 'webgpu' ? 1 : Math.min(describeMachine().cores, 8);
  const participants = ['polygrad', ...options.peers];
  const open = pagesOf(path, await pageFiles(entry), { engine, threads, pace, versions: versions() });
  const own = new AbortController();
  const { signal } = controller;
  const stop = () => own.abort(signal.reason);
  signal.addEventListener('abort', stop);
  if (signal.aborted) stop();
  const { minutes } = options;
  const bound = setTimeout(() => own.abort(`the whole run's bound of ${minutes} minutes`), minutes * 60_000);
  const say = (line) => {
    const seconds = Math.round((performance.now() - began) / 1000);
    process.stderr.write(`${engine} ${String(seconds).padStart(4)} s  ${line}\n`);
  };
  const record = ({ rows, attendance, stopped }) => ({
    ...{ engine, threads, pace, minutes, attendance, stopped },
    seconds: Math.round((performance.now() - began) / 1000),
    cases: rows.filter(({ state }) => state !== 'not run').map(judged),
    notRun: rows.filter(({ state }) => state !== 'done').map(({ id }) => id),
  });
  try {
    const changed = (state) => write(record({ ...state, stopped: null }));
    return record(await runRows({ cases, participants, pace, open, signal: own.signal, changed, say }));
  } finally {
    clearTimeout(bound);
    signal.removeEventListener('abort', stop);
  }
}

/**
 * The command.
 *
 * @param args its words
 * @param others for tests: `entry`, the module that pages load, and the `peerNames` it has
 * @returns the exit code
 */
export async function main(args, { entry = page, peerNames = allPeers } = {}) {
  let options;
  let file;
  try {
    options = readArguments(args, peerNames);
    file = fileOf(options.json);
  } catch (error) {
    process.stderr.write(`bench: ${error.message}\n${usageOf(peerNames)}\n`);
    return 2;
  }
  if (options.help) {
    print(usageOf(peerNames));
    return 0;
  }
  const path = findChromium();
  if (path === null) {
    process.stderr.write('bench: no Chromium here; `bash tooling/devices/install.sh browser` installs it\n');
    return 2;
  }
  const problem = entry === page && options.peers.length > 0 ? installPeers() : null;
  if (problem !== null) print(`SKIPPED the peers: ${problem}`);
  if (problem !== null) options.peers = [];
  const head = {
    schema: 2,
    date: new Date().toISOString(),
    command: `npm run bench -- ${args.join(' ')}`,
    machine: describeMachine(),
    revision: describeRevision(),
    quick: options.quick,
    loadBefore: load(),
  };
  const runs = [];
  const write = (current) => {
    if (file === null) return;
    writeFileSync(`${file}.part`, `${JSON.stringify({ ...head, loadAfter: load(), runs: [...runs, ...current] })}\n`);
    renameSync(`${file}.part`, file);
  };
  const controller = new AbortController();
  const signals = listen(controller);
  for (const engine of options.engines) {
    if (controller.signal.aborted) break;
    const run = await runEngine(path, engine, options, entry, controller, (current) => write([current]));
    runs.push(run);
    write([]);
    print(...sheet(run));
  }
  signals.end();
  const bad = runs.flatMap(({ cases }) => failures(cases));
  if (bad.length > 0) print('', `Polygrad gave no figures or wrong results in ${bad.map(({ id }) => id).join(', ')}`);
  if (signals.caught() !== null) return 128 + constants.signals[signals.caught()];
  return bad.length > 0 || runs.some(({ notRun }) => notRun.length > 0) ? 1 : 0;
}
