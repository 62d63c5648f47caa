/** The long tests' table is complete, takes turns, keeps within its time; and what CI sums up is the sum. */
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { poclLockFolder } from '../packages/backend-opencl/src/build-locks.ts';
import { cacheFolder } from '../packages/core/src/engine/folders.ts';
import { poclCache, trimPoclCache } from './devices/pocl-cache.mjs';
import { conformanceName, engines, isThere } from './engines.mjs';
import { parts } from './long/parts.mjs';
import { dayLines, resultLines, totalLine } from './long/report.mjs';
import { runPart, runParts } from './long/run.mjs';
import { byCommit, longestWaiting, notePassed, passedDays } from './long/turns.mjs';
import { plan } from './long.mjs';
import { root } from './workspace.mjs';

const folder = mkdtempSync(join(tmpdir(), 'polygrad-long-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const names = (list) => list.map(({ name }) => name);

describe('the table', () => {
  it('has every file of long tests, every test of a file that is taken apart, and every program they start', () => {
    const { stdout } = spawnSync('git', ['ls-files', '*.long.test.ts'], { cwd: root, encoding: 'utf8' });
    const files = new Set(parts.flatMap((part) => part.files ?? []));
    for (const file of stdout.trim().split('\n')) expect(files).toContain(file);
    for (const file of files) {
      expect(existsSync(join(root, file)), file).toBe(true);
      const patterns = parts.filter((part) => part.files?.includes(file)).map(({ only }) => only);
      if (patterns.includes(undefined)) continue;
      const source = readFileSync(join(root, file), 'utf8');
      const tests = [...source.matchAll(/^\s*it(?:\.\w+\([^)]*\))*\(\s*'([^']+)'/gm)].map(([, name]) => name);
      expect(tests.length).toBeGreaterThan(5);
      for (const test of tests)
        for (const name of test.includes('%s') ? ['threads', 'simt'].map((mode) => test.replace('%s', mode)) : [test])
          expect(patterns.filter((text) => name.includes(text)).length, name).toBe(1);
    }
    // What takes a part of its cases every day has all of them in some part.
    const samplers = spawnSync('git', ['grep', '-lE', 'fixtures/everyday|sampledTargets'], {
      cwd: root,
      encoding: 'utf8',
    }).stdout;
    const playground = new Set(['access', 'networks', 'training'].map((name) => `tooling/playground/${name}.mjs`));
    for (const file of samplers.trim().split('\n'))
      if (/\.mjs$|\.test\.ts$/.test(file) && !file.startsWith('tooling/long') && !playground.has(file))
        expect(files).toContain(file);
    const tests = 'packages/backend-opencl/src/*.test.ts packages/addon/src/fixtures/*.ts'.split(' ');
    const { stdout: own } = spawnSync('git', ['ls-files', ...tests], { cwd: root, encoding: 'utf8' });
    const starts = own
      .trim()
      .split('\n')
      .filter((file) => existsSync(join(root, file)))
      .map((file) => readFileSync(join(root, file), 'utf8'))
      .join();
    const shared = new Set(['backend.mjs', 'bad-calls.mjs']);
    for (const folder of ['backend-opencl', 'addon'])
      for (const file of readdirSync(join(root, `packages/${folder}/soak`)))
        if (file.endsWith('.mjs') && !shared.has(file)) expect(starts).toMatch(`('${file.slice(0, -4)}'`);
  });

  it('has random programs by their number, not by a time that a busy machine fills with few', () => {
    const random = parts.filter(({ script }) => script === 'tooling/fuzz.mjs');
    expect(random.length).toBeGreaterThan(50);
    for (const { name, args } of random) {
      expect(args, name).not.toContain('--seconds');
      expect(Number(args[args.indexOf('--programs') + 1]), name).toBeGreaterThanOrEqual(15);
    }
  });

  it('has all of the conformance suite on every engine, in slices that are the whole', () => {
    for (const entry of engines.filter(isThere)) {
      const name = conformanceName(entry);
      const own = parts.filter(
        (part) =>
          part.name === name || (part.name.startsWith(`${name} `) && /^ \d+\/\d+$/.test(part.name.slice(name.length))),
      );
      if (entry.whole === undefined) {
        const same = (other) => other.engine === entry.engine && other.threads === entry.threads && !other.browser;
        expect(engines.some((other) => same(other) && other.sizes === 'always' && other.whole)).toBe(true);
        expect(own).toEqual([]);
        continue;
      }
      const { parts: n } = entry.whole;
      const slices = own.map(({ args }) => args[args.indexOf('--slice') + 1]);
      if (n > 1) expect(slices.sort()).toEqual(Array.from({ length: n }, (_, i) => `${i + 1}/${n}`).sort());
      else expect(own.map(({ args }) => args.includes('--slice'))).toEqual([false]);
      for (const { args, env } of own) {
        expect(args).not.toContain('--sample');
        expect(env.POLYGRAD_LONG).toBe('1');
      }
    }
  });

  it('has PoCL compile the suite quickly, apart from what it compiles as users have it', () => {
    const quick = parts.filter(({ env }) => env?.POCL_WORK_GROUP_SPECIALIZATION === '0');
    expect(names(quick)).toEqual(names(parts).filter((name) => /^conformance opencl(-simt)? \d/.test(name)));
    for (const { env } of quick) {
      expect(env.POCL_EXTRA_BUILD_FLAGS).toBe('-cl-opt-disable');
      // Neither the kernels that the engine keeps nor those that PoCL keeps may come to a run without these options.
      expect(cacheFolder('opencl', { platform: 'linux', env: { ...process.env, ...env } })).not.toBe(
        cacheFolder('opencl'),
      );
      expect(poclLockFolder({ ...process.env, ...env })).not.toBe(poclLockFolder());
    }
  });

  it('draws the same random numbers every time where that is asked for, and others every day where not', () => {
    const seeds = (env) => {
      const text = "const { parts } = await import('./tooling/long/parts.mjs'); console.log(JSON.stringify(parts))";
      const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', text], {
        ...{ cwd: root, encoding: 'utf8', env: { ...process.env, ...env } },
      });
      const fuzz = JSON.parse(stdout).filter(({ name }) => name.startsWith('fuzz '));
      expect(fuzz.length).toBe(79);
      return new Set(fuzz.map(({ args }) => args[args.indexOf('--seed') + 1]));
    };
    expect([...seeds({ POLYGRAD_DRAWS: 'same' })]).toEqual(['1']);
    const [today, ...others] = seeds({ POLYGRAD_DRAWS: '' });
    expect(others).toEqual([]);
    expect(Number(today)).toBeGreaterThan(20_000);
  });

  it('has parts of different names that a continuous integration has the time for', () => {
    expect(new Set(names(parts)).size).toBe(parts.length);
    for (const { name, minutes } of parts) expect(minutes, name).toBeLessThanOrEqual(12);
    for (const name of Object.keys(passedDays())) expect(names(parts)).toContain(name);
  });
});

const few = ['a', 'b', 'c', 'd 1/2', 'd 2/2'].map((name) => ({ name, minutes: 10 }));

describe('turns', () => {
  it('are those of who waited longest', () => {
    const days = { a: '2026-11-20', b: '2026-11-02', 'd 1/2': '2026-11-20' };
    expect(names(longestWaiting(few, days))).toEqual(['c', 'd 2/2', 'b', 'a', 'd 1/2']);
  });

  it('change with the commit and with the day, where nobody keeps days', () => {
    expect(names(byCommit(few, '00000001ffff', 0))).toEqual(['b', 'c', 'd 1/2', 'd 2/2', 'a']);
    expect(names(byCommit(few, '00000001ffff', 3))).toEqual(['d 2/2', 'a', 'b', 'c', 'd 1/2']);
    expect(names(byCommit(few, '', 0))).toEqual(names(few));
    const starts = new Set(Array.from({ length: 200 }, (_, i) => byCommit(parts, 'f00dcafe', i)[0].name));
    expect(starts.size).toBe(Math.min(200, parts.length));
  });

  it('are kept in a file, without what is no part any more', () => {
    const path = join(folder, 'passed.json');
    expect(passedDays(path)).toEqual({});
    notePassed('b', '2026-11-21', ['a', 'b'], path);
    notePassed('a', '2026-11-22', ['a', 'b'], path);
    expect(passedDays(path)).toEqual({ a: '2026-11-22', b: '2026-11-21' });
    notePassed('a', '2026-11-23', ['a'], path);
    expect(passedDays(path)).toEqual({ a: '2026-11-23' });
  });

  it('are planned from the arguments', () => {
    const at = { days: {}, commit: '00000002', day: 0 };
    expect(plan([], at).chosen).toEqual(parts);
    expect(names(plan(['--only', 'conformance opencl'], at).chosen)).toEqual(
      names(parts).filter((name) => /^conformance opencl \d/.test(name)),
    );
    expect(
      names(plan(['--only', 'fuzz programs,soak writers'], at).chosen).every((name) =>
        /^fuzz programs |^soak writers$/.test(name),
      ),
    ).toBe(true);
    const ci = plan(['--rotate', '20', '--first', 'conformance webgpu', '--by-commit'], at);
    const { parts: n } = engines.find(({ engine }) => engine === 'webgpu').whole;
    expect(ci.chosen.slice(0, n).every(({ name }) => /^conformance webgpu \d/.test(name))).toBe(true);
    expect(ci.chosen.slice(n).filter(({ name }) => name.startsWith('conformance webgpu browser')).length).toBe(4);
    expect(names(plan(['--only', 'conformance webgpu'], at).chosen).length).toBe(n);
    expect([ci.minutes, ci.keep, names(ci.chosen).sort()]).toEqual([20, false, names(parts).sort()]);
    for (const [args, message] of [
      [['--only', 'nothing'], /--only: no part 'nothing'/],
      [['--rotate', 'x'], /--rotate is 'x'/],
      [['--rotate', ''], /--rotate is ''/],
      [['--jobs', '0'], /--jobs is '0'/],
      [['--jobs', 'two'], /--jobs is 'two'/],
      [['--first', 'conformance webgpu'], /go with --rotate/],
      [['--long'], /--long/],
    ])
      expect(() => plan(args, at), args.join(' ')).toThrow(message);
  });
});

/** Runs made-up parts by a clock that is moved by hand; what was said to have passed too. */
async function pretend(minutes, run) {
  let clock = 0;
  const passed = [];
  const result = await runParts(few, {
    minutes,
    now: () => clock,
    run: async (part, seconds) => {
      const { took, ...result } = run(part.name, seconds);
      clock += took * 60_000;
      return { passed: 0, failed: 0, skipped: 0, note: '', failures: [], ...result };
    },
    say: () => undefined,
    show: () => undefined,
    passed: (name) => passed.push(name),
  });
  return { ...result, passed };
}

describe('the time for all', () => {
  it('is kept: what does not fit is left out', async () => {
    const { rows, left, passed } = await pretend(33, () => ({ took: 12, passed: 3 }));
    expect(names(rows)).toEqual(['a', 'b']);
    expect(left[0]).toEqual({ name: 'c', why: 'takes about 10 min' });
    expect(passed).toEqual(['a', 'b']);
    const lines = resultLines(rows, left);
    expect(lines).toContain('left out: 2 parts of d (takes about 10 min)');
    expect(lines.at(-1)).toBe('6 passed, 0 failed, 0 skipped');
    expect((await pretend(0, () => ({ took: 1 }))).left.length).toBe(few.length);
  });

  it('cuts a part without failing it, but what had failed by then has failed', async () => {
    const { rows, left, passed } = await pretend(21, (name) =>
      name === 'a' ? { took: 10, passed: 1 } : { took: 11, cut: 'the time was over before its end' },
    );
    expect([names(rows), names(left), passed]).toEqual([['a'], ['b', 'c', 'd 1/2', 'd 2/2'], ['a']]);
    expect(resultLines(rows, left).at(-1)).toBe('1 passed, 0 failed, 0 skipped');
    const broken = await pretend(21, () => ({ took: 21, cut: 'over', failed: 1, failures: ['FAILED x'] }));
    expect(resultLines(broken.rows, broken.left).at(-1)).toBe('0 passed, 1 failed, 0 skipped');
    expect(resultLines(broken.rows, broken.left)).toContain('failed: a: FAILED x');
  });

  it('is shared by parts that run side by side: what one prints is shown whole, results are in the order of the table', async () => {
    const shown = [];
    const passed = [];
    const ends = [];
    let running = 0;
    let most = 0;
    const { rows, left } = await runParts(few, {
      minutes: 25,
      jobs: 2,
      now: () => 0,
      run: async (part, _seconds, show) => {
        most = Math.max(most, ++running);
        show(`${part.name} begins\n`);
        // The first part ends after the second.
        await new Promise((resolve) => (part.name === 'a' ? ends.push(resolve) : setImmediate(resolve)));
        for (const resolve of ends.splice(0)) resolve();
        show(`${part.name} ends\n`);
        running--;
        return { passed: 1, failed: 0, skipped: 0, note: '', failures: [] };
      },
      say: (text) => shown.push(`${text}\n`),
      show: (text) => shown.push(text),
      passed: (name) => passed.push(name),
    });
    expect(most).toBe(2);
    expect(names(rows)).toEqual(names(few));
    expect(left).toEqual([]);
    expect(passed.slice(0, 2)).toEqual(['b', 'a']);
    expect(shown.join('')).toMatch(/^\n== b\nb begins\nb ends\n\n== a\na begins\na ends\n/);
  });

  it('what is skipped has not passed', async () => {
    expect((await pretend(99, () => ({ took: 1, skipped: 1 }))).passed).toEqual([]);
  });

  it('says of each part since when it passes', () => {
    const lines = dayLines(few, { a: '2026-11-20', 'd 1/2': '2026-11-21' });
    expect(lines.map((line) => line.split(/ {2,}/)[0])).toEqual(['2026-11-20', 'never', 'never', '1 of 2']);
    const all = dayLines(few, { 'd 1/2': '2026-11-21', 'd 2/2': '2026-11-19' });
    expect(all.at(-1)).toMatch(/^2026-11-19 {2}d +20 min in 2 parts$/);
    expect(totalLine(few, { a: '2026-11-20', 'd 1/2': '2026-11-21' })).toBe(
      '5 parts of 0.8 hours, one after the other; 3 never passed',
    );
  });
});

describe('a part', () => {
  const script = (text) => {
    const path = join(folder, 'part.mjs');
    writeFileSync(path, text);
    return { name: 'part', minutes: 1, kind: 'program', script: path, args: [], env: { MINE: 'yes' } };
  };
  const quiet = () => undefined;

  it('has the totals of its last line, or those of its exit code', async () => {
    const told = script(
      `console.log('FAILED one'); console.log(process.env.MINE, '\\n3 passed, 1 failed, 2 skipped'); process.exitCode = 1;`,
    );
    expect(await runPart(told, Number.POSITIVE_INFINITY, quiet)).toEqual({
      ...{ passed: 3, failed: 1, skipped: 2, note: '', failures: ['FAILED one'] },
    });
    expect(await runPart(script(''), 60, quiet)).toMatchObject({ passed: 1, failed: 0 });
    expect(await runPart(script('process.exit(3)'), 60, quiet)).toMatchObject({
      ...{ passed: 0, failed: 1, failures: ['exit code 3, without totals'] },
    });
    expect(await runPart(script("process.kill(process.pid, 'SIGKILL')"), 60, quiet)).toMatchObject({
      ...{ passed: 0, failed: 1, failures: ['ended by SIGKILL, without totals'] },
    });
    expect(
      await runPart(script("console.log('3 passed, 0 failed, 0 skipped'); process.exitCode = 2;"), 60, quiet),
    ).toMatchObject({ passed: 3, failed: 1, failures: ['exit code 2'] });
  });

  it('is ended when the time is over, with what it started', async () => {
    const hanging = script(
      `import { spawn } from 'node:child_process';
       spawn(process.execPath, ['-e', 'setInterval(() => 0, 1000)'], { stdio: 'inherit' });
       console.log('FAILED early');
       setInterval(() => 0, 1000);`,
    );
    const { cut, failed, failures } = await runPart(hanging, 3, quiet);
    expect(cut).toBe('the time was over before its end');
    // What it had said by then counts, if a busy machine let it come that far.
    expect(failures.length).toBe(failed);
  });
});

describe("PoCL's cache of kernels", () => {
  it('lies where PoCL has it', () => {
    expect(poclCache({ POCL_CACHE_DIR: '/a' })).toBe('/a');
    expect(poclCache({ XDG_CACHE_HOME: '/caches' })).toBe(join('/caches/pocl/kcache'));
  });

  it('loses programs that were unused for hours, the oldest first, and nothing else', () => {
    const cache = join(folder, 'kcache');
    const now = Date.UTC(2026, 0, 2);
    const put = (name, hoursAgo) => {
      const path = join(cache, name);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, '');
      utimesSync(path, now / 1000, now / 1000 - 3600 * hoursAgo);
      return name;
    };
    const program = (letter, hoursAgo) => put(`AB/${letter.repeat(37)}/last_accessed`, hoursAgo);
    const all = [program('C', 9), program('D', 0), program('E', 5), program('F', 7), program('G', 3)];
    const others = [put('tempfile_aBc123', 0), put('AB/other/last_accessed', 99), put('polygrad-locks/1', 99)];
    const left = put('tempfile_IT4CuS.so', 9);
    expect(trimPoclCache(cache, { most: 3, now })).toBe(2);
    const there = (name) => existsSync(join(cache, name));
    expect(all.map(there)).toEqual([false, true, true, false, true]);
    expect([...others.map(there), there(left)]).toEqual([true, true, true, false]);
    // Those in use stay, however many there are.
    expect(trimPoclCache(cache, { most: 0, now })).toBe(2);
    expect(all.map(there)).toEqual([false, true, false, false, false]);
    expect(trimPoclCache(join(folder, 'nowhere'))).toBe(0);
  });
});

it('the sum of logs says what failed again, and a log without totals is a failure', () => {
  const log = (name, text) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const total = (...files) =>
    spawnSync(process.execPath, [join(root, 'tooling/long/total.mjs'), ...files], { encoding: 'utf8' }).stdout;
  const one = log('one', 'text\n1 passed, 9 failed, 0 skipped\nmore\n5 passed, 0 failed, 2 skipped\n');
  expect(total(one, log('two', '7 passed, 1 failed, 0 skipped\n'))).toBe('12 passed, 1 failed, 2 skipped\n');
  expect(total(one, log('three', 'ended too early'))).toBe('5 passed, 1 failed, 2 skipped\n');
  const failing = log('four', 'failed: unit: a test: why\nshown\n2 passed, 1 failed, 0 skipped\n');
  expect(total(one, failing)).toBe('failed: unit: a test: why\n7 passed, 1 failed, 2 skipped\n');
});
