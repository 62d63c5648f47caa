/**
 * One command for a machine with a card: builds what is not built, runs a sample of the conformance suite, measures, and writes a report that
 * compares with PyTorch on the same card, where Python has it.
 *
 *   node bench/gpu/run.mjs [--engines cuda,opencl,webgpu] [--minutes 9] [--out FOLDER] [--only GROUPS] [--sample N] [--alone] [--tiny]
 *
 * Needs no network. Prints as it goes, and writes the report anew after every part; a part that fails or takes too long costs itself only.
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { figures, groups } from './cases.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, '../..');
const { values: options } = parseArgs({
  options: {
    engines: { type: 'string', default: 'cuda' },
    minutes: { type: 'string', default: '9' },
    out: { type: 'string', default: process.env.OUT ?? join(root, 'out/gpu') },
    only: { type: 'string' },
    sample: { type: 'string', default: '61' },
    alone: { type: 'boolean', default: false },
    tiny: { type: 'boolean', default: false },
  },
});
const started = Date.now();
const end = started + Number(options.minutes) * 60_000;
const left = () => Math.max(0, (end - Date.now()) / 1000);
const say = (text) => process.stdout.write(`[${((Date.now() - started) / 1000).toFixed(0).padStart(4)} s] ${text}\n`);

/** Everything that is known so far. */
const report = {
  date: new Date().toISOString().slice(0, 10),
  machine: {},
  conformance: {},
  devices: {},
  rows: [],
  notes: [],
};

/** Starts a program; each line of its output goes to `onLine`. Ends it after so many seconds. Gives null, or why it did not end well. */
function follow(program, args, seconds, onLine) {
  return new Promise((resolve) => {
    const child = spawn(program, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
    let rest = '';
    let errors = '';
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      child.kill('SIGKILL');
    }, seconds * 1000);
    child.stdout.setEncoding('utf8').on('data', (text) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop();
      for (const line of lines) onLine(line);
    });
    child.stderr.setEncoding('utf8').on('data', (text) => {
      errors = (errors + text).slice(-2000);
    });
    child.on('error', (error) => {
      clearTimeout(timer);
      resolve(error.message);
    });
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      if (late) resolve(`it did not end within ${seconds.toFixed(0)} s`);
      else if (code === 0) resolve(null);
      else
        resolve(
          `it ended with ${signal ?? code}: ${errors.split('\n').find((line) => /^\w*Error\b/.test(line)) ?? errors.trim().split('\n').at(-1)}`,
        );
    });
  });
}

function note(text) {
  report.notes.push(text);
  say(text);
}

function machine() {
  const ask = (program, args) => {
    const { status, stdout } = spawnSync(program, args, { encoding: 'utf8', timeout: 20_000 });
    return status === 0 ? stdout.trim() : null;
  };
  const query = ['--query-gpu=name,driver_version,memory.total,clocks.max.sm', '--format=csv,noheader'];
  report.machine = {
    node: process.version,
    cores: availableParallelism(),
    card: ask('nvidia-smi', query) ?? 'nvidia-smi is not there',
  };
  say(`Node ${process.version}, ${report.machine.cores} cores; ${report.machine.card}`);
}

async function build() {
  if (
    existsSync(join(root, 'packages/backend-cuda/dist')) &&
    existsSync(join(root, 'apps/bench/dist/networks/make.js'))
  ) {
    // The addon is for this machine.
    const code = await follow(process.execPath, ['packages/backend-cuda/native/build.mjs'], Math.min(120, left()), say);
    if (code !== null) note(`the addon was not compiled: ${code}`);
    return;
  }
  say('building');
  const failed = await follow(process.execPath, ['tooling/run.mjs', 'build'], Math.min(300, left()), say);
  if (failed !== null) note(`the build failed: ${failed}`);
}

async function conformance(engine) {
  const lines = [];
  const args = ['packages/conformance/dist/cli.js', '--engine', engine, '--sample', options.sample];
  const failed = await follow(process.execPath, args, Math.min(120, left()), (line) => {
    if (/^FAILED|passed|SKIPPED/.test(line)) lines.push(line.slice(0, 300));
  });
  report.conformance[engine] = lines.at(-1) ?? failed;
  for (const line of lines.slice(0, 20)) say(`conformance ${engine}: ${line}`);
  if (failed !== null) note(`conformance ${engine}: ${failed}`);
}

/** Measures a group by one participant; rows of a case are filled as they come. */
async function measure(who, program, args, cases, seconds) {
  const taken = new Set();
  const failed = await follow(program, [...args, JSON.stringify(cases)], seconds, (line) => {
    let said;
    try {
      said = JSON.parse(line);
    } catch {
      return;
    }
    if (said.missing !== undefined) note(`${who}: ${said.missing}`);
    if (said.device !== undefined) report.devices[who] = [said.device, said.version].filter(Boolean).join(', PyTorch ');
    const one = cases.find(({ name }) => name === said.name);
    if (one === undefined) return;
    taken.add(one.name);
    const row = report.rows.find(({ name }) => name === one.name);
    if (said.failed !== undefined) {
      row.by[who] = { failed: said.failed };
      say(`${one.name}: ${who} failed: ${said.failed}`);
      return;
    }
    const value = figures[one.figure](one, said.median);
    row.by[who] = { value, best: figures[one.figure](one, said.best) };
    say(`${one.name}: ${who} ${value.toPrecision(4)} ${one.figure}`);
  });
  if (failed !== null) {
    note(`${who}, ${cases[0].name} and what follows: ${failed}`);
    for (const { name } of cases)
      if (!taken.has(name)) report.rows.find((row) => row.name === name).by[who] ??= { failed };
  }
}

const shown = (found) =>
  found === undefined ? '' : found.failed !== undefined ? 'failed' : found.value.toPrecision(4);

/** The report as a document, and as JSON. */
function write() {
  mkdirSync(options.out, { recursive: true });
  writeFileSync(join(options.out, 'report.json'), `${JSON.stringify(report, null, 1)}\n`);
  const who = [...new Set(report.rows.flatMap(({ by }) => Object.keys(by)))];
  const copy = report.rows.find(({ name }) => name === 'copy on the card')?.by[who[0]]?.value;
  const ratio = ({ by, figure }) => {
    const [own, peer] = [by[who[0]]?.value, by.torch?.value];
    if (own === undefined || peer === undefined) return '';
    return (figure === 'ms' || figure === 'us' ? peer / own : own / peer).toFixed(2);
  };
  const share = ({ by, figure }) => {
    const own = by[who[0]]?.value;
    return figure === 'GB/s' && copy !== undefined && own !== undefined ? `${((100 * own) / copy).toFixed(0)} %` : '';
  };
  const head = ['case', 'figure', ...who, 'over torch', 'of copy'];
  const rows = report.rows.map((row) => [
    row.name,
    row.figure,
    ...who.map((w) => shown(row.by[w])),
    ratio(row),
    share(row),
  ]);
  const table = [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
  const text = `# On a card, ${report.date}

- machine: ${report.machine.card}; Node ${report.machine.node}, ${report.machine.cores} cores
${Object.entries(report.devices)
  .map(([name, device]) => `- ${name}: ${device}`)
  .join('\n')}
${Object.entries(report.conformance)
  .map(([name, last]) => `- conformance ${name} (one of ${options.sample}): ${last}`)
  .join('\n')}
${options.tiny ? '\nEverything was small: the figures mean nothing.\n' : ''}
Medians. "over torch": how many times as fast as PyTorch; "of copy": bandwidth against that of a copy on the card.

${table}
${report.notes.length > 0 ? `\nNotes:\n\n${report.notes.map((n) => `- ${n}`).join('\n')}\n` : ''}`;
  writeFileSync(join(options.out, 'report.md'), text);
}

machine();
await build();
const engines = options.engines.split(',').filter(Boolean);
const pythons = options.alone ? [] : ['python3', 'python', '/usr/bin/python3'];
const python = pythons.find(
  (name) => spawnSync(name, ['-c', 'import torch'], { stdio: 'ignore', timeout: 60_000 }).status === 0,
);
if (python === undefined && !options.alone) note('Python has no PyTorch: nothing to compare with');
for (const engine of engines) {
  await conformance(engine);
  write();
}
const all = groups(options.tiny);
const wanted = Object.keys(all).filter(
  (group) => options.only === undefined || options.only.split(',').includes(group),
);
for (const [i, group] of wanted.entries()) {
  const cases = all[group];
  for (const { name, figure } of cases) report.rows.push({ name, figure, by: {} });
  if (left() < 15) {
    note(`${group}: not run, the time was over`);
    continue;
  }
  say(`== ${group}`);
  // An even share of what is left, and a little more: most groups take less.
  const participants = engines.length + (python === undefined ? 0 : 1);
  const share = () => Math.min(left(), Math.max(20, (2 * left()) / (wanted.length - i) / participants));
  for (const engine of engines)
    await measure(engine, process.execPath, [join(here, 'polygrad_work.mjs'), engine], cases, share());
  if (python !== undefined) await measure('torch', python, [join(here, 'torch_work.py')], cases, share());
  write();
}
write();
say(`the report is ${join(options.out, 'report.md')}`);
