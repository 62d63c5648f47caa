/** cuDNN: found where it is, absent without complaint, right in every pass by a library of the simulated driver, and left alone when it fails. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cudnnVariable, soughtCudnn } from './cudnn.ts';
import { hasSimulator, simulator } from './fixtures/device.ts';
import { ask } from './fixtures/process.ts';
import { placesOf } from './places.ts';
import { sampled } from '@polygrad/compiler/fixtures/everyday';

const library = simulator === null ? '' : join(dirname(simulator), 'libcudnn-sim.so');

it('is looked for in the system, where it was unpacked, a toolkit and the packages of Python', () => {
  const root = mkdtempSync(join(tmpdir(), 'polygrad-cudnn-'));
  try {
    const files = [
      'unpacked/lib/libcudnn.so.9',
      'toolkit/lib64/libcudnn.so.8',
      'venv/lib/python3.12/site-packages/nvidia/cudnn/lib/libcudnn.so.9',
      'home/.local/lib/python3.13/site-packages/nvidia/cudnn/lib/libcudnn.so.8',
    ].map((path) => join(root, path));
    for (const path of files) {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, '');
    }
    const [CUDNN_PATH, CUDA_HOME, VIRTUAL_ENV, HOME] = ['unpacked', 'toolkit', 'venv', 'home'].map((x) =>
      join(root, x),
    );
    const places = placesOf(soughtCudnn, { CUDNN_PATH, CUDA_HOME, VIRTUAL_ENV, HOME }, 'linux');
    expect(places.slice(0, 2)).toEqual(['libcudnn.so.9', 'libcudnn.so.8']);
    expect(places.filter((path) => path.startsWith(root))).toEqual(files);
    expect(placesOf(soughtCudnn, {}, 'win32')).toEqual(['cudnn64_9.dll', 'cudnn64_8.dll']);
  } finally {
    rmSync(root, { recursive: true });
  }
});

/** What programs below have: tensors, plain convolutions in float64 with their gradients, and tuning that favours the library. */
const tools = `
  core.setDynamicSizes('never');
  const made = async (shape, dtype, seed) => {
    const list = Array.from({ length: shape.reduce((n, x) => n * x, 1) }, (_, i) => (((i * 7 + seed * 13) % 23) - 11) / 8);
    const t = core.tensor(list, { shape, dtype });
    await t.data();
    return [t, list];
  };
  const numbersOf = async (t) => {
    const elements = await t.data();
    if (!t.dtype.endsWith('float16')) return Array.from(elements, Number);
    return Array.from(await core.cast(t, 'float32').data(), Number);
  };
  // All three passes at once: of each triple of elements that meet, each takes the product of the other two.
  const plain = (x, w, g, { n, c, o, size, kernel, positions, stride, padding, dilation, groups }) => {
    const [y, dx, dw] = [g, x, w].map((list) => new Float64Array(list.length));
    const [inner, outer] = [c / groups, o / groups];
    for (let a = 0; a < n; a++) for (let f = 0; f < o; f++) for (let i = 0; i < positions[0]; i++) for (let j = 0; j < positions[1]; j++)
      for (let ch = 0; ch < inner; ch++) for (let r = 0; r < kernel[0]; r++) for (let s = 0; s < kernel[1]; s++) {
        const [row, column] = [i * stride[0] - padding[0] + r * dilation[0], j * stride[1] - padding[1] + s * dilation[1]];
        if (row < 0 || row >= size[0] || column < 0 || column >= size[1]) continue;
        const from = ((a * c + Math.floor(f / outer) * inner + ch) * size[0] + row) * size[1] + column;
        const by = ((f * inner + ch) * kernel[0] + r) * kernel[1] + s;
        const to = ((a * o + f) * positions[0] + i) * positions[1] + j;
        y[to] += x[from] * w[by];
        dx[from] += g[to] * w[by];
        dw[by] += g[to] * x[from];
      }
    return [y, dx, dw];
  };
  const counted = (engine) => {
    let convolutions = 0;
    const { submit, submitTimed } = engine;
    const isOne = (command) => command.kernel?.program.product?.kind === 'convolution';
    engine.submit = (commands) => {
      convolutions += commands.filter(isOne).length;
      return submit.call(engine, commands);
    };
    engine.submitTimed = async (commands) => {
      const times = await submitTimed.call(engine, commands);
      // With what is done to its sums.
      return times.map(() => (commands.some(isOne) ? 1 : 1e9));
    };
    return () => { const now = convolutions; convolutions = 0; return now; };
  };`;

const env = { POLYGRAD_CUDA_DRIVER: simulator ?? '', [cudnnVariable]: library };

interface Said {
  readonly case: string;
  readonly errors: readonly number[];
  readonly given: number;
  readonly chosen: readonly string[];
}

describe.skipIf(!hasSimulator())('cuDNN of the simulated driver', () => {
  const cases = {
    plain: { n: 2, c: 3, o: 4, size: [7, 9], kernel: [3, 3] },
    padded: { n: 2, c: 3, o: 4, size: [7, 9], kernel: [3, 3], padding: [1, 1] },
    'padded, with strides': { n: 2, c: 3, o: 4, size: [9, 9], kernel: [3, 3], padding: [1, 1], stride: [2, 2] },
    'dilated, with other steps along columns': {
      n: 2,
      c: 3,
      o: 4,
      size: [9, 11],
      kernel: [3, 2],
      padding: [2, 1],
      stride: [1, 2],
      dilation: [2, 1],
    },
    'in groups': { n: 2, c: 6, o: 4, size: [7, 6], kernel: [3, 3], padding: [1, 1], groups: 2 },
    'of each channel': { n: 3, c: 6, o: 6, size: [7, 7], kernel: [3, 3], padding: [1, 1], groups: 6 },
  };

  it.each(sampled(['float32', 'float64', 'float16', 'bfloat16'] as const, 2))(
    'computes all three passes of %s',
    (dtype) => {
      const said = ask<Said[]>(
        `${tools}
       const engine = cuda.createCudaEngine({ tuning: false });
       await core.setEngine(engine);
       const convolutions = counted(engine);
       const said = [];
       for (const [name, given] of Object.entries(${JSON.stringify(cases)})) {
         const geometry = { stride: [1, 1], padding: [0, 0], dilation: [1, 1], groups: 1, ...given };
         const { n, c, o, size, kernel, stride, padding, dilation, groups } = geometry;
         const positions = [0, 1].map((i) => Math.floor((size[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) / stride[i]) + 1);
         const [[x, xs], [w, ws], [g, gs]] = [
           await made([n, c, ...size], '${dtype}', 1),
           await made([o, c / groups, ...kernel], '${dtype}', 2),
           await made([n, o, ...positions], '${dtype}', 3),
         ];
         const of = (a, b) => core.conv2d(a, b, { stride, padding, dilation, groups });
         const passes = [
           () => of(x, w),
           () => core.vjp((a) => of(a, w), [x], g)[1][0],
           () => core.vjp((b) => of(x, b), [w], g)[1][0],
         ];
         const expected = plain(xs, ws, gs, { ...geometry, positions });
         const narrow = async (list) => numbersOf(core.tensor(Array.from(list), { dtype: '${dtype}' }));
         for (const pass of passes) await pass().data();
         const chosen = (await core.tune(engine, { budget: 0 })).map(({ tile }) => tile);
         convolutions();
         const errors = [];
         for (const [i, pass] of passes.entries()) {
           const got = await numbersOf(pass());
           const want = await narrow(expected[i]);
           errors.push(got.length === want.length ? Math.max(...got.map((v, at) => Math.abs(v - want[at]))) : 1e9);
         }
         said.push({ case: name, errors, given: convolutions(), chosen });
       }
       said.push({ case: String(engine.cudnnMissing), errors: [], given: 3, chosen: [] });
       say(said);`,
        env,
      );
      expect(said.pop()?.case).toBe('null');
      for (const { case: name, errors, given, chosen } of said) {
        expect([name, chosen.length > 0 && chosen.every((tile) => tile === 'library'), given]).toEqual([name, true, 3]);
        // Factors are eighths, so sums are exact in float32: 16 bits are right if they are the sums rounded once.
        expect([name, errors]).toEqual([name, [0, 0, 0]]);
      }
    },
  );

  const convolution = `${tools}
    const [[x], [w], [bias]] = [await made([2, 3, 9, 9], 'float32', 1), await made([4, 3, 3, 3], 'float32', 2), await made([4], 'float32', 3)];
    const losses = () => [
      core.conv2d(x, w, { padding: 1, bias }).relu().square().sum(),
      core.grad((a) => core.conv2d(a, w, { padding: 1, stride: 2 }).square().sum())(x).square().sum(),
      core.grad((b) => core.conv2d(x, b, { padding: 1 }).square().sum())(w).square().sum(),
    ];
    const values = async () => { const list = []; for (const t of losses()) list.push(await t.item()); return list; };`;

  it('computes sums that something is done to, and TF32 only where that is wanted', () => {
    const run = (precision: string, tf32: string): unknown =>
      ask(
        `const engine = cuda.createCudaEngine({ tuning: false, float32MatmulPrecision: '${precision}' });
         await core.setEngine(engine);
         ${convolution}
         const convolutions = counted(engine);
         const before = await values();
         await core.tune(engine, { budget: 0 });
         convolutions();
         const after = await values();
         say([before.every((v, i) => Math.abs(v / after[i] - 1) < 2e-3), convolutions() >= 3, engine.cudnnMissing]);`,
        { ...env, POLYGRAD_CUDNN_SIM: `tf32=${tf32}` },
      );
    expect(run('highest', '0')).toEqual([true, true, null]);
    expect(run('high', '1')).toEqual([true, true, null]);
    // The library refuses what it does not expect: nothing is given to it, and it stays there for others.
    expect(run('highest', '1')).toEqual([true, false, null]);
  });

  it('is not taken where none of its algorithms adds in order, and refuses one convolution without being left alone', () => {
    const run = (how: string): unknown =>
      ask(
        `const engine = cuda.createCudaEngine({ tuning: false });
         await core.setEngine(engine);
         ${convolution}
         const convolutions = counted(engine);
         await values();
         const tuned = await core.tune(engine, { budget: 0 });
         convolutions();
         await values();
         say([tuned.length > 2, tuned.filter(({ measured }) => measured.some(({ tile }) => tile === 'library')).length, convolutions(), engine.cudnnMissing]);`,
        { ...env, POLYGRAD_CUDNN_SIM: how },
      );
    expect(run('algorithms=0')).toEqual([true, 0, 0, null]);
  });

  it('is absent without complaint, and says why to whoever asks', () => {
    const of = (path: string, how = ''): [string | null, number[], object[]] =>
      ask(
        `const engine = cuda.createCudaEngine({ tuning: false });
         await core.setEngine(engine);
         ${convolution}
         say([engine.cudnnMissing, await values(), (await core.tune(engine, { budget: 0 })).filter(({ tile }) => tile === 'library')]);`,
        { ...env, [cudnnVariable]: path, POLYGRAD_CUDNN_SIM: how },
      );
    const [none, missing, wrong] = [of(''), of('/nowhere/libcudnn.so.9'), of('libc.so.6')];
    const old = of(library, 'version=7605');
    expect(none[0]).toMatch(/simulated driver has none/);
    expect(missing[0]).toMatch(/nowhere/);
    if (process.platform === 'linux') expect(wrong[0]).toMatch(/lacks cudnnCreate: cuDNN 8 or 9 is needed/);
    expect(old[0]).toMatch(/is cuDNN 7: cuDNN 8 or 9 is needed/);
    for (const [, value, tuned] of [none, missing, wrong, old]) expect([value, tuned]).toEqual([none[1], []]);
  });

  it('can be left out', () => {
    const said = ask(
      `const engine = cuda.createCudaEngine({ tuning: false, cudnn: false });
       say([engine.cudnnMissing, engine.cublasLtMissing]);`,
      env,
    );
    expect(said).toEqual(['the option cudnn is false', 'the simulated driver has none']);
  });

  it('gives way to kernels when a routine fails, and nothing is lost', () => {
    // Where it is prepared, and where it computes.
    const early = [
      'cudnnCreate',
      'cudnnCreateTensorDescriptor',
      'cudnnSetTensor4dDescriptorEx',
      'cudnnCreateFilterDescriptor',
      'cudnnSetFilter4dDescriptor',
      'cudnnCreateConvolutionDescriptor',
      'cudnnSetConvolution2dDescriptor',
      'cudnnSetConvolutionGroupCount',
      'cudnnSetConvolutionMathType',
      'cudnnGetConvolutionForwardAlgorithm_v7',
      'cudnnGetConvolutionBackwardDataAlgorithm_v7',
      'cudnnGetConvolutionBackwardFilterAlgorithm_v7',
    ];
    const late = [
      'cudnnSetStream',
      'cudnnConvolutionForward',
      'cudnnConvolutionBackwardData',
      'cudnnConvolutionBackwardFilter',
    ];
    const calls = sampled([...early, ...late], 3);
    const said = ask<[number[], string | null, boolean, number][]>(
      `const said = [];
       for (const call of [null, ...${JSON.stringify(calls)}]) {
         const engine = cuda.createCudaEngine({ tuning: false });
         await core.setEngine(engine);
         ${convolution}
         let lost = false;
         engine.lost.then(({ reason }) => { lost = reason === 'lost'; });
         counted(engine);
         await values();
         const fail = () => { process.env.POLYGRAD_CUDA_SIM_FAIL = call === null ? '' : call + '@1+=8'; };
         if (${JSON.stringify(early)}.includes(call)) fail();
         await core.tune(engine, { budget: 0 });
         fail();
         const value = await values();
         await core.idle();
         process.env.POLYGRAD_CUDA_SIM_FAIL = '';
         said.push([value, engine.cudnnMissing, lost]);
         engine.dispose();
       }
       say(said);`,
      env,
    );
    const [right, ...others] = said;
    expect(right?.[1]).toBeNull();
    for (const [i, [value, missing, lost]] of others.entries()) {
      const call = calls[i]!;
      expect(lost, call).toBe(false);
      for (const [at, v] of value.entries()) expect(Math.abs(v / right![0][at]! - 1), call).toBeLessThan(1e-5);
      expect(String(missing), call).toMatch(/^it failed: .* failed with CUDA error 8$/);
    }
  });

  it('is left alone where there is no memory for what it needs', () => {
    const [value, missing, kept] = ask<[number[], string | null, number[]]>(
      `const engine = cuda.createCudaEngine({ tuning: false });
       await core.setEngine(engine);
       ${convolution}
       counted(engine);
       const before = await values();
       await core.tune(engine, { budget: 0 });
       process.env.POLYGRAD_CUDNN_SIM = '';
       say([await values(), engine.cudnnMissing, before]);`,
      { ...env, POLYGRAD_CUDA_SIM: 'memory=100000000', POLYGRAD_CUDNN_SIM: 'workspace=200000000' },
    );
    expect(missing).toMatch(/cudnn's workspace/);
    for (const [at, v] of value.entries()) expect(Math.abs(v / kept[at]! - 1)).toBeLessThan(1e-5);
  });
});
