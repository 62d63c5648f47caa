/** cuBLASLt: found where it is, absent without complaint, right in every form by a library of the simulated driver, and left alone when it fails. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { forms, narrowForms, problemsOfForms } from '@polygrad/addon/fixtures/forms';
import { watched } from '@polygrad/addon/fixtures/watched';
import { setEngine } from '@polygrad/core';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { cublasLtVariable, soughtCublasLt } from './cublaslt.ts';
import { hasSimulator, simulator } from './fixtures/device.ts';
import { kit } from './fixtures/kit.ts';
import { ask } from './fixtures/process.ts';
import { placesOf } from './places.ts';

const library = simulator === null ? '' : join(dirname(simulator), 'libcublaslt-sim.so');

it('is looked for in the system, a toolkit and the packages of Python', () => {
  const root = mkdtempSync(join(tmpdir(), 'polygrad-cublaslt-'));
  try {
    const files = [
      'toolkit/lib64/libcublasLt.so.12',
      'venv/lib/python3.12/site-packages/nvidia/cublas/lib/libcublasLt.so.12',
      'conda/lib/libcublasLt.so.11',
      'home/.local/lib/python3.13/site-packages/nvidia/cu13/lib/libcublasLt.so.13',
    ].map((path) => join(root, path));
    for (const path of files) {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, '');
    }
    const [CUDA_HOME, VIRTUAL_ENV, CONDA_PREFIX, HOME] = ['toolkit', 'venv', 'conda', 'home'].map((x) => join(root, x));
    const places = placesOf(soughtCublasLt, { CUDA_HOME, VIRTUAL_ENV, CONDA_PREFIX, HOME }, 'linux');
    expect(places.slice(0, 3)).toEqual(['libcublasLt.so.13', 'libcublasLt.so.12', 'libcublasLt.so.11']);
    expect(places.filter((path) => path.startsWith(root))).toEqual(files);
    expect(placesOf(soughtCublasLt, {}, 'win32')).toEqual([
      'cublasLt64_13.dll',
      'cublasLt64_12.dll',
      'cublasLt64_11.dll',
    ]);
  } finally {
    rmSync(root, { recursive: true });
  }
});

describe.skipIf(!hasSimulator())('cuBLASLt of the simulated driver', () => {
  it('computes every form where it was measured faster', async () => {
    vi.stubEnv(cublasLtVariable, library);
    onTestFinished(() => void vi.unstubAllEnvs());
    const { engine, products } = watched(kit, 'real');
    await setEngine(engine);
    const names = [...Object.keys(forms), ...Object.keys(narrowForms)];
    expect(await problemsOfForms(engine, products, names)).toEqual([]);
    expect(kit.products.missing(engine)).toBeNull();
    engine.dispose();
  });

  const product = `
    const list = (n) => Float32Array.from({ length: n }, (_, i) => (i % 7) - 3);
    const [a, b] = [core.tensor(list(96 * 64), { shape: [96, 64] }), core.tensor(list(64 * 32), { shape: [64, 32] })];
    const sum = async () => { const t = core.matmul(a, b).square(); const s = await t.sum().item(); t.dispose(); return s; };`;
  const env = { POLYGRAD_CUDA_DRIVER: simulator ?? '' };

  it('is not asked for bfloat16 on a card that multiplies none, and float32 stays with it', () => {
    const run = (cc: string): unknown =>
      ask(
        `const engine = cuda.createCudaEngine({ tuning: false });
         await core.setEngine(engine);
         for (const dtype of ['bfloat16', 'float16', 'float32']) {
           const [a, b] = [1, 2].map((key) => core.rand([64, 64], { dtype, key }));
           await Promise.all([a.data(), b.data()]);
           await core.matmul(a, b).data();
         }
         const tuned = await core.tune(engine, { budget: 0 });
         say([tuned.map(({ measured }) => measured.some(({ tile }) => tile === 'library')), engine.cublasLtMissing]);`,
        { ...env, POLYGRAD_CUDA_SIM: `cc=${cc}`, [cublasLtVariable]: library },
      );
    expect(run('75')).toEqual([[false, true, true], null]);
    expect(run('80')).toEqual([[true, true, true], null]);
  });

  it('is absent without complaint, and says why to whoever asks', () => {
    const of = (path: string): [string | null, number, object[]] =>
      ask(
        `const engine = cuda.createCudaEngine({ tuning: false });
         await core.setEngine(engine);
         ${product}
         say([engine.cublasLtMissing, await sum(), (await core.tune(engine, { budget: 0 })).filter(({ tile }) => tile === 'library')]);`,
        { ...env, [cublasLtVariable]: path },
      );
    const [none, missing, wrong] = [of(''), of('/nowhere/libcublasLt.so.12'), of('libc.so.6')];
    expect(none[0]).toMatch(/simulated driver has none/);
    expect(missing[0]).toMatch(/nowhere/);
    if (process.platform === 'linux') expect(wrong[0]).toMatch(/lacks cublasLtCreate: cuBLASLt of CUDA 11\.4/);
    for (const [, value, tuned] of [none, missing, wrong]) expect([value, tuned]).toEqual([none[1], []]);
  });

  it('gives way to kernels when a routine fails, and nothing is lost', () => {
    // Where it is prepared, and where it computes.
    const calls = [
      'cublasLtCreate',
      'cublasLtMatmulPreferenceCreate',
      'cublasLtMatmulAlgoGetHeuristic',
      'cublasLtMatmul',
    ];
    const said = ask<[number, string | null, boolean, number][]>(
      `const said = [];
       for (const call of [null, ...${JSON.stringify(calls)}]) {
         const engine = cuda.createCudaEngine({ tuning: false });
         await core.setEngine(engine);
         ${product}
         let lost = false;
         engine.lost.then(({ reason }) => { lost = reason === 'lost'; });
         await sum();
         const { submitTimed } = engine;
         engine.submitTimed = async (commands) => {
           const times = await submitTimed.call(engine, commands);
           return times.map((time, i) => (commands[i].kernel?.program.product === undefined ? 1e9 : 1));
         };
         const fail = () => { process.env.POLYGRAD_CUDA_SIM_FAIL = call === null ? '' : call + '@1+=14'; };
         if (call !== 'cublasLtMatmul') fail();
         await core.tune(engine, { budget: 0 });
         fail();
         const value = await sum();
         await core.idle();
         process.env.POLYGRAD_CUDA_SIM_FAIL = '';
         said.push([value, engine.cublasLtMissing, lost, engine.memory().buffers]);
         engine.dispose();
       }
       say(said);`,
      { ...env, [cublasLtVariable]: library },
    );
    const [right, ...others] = said;
    expect(right?.[1]).toBeNull();
    for (const [i, [value, missing, lost]] of others.entries()) {
      expect([value, lost], calls[i]).toEqual([right?.[0], false]);
      expect(missing, calls[i]).toMatch(/^it failed: .* failed with CUDA error 14$/);
    }
  });
});
