/**
 * The self-test: right engines pass it. Each kernel that computes wrongly is found, on every engine there is, and each way in which compilers of
 * drivers go wrong.
 */
import { createCpuEngine } from '@polygrad/backend-cpu';
import { createCudaEngine, listCudaDevices } from '@polygrad/backend-cuda';
import { createNativeEngine, nativeProvider } from '@polygrad/backend-native';
import { createOpenClEngine, listOpenClDevices } from '@polygrad/backend-opencl';
import { createWebGpuEngine } from '@polygrad/backend-webgpu';
import { createFaultyEngine, createReferenceEngine, createWrongEngine } from '@polygrad/testing';
import { afterAll, describe, expect, it } from 'vitest';
import type { Command, IEngine } from '../engine/engine.ts';
import { runs } from '../runtime/state.ts';
import { wrongCompilers } from './fixtures/wrong-compilers.ts';
import { selfTest, selfTestSync } from './self-test.ts';

const webgpu = await createWebGpuEngine().catch(() => null);
const engines: Readonly<Record<string, () => IEngine | null>> = {
  reference: () => createReferenceEngine(),
  'reference with threads': () => createReferenceEngine({ simt: true }),
  cpu: () => createCpuEngine({ threads: 2 }),
  native: () => createNativeEngine({ threads: 2 }),
  opencl: () => createOpenClEngine(),
  'opencl with threads': () => createOpenClEngine({ simt: true }),
  cuda: () => createCudaEngine(),
  webgpu: () => webgpu,
};
const opencl = listOpenClDevices().some(({ score }) => score > 0);
const there: Readonly<Record<string, boolean>> = {
  native: (await nativeProvider.probe()).score > 0,
  opencl,
  'opencl with threads': opencl,
  cuda: listCudaDevices().some(({ score }) => score > 0),
  webgpu: webgpu !== null,
};
afterAll(() => webgpu?.dispose());

/** Counts dispatches. */
function counting(inner: IEngine): { readonly engine: IEngine; count(): number } {
  let dispatches = 0;
  const engine = createWrongEngine(inner, 0);
  return {
    engine: new Proxy(engine, {
      get: (target, key) =>
        key !== 'submit'
          ? Reflect.get(target, key)
          : (commands: readonly Command[]) => {
              dispatches += commands.filter(({ kind }) => kind === 'dispatch').length;
              engine.submit(commands);
            },
    }),
    count: () => dispatches,
  };
}

describe.each(Object.keys(engines))('%s', (name) => {
  it.skipIf(there[name] === false)('passes, and any kernel that is wrong is found', async () => {
    const engine = engines[name]!() as IEngine;
    try {
      const before = engine.memory();
      const { engine: counted, count } = counting(engine);
      const { wrong, questions } = await selfTest(counted);
      expect(wrong).toBeNull();
      expect(questions).toContain('exp and log1p');
      expect(questions.includes('a product through group memory')).toBe(engine.caps.simt);
      expect(questions.includes('16-bit floats')).toBe(engine.caps.dtypes.has('float16'));
      expect(count()).toBeGreaterThanOrEqual(questions.length);
      for (let at = 1; at <= count(); at++)
        expect((await selfTest(createWrongEngine(engine, at))).wrong, `dispatch ${at}`).toMatch(/, expected /);
      const { bytes, buffers } = engine.memory();
      expect([bytes, buffers]).toEqual([before.bytes, before.buffers]);
      // The runtime has not heard of it.
      expect(runs.engines.has(engine)).toBe(false);
    } finally {
      if (engine !== webgpu) engine.dispose();
    }
  });
});

describe.each([
  ['vectors', {}],
  ['groups of threads', { simt: true }],
  ['subgroups', { simt: true, subgroup: 8 }],
] as const)('a compiler for %s that', (_, options) => {
  it.each(Object.keys(wrongCompilers))('%s is found', async (name) => {
    const engine = createReferenceEngine(options);
    const { caps } = engine;
    const compiler = wrongCompilers[name]!;
    let changed = 0;
    const wrong: IEngine = {
      ...engine,
      caps: { ...caps, nativeOps: new Set([...caps.nativeOps, 'MULADD']) },
      compile: (programs) =>
        engine.compile(
          programs.map((p) => {
            const other = compiler.change(p);
            if (other !== p) changed++;
            return other;
          }),
        ),
    };
    const result = await selfTest(wrong);
    const concerned = 'simt' in options ? compiler.threads : compiler.vectors;
    expect(changed > 0).toBe(concerned);
    if (concerned) expect(result.wrong).not.toBeNull();
    else expect(result.wrong).toBeNull();
  });
});

describe('the self-test', () => {
  it('goes through group memory where there is some', async () => {
    const engine = createReferenceEngine({ simt: true });
    const ops: string[][] = [];
    const staged: string[] = [];
    const spied: IEngine = {
      ...engine,
      compile: (programs) => {
        for (const { body } of programs) {
          ops.push(body.map(({ op }) => op));
          for (const { op, dtype } of body) if (op === 'SHARED') staged.push(dtype);
        }
        return engine.compile(programs);
      },
    };
    const { questions } = await selfTest(spied);
    expect(ops.filter((list) => list.includes('BARRIER')).length).toBeGreaterThanOrEqual(2);
    expect(questions).toContain('a product through group memory');
    expect(staged.includes('float16')).toBe(true);
  });

  it('refuses what is no engine', async () => {
    for (const given of ['cpu', undefined, {}]) {
      await expect(selfTest(given as never)).rejects.toThrow(/^\[selfTest\] not an engine: .*await setEngine\('cpu'\)/);
      expect(() => selfTestSync(given as never)).toThrow(/^\[selfTestSync\] not an engine/);
    }
  });

  it('tells an error instead of throwing it, and gives back what it had', async () => {
    for (const member of ['alloc', 'upload', 'compile', 'submit', 'download'] as const) {
      const engine = createFaultyEngine(createReferenceEngine());
      engine.arm({ member, at: 1, kind: 'lost' });
      expect((await selfTest(engine)).wrong, member).toContain('the device is lost');
    }
    const full = createFaultyEngine(createReferenceEngine());
    full.arm({ member: 'alloc', at: 3, kind: 'memory' });
    expect((await selfTest(full)).wrong).toContain('out of memory');
    expect(full.memory().buffers).toBe(0);
  });

  it('at once is the same, and says where an engine cannot', async () => {
    const engine = createCpuEngine({ threads: 1 });
    expect(selfTestSync(engine).wrong).toBeNull();
    expect(selfTestSync(createWrongEngine(engine, 2)).wrong).toMatch(
      /^element 0 of sums and largest elements is 7, expected/,
    );
    engine.dispose();
    const { downloadSync: _, ...waiting } = createReferenceEngine();
    expect(selfTestSync(waiting).wrong).toBe('it cannot be read at once');
  });

  it('a kernel that writes nothing is found', async () => {
    const engine = createReferenceEngine();
    const idle: IEngine = {
      ...engine,
      submit: (commands) => engine.submit(commands.filter(({ kind }) => kind !== 'dispatch')),
    };
    expect((await selfTest(idle)).wrong).toBe('element 0 of a product is NaN, expected -3');
  });
});
