/**
 * The bench in the browser ends: participants that hang, throw, lose their device or do not start cost one figure, signals end it with what it
 * has. Participants are made up; the last tests need Chromium (skipped without, unless POLYGRAD_REQUIRE names `browser`).
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { fileOf, readArguments } from '../apps/bench/page/arguments.mjs';
import { makersOf, trouble } from '../apps/bench/page/fixtures/participants.mjs';
import { runRows } from '../apps/bench/page/rows.mjs';
import { judged, sheet } from '../apps/bench/page/sheet.mjs';
import { runTurns } from '../apps/bench/page/turns.mjs';
import { tools } from '../apps/bench/src/work/tools.ts';
import { findChromium } from './browser/chromium.mjs';

const cases = [64, 512, 65].map((n) => ({ id: `gemm ${n}`, work: { kind: 'gemm', m: n, n, k: n } }));
const pace = { startMs: 1000, runMs: 200, rounds: 2, turnMs: 0, warmMs: 0, maxSamples: 2, caseMs: 1000 };
const noCounts = { dispatches: 1, submits: 1, passes: 1, written: 0, copied: 0, allocated: 0 };
const counted = async (work) => {
  await work();
  return noCounts;
};

/**
 * Rows with these participants, pages being functions in this process. A bound is over when everything has been quiet for a while, and
 * not by the clock: `quiet` is called with what is being waited for.
 */
async function run(participants, { signal = new AbortController().signal, heard = () => undefined } = {}) {
  const lines = [];
  let pages = 0;
  const open = (asked, tell) => {
    let killed = false;
    pages++;
    const makers = makersOf(() => tell({ lost: 'as told' }));
    const told = async (word) => {
      heard(word);
      if (!killed) tell(word);
    };
    const wishes = { engine: 'cpu', threads: 1, pace, tools, ...asked };
    return {
      done: runTurns(makers, wishes, told, counted),
      kill: async () => {
        killed = true;
      },
    };
  };
  const after = (ms, f) => {
    // What is not hanging goes on within a few turns of the loop, however busy the machine is.
    let turns = 400;
    let timer = setTimeout(function look() {
      if (turns-- > 0) timer = setTimeout(look, 0);
      else f();
    }, 0);
    expect(ms).toBeGreaterThan(0);
    return () => clearTimeout(timer);
  };
  const say = (line) => lines.push(line);
  const changed = () => undefined;
  const result = await runRows({ cases, participants, pace, open, signal, changed, say, after });
  return { ...result, lines, pages };
}

const row = (result, id) => result.rows.find((one) => one.id === id);
const names = (list) => list.map(({ participant }) => participant);

describe('rows of the bench in the browser', () => {
  it('are all measured in one page where nothing goes wrong', async () => {
    const result = await run(['polygrad', 'right']);
    expect(result.pages).toBe(1);
    for (const { id } of cases) {
      expect(row(result, id).state).toBe('done');
      expect(names(row(result, id).entries)).toEqual(['polygrad', 'right']);
      for (const { rounds } of row(result, id).entries) expect(rounds.length).toBe(2);
    }
  });

  it('go on in a fresh page after a participant that hangs, which is told with its bound', async () => {
    const result = await run(['polygrad', 'hangs', 'right']);
    expect(result.pages).toBe(2);
    expect(names(row(result, trouble).entries).sort()).toEqual(['polygrad', 'right']);
    expect(row(result, trouble).absent).toEqual([
      { participant: 'hangs', kind: 'over', reason: 'over 0.2 s a run', what: 'run', ms: 200 },
    ]);
    for (const id of ['gemm 64', 'gemm 65'])
      expect(names(row(result, id).entries)).toEqual(['polygrad', 'hangs', 'right']);
    expect(result.rows.every(({ state }) => state === 'done')).toBe(true);
    expect(result.lines).toContain('2/3 gemm 512: hangs: over 0.2 s a run');
  });

  it('say what an error, a lost device and a missing package were', async () => {
    const result = await run(['polygrad', 'throws', 'lost', 'absent', 'never-starts']);
    const of = (name) => row(result, trouble).absent.find(({ participant }) => participant === name);
    expect(of('throws')).toMatchObject({ kind: 'error', reason: 'out of memory' });
    expect(of('lost')).toMatchObject({ kind: 'lost', reason: 'the device was lost: as told' });
    const missing = Object.fromEntries(result.attendance.map(({ participant, missing }) => [participant, missing]));
    expect(missing.absent).toBe('no such package');
    expect(missing['never-starts']).toBe('no start within 1 s');
    expect(names(row(result, trouble).entries)).toEqual(['polygrad']);
    expect(names(row(result, 'gemm 65').entries)).toEqual(['polygrad', 'throws', 'lost']);
  });

  it('keep what was measured when they are stopped', async () => {
    const controller = new AbortController();
    const heard = (word) => word.doing?.row === trouble && word.doing.what === 'run' && controller.abort('by SIGTERM');
    const result = await run(['polygrad', 'hangs'], { signal: controller.signal, heard });
    expect(result.stopped).toBe('by SIGTERM');
    expect(result.rows.map(({ state }) => state)).toEqual(['done', 'begun', 'not run']);
    expect(names(row(result, 'gemm 64').entries)).toEqual(['polygrad', 'hangs']);
  });

  it('end where no page opens', async () => {
    const open = () => ({ done: Promise.reject(new Error('no browser')), kill: async () => undefined });
    const lines = [];
    const { signal } = new AbortController();
    const say = (line) => lines.push(line);
    const changed = () => undefined;
    const result = await runRows({ cases, participants: ['polygrad'], pace, open, signal, changed, say });
    expect(lines).toEqual(['a page ended: no browser', 'a page ended: no browser']);
    expect(result.rows.every(({ entries }) => entries.length === 0)).toBe(true);
  });

  it('are shown with bounds in the place of figures', async () => {
    const { rows, attendance } = await run(['polygrad', 'hangs', 'throws']);
    const run1 = { engine: 'webgpu', threads: 1, attendance, cases: rows.map(judged), notRun: [], stopped: null };
    const text = sheet(run1).join('\n');
    expect(text).toMatch(/^gemm 512 .* over 0\.20 s +> \S+ +failed *$/m);
    expect(text).toContain('no figures hangs: over 0.2 s a run [gemm 512]');
    expect(text).not.toContain('WRONG');
  });
});

const folder = mkdtempSync(join(tmpdir(), 'polygrad-bench-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a script; resolves when it has ended. `heard` is called with all it has written to stderr so far. */
function finished(script, args, heard = () => undefined) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [script, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    let [out, err] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text) => {
      out += text;
      heard(out, child);
    });
    child.stderr.setEncoding('utf8').on('data', (text) => {
      err += text;
      heard(err, child);
    });
    child.on('close', (code, signal) => resolve({ code, signal, out, err }));
  });
}

const once = (when, act) => {
  let done = false;
  return (text, child) => {
    if (done || !text.includes(when)) return;
    done = true;
    act(child);
  };
};

it('commands of the repository pass signals on and end as their target does', async () => {
  const [target, wrapper] = [join(folder, 'target.mjs'), join(folder, 'wrapper.mjs')];
  writeFileSync(
    target,
    `process.on('SIGTERM', () => process.exit(7)); setInterval(() => undefined, 1000); process.stdout.write('ready');`,
  );
  const workspace = new URL('workspace.mjs', import.meta.url).href;
  writeFileSync(
    wrapper,
    `import { becomeNode } from ${JSON.stringify(workspace)}; process.exitCode = await becomeNode(${JSON.stringify(target)});`,
  );
  const { code } = await finished(
    wrapper,
    [],
    once('ready', (child) => child.kill('SIGTERM')),
  );
  expect(code).toBe(7);
});

it('the bench in the browser refuses what it cannot do before it starts anything', () => {
  const read = (...args) => readArguments(args, ['tfjs']);
  expect(() => read('--run-seconds', '0')).toThrow("--run-seconds is '0'; give a whole number from 1 to 999");
  expect(() => read('--minutes', 'x')).toThrow("--minutes is 'x'");
  expect(() => read('--peers', 'nobody')).toThrow("--peers names 'nobody'; give some of tfjs, or none");
  expect(() => read('--engine', 'gpu')).toThrow("--engine is 'gpu'; give one of cpu, webgpu, all");
  expect(read('--run-seconds', '7', '--filter', 'a,b')).toMatchObject({
    minutes: 20,
    filter: ['a', 'b'],
    peers: ['tfjs'],
  });
  expect(read('--run-seconds', '7').paceOf('webgpu').runMs).toBe(7000);
  expect(() => fileOf(join(folder, 'missing', 'x.json'))).toThrow('its folder is not there');
  expect(() => fileOf(folder)).toThrow('that is a folder');
  expect(fileOf(join(folder, 'x.json'))).toBe(join(folder, 'x.json'));
});

const required = (process.env.POLYGRAD_REQUIRE ?? '').split(',').includes('browser');
describe.skipIf(findChromium() === null && !required)('the bench in Chromium', () => {
  const main = fileURLToPath(new URL('../apps/bench/page/fixtures/main.mjs', import.meta.url));

  it('ends at once by a signal, with its table and its file', async () => {
    const file = join(folder, 'stopped.json');
    const args = [
      '--engine',
      'cpu',
      '--filter',
      'gemm 256,gemm 512',
      '--peers',
      'hangs',
      '--json',
      file,
      '--run-seconds',
      '999',
    ];
    const hang = once('2/2 gemm 512: polygrad', (child) => child.kill('SIGTERM'));
    const { code, out, err } = await finished(main, args, hang);
    expect({ code, err }).toEqual({ code: 143, err });
    expect(out).toContain('ended early: by SIGTERM');
    const { runs } = JSON.parse(readFileSync(file, 'utf8'));
    expect(runs[0].stopped).toBe('by SIGTERM');
    expect(runs[0].cases.map(({ id, state }) => `${id} ${state}`)).toEqual(['gemm 256 done', 'gemm 512 begun']);
  });
});
