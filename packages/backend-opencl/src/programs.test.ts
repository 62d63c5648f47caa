/** Programs together and alone, from disk and not: hits, damage, folders of others, writers at once, bad sources. */
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CompileError } from '@polygrad/core/engine';
import { type Program, ProgramBuilder } from '@polygrad/core/kernel';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Driver } from './addon.ts';
import { explainBuild } from './build-log.ts';
import { chooseDevice } from './devices.ts';
import { createOpenClEngine, type OpenClEngine } from './engine.ts';
import { printKernel } from './kernel.ts';
import { cacheKey, ProgramCache } from './program-cache.ts';
import { BuildError, ProgramStore } from './programs.ts';
import { setUp, wishedDevice } from './setup.ts';
import { combineSources } from './source.ts';
import { hasDevice } from './fixtures/device.ts';

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const clean of cleanups.splice(0).reverse()) clean();
});
function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'polygrad-opencl-'));
  cleanups.push(() => rmSync(path, { recursive: true, force: true }));
  return join(path, 'cache');
}

/** x[i] = x[i] + value. */
function addProgram(value: number): Program {
  const b = new ProgramBuilder();
  const { e } = b;
  const x = e.param(0, 'float32', 'readwrite', 4);
  const at = e.special('group', 0, 4);
  b.store(x, at, e.add(b.load(x, at), e.constant('float32', value)));
  return b.build({ name: `add${value}`, grid: [4, 1, 1] });
}

function make(cache: string): OpenClEngine {
  const engine = createOpenClEngine({ cache });
  cleanups.push(() => engine.dispose());
  return engine;
}

/** What a kernel that adds `value` makes of zeros. */
function run(engine: OpenClEngine, value: number): number[] {
  const [kernel] = engine.compile([addProgram(value)]);
  const x = { buffer: engine.alloc(16), offset: 0, bytes: 16 };
  engine.submit([
    { kind: 'fill', to: x, pattern: 0 },
    { kind: 'dispatch', kernel: kernel!, bindings: [x], scalars: [] },
  ]);
  return [...new Float32Array(engine.downloadSync(x, new Uint8Array(16)).buffer)];
}

describe('combineSources', () => {
  it('writes what kernels share once', () => {
    const helper = 'float twice(float x) {\n  return 2 * x;\n}';
    const source = (name: string): string => `#pragma A\n${helper}\n__kernel\nvoid ${name}() {\n}\n`;
    const both = combineSources([source('a'), source('b')]);
    expect(both.split('#pragma').length).toBe(2);
    expect(both.split('float twice').length).toBe(2);
    expect(both.indexOf('twice')).toBeLessThan(both.indexOf('__kernel'));
    expect(both).toMatch(/void a\(\) \{\n\}\n\n__kernel\nvoid b/);
    expect(combineSources([source('a')])).toBe(source('a'));
  });
});

describe.skipIf(process.platform === 'win32')('ProgramCache', () => {
  const key = cacheKey(['some', 'thing']);

  it('gives back what was written, under every key', () => {
    const cache = new ProgramCache(folder());
    const other = cacheKey(['something']);
    expect(other).not.toBe(key);
    expect(cache.read(key)).toBeNull();
    cache.write([key, other], Uint8Array.of(1, 2, 3));
    expect([...cache.read(key)!.binary]).toEqual([1, 2, 3]);
    expect(cache.read(other)!.id).toBe(cache.read(key)!.id);
    expect(readdirSync(cache.folder).length).toBe(2);
    expect(statSync(cache.folder).mode & 0o777).toBe(0o700);
  });

  it.each([
    ['a changed byte', (b: Buffer) => Buffer.concat([b.subarray(0, -1), Buffer.of(b.at(-1)! ^ 1)])],
    ['a missing end', (b: Buffer) => b.subarray(0, -1)],
    ['nothing in it', () => Buffer.alloc(0)],
    ['another beginning', (b: Buffer) => Buffer.concat([Buffer.from('X'), b.subarray(1)])],
  ])('forgets a file with %s', (_, damage) => {
    const cache = new ProgramCache(folder());
    cache.write([key], Uint8Array.of(1, 2, 3));
    const path = join(cache.folder, readdirSync(cache.folder)[0]!);
    writeFileSync(path, damage(readFileSync(path)));
    expect(cache.read(key)).toBeNull();
    expect(readdirSync(cache.folder)).toEqual([]);
  });

  it('does not trust a file under another name', () => {
    const cache = new ProgramCache(folder());
    const other = cacheKey(['something']);
    cache.write([key], Uint8Array.of(1, 2, 3));
    cache.write([other], Uint8Array.of(4, 5, 6));
    const [a, b, between] = [`${key}.clbin`, `${other}.clbin`, 'between'].map((name) => join(cache.folder, name)) as [
      string,
      string,
      string,
    ];
    renameSync(a, between);
    renameSync(b, a);
    renameSync(between, b);
    expect([cache.read(key), cache.read(other)]).toEqual([null, null]);
    expect(readdirSync(cache.folder)).toEqual([]);
  });

  it('passes over what is no file, without waiting for it', () => {
    const cache = new ProgramCache(folder());
    const path = join(cache.folder, `${key}.clbin`);
    cache.write([key], Uint8Array.of(1, 2, 3));
    const aside = `${cache.folder}-aside`;
    renameSync(path, aside);
    const puts: (() => void)[] = [
      () => execFileSync('mkfifo', [path]),
      () => symlinkSync(aside, path),
      () => symlinkSync('/dev/zero', path),
    ];
    // Whoever may make devices tries one that never ends.
    if (spawnSync('mknod', [`${aside}-zero`, 'c', '1', '5']).status === 0)
      puts.push(() => execFileSync('mknod', [path, 'c', '1', '5']));
    for (const put of puts) {
      put();
      expect(cache.read(key)).toBeNull();
      expect(readdirSync(cache.folder)).toEqual([]);
      cache.write([key], Uint8Array.of(4));
      expect([...cache.read(key)!.binary]).toEqual([4]);
      cache.remove(key);
    }
    expect(readFileSync(aside).length).toBeGreaterThan(3);
    mkdirSync(path);
    expect(cache.read(key)).toBeNull();
    cache.remove(key);
    cache.write([key], Uint8Array.of(4));
    expect(readdirSync(cache.folder)).toEqual([`${key}.clbin`]);
  });

  it('leaves folders alone that others may write or that are none', () => {
    const open = folder();
    expect(new ProgramCache(open).refused).toBeNull();
    chmodSync(open, 0o770);
    const cache = new ProgramCache(open);
    expect(cache.refused).toMatch(/open to other users \(mode 770\): chmod 700/);
    cache.write([key], Uint8Array.of(1));
    expect(readdirSync(open)).toEqual([]);
    chmodSync(open, 0o700);
    const link = `${open}-link`;
    symlinkSync(open, link);
    expect(new ProgramCache(link).refused).toMatch(/is not a folder/);
    writeFileSync(`${open}-file`, '');
    expect(new ProgramCache(`${open}-file`).refused).toMatch(/cannot be used|not a folder/);
  });
});

describe.skipIf(process.getuid?.() !== 0)('ProgramCache, for root', () => {
  it('leaves folders of other users alone, also where nobody else may write', () => {
    const path = folder();
    const key = cacheKey(['x']);
    new ProgramCache(path).write([key], Uint8Array.of(1));
    chownSync(path, 65534, 65534);
    const cache = new ProgramCache(path);
    expect(cache.refused).toMatch(/belongs to another user/);
    expect(cache.read(key)).toBeNull();
    cache.write([cacheKey(['y'])], Uint8Array.of(1));
    expect(readdirSync(path).length).toBe(1);
  });
});

const isPocl = hasDevice() && chooseDevice(wishedDevice({})).record.platform === 'Portable Computing Language';

describe.skipIf(!hasDevice())('programs on disk', () => {
  it('are compiled once, whichever kernels they were compiled with', async () => {
    const cache = folder();
    const first = make(cache);
    first.compile([addProgram(1), addProgram(2)]);
    await first.ready();
    expect(first.builds).toEqual({ compiled: 2, fromDisk: 0 });
    const second = make(cache);
    expect(run(second, 2)).toEqual([2, 2, 2, 2]);
    expect(run(second, 3)).toEqual([3, 3, 3, 3]);
    expect(second.builds).toEqual({ compiled: 1, fromDisk: 1 });
  });

  it.runIf(isPocl)('are compiled again where variables tell PoCL to compile otherwise', () => {
    const cache = folder();
    const builds = (): unknown => {
      const engine = make(cache);
      expect(run(engine, 1)).toEqual([1, 1, 1, 1]);
      return engine.builds;
    };
    const compiled = { compiled: 1, fromDisk: 0 };
    const fromDisk = { compiled: 0, fromDisk: 1 };
    expect(builds()).toEqual(compiled);
    vi.stubEnv('POCL_EXTRA_BUILD_FLAGS', '-cl-opt-disable');
    cleanups.push(() => vi.unstubAllEnvs());
    expect(builds()).toEqual(compiled);
    expect(builds()).toEqual(fromDisk);
    vi.unstubAllEnvs();
    expect(builds()).toEqual(fromDisk);
    expect(readdirSync(cache).length).toBe(2);
  });

  it('are compiled again where the file is damaged or refused by the driver', () => {
    const cache = folder();
    run(make(cache), 1);
    const [name] = readdirSync(cache);
    const path = join(cache, name!);
    writeFileSync(path, readFileSync(path).fill(0, 60, 80));
    const engine = make(cache);
    expect(run(engine, 1)).toEqual([1, 1, 1, 1]);
    expect(engine.builds).toEqual({ compiled: 1, fromDisk: 0 });
    // A file that is whole and no program.
    new ProgramCache(cache).write([name!.replace(/\..*/, '')], Buffer.from('not a program at all, for any driver'));
    const another = make(cache);
    expect(run(another, 1)).toEqual([1, 1, 1, 1]);
    expect(another.builds).toEqual({ compiled: 1, fromDisk: 0 });
  });

  it('are compiled again where two files were exchanged', () => {
    const cache = folder();
    run(make(cache), 1);
    run(make(cache), 2);
    const [a, b] = readdirSync(cache).map((name) => join(cache, name)) as [string, string];
    renameSync(a, `${cache}-a`);
    renameSync(b, a);
    renameSync(`${cache}-a`, b);
    for (const [compiled, fromDisk] of [
      [2, 0],
      [0, 2],
    ]) {
      const engine = make(cache);
      expect(run(engine, 1)).toEqual([1, 1, 1, 1]);
      expect(run(engine, 2)).toEqual([2, 2, 2, 2]);
      expect(engine.builds).toEqual({ compiled, fromDisk });
    }
  });

  it('are written by many at once', async () => {
    const cache = folder();
    const engines = Array.from({ length: 4 }, () => make(cache));
    for (const engine of engines) engine.compile([addProgram(7), addProgram(8)]);
    await Promise.all(engines.map((engine) => engine.ready()));
    expect(readdirSync(cache).every((name) => name.endsWith('.clbin'))).toBe(true);
    expect(run(make(cache), 8)).toEqual([8, 8, 8, 8]);
  });

  it('are not kept in a folder that is open to others, and the engine says so', () => {
    const cache = folder();
    make(cache);
    chmodSync(cache, 0o777);
    const engine = make(cache);
    expect(engine.cacheRefused).toMatch(/open to other users/);
    expect(run(engine, 1)).toEqual([1, 1, 1, 1]);
    expect(readdirSync(cache)).toEqual([]);
  });
});

describe.skipIf(!hasDevice())('ProgramStore', () => {
  function store(): { store: ProgramStore; driver: Driver } {
    const { driver, buildOptions } = setUp({ cache: false });
    cleanups.push(() => driver.dispose());
    return { driver, store: new ProgramStore(driver, null, buildOptions, ['test'], false) };
  }
  const good = { source: '__kernel\nvoid good(__global int* x) {\n  x[0] = 1;\n}\n', entry: 'good' };
  const bad = { source: '__kernel\nvoid bad(__global int* x) {\n  x[0] = nothing;\n}\n', entry: 'bad' };

  it('finds the kernel that is to blame', () => {
    const { driver, store: programs } = store();
    const [first, second, third] = programs.take([good, bad, { ...good, source: good.source.replace('1', '2') }]);
    expect(() => programs.handleOf(second!)).toThrow(BuildError);
    const refusal = ((): BuildError => {
      try {
        programs.handleOf(second!);
      } catch (error) {
        return error as BuildError;
      }
      throw new Error('was not refused');
    })();
    expect(refusal.log).toMatch(/nothing/);
    expect(refusal.source).toMatch(/nothing/);
    // The others are compiled without it.
    for (const held of [first!, third!])
      driver.kernel(programs.handleOf(held), held.entry, Float64Array.of(1, 1, 1, 1, 1, 1, 0));
    for (const held of [first!, second!, third!]) programs.release(held);
    expect(programs.take([bad])[0]!.module.refused).toBeNull();
  });

  it('compiles in the background, and is told when all is done', async () => {
    const { store: programs } = store();
    const held = programs.take(
      Array.from({ length: 5 }, (_, i) => ({ ...good, source: good.source.replace('1', `${i}`) })),
    );
    expect(held.every(({ module }) => module.building !== null)).toBe(true);
    await Promise.all([programs.whenBuilt(), programs.whenBuilt()]);
    expect(held.every(({ module }) => module.building === null)).toBe(true);
    expect(programs.compiled).toBe(5);
    // Refusals are told to those who need the kernel only.
    const [refused] = programs.take([bad]);
    await programs.whenBuilt();
    expect(() => programs.handleOf(refused!)).toThrow(BuildError);
  });

  it('begins anew where compiling failed for want of something', () => {
    const { driver, buildOptions } = setUp({ cache: false });
    cleanups.push(() => driver.dispose());
    let failures = 1;
    const faulty = new Proxy(driver, {
      get: (target, name) => {
        if (name === 'finish' && failures-- > 0)
          return () => {
            throw Object.assign(new Error('native'), {
              code: -6,
              call: 'clCreateProgramWithSource',
              command: -1,
              log: '',
            });
          };
        return target[name as keyof Driver].bind(target);
      },
    });
    const programs = new ProgramStore(faulty, null, buildOptions, ['test'], false);
    const [held] = programs.take([good]);
    expect(() => programs.handleOf(held!)).toThrow('native');
    expect(programs.handleOf(held!)).toBeGreaterThanOrEqual(0);
  });

  it('lets go of kernels that are still being compiled', async () => {
    const { store: programs } = store();
    for (const held of programs.take([good, bad])) programs.release(held);
    await programs.whenBuilt();
    expect(programs.handleOf(programs.take([good])[0]!)).toBeGreaterThanOrEqual(0);
  });

  it('reports the log, the source line and the IR', () => {
    const { store: programs } = store();
    const program = addProgram(1);
    const printed = printKernel(program, {});
    const line = printed.source.split('\n').findIndex((text) => text.includes('p0['));
    const broken = printed.source.replace('p0[', 'q0[');
    try {
      programs.handleOf(programs.take([{ source: broken, entry: printed.entry }])[0]!);
      expect.fail('was not refused');
    } catch (error) {
      const report = explainBuild(error as BuildError, program, printed);
      expect(report).toBeInstanceOf(CompileError);
      expect(report.kernel).toBe('add1');
      expect(report.message).toContain(`source line ${line + 1}`);
      expect(report.message).toMatch(/q0/);
      expect(report.ir).toMatch(/STORE/i);
    }
  });
});
