/** Batches that come again are one launch of a graph, with the same results; where the driver has none, or fails, kernel by kernel. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { floats, put } from '@polygrad/addon/fixtures';
import type { Binding, Command, CompiledKernel } from '@polygrad/core/engine';
import { type Program, ProgramBuilder } from '@polygrad/core/kernel';
import { describe, expect, it } from 'vitest';
import { createCudaEngine, type CudaEngine } from './engine.ts';
import { hasDevice, hasSimulator, simulator } from './fixtures/device.ts';
import { ask } from './fixtures/process.ts';

/** y[i] = x[i] * s + t, one group per element. */
function stepProgram(n: number, name = 'step'): Program {
  const b = new ProgramBuilder();
  const { e } = b;
  const [x, y] = [e.param(0, 'float32', 'read', n), e.param(1, 'float32', 'write', n)];
  const at = e.special('group', 0, n);
  b.store(y, at, e.add(e.mul(b.load(x, at), e.scalar(0, 'float32')), e.scalar(1, 'float32')));
  return b.build({ name, grid: [n, 1, 1] });
}

const step = (kernel: CompiledKernel, x: Binding, y: Binding, s: number, t: number): Command => ({
  kind: 'dispatch',
  kernel,
  bindings: [x, y],
  scalars: [s, t],
});

describe.skipIf(!hasDevice())('graphs', () => {
  const engines: CudaEngine[] = [];
  const made = (options = {}): CudaEngine => {
    const engine = createCudaEngine(options);
    engines.push(engine);
    return engine;
  };

  it('launch a batch as one from the third time on, and follow bindings and scalars', () => {
    const run = (engine: CudaEngine): number[][] => {
      const [x, y, z] = [1, 2, 3].map((i) => put(engine, Float32Array.of(i, 2 * i))) as [Binding, Binding, Binding];
      const [kernel] = engine.compile([stepProgram(2)]) as [CompiledKernel];
      const seen: number[][] = [];
      for (let i = 0; i < 8; i++) {
        // Every other time with another buffer, and each time with another scalar.
        const to = i % 2 === 0 ? y : z;
        engine.submit([
          step(kernel, x, to, i + 1, 1),
          step(kernel, to, x, 1, -1),
          step(kernel, x, to, 0.5, 0),
          step(kernel, to, x, 1, i),
        ]);
        seen.push(floats(engine, x), floats(engine, y), floats(engine, z));
        // An upload between batches is in order with them.
        engine.upload(x, Float32Array.of(i, 1));
      }
      engine.release([kernel]);
      return seen;
    };
    const [engine, other] = [made(), made({ graphs: false })];
    expect(run(engine)).toEqual(run(other));
    const { graphs, graphsMade, graphsUpdated, batches } = engine.stats;
    expect([graphs, graphsMade, batches]).toEqual([6, 1, 8]);
    // Both ends of a batch change with the scalar, all of it with the buffer.
    expect(graphsUpdated).toBe(5 * 4);
    expect([engine.graphsMissing, other.graphsMissing]).toEqual([null, 'the option graphs is false']);
    expect(other.stats).toMatchObject({ graphs: 0, graphsMade: 0, batches: 8 });
    for (const e of engines.splice(0)) e.dispose();
    expect(engine.stats.graphs).toBe(6);
  });

  it('go with their kernels, even where they run', () => {
    const engine = made();
    const [x, y] = [put(engine, new Float32Array(2)), put(engine, new Float32Array(2))];
    for (let round = 0; round < 4; round++) {
      const [kernel] = engine.compile([stepProgram(2, `step${round % 2}`)]) as [CompiledKernel];
      for (let i = 0; i < 4; i++)
        engine.submit([
          step(kernel, x, y, 1, 1),
          step(kernel, y, x, 1, 1),
          step(kernel, x, y, 1, 1),
          step(kernel, y, x, 1, 1),
        ]);
      engine.release([kernel]);
    }
    expect(floats(engine, x)).toEqual([64, 64]);
    expect(engine.stats).toMatchObject({ graphs: 8, graphsMade: 4 });
    for (const e of engines.splice(0)) e.dispose();
  });

  it('are not made of batches with anything but kernels, and keep many', () => {
    const engine = made();
    const [x, y] = [put(engine, new Float32Array(2)), put(engine, new Float32Array(2))];
    const kernels = engine.compile([stepProgram(2), stepProgram(2, 'other')]) as [CompiledKernel, CompiledKernel];
    const batch = (bits: number): Command[] =>
      Array.from({ length: 8 }, (_, i) =>
        step(kernels[(bits >> i) & 1]!, i % 2 === 0 ? x : y, i % 2 === 0 ? y : x, 1, 1),
      );
    for (let i = 0; i < 4; i++) engine.submit([...batch(0), { kind: 'fill', to: y, pattern: 0 }]);
    expect(engine.stats.graphs).toBe(0);
    // More than are kept, then some again.
    for (let turn = 0; turn < 3; turn++) for (let bits = 0; bits < 100; bits++) engine.submit(batch(bits));
    for (let turn = 0; turn < 4; turn++) engine.submit(batch(7));
    expect(engine.stats.graphs).toBeGreaterThan(0);
    // Eight more with each of 308 batches.
    expect(floats(engine, x)).toEqual([2464, 2464]);
    for (const e of engines.splice(0)) e.dispose();
  });
});

describe.skipIf(!hasSimulator())('a driver', () => {
  const program = `
    const engine = cuda.createCudaEngine({ tuning: false });
    await core.setEngine(engine);
    const list = Array.from({ length: 64 }, (_, i) => ((i * 7) % 23) / 23 - 0.4);
    let w = core.tensor(list, { shape: [8, 8] });
    const loss = (v) => core.mean(core.square(core.sub(core.matmul(core.tanh(core.matmul(v, v)), v), 0.5)));
    for (let i = 0; i < 8; i++) {
      if (i === FROM) process.env.POLYGRAD_CUDA_SIM_FAIL = PLAN;
      const next = core.scope(() => core.sub(w, core.mul(core.grads(loss)(w)[0], 0.1)));
      await next.data();
      w.dispose();
      w = next;
    }
    say([await w.array(), engine.stats.graphs, engine.graphsMissing]);`;
  /** `plan`: failures from the step `from` on; the graph is made in the third. */
  const run = (plan: string, from = 0, settings = '', driver = simulator ?? ''): [number[][], number, string | null] =>
    ask(program.replace('PLAN', JSON.stringify(plan)).replace('FROM', String(from)), {
      POLYGRAD_CUDA_DRIVER: driver,
      POLYGRAD_CUDA_SIM: settings,
    });

  it('without graphs, or that fails at any call of theirs, computes the same', () => {
    const [values, graphs] = run('');
    expect(graphs).toBeGreaterThan(3);
    const [same, none, why] = run('', 0, 'graphs=0');
    expect([same, none, why]).toEqual([values, 0, 'the driver says CUDA_ERROR_NOT_SUPPORTED (801)']);
    const calls = {
      cuGraphAddKernelNode: 0,
      cuGraphInstantiate: 0,
      cuGraphLaunch: 5,
      cuGraphExecKernelNodeSetParams: 4,
    };
    for (const [call, from] of Object.entries(calls))
      expect(run(`${call}@1+=2`, from), call).toEqual([
        values,
        from === 0 ? 0 : expect.any(Number),
        'the driver says CUDA_ERROR_OUT_OF_MEMORY (2)',
      ]);
    // A fault is a fault.
    expect(() => run('cuGraphLaunch@1=719', 5)).toThrow(/DeviceFaultError.*CUDA_ERROR_LAUNCH_FAILED \(719\)/s);
  });

  it.skipIf(process.platform !== 'linux')('that lacks their functions computes the same', () => {
    const folder = mkdtempSync(join(tmpdir(), 'polygrad-graphs-'));
    try {
      const driver = join(folder, 'libcuda-old.so');
      // The name in the table of symbols: nobody finds it any more.
      const bytes = readFileSync(simulator as string);
      const name = Buffer.from('\0cuGraphLaunch\0');
      for (let at = bytes.indexOf(name); at >= 0; at = bytes.indexOf(name, at + 1)) bytes[at + 1] = 'x'.charCodeAt(0);
      writeFileSync(driver, bytes);
      const [values, graphs, why] = run('', 0, '', driver);
      expect([graphs, why]).toEqual([0, 'the driver has none']);
      expect(values).toEqual(run('')[0]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
