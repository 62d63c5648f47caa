/**
 * One command for a machine with a card: builds what is not built, runs a sample of the conformance suite, measures, and writes a report. It
 * says which goals are met, and compares with PyTorch on the same card, where Python has it.
 *
 *   node bench/gpu/run.mjs [--engines cuda,opencl,webgpu] [--minutes 9] [--out FOLDER] [--first GROUPS] [--only GROUPS] [--sample N] [--alone]
 *                          [--tiny]
 *
 * Needs no network. Prints as it goes, and writes the report anew after every part; a part that fails or takes too long costs itself only.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, release, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { figures, groups } from './cases.mjs';
import { follow, measure } from './participants.mjs';
import { documentOf } from './report.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, '../..');
const { values: options } = parseArgs({
  options: {
    engines: { type: 'string', default: 'cuda' },
    minutes: { type: 'string', default: '9' },
    out: { type: 'string', default: process.env.OUT ?? join(root, 'out/gpu') },
    first: { type: 'string', default: '' },
    only: { type: 'string' },
    sample: { type: 'string', default: '61' },
    alone: { type: 'boolean', default: false },
    tiny: { type: 'boolean', default: false },
  },
});
const namesOf = (text) => text.split(',').filter(Boolean);
const all = groups(options.tiny);
const first = namesOf(options.first);
const only = options.only === undefined ? Object.keys(all) : namesOf(options.only);
const unknown = [...first, ...only].filter((name) => !Object.hasOwn(all, name));
const minutes = Number(options.minutes);
const [main, ...others] = namesOf(options.engines);
const refusal =
  unknown.length > 0
    ? `there is no group ${unknown.join(', ')}; there are ${Object.keys(all).join(', ')}`
    : !(minutes > 0)
      ? `--minutes is ${options.minutes}; give a number above 0`
      : main === undefined
        ? '--engines names none; give cuda, say'
        : null;
if (refusal !== null) {
  process.stderr.write(`bench/gpu: ${refusal}\n`);
  process.exit(2);
}
const wanted = [...new Set([...first, ...only])];

const started = Date.now();
const end = started + minutes * 60_000;
const left = () => Math.max(0, (end - Date.now()) / 1000);
const log = [];
function say(text) {
  const line = `[${((Date.now() - started) / 1000).toFixed(0).padStart(4)} s] ${text}`;
  log.push(line);
  process.stdout.write(`${line}\n`);
}

/** Everything that is known so far. */
const report = {
  date: new Date().toISOString().slice(0, 10),
  main,
  options,
  seconds: 0,
  machine: {},
  conformance: {},
  devices: {},
  rows: [],
  profiles: [],
  tiles: [],
  stats: [],
  notes: [],
};

function note(text) {
  if (report.notes.includes(text)) return;
  report.notes.push(text);
  say(text);
}

/** What is known so far, as documents. A folder that cannot be written costs the documents; the lines remain. */
function write() {
  report.seconds = Math.round((Date.now() - started) / 1000);
  try {
    mkdirSync(options.out, { recursive: true });
    writeFileSync(join(options.out, 'report.json'), `${JSON.stringify(report, null, 1)}\n`);
    writeFileSync(join(options.out, 'report.md'), documentOf(report));
    writeFileSync(join(options.out, 'log.txt'), `${log.join('\n')}\n`);
  } catch (error) {
    note(`the report cannot be written: ${error.message}`);
  }
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
    system: `${process.platform} ${process.arch} ${release()}`,
    card: ask('nvidia-smi', query) ?? 'nvidia-smi is not there',
  };
  say(`Node ${process.version}, ${report.machine.cores} cores; ${report.machine.card}`);
}

async function build() {
  const built =
    existsSync(join(root, 'packages/backend-cuda/dist')) && existsSync(join(root, 'apps/bench/dist/networks/make.js'));
  // What was packed for a machine without compiler has no sources.
  if (built && !existsSync(join(root, 'packages/backend-cuda/native/all.cc'))) return;
  const [args, most] = built ? [['packages/backend-cuda/native/build.mjs'], 120] : [['tooling/run.mjs', 'build'], 300];
  if (!built) say('building');
  const failed = await follow(process.execPath, args, Math.min(most, left()), { cwd: root, onLine: say });
  if (failed !== null) note(`the build failed: ${failed}`);
}

async function conformance(engine) {
  const lines = [];
  const args = ['packages/conformance/dist/cli.js', '--engine', engine, '--sample', options.sample];
  const onLine = (line) => {
    const text = line.slice(0, 400);
    if (!/^FAILED|^ {2}|passed|SKIPPED|conformance of/.test(text)) return;
    lines.push(text);
    if (lines.length <= 60) say(`conformance ${engine}: ${text}`);
  };
  // A card's driver compiles each kernel anew the first time.
  const failed = await follow(process.execPath, args, Math.min(120, left() / 4), { cwd: root, onLine });
  report.conformance[engine] = failed !== null && !/passed/.test(lines.at(-1) ?? '') ? failed : lines.at(-1);
  if (failed !== null)
    note(`conformance ${engine}: ${failed}, ${lines.filter((line) => line.startsWith('FAILED')).length} failures seen`);
  write();
}

/** The first Python whose PyTorch has the card, or undefined. It looks while the conformance suite runs: a cold start takes a while. */
async function findTorch() {
  if (options.alone) return undefined;
  const reasons = [];
  for (const python of ['python3', 'python', '/usr/bin/python3']) {
    let found;
    const onLine = (line) => {
      try {
        found = JSON.parse(line);
      } catch {
        // Warnings.
      }
    };
    const failed = await follow(python, [join(here, 'torch_work.py')], 90, { cwd: root, onLine });
    if (found?.device !== undefined) return { python, ...found };
    reasons.push(`${python}: ${found?.missing ?? failed}`);
  }
  note(`nothing to compare with: ${reasons.join('; ')}`);
  return undefined;
}

/** Measures groups by one participant; rows are filled as it answers. */
async function participant(who, names, seconds, store) {
  const cases = names.flatMap((name) => all[name].cases);
  const rowOf = (name) => report.rows.find((row) => row.name === name);
  const onSaid = (said) => {
    if (said.device !== undefined)
      report.devices[who] = [
        said.device,
        said.version && `PyTorch ${said.version}`,
        ...Object.entries(said.missing ?? {}).map(([library, why]) => why && `no ${library}: ${why}`),
      ]
        .filter(Boolean)
        .join(', ');
    if (said.tuned !== undefined) report.tiles.push({ who, key: said.tuned, measured: said.measured });
    if (said.stats !== undefined) report.stats.push({ who, groups: names, ...said });
    if (said.name === undefined) return;
    const one = cases.find(({ name }) => name === said.name);
    if (said.failed !== undefined) {
      if (one.kind !== 'profile') rowOf(one.name).by[who] = { failed: said.failed };
      say(`${one.name}: ${who} failed: ${said.failed}`);
    } else if (said.profile !== undefined) {
      report.profiles.push({ name: one.name, ...said.profile });
      say(`${one.name}: ${said.profile.kernels.length} kinds of kernels`);
    } else {
      const of = figures[one.figure];
      const value = of(one, said.median);
      rowOf(one.name).by[who] = {
        value,
        best: of(one, said.best),
        ...(said.cold === undefined ? {} : { cold: said.cold }),
      };
      say(`${one.name}: ${who} ${value.toPrecision(4)} ${one.figure}`);
    }
  };
  const [program, args] =
    who === 'torch'
      ? [torch.python, [join(here, 'torch_work.py')]]
      : [process.execPath, [join(here, 'polygrad_work.mjs'), who]];
  await measure(program, args, {
    cases,
    seconds,
    cwd: root,
    onSaid,
    brief: options.tiny,
    options: all[names[0]].options ?? {},
    store,
  });
  write();
}

machine();
await build();
const looking = findTorch();
for (const engine of [main, ...others]) await conformance(engine);
const torch = await looking;
if (torch !== undefined) say(`PyTorch ${torch.version} on ${torch.device}, ${torch.python}`);

/** What is to be done, in order: the first engine group by group, PyTorch behind every third for it takes long to start, then the other engines. */
const tasks = [];
let compared = [];
const compare = () => {
  if (torch !== undefined && compared.length > 0) tasks.push(['torch', compared]);
  compared = [];
};
for (const group of wanted) {
  const { cases, against } = all[group];
  for (const { name, figure, kind, goal } of cases)
    if (kind !== 'profile') report.rows.push({ name, figure, ...(goal === undefined ? {} : { goal }), by: {} });
  tasks.push([main, [group]]);
  if (against === undefined) compared.push(group);
  else if (against !== null && against !== main) tasks.push([against, [group]]);
  if (compared.length === 3) compare();
}
compare();
for (const engine of others)
  for (const group of wanted) if (all[group].against === undefined) tasks.push([engine, [group]]);

const store = mkdtempSync(join(tmpdir(), 'polygrad-gpu-tiles-'));
for (const [i, [who, names]] of tasks.entries()) {
  if (left() < 8) {
    note(`${names.join(', ')}, ${who}: not run, the time was over`);
    continue;
  }
  say(`== ${names.join(', ')}: ${who}`);
  // Three times an even share of what is left: most take less.
  const share = (3 * names.length * left()) / tasks.slice(i).reduce((sum, [, rest]) => sum + rest.length, 0);
  await participant(who, names, Math.min(left(), Math.max(20, share)), store);
}
rmSync(store, { recursive: true, force: true });
write();
say(`the report is ${join(options.out, 'report.md')}`);
