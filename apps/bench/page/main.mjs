/**
 * `npm run bench -- --suite browser [--engine cpu|webgpu|all] [--quick] [--json FILE] [--peers LIST] [--filter TEXT] [--rounds N]`
 *
 * Polygrad and its peers in one page of headless Chromium, in one run and on one adapter, with ratios; every row is reported. Exit code 0 if
 * Polygrad gave right results everywhere, 1 if it did not, 2 for bad arguments or no Chromium.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { rolldown } from 'rolldown';
import { findChromium, startChromium } from '../../../tooling/browser/chromium.mjs';
import { inPage } from '../../../tooling/browser/page.mjs';
import { isolation } from '../../../tooling/browser/server.mjs';
import { metricOf } from '../dist/cases.js';
import { difference, expectedProbe, lossTolerance } from '../dist/expected.js';
import { describeMachine, describeRevision, load } from '../dist/machine.js';
import { speedRatio, summarize } from '../dist/stats.js';
import { formatPair, formatTable } from '../dist/table.js';
import { casesOf } from './cases.mjs';

const peerNames = ['tfjs', 'jax-js', 'onnxruntime'];
const usage = `usage: npm run bench -- --suite browser [options]

  --engine NAME    cpu (WebAssembly everywhere), webgpu, or all (default)
  --quick          fewer and smaller cases, fewer rounds
  --json FILE      write all raw figures to FILE
  --peers LIST     ${peerNames.join(',')}, or none (default: all)
  --filter TEXT    only cases whose name contains TEXT
  --rounds N       rounds per case; each round measures every participant once`;

const fullPace = { rounds: 7, turnMs: 100, warmMs: 300, maxSamples: 40, caseMs: 15_000 };
const quickPace = { rounds: 3, turnMs: 50, warmMs: 150, maxSamples: 10, caseMs: 4_000 };

const cache = fileURLToPath(new URL('../../../.cache/bench-page-peers', import.meta.url));
const print = (...lines) => process.stdout.write(lines.map((line) => `${line}\n`).join(''));

/** Sees to it that the peers' packages are in the cache folder, by their lock file and without install scripts. */
function installPeers() {
  const from = fileURLToPath(new URL('peers', import.meta.url));
  const lock = readFileSync(join(from, 'package-lock.json'), 'utf8');
  const done = join(cache, 'installed.json');
  if (existsSync(done) && readFileSync(done, 'utf8') === lock) return null;
  mkdirSync(cache, { recursive: true });
  for (const file of ['package.json', 'package-lock.json']) copyFileSync(join(from, file), join(cache, file));
  process.stderr.write('bench: installing the peers from npm ...\n');
  const dropped = /^npm_(package_|lifecycle_|config_(local_prefix|workspace|prefix|global_prefix)|command|execpath)/;
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !dropped.test(name)));
  const words = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', cache];
  const { status, stderr } = spawnSync('npm', words, { cwd: cache, env, encoding: 'utf8', timeout: 300_000 });
  if (status !== 0) return `npm ci failed: ${stderr.split('\n').find((line) => /error/i.test(line)) ?? status}`;
  writeFileSync(done, lock);
  return null;
}

/** The page's scripts, and the files that the peers fetch. */
async function pageFiles() {
  const modules = join(cache, 'node_modules');
  const build = await rolldown({
    input: { bench: fileURLToPath(new URL('bench.mjs', import.meta.url)) },
    platform: 'browser',
    resolve: {
      conditionNames: ['@polygrad/source', 'browser', 'import', 'default'],
      modules: [modules, 'node_modules'],
    },
    // Without its packages a peer is reported as missing when it is loaded. An engine for Node alone stays outside: modules that it
    // shares with others would be put into its file.
    external: (id) =>
      id === '@polygrad/backend-opencl' || (/^(@tensorflow|@jax-js|onnxruntime-web)/.test(id) && !existsSync(modules)),
    preserveEntrySignatures: 'strict',
    onLog: () => undefined,
  });
  // Not minified: tfjs gives the text of a function to its threads.
  const { output } = await build.generate({ format: 'es', entryFileNames: '[name].js' });
  await build.close();
  const files = new Map(
    output.map((chunk) => [`/${chunk.fileName}`, chunk.type === 'chunk' ? chunk.code : chunk.source]),
  );
  for (const [prefix, folder] of [
    ['/tfjs/', '@tensorflow/tfjs-backend-wasm/dist'],
    ['/ort/', 'onnxruntime-web/dist'],
  ]) {
    const from = join(modules, folder);
    for (const name of existsSync(from) ? readdirSync(from) : [])
      if (/\.(wasm|mjs)$/.test(name)) files.set(prefix + name, () => readFileSync(join(from, name)));
  }
  return files;
}

function versions() {
  const { dependencies } = JSON.parse(readFileSync(new URL('peers/package.json', import.meta.url), 'utf8'));
  return dependencies;
}

/** Says of each entry what is wrong with its result, if anything. */
function check(work, entries) {
  const expected = expectedProbe(work);
  if (expected) return entries.map(({ probe }) => difference(probe, expected.values, expected.atol));
  // Losses: compared with the first peer that is there, and the peers with Polygrad.
  const peer = entries.find(({ participant }) => participant !== 'polygrad');
  const ours = entries.find(({ participant }) => participant === 'polygrad');
  return entries.map((entry) => {
    const other = entry === ours ? peer : (ours ?? peer);
    if (other === undefined) return null;
    return difference(entry.probe, other.probe, lossTolerance * Math.max(...other.probe.map(Math.abs)));
  });
}

/** Runs the cases of one engine; what ends the page ends one case, and the others go on in a new one. */
async function runEngine(path, engine, options) {
  const cases = casesOf(engine, options.quick).filter(
    ({ id }) => options.filter === undefined || id.includes(options.filter),
  );
  const threads = engine === 'webgpu' ? 1 : Math.min(describeMachine().cores, 8);
  const participants = ['polygrad', ...peerNames.filter((name) => options.peers.includes(name))];
  const attendance = new Map();
  const results = [];
  const files = await pageFiles();
  let left = [...cases];
  let troubles = 0;
  while (left.length > 0 && troubles < 4) {
    let current = null;
    const started = await startChromium(path);
    try {
      const wishes = { engine, threads, participants, cases: left, pace: options.pace, versions: versions() };
      await inPage(
        started.context,
        files,
        isolation,
        `import('/bench.js').then((m) => m.runBench(${JSON.stringify(wishes)}, (word) => tell(word)))`,
        {
          seconds: 200,
          tell(word) {
            if (word.participant !== undefined) attendance.set(word.participant, word);
            if (word.begins !== undefined) current = word.begins;
            if (word.case === undefined) return;
            if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${engine} ${results.length + 1}/${cases.length}`);
            const one = cases.find(({ id }) => id === word.case);
            const metric = metricOf(one.work);
            const wrong = check(one.work, word.entries);
            const entries = word.entries.map((entry, i) => {
              const ns = summarize(entry.rounds.flat());
              const value = { median: metric.value(ns.median), best: metric.value(ns.best) };
              return { ...entry, ns, value, ...(wrong[i] === null ? {} : { wrong: wrong[i] }) };
            });
            results.push({ ...one, unit: metric.unit, entries, absent: word.absent });
            left = left.filter(({ id }) => id !== word.case);
            current = null;
          },
        },
      );
      if (left.length > 0 && current === null) break;
    } catch (error) {
      troubles++;
      const id = current ?? left[0].id;
      const reason = error.message.split('\n')[0];
      const { work } = cases.find((one) => one.id === id);
      results.push({ id, work, unit: metricOf(work).unit, entries: [], absent: [{ participant: 'the page', reason }] });
      left = left.filter((one) => one.id !== id);
    } finally {
      await started.close();
    }
  }
  if (process.stderr.isTTY) process.stderr.write('\r\x1b[K');
  return { engine, threads, attendance: [...attendance.values()], cases: results, notRun: left.map(({ id }) => id) };
}

function show({ engine, threads, attendance, cases, notRun }) {
  const where = engine === 'webgpu' ? 'WebGPU' : `WebAssembly, up to ${threads} threads`;
  print('', `== browser: ${where}; median/best, ratios are speeds of Polygrad over speeds of the peer`);
  for (const { participant, version, note, missing } of attendance)
    print(
      missing === undefined
        ? `  ${participant}: ${version}${note ? ` (${note})` : ''}`
        : `  SKIPPED ${participant}: ${missing}`,
    );
  const peers = attendance.filter(({ participant, missing }) => participant !== 'polygrad' && missing === undefined);
  const cell = (entry) => (entry ? `${formatPair(entry.value)}${entry.wrong ? ' WRONG' : ''}` : '-');
  const header = ['case', 'unit', 'polygrad', ...peers.flatMap(({ participant }) => [participant, 'ratio'])];
  const rows = cases.map((one) => {
    const entryOf = (name) => one.entries.find(({ participant }) => participant === name);
    const ours = entryOf('polygrad');
    const theirs = peers.flatMap(({ participant }) => {
      const entry = entryOf(participant);
      return [cell(entry), ours && entry ? formatPair(speedRatio(ours.rounds, entry.rounds)) : ''];
    });
    return [one.id, one.unit, cell(ours), ...theirs];
  });
  print('', formatTable(header, rows));
  if (engine === 'webgpu') {
    const counted = cases.flatMap(({ id, entries }) =>
      entries.map(({ participant, counts: c }) => [
        id,
        participant,
        ...[c.dispatches, c.submits, c.passes, c.written, c.copied, c.allocated].map(String),
      ]),
    );
    print('', 'What one run asks of the device (bytes written, copied and newly allocated)', '');
    print(
      formatTable(
        ['case', 'participant', 'dispatches', 'submits', 'passes', 'written', 'copied', 'allocated'],
        counted,
      ),
    );
  }
  const remarks = cases.flatMap(({ id, entries, absent }) => [
    ...entries
      .filter(({ wrong }) => wrong)
      .map(({ participant, wrong }) => `  WRONG RESULT ${participant}: ${wrong} [${id}]`),
    ...entries.filter(({ note }) => note).map(({ participant, note }) => `  ${participant}: ${note} [${id}]`),
    ...absent.map(({ participant, reason }) => `  no figures ${participant}: ${reason} [${id}]`),
  ]);
  if (notRun.length > 0) remarks.push(`  not run, because pages ended too often: ${notRun.join(', ')}`);
  if (remarks.length > 0) print('', 'Remarks', ...remarks);
}

function readArguments(args) {
  const text = { type: 'string' };
  const { values } = parseArgs({
    args,
    options: {
      ...{ suite: text, engine: text, json: text, peers: text, filter: text, rounds: text },
      ...{ quick: { type: 'boolean', default: false }, help: { type: 'boolean', default: false } },
    },
  });
  const { engine = 'all', peers = peerNames.join(','), rounds } = values;
  const engines = engine === 'all' ? ['cpu', 'webgpu'] : [engine];
  if (!['cpu', 'webgpu', 'all'].includes(engine))
    throw new Error(`--engine is '${engine}'; give one of cpu, webgpu, all`);
  const list = peers === 'none' ? [] : peers.split(',');
  for (const name of list)
    if (!peerNames.includes(name))
      throw new Error(`--peers names '${name}'; give some of ${peerNames.join(', ')}, or none`);
  if (rounds !== undefined && !/^[1-9]\d{0,2}$/.test(rounds))
    throw new Error(`--rounds is '${rounds}'; give a whole number from 1 to 999`);
  const pace = {
    ...(values.quick ? quickPace : fullPace),
    ...(rounds === undefined ? {} : { rounds: Number(rounds) }),
  };
  return { ...values, engines, peers: list, pace };
}

async function main(args) {
  let options;
  try {
    options = readArguments(args);
  } catch (error) {
    process.stderr.write(`bench: ${error.message}\n${usage}\n`);
    return 2;
  }
  if (options.help) {
    print(usage);
    return 0;
  }
  const path = findChromium();
  if (path === null) {
    process.stderr.write('bench: no Chromium here; `bash tooling/devices/install.sh browser` installs it\n');
    return 2;
  }
  const problem = options.peers.length > 0 ? installPeers() : null;
  if (problem !== null) print(`SKIPPED the peers: ${problem}`);
  if (problem !== null) options.peers = [];
  const head = {
    schema: 1,
    date: new Date().toISOString(),
    command: `npm run bench -- ${args.join(' ')}`,
    machine: describeMachine(),
    revision: describeRevision(),
    quick: options.quick,
    pace: options.pace,
    loadBefore: load(),
  };
  const runs = [];
  for (const engine of options.engines) {
    const run = await runEngine(path, engine, options);
    show(run);
    runs.push(run);
    // npm runs scripts in the root folder; what the person typed is relative to where they are.
    if (options.json !== undefined)
      writeFileSync(
        resolve(process.env.INIT_CWD ?? '.', options.json),
        `${JSON.stringify({ ...head, loadAfter: load(), runs })}\n`,
      );
  }
  const bad = runs
    .flatMap(({ cases }) => cases)
    .filter(({ entries }) => {
      const ours = entries.find(({ participant }) => participant === 'polygrad');
      return ours === undefined || ours.wrong !== undefined;
    });
  if (bad.length > 0) print('', `Polygrad gave no figures or wrong results in ${bad.map(({ id }) => id).join(', ')}`);
  return bad.length > 0 || runs.some(({ notRun }) => notRun.length > 0) ? 1 : 0;
}

process.exitCode = await main(process.argv.slice(2));
