/** Drivers and cards of all kinds, in processes of their own: what the engine says where it cannot work, and what it does where they fail. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { hasSimulator, simulator } from './fixtures/device.ts';
import { ask } from './fixtures/process.ts';
import { sampled } from '@polygrad/compiler/fixtures/everyday';

interface Said {
  readonly name: string;
  readonly message: string;
  readonly code: string;
  readonly fatal?: boolean;
  readonly driverCode?: number;
}

const answers = (command: string): boolean => spawnSync(command, ['--version'], { stdio: 'ignore' }).status === 0;
const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** What probing says, and what making an engine throws. */
const refusal = (env: Readonly<Record<string, string>>): { reason: string; score: number; thrown: Said } =>
  ask(
    `const { score, reason } = await cuda.cudaProvider.probe();
     say({ score, reason, thrown: caught(() => cuda.createCudaEngine()) });`,
    env,
  );

describe('a machine without a driver', () => {
  it('is told so, and nothing breaks', () => {
    const { reason, score, thrown } = refusal({ POLYGRAD_CUDA_DRIVER: '/nowhere/libcuda.so.1' });
    expect(score).toBe(0);
    expect(reason).toMatch(/NVIDIA's driver could not be opened \(.*\/nowhere\/libcuda\.so\.1/);
    expect(thrown).toMatchObject({ name: 'EngineMissingError', code: 'ENGINE_MISSING' });
  });

  it.skipIf(process.platform !== 'linux')('nor with a library that is no driver', () => {
    expect(refusal({ POLYGRAD_CUDA_DRIVER: 'libc.so.6' }).reason).toMatch(
      /lacks cuInit: a driver for CUDA 11\.4 or newer/,
    );
  });

  it.skipIf(!answers('cc'))('nor with a driver that lacks a function', () => {
    const folder = mkdtempSync(join(tmpdir(), 'polygrad-driver-'));
    try {
      const [source, path] = [join(folder, 'driver.c'), join(folder, 'driver.so')];
      const header = readFileSync(here('../native/cu.h'), 'utf8');
      const names = [...header.matchAll(/\bX\(\w+,\s*(cu\w+),/g)].map(([, name]) => name);
      expect(names.length).toBeGreaterThan(30);
      const functions = names
        .filter((name) => name !== 'cuMemPoolTrimTo')
        .map((name) => `int ${name}(void) { return 0; }`);
      writeFileSync(source, functions.join('\n'));
      execFileSync('cc', ['-shared', '-fPIC', source, '-o', path]);
      expect(refusal({ POLYGRAD_CUDA_DRIVER: path }).reason).toMatch(/lacks cuMemPoolTrimTo: a driver for CUDA 11\.4/);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe.skipIf(!hasSimulator())('a simulated driver', () => {
  const env = (settings: string, fail = ''): Record<string, string> => ({
    POLYGRAD_CUDA_DRIVER: simulator as string,
    POLYGRAD_CUDA_SIM: settings,
    POLYGRAD_CUDA_SIM_FAIL: fail,
  });

  const refusals: readonly (readonly [string, string, string, number | undefined, RegExp])[] = [
    [
      'a driver that is too old',
      'driver=11020',
      '',
      undefined,
      /the driver is for CUDA 11\.2: one for 11\.4 or newer \(470/,
    ],
    [
      'no card',
      'devices=0',
      '',
      100,
      /the driver finds no card \(cuInit says CUDA_ERROR_NO_DEVICE \(100\)\); in a container start it with --gpus all.*MIG-/,
    ],
    ['a card that is too old', 'cc=61', '', undefined, /too old: its compute capability is 6\.1, 7\.5 \(Turing\)/],
    ['a stub of a driver', '', 'cuInit@1+=34', 34, /the stub that programs are linked with/],
    ['a kernel module of another version', '', 'cuInit@1+=803', 803, /driver and kernel module do not fit/],
    ['a driver newer than what the card takes', '', 'cuInit@1+=804', 804, /driver and kernel module do not fit/],
    ['a fabric that is not ready', '', 'cuInit@1+=802', 802, /the card is not ready .*fabric manager/],
    ['a card that is busy', '', 'cuInit@1+=46', 46, /the card is busy or not available .*another process may hold it/],
    ['a card closed to computing', 'mode=2', '', undefined, /compute mode prohibited\): nvidia-smi -c 0 opens it/],
    ['a driver that cannot start', '', 'cuInit@1+=999', 999, /look at nvidia-smi/],
    [
      'a driver that knows another error',
      '',
      'cuInit@1+=304',
      304,
      /the driver cannot start: cuInit says CUDA_ERROR_OPERATING_SYSTEM/,
    ],
  ];
  it.each(sampled(refusals, 3))('says why it is not available: %s', (_, settings, fail, driverCode, text) => {
    const { reason, score, thrown } = refusal(env(settings, fail));
    expect(score).toBe(0);
    expect(reason).toMatch(text);
    expect(thrown.message).toMatch(text);
    expect(thrown.name).toBe('EngineMissingError');
    expect(thrown.driverCode).toBe(driverCode);
  });

  it('says who holds a card that cannot be opened', () => {
    const { score, thrown } = refusal(env('mode=3', 'cuDevicePrimaryCtxRetain@1+=46'));
    expect(score).toBe(1);
    expect(thrown.message).toMatch(
      /cannot be opened: .*CUDA_ERROR_DEVICE_UNAVAILABLE \(46\): another process may hold it/,
    );
    expect(thrown.driverCode).toBe(46);
  });

  it('names every card and its reason where none can be used, and that of the one that is asked for', () => {
    const [list, any, second] = ask<[{ score: number; reason: string }[], Said, Said]>(
      `say([cuda.listCudaDevices(), caught(() => cuda.createCudaEngine()), caught(() => cuda.createCudaEngine({ device: 1 }))]);`,
      env('devices=2;cc=70;name=Tesla V100'),
    );
    expect(list.map(({ score }) => score)).toEqual([0, 0]);
    expect(any.message).toMatch(
      /no card can be used: Tesla V100.*: it is too old.*7\.0.*; Tesla V100.*: it is too old/,
    );
    expect(second.message).toMatch(/Tesla V100.* cannot be used: it is too old: .*the OpenCL engine may run on it/);
  });

  it('is told apart from a card, everywhere', () => {
    const [probe, list, device] = ask<[Record<string, unknown>, Record<string, unknown>[], string]>(
      `const engine = cuda.createCudaEngine();
       say([await cuda.cudaProvider.probe(), cuda.listCudaDevices(), engine.device]);
       engine.dispose();`,
      env(''),
    );
    expect(probe).toMatchObject({ software: true, score: 1, reason: /not a card/ });
    expect(list).toMatchObject([{ simulated: true, name: /simulated/ }]);
    expect(device).toMatch(/\(simulated\)/);
  });

  it('of a slice of a card (MIG) says so, and is chosen by its UUID', () => {
    const [device] = ask<Record<string, string>[]>(
      `const [found] = cuda.listCudaDevices();
       const engine = cuda.createCudaEngine({ device: found.uuid });
       engine.dispose();
       say([found]);`,
      env('name=NVIDIA A100-SXM4-40GB MIG 1g.5gb'),
    );
    expect(device).toMatchObject({ slice: true });
    expect(device!.uuid).toMatch(/^MIG-[0-9a-f]{8}-/);
  });

  it('with several cards is several engines, chosen by number, UUID and name', () => {
    const [names, errors, values] = ask<[string[], (Said | null)[], number[][]]>(
      `const cards = cuda.listCudaDevices();
       const chosen = [0, 1, cards[1].uuid, cards[1].uuid.slice(4), 'simulated'].map((device) => cuda.createCudaEngine({ device }));
       const values = [];
       for (const engine of chosen) {
         await core.setEngine(engine);
         values.push(await core.tensor([1, 2]).mul(2).array());
       }
       const [x] = [core.tensor([1, 2]).mul(3)];
       await x.data();
       await core.setEngine(chosen[1]);
       values.push(await x.add(1).array());
       for (const engine of chosen) engine.dispose();
       say([cards.map(({ uuid }) => uuid), [2, 'GPU-nope', 'no such card'].map((device) => caught(() => cuda.createCudaEngine({ device }))), values]);`,
      env('devices=2'),
    );
    expect(new Set(names).size).toBe(2);
    for (const error of errors)
      expect(error?.message).toMatch(/no card .*; give a number, a UUID or a part of the name: 0 = /);
    expect(values).toEqual([...Array(5).fill([2, 4]), [4, 7]]);
  });

  it('takes the card that POLYGRAD_CUDA_DEVICE names', () => {
    const program = `say(caught(() => cuda.createCudaEngine().dispose()));`;
    expect(ask(program, { ...env('devices=2'), POLYGRAD_CUDA_DEVICE: '1' })).toBeNull();
    expect(ask<Said>(program, { ...env('devices=2'), POLYGRAD_CUDA_DEVICE: '7' }).message).toMatch(/no card 7/);
  });

  it('computes without pools of memory', () => {
    const values = ask<number[]>(
      `await core.setEngine(cuda.createCudaEngine());
       let x = core.tensor([1, 2, 3]);
       for (let i = 0; i < 20; i++) { const next = x.add(1); await next.data(); x.dispose(); x = next; }
       say(await x.array());`,
      env('pools=0'),
    );
    expect(values).toEqual([21, 22, 23]);
  });

  it('compiles while the event loop turns', () => {
    const turns = ask<number>(
      `await core.setEngine(cuda.createCudaEngine());
       let turns = 0;
       const turning = setInterval(() => turns++, 5);
       const value = await core.tensor([1, 2, 3]).mul(2).data();
       clearInterval(turning);
       say(value[2] === 6 ? turns : -1);`,
      env('compile=500'),
    );
    // A loop that waits for the compiler turns once at the end.
    expect(turns).toBeGreaterThan(1);
  });

  it('compiles nothing more where a program goes on as before', () => {
    const [first, last] = ask<{ compiled: number; commands: number; batches: number }[]>(
      `const engine = cuda.createCudaEngine();
       await core.setEngine(engine);
       let w = core.tensor([1, 2, 3]);
       const step = async () => { const next = core.scope(() => w.mul(0.5).add(1)); await next.data(); w.dispose(); w = next; };
       for (let i = 0; i < 3; i++) await step();
       const first = engine.stats;
       for (let i = 0; i < 50; i++) await step();
       say([first, engine.stats]);`,
      env(''),
    );
    expect(last!.compiled).toBe(first!.compiled);
    expect(last!.commands).toBe(first!.commands + 50);
    // One native call a step.
    expect(last!.batches).toBe(first!.batches + 50);
  });

  it('that has no memory is trimmed and asked again before anybody is told', () => {
    const [values, error, again] = ask<[number, Said, number]>(
      `const engine = cuda.createCudaEngine();
       await core.setEngine(engine);
       const MiB = 1 << 18;
       // Blocks of several sizes, freed: the pool holds them all.
       for (const size of [5, 6, 7, 8, 9]) { const buffer = engine.alloc(4 * size * MiB); engine.free(buffer); }
       const held = engine.memory().reservedBytes;
       const large = engine.alloc(4 * 20 * MiB);
       const error = caught(() => engine.alloc(4 * 20 * MiB));
       engine.free(large);
       const x = core.ones([20 * MiB]);
       say([held, error, (await x.data())[7]]);`,
      env(`memory=${36 << 20}`),
    );
    expect(values).toBeGreaterThan(9 << 20);
    expect(error).toMatchObject({ name: 'OutOfMemoryError', code: 'OUT_OF_MEMORY' });
    expect(again).toBe(1);
  });

  it('after a fault computes no more on the card in this process, and says so every time', () => {
    const codes = [700, 702, 710, 714, 715, 716, 717, 718, 719, 721];
    interface Case {
      readonly errors: (Said | null)[];
      readonly again: Said;
      readonly fault: number;
      readonly healthy: number | null;
      readonly lost: string;
    }
    // A card for each code.
    const cases = ask<Case[]>(
      `core.setRecovery({ fallback: 'error' });
       const cases = [];
       for (const [device, code] of ${JSON.stringify(codes)}.entries()) {
         const engine = cuda.createCudaEngine({ device });
         const other = cuda.createCudaEngine({ device });
         const healthy = engine.fault;
         await core.setEngine(engine);
         const x = core.tensor([1, 2, 3]);
         await x.data();
         process.env.POLYGRAD_CUDA_SIM_FAIL = 'kernel@1=' + code;
         const errors = [];
         const failing = async (run) => { try { await run(); errors.push(null); } catch (error) { errors.push({ name: error.name, message: error.message, fatal: error.fatal, driverCode: error.driverCode, code: error.code }); } };
         const y = x.mul(2);
         await failing(() => y.data());
         process.env.POLYGRAD_CUDA_SIM_FAIL = '';
         for (const call of ['alloc', 'compile', 'submit']) await failing(() => engine[call](call === 'alloc' ? 4 : []));
         await failing(() => other.alloc(4));
         await failing(() => other.idle().then(() => other.alloc(4)));
         const again = caught(() => cuda.createCudaEngine({ device }));
         cases.push({ errors, again, fault: engine.fault, healthy, lost: (await engine.lost).reason });
         engine.dispose();
         other.dispose();
       }
       say(cases);`,
      env(`devices=${codes.length}`),
    );
    for (const [i, said] of cases.entries()) {
      expect(said.errors.map((error) => error?.name)).toEqual(Array(6).fill('DeviceFaultError'));
      for (const error of said.errors)
        expect(error).toMatchObject({
          fatal: true,
          driverCode: codes[i],
          code: 'DEVICE_LOST',
          message: expect.stringMatching(/no engine of this process/),
        });
      expect(said).toMatchObject({ fault: codes[i], healthy: null, lost: 'lost' });
      expect(said.again.name).toBe('EngineMissingError');
      expect(said.again.message).toMatch(/a fault ended it in this process \(CUDA_ERROR_.*\): start the process anew/);
    }
  });

  it('whose card has a fault leaves the work to the CPU engine, with what was protected', () => {
    const said = ask<{ name: string; values: number[]; failures: string[] }>(
      `await import('@polygrad/backend-cpu');
       await core.setEngine('cuda');
       core.setRecovery({ interval: 0 });
       const w = core.tensor([1, 2, 3]);
       core.protect([w]);
       await core.idle();
       const failures = [];
       for (let i = 0; i < 10; i++) {
         if (i === 5) process.env.POLYGRAD_CUDA_SIM_FAIL = 'kernel@1=719';
         try {
           core.scope(() => w.assign(w.add(1)));
           await core.idle();
           await w.data();
         } catch (error) { failures.push(error.name); await core.idle(); }
       }
       say({ name: core.getEngine().name, values: await w.array(), failures });`,
      env(''),
    );
    expect(said.name).toBe('cpu');
    for (const name of said.failures) expect(name).toBe('DeviceFaultError');
    // From the last completed values on.
    expect(said.values[1]! - said.values[0]!).toBe(1);
    expect(said.values[0]).toBeGreaterThanOrEqual(9);
  });

  it('that fails in a call says so, and goes on where it can', () => {
    const calls = [
      'cuEventRecord',
      'cuLaunchKernel',
      'cuMemcpyHtoDAsync',
      'cuMemcpyDtoHAsync',
      'cuStreamWaitEvent',
      'cuModuleLoadDataEx',
    ];
    const said = ask<{ call: string; error: Said | null; after: number[] }[]>(
      `const engine = cuda.createCudaEngine();
       await core.setEngine(engine);
       await core.tensor([5]).add(1).data();
       const said = [];
       for (const [i, call] of ${JSON.stringify(calls)}.entries()) {
         process.env.POLYGRAD_CUDA_SIM_FAIL = call + '@1=304';
         let error = null;
         // A new kernel every time.
         const run = () => core.tensor([1, 2]).mul(7).add(core.full([2], 1).mul(i).sin().mul(0)).array();
         try { await run(); } catch (e) { error = { name: e.name, message: e.message, code: e.code, driverCode: e.driverCode }; }
         process.env.POLYGRAD_CUDA_SIM_FAIL = '';
         said.push({ call, error, after: await run() });
       }
       say(said);
       engine.dispose();`,
      env(''),
    );
    for (const { call, error, after } of said) {
      if (error !== null) expect(error.message, call).toMatch(/CUDA_ERROR_OPERATING_SYSTEM/);
      if (error !== null) expect(error.driverCode, call).toBe(304);
      expect(after, call).toEqual([7, 14]);
    }
    expect(said.filter(({ error }) => error !== null).length).toBeGreaterThan(3);
  });
});
