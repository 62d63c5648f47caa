/**
 * The command that measures on a card, with small work: all of it on the simulated driver where there is one. Also what it says of participants
 * that are not there or die, the judgement of goals, and the file for a machine without Node.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { figures, groups } from '../bench/gpu/cases.mjs';
import { runFirstGroup } from '../bench/gpu/counts.mjs';
import { measure } from '../bench/gpu/participants.mjs';
import { documentOf, judged } from '../bench/gpu/report.mjs';
import { buildPtxRun } from './cuda-sim/ptx/build.mjs';
import { root } from './workspace.mjs';
import { isWhole } from '../packages/compiler/src/fixtures/everyday.ts';

const simulator = join(root, 'tooling/cuda-sim/build/libcuda-sim.so');
const required = (process.env.POLYGRAD_REQUIRE ?? '').split(',').includes('cuda');

/** Runs something with a folder for what it writes. */
async function inFolder(use) {
  const out = mkdtempSync(join(tmpdir(), 'polygrad-bench-gpu-'));
  try {
    return await use(out);
  } finally {
    rmSync(out, { recursive: true });
  }
}

const run = (words, env = {}, script = join(root, 'bench/gpu/run.mjs'), node = process.execPath) =>
  execFileSync(node, [script, ...words], { encoding: 'utf8', env: { ...process.env, ...env } });
const reportIn = (out) => JSON.parse(readFileSync(join(out, 'report.json'), 'utf8'));

it('writes a report, whatever is there', () =>
  inFolder((out) => {
    const words = '--tiny --alone --engines cpu,nothing --only elementwise --sample 30001 --minutes 3 --out'.split(' ');
    expect(run([...words, out])).toMatch(/conformance cpu: \d+ passed, 0 failed/);
    const report = reportIn(out);
    const { cases } = groups(true).elementwise;
    expect(report.rows.map(({ name }) => name)).toEqual(cases.map(({ name }) => name));
    for (const { name, by } of report.rows) {
      expect(by.cpu.value, name).toBeGreaterThan(0);
      // Who is not there costs nothing but a remark.
      expect(by.nothing.failed).toMatch(/no engine nothing/);
    }
    expect(readFileSync(join(out, 'report.md'), 'utf8')).toMatch(/\| a \+ b \| GB\/s \| \d/);
  }));

it.skipIf(!required && !existsSync(simulator))('does all of it on the simulated driver', () =>
  inFolder((out) => {
    const words = '--tiny --alone --sample 30001 --minutes 30 --first overhead,sizes'.split(' ');
    const some = ['gemm', 'reductions', 'overhead', 'cpu', 'sizes', 'profiles'];
    const wanted = Object.entries(groups(true)).filter(([name]) => isWhole || some.includes(name));
    const only = wanted.map(([name]) => name).join();
    const said = run([...words, '--only', only, '--out', out], {
      POLYGRAD_CUDA_DRIVER: simulator,
      POLYGRAD_CUBLASLT_LIBRARY: '',
      POLYGRAD_CUDNN_LIBRARY: '',
    });
    const report = reportIn(out);
    const all = wanted.flatMap(([, { cases }]) => cases);
    expect(report.rows.length + report.profiles.length).toBe(all.length);
    for (const { name, by } of report.rows) expect(by.cuda, name).toMatchObject({ value: expect.any(Number) });
    for (const { cases } of [groups(true).cpu])
      for (const { name } of cases)
        expect(report.rows.find((row) => row.name === name).by.cpu.value, name).toBeGreaterThan(0);
    for (const { name, kernels } of report.profiles) {
      expect(kernels.length, name).toBeGreaterThan(3);
      for (const { ms } of kernels) expect(ms, name).toBeGreaterThan(0);
    }
    // What was measured of tiles is kept, and nothing failed; what comes first came first.
    const tiles = report.tiles.map(({ key }) => key).join();
    // Each size has kernels of its own, whatever came before it.
    for (const sizes of ['16x16x16', '32x32x32'])
      for (const dtype of isWhole ? ['float32', 'bfloat16'] : ['float32'])
        expect(tiles).toMatch(`${dtype} ${sizes}`.replace('bfloat16 ', 'bfloat16 m16n8k16 float32 '));
    expect(said).not.toMatch(/failed:|not run/);
    expect(said.match(/== .*/)[0]).toBe('== overhead: cuda');
  }),
);

it('loses one case to a program that dies or says nothing more, and no time beyond what it has', async () => {
  const worker = `
    const say = (line) => console.log(JSON.stringify(line));
    process.stdin.once('data', async (text) => {
      say({ device: 'none' });
      for (const { name, kind } of JSON.parse(text).cases) {
        say({ begins: name });
        if (kind === 'dies') process.exit(3);
        if (kind === 'hangs') await new Promise(() => setInterval(() => undefined, 1000));
        say({ name, median: 1, best: 1 });
      }
    });`;
  const found = {};
  const onSaid = ({ name, failed }) => {
    if (name !== undefined) found[name] = failed ?? 'done';
  };
  const cases = ['works', 'dies', 'works', 'hangs', 'works'].map((kind, i) => ({ kind, name: `${kind} ${i}` }));
  await measure(process.execPath, ['-e', worker], { cases, seconds: 12, cwd: root, onSaid });
  expect(found).toMatchObject({ 'works 0': 'done', 'works 2': 'done', 'hangs 3': 'the time was over' });
  expect(found['dies 1']).toMatch(/it ended with 3/);
  expect(found['works 4']).toBe('the time was over');
  await measure('/nowhere/node', [], { cases: cases.slice(0, 2), seconds: 6, cwd: root, onSaid });
  expect(found['works 0']).toMatch(/ENOENT/);
  expect(found['dies 1']).toMatch(/ENOENT/);
});

it('judges goals by the copy, by PyTorch and by the clock', () => {
  const row = (name, figure, goal, by) => ({
    name,
    figure,
    goal,
    by: Object.fromEntries(Object.entries(by).map(([who, value]) => [who, { value }])),
  });
  const rows = [
    row('copy on the card', 'GB/s', undefined, { cuda: 900, torch: 1000 }),
    row('fused', 'GB/s', { ofCopy: 0.9 }, { cuda: 890 }),
    row('product', 'GFLOP/s', { overTorch: 0.8 }, { cuda: 85, torch: 100 }),
    row('step', 'ms', { overTorch: 1 }, { cuda: 11, torch: 10 }),
    row('small', 'us', { most: 3 }, { cuda: 2.5 }),
    row('alone', 'ms', { overTorch: 1 }, { cuda: 11 }),
    { ...row('dead', 'ms', { overTorch: 1 }, { torch: 11 }), by: { cuda: { failed: 'why' }, torch: { value: 11 } } },
  ];
  const report = {
    date: '2000-01-01',
    main: 'cuda',
    options: { sample: '61' },
    seconds: 1,
    machine: { card: 'a card' },
    conformance: {},
    devices: {},
    rows,
    profiles: [],
    notes: ['a remark'],
  };
  expect(rows.map((one) => judged(one, report)?.met)).toEqual([undefined, false, true, false, true, null, false]);
  const text = documentOf(report);
  expect(text).toContain('Goals: 2 met, 3 missed, 1 not judged.');
  expect(text).toContain('| step | 100 % of PyTorch | 91 % | **missed** |');
  expect(text).toContain('| dead | ms | failed: why | 11.00 |');
});

it('has figures for every case, and each case once', () => {
  for (const tiny of [false, true]) {
    const cases = Object.values(groups(tiny)).flatMap((group) => group.cases);
    expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length);
    for (const one of cases) expect(figures[one.figure](one, 0.5), one.name).toBeGreaterThan(0);
  }
});

it('refuses groups and times that are none', () => {
  for (const [words, why] of [
    [['--only', 'gem'], /there is no group gem; there are transfers, gemm/],
    [['--minutes', 'nine'], /--minutes is nine/],
    [['--engines', ''], /--engines names none/],
  ]) {
    const { status, stderr } = spawnSync(process.execPath, [join(root, 'bench/gpu/run.mjs'), ...words], {
      encoding: 'utf8',
    });
    expect([status, stderr]).toEqual([2, expect.stringMatching(why)]);
  }
});

it.skipIf(spawnSync('/usr/local/cuda/bin/ptxas', ['--version']).status !== 0)(
  'has kernels that are assembled, at whole sizes, and one for a chain of operations',
  () => {
    const words = ['--only', 'elementwise', '--counts'];
    const said = execFileSync(process.execPath, [join(root, 'bench/gpu/kernels.mjs'), ...words], { encoding: 'utf8' });
    const counts = said.split('\n').filter((line) => /groups \(/.test(line));
    // All that is read or written is used, in vectors, by as many warps as there can be.
    expect(counts.length).toBeGreaterThanOrEqual(3);
    for (const line of counts) expect(line).toMatch(/ 64 of 64 warps, .*device 100 % of sectors used, 0 % by 4 bytes/);
    expect(said).toMatch(/max\(a \* b \+ a, 0\) \* 0\.5 - b\n.*registers.*\n.*groups.*\nexp\(a\)/);
    expect(said).toMatch(/\d+ kernels for sm_90, 0 spill registers or are refused/);
  },
);

it.skipIf(buildPtxRun().path === undefined)('counts what memory does for the accesses of a warp', () => {
  const count = (lines, bytes = 4096) => {
    const text = [
      '.version 7.0', '.target sm_80', '.address_size 64', '.visible .entry k(', '  .param .u64 p0', ')', '{',
      '  .reg .b32 %r<9>;', '  .reg .b64 %rd<9>;', '  .shared .align 16 .b8 cells[4096];',
      '  mov.u32 %r0, %tid.x;', '  mov.u32 %r1, cells;', '  ld.param.b64 %rd0, [p0];', '  mov.b32 %r4, 0;',
      ...lines.map((line) => `  ${line}`), '  ret;', '}', '',
    ].join('\n'); // biome-ignore format: a text
    const kernel = { text, entry: 'k', params: [{ bytes: 1 }], scalars: [], group: [32, 1, 1], dynamicSharedBytes: 0 };
    const rows = runFirstGroup(kernel, { params: [{ arg: { length: bytes } }] });
    return rows.filter(({ space }) => space !== '-').map(({ space, done, least }) => [space, done, least]);
  };
  const shared = (stride, instruction) => count([`mad.lo.s32 %r2, %r0, ${stride}, %r1;`, instruction]);
  expect(shared(4, 'st.shared.b32 [%r2], %r4;')).toEqual([['s', 1, 1]]);
  expect(shared(8, 'st.shared.b32 [%r2], %r4;')).toEqual([['s', 2, 1]]);
  expect(shared(128, 'st.shared.b32 [%r2], %r4;')).toEqual([['s', 32, 1]]);
  // All lanes want one word; lanes of a quarter want neighbouring ones.
  expect(shared(0, 'st.shared.b32 [%r2], %r4;')).toEqual([['s', 1, 1]]);
  expect(shared(16, 'st.shared.v4.b32 [%r2], {%r4, %r4, %r4, %r4};')).toEqual([['s', 4, 4]]);
  expect(shared(80, 'st.shared.v4.b32 [%r2], {%r4, %r4, %r4, %r4};')).toEqual([['s', 4, 4]]);
  expect(shared(64, 'st.shared.v4.b32 [%r2], {%r4, %r4, %r4, %r4};')).toEqual([['s', 16, 4]]);
  const device = (stride, instruction) => count([`mad.wide.s32 %rd1, %r0, ${stride}, %rd0;`, instruction]);
  expect(device(4, 'ld.global.b32 %r5, [%rd1];')).toEqual([['g', 4, 4]]);
  expect(device(32, 'ld.global.b32 %r5, [%rd1];')).toEqual([['g', 32, 4]]);
  expect(device(4, 'ld.global.b32 %r5, [%rd1+4];')).toEqual([['g', 5, 4]]);
});

it('runs from the file that is packed for a machine without Node, compiler and network', () =>
  inFolder((folder) => {
    const file = join(folder, 'pack.tar.gz');
    execFileSync(process.execPath, [join(root, 'bench/gpu/pack.mjs'), '--without-node', '--out', file]);
    execFileSync('tar', ['-xzf', file, '-C', folder]);
    const words = '--tiny --engines cpu --only transfers --sample 30001 --minutes 3 --out'.split(' ');
    const script = join(folder, 'polygrad-gpu/bench/gpu/run.mjs');
    const said = run([...words, folder], { PATH: '/nowhere', HOME: folder }, script);
    expect(said).toMatch(/nothing to compare with: |PyTorch/);
    expect(reportIn(folder).rows[0].by.cpu.value).toBeGreaterThan(0);
  }));
